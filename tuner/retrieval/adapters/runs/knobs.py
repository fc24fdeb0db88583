"""What can be tuned in a fusion of runs: weights, normalisation, depths, and how much is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuner.core.errors import InputError
from tuner.core.trial import Params
from tuner.retrieval.adapters.runs.normalisation import NORMALISATIONS
from tuner.retrieval.knobs import Knob, knob_params

RRF_K = 60
TOP_K = 10
_LEAST_TOP_K_LIMIT = 100  # so that a space made for another retriever fits short runs as well


@dataclass(frozen=True)
class Settings:
    """One valid setting of the knobs; ``weights`` and ``depths`` in the order of the legs."""

    weights: tuple[float, ...]
    depths: tuple[int, ...]
    is_rrf: bool
    normalisation: str
    rrf_k: int
    top_k: int


def make_knobs(depths: Mapping[str, int], *, widest: int) -> tuple[Knob, ...]:
    """Return the knobs for legs with these depths; ``widest`` is the largest union of a query."""
    some_weight = " + ".join(f"weight_{leg}" for leg in depths) + " > 0"
    weights = (
        Knob(
            f"weight_{leg}",
            "real",
            1.0,
            low=0.0,
            high=1.0,
            description=f"weight of the leg {leg!r}; only ratios count, and 0 leaves it out",
            constraint=some_weight,
        )
        for leg in depths
    )
    cuts = (
        Knob(
            f"depth_{leg}",
            "integer",
            depth,
            low=1,
            high=depth,
            description=f"how many documents of the leg {leg!r} are looked at",
        )
        for leg, depth in depths.items()
    )
    return (
        *weights,
        Knob(
            "fusion",
            "categorical",
            "score",
            choices=("score", "rrf"),
            description="what is added up: normalised scores (score), or reciprocal ranks (rrf)",
        ),
        Knob(
            "normalisation",
            "categorical",
            "min_max",
            choices=NORMALISATIONS,
            description="how the scores of a leg, that is of one run, become comparable",
            when={"fusion": ("score",)},
        ),
        Knob(
            "rrf_k",
            "integer",
            RRF_K,
            low=1,
            high=1000,
            scale="log",
            description="k in 1 / (k + rank), ranks from 1",
            when={"fusion": ("rrf",)},
        ),
        *cuts,
        Knob(
            "top_k",
            "integer",
            TOP_K,
            low=1,
            high=max(widest, _LEAST_TOP_K_LIMIT),
            description="how many documents are returned",
        ),
    )


def read_params(params: Params, knobs: tuple[Knob, ...], legs: tuple[str, ...]) -> Settings:
    """Check parameters against the knobs and fill in defaults.

    Raises:
        InputError: unknown names, values out of range, or no leg with a weight.
    """
    values: dict[str, Any] = knob_params(params, knobs)
    weights = tuple(float(values[f"weight_{leg}"]) for leg in legs)
    if not any(weights):
        names = ", ".join(f"weight_{leg}" for leg in legs)
        raise InputError(f"{names} are all 0, which leaves no leg; give one of them a weight")
    return Settings(
        weights=weights,
        depths=tuple(int(values[f"depth_{leg}"]) for leg in legs),
        is_rrf=values["fusion"] == "rrf",
        normalisation=str(values["normalisation"]),
        rrf_k=int(values["rrf_k"]),
        top_k=int(values["top_k"]),
    )
