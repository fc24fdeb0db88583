"""What a system is: its kind of retriever, the options to write, and what it can be tuned by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuner.core import registry
from tuner.core.errors import InputError, did_you_mean
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.frameworks.settings import Setting, knob_of
from tuner.retrieval.base import ResolvesOptions
from tuner.retrieval.knobs import Knob
from tuner.run.systems import declared_knobs

ENGINE = "hybrid"
# What they take is whatever the configuration says, so somebody may have to tell it.
ASKED_FROM_OUTSIDE = ("command", "function", "http")
# What a first study searches: what the page of the kind begins with, and in which range. All else
# is written as a comment. Of a kind that is not here, it is everything that costs no new index.
BEGIN: Mapping[str, Mapping[str, tuple[float, float] | None]] = {
    "hybrid": {
        "graph_weight": (0.0, 1.0),
        "max_hops": (1, 5),
        "top_k": (3, 30),
        "temperature": (0.01, 1.0),
    },
    "graph_retriever": {
        "strategy": None,
        "select_k": (5, 40),
        "start_k": (1, 20),
        "adjacent_k": (1, 40),
        "max_depth": (0, 4),
    },
    "lightrag": {
        "mode": None,
        "top_k": (3, 100),
        "chunk_top_k": (10, 40),
        "cosine_better_than_threshold": (0.0, 0.6),
    },
    "ms_graphrag_local": {
        "text_unit_prop": (0.1, 1.0),
        "community_prop": (0.0, 0.5),
        "top_k_mapped_entities": (1, 30),
        "max_context_tokens": (1000, 16000),
    },
}
_SAME_AS = {"ms_graphrag": "hybrid"}


@dataclass(frozen=True)
class FoundSystem:
    """A system to tune.

    Attributes:
        kind: the kind of retriever, as a configuration names it.
        options: what else stands in ``retriever:``.
        knobs: what it can be tuned by; the default of each is today's value.
        fixed: parameters that it is given in every trial, as nothing is known to search.
        told: what was found, for people.
        costs: whether a query may cost money or time that somebody else has.
    """

    kind: str
    options: Mapping[str, Any]
    knobs: tuple[Knob, ...]
    told: str
    fixed: Params
    costs: bool = False

    @property
    def page(self) -> str:
        """Return the page that describes the kind."""
        name = "index" if ":" in self.kind else self.kind
        return f"docs/your-system/{name}.md"

    @property
    def searched(self) -> tuple[Knob, ...]:
        """Return what a first study searches, each with the range that it begins with."""
        asked = [knob for knob in self.knobs if knob.stage == "query"]
        begin = BEGIN.get(_SAME_AS.get(self.kind, self.kind))
        if begin is None:
            return tuple(knob for knob in asked if can_be_searched(knob))
        chosen = [_within(knob, begin[knob.name]) for knob in asked if knob.name in begin]
        return tuple(knob for knob in chosen if can_be_searched(knob))

    @property
    def others(self) -> tuple[Knob, ...]:
        """Return what else can be searched, those of the index last."""
        names = {knob.name for knob in self.searched}
        rest = [knob for knob in self.knobs if knob.name not in names and can_be_searched(knob)]
        return tuple(sorted(rest, key=lambda knob: knob.stage == "index"))

    @property
    def baseline(self) -> Params:
        """Return today's values of what is searched, and what is fixed."""
        today = {knob.name: knob.default for knob in self.searched if knob.default is not None}
        return {**today, **self.fixed}


def can_be_searched(knob: Knob) -> bool:
    """Say whether a knob has several values, between ends that are known."""
    if knob.kind == "categorical":
        return len(knob.choices) > 1
    low, high = knob.suggested or (knob.low, knob.high)
    return low is not None and high is not None and low < high


def _within(knob: Knob, begin: tuple[float, float] | None) -> Knob:
    """Return a knob with the range that a study begins with, as far as the knob can be that."""
    if begin is None or knob.low is None or knob.high is None:
        return knob
    low, high = max(begin[0], knob.low), min(begin[1], knob.high)
    return replace(knob, suggested=(low, high)) if low < high else knob


def of_kind(
    kind: str, options: Mapping[str, Any], today: Params, folder: Path, told: str = ""
) -> FoundSystem:
    """Return a system of a kind with these options.

    ``today`` are today's values of parameters, and ``folder`` is the configuration's.

    Raises:
        InputError: no such kind, options that are missing or wrong, or no parameter to search.
        TunerError: the system could not start.
    """
    loaded = registry.load("retrieval", kind)
    resolved = dict(options)
    if isinstance(loaded, ResolvesOptions):
        resolved = loaded.resolve_options(options, folder)
    knobs = declared_knobs(kind, resolved)
    found = {knob.name: knob for knob in knobs if not (knob.is_guess and knob.default is None)}
    named = {knob.name for knob in knobs}
    fixed: dict[str, Scalar] = {}
    is_open = kind in ASKED_FROM_OUTSIDE or any(knob.is_guess for knob in knobs)
    for name, value in today.items():
        known = found.get(name)
        if known is None and (not is_open or ("." in name and name not in named)):
            raise InputError(f"--baseline {name}: no such parameter{did_you_mean(name, found)}")
        knob = replace(known, default=value) if known is not None else _told(name, value)
        if knob is None or not can_be_searched(knob):
            fixed[name] = value
        if knob is not None:
            found[name] = knob
    # What has one value only, as far as anybody knows, is said all the same.
    for knob in found.values():
        is_told = knob.default is not None and knob.stage == "query" and kind == "function"
        if is_told and not can_be_searched(knob):
            fixed.setdefault(knob.name, knob.default)
    costs = getattr(loaded, "waits", False) is True or kind == "command"
    return FoundSystem(kind, options, tuple(found.values()), told, fixed, costs)


def _told(name: str, value: Scalar) -> Knob | None:
    """Return the knob of a parameter of which only today's value is known."""
    return knob_of(Setting(name, value, description=f"{value!r} today: choose the range"))


def names_of(knobs: Sequence[Knob]) -> str:
    """Return the names of knobs for a line of text."""
    return ", ".join(knob.name for knob in knobs)
