"""What GraphRAG's local search can be tuned by: its own parameters, ranges and defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tuner.core.errors import InputError
from tuner.core.trial import Params
from tuner.retrieval.knobs import knob, knob_params, knobs_of

_SHARES = "text_unit_prop + community_prop <= 1"


@dataclass(frozen=True)
class Settings:
    """One valid setting of the knobs."""

    text_unit_prop: float = knob(
        "share of the context for text units, which are what is judged", 0.5, within=(0.0, 1.0)
    )
    community_prop: float = knob(
        "share of the context for community reports; entities and relationships "
        "get what the two shares leave",
        0.15,
        within=(0.0, 1.0),
        constraint=_SHARES,
    )
    top_k_mapped_entities: int = knob(
        "how many entities a query starts from; GraphRAG takes up to twice as many",
        10,
        within=(1, 100),
        scale="log",
    )
    top_k_relationships: int = knob(
        "how many relationships of each entity are in the context; this changes its tokens only",
        10,
        within=(1, 100),
        scale="log",
    )
    max_context_tokens: int = knob(
        "budget of the whole context, in GraphRAG's tokens",
        12_000,
        within=(100, 128_000),
        scale="log",
    )


KNOBS = knobs_of(Settings)

CLAIMS = "covariates"
"""The file of extracted claims, without ``.parquet``; GraphRAG writes it only if told so."""

# Two decimal fractions that add up to 1 may miss it in the last digit.
_ROUNDING = 1e-9


def read_params(params: Params) -> Settings:
    """Check parameters against the knobs and fill in defaults.

    Raises:
        InputError: unknown names, values out of range, or shares that add up to more than 1.
    """
    values: dict[str, Any] = knob_params(params, KNOBS)
    total = values["text_unit_prop"] + values["community_prop"]
    if total > 1.0 + _ROUNDING:
        raise InputError(
            f"text_unit_prop + community_prop = {total:g}, but they are shares of one context; "
            f'write space_constraints: ["{_SHARES}"]',
            key=("params", "community_prop"),
        )
    values["community_prop"] = min(values["community_prop"], 1.0 - values["text_unit_prop"])
    return Settings(**values)
