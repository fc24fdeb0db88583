"""Weights of a list, such as ``weights_0``: only their ratio counts, and one is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tuner.core.errors import Problem
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.dead import can_be_above_0, no_weight, no_weight_problems
from tuner.retrieval.knobs import Knob

_WEIGHT = re.compile(r"(.*weights)_\d+")


def weight_problems(
    space: SearchSpace | None, baseline: Params | None, knobs: Sequence[Knob]
) -> Iterator[Problem]:
    """Yield weights that are all 0, and one that is searched where all others are 0."""
    today = {knob.name: knob.default for knob in knobs} | (dict(baseline) if baseline else {})
    for names in _read_groups(knobs, today):
        if nothing := list(no_weight_problems(names, space, today)):
            yield from nothing
            return
    searched = {} if space is None else space.parameters
    for names in _groups(knobs).values():
        live = [name for name in names if can_be_above_0(name, space, today)]
        if len(live) == 1 and live[0] in searched and len(names) > 1:
            others = [name for name in names if name != live[0]]
            verb = "is" if len(others) == 1 else "are"
            yield Problem(
                f"has no effect where {' and '.join(others)} {verb} 0, as only the ratio of "
                f"weights counts; leave it out, or give {others[0]} a value above 0",
                key=("space", live[0]),
            )


def without_weight(knobs: Sequence[Knob], values: Params) -> str | None:
    """Say which weights are all 0 where they count; None: each list has one above 0."""
    for names in _read_groups(knobs, values):
        if not any(values.get(name) for name in names):
            return no_weight(names)
    return None


def _read_groups(knobs: Sequence[Knob], values: Params) -> Iterator[list[str]]:
    """Yield the names of each list's weights, where it is read beside these values."""
    by_name = {knob.name: knob for knob in knobs}
    for names in _groups(knobs).values():
        when = by_name[names[0]].when
        if all(values.get(other) in needed for other, needed in when.items()):
            yield names


def _groups(knobs: Sequence[Knob]) -> dict[str, list[str]]:
    """Return the names of weights, by the list that they are of."""
    found: dict[str, list[str]] = {}
    for knob in knobs:
        if knob.kind == "real" and (one := _WEIGHT.fullmatch(knob.name)):
            found.setdefault(one[1], []).append(knob.name)
    return found
