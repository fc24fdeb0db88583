"""Legs of weight 0: what is searched beside them without effect, and where no leg is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tuner.core.errors import Problem
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.cypher.mixing import own_knobs
from tuner.retrieval.adapters.cypher.steps import MIXING, Steps
from tuner.retrieval.adapters.runs.fusion import weight_name
from tuner.retrieval.dead import can_be_above_0, no_weight_problems


def weight_problems(
    steps: Steps, space: SearchSpace | None, baseline: Params | None
) -> Iterator[Problem]:
    """Yield what weights of 0 make impossible, and each searched parameter that they make mute.

    A leg may have the weight 0: it is left out then. A weight that is searched counts as one above
    0 where it can be.
    """
    if len(steps.legs) == 1:
        return
    searched = {} if space is None else space.parameters
    today = {weight_name(leg): (baseline or {}).get(weight_name(leg), 1.0) for leg in steps.legs}
    if nothing := list(no_weight_problems(list(today), space, today)):
        yield from nothing
        return
    live = [leg for leg in steps.legs if can_be_above_0(weight_name(leg), space, today)]
    if len(live) == len(steps.legs):
        return
    mute = [weight_name(leg) for leg in steps.legs if leg not in live]
    where = f"where {' and '.join(mute)} {'is' if len(mute) == 1 else 'are'} 0"
    # A weight of choices that are all 0 is in no baseline to be changed.
    places = " and ".join(
        dict.fromkeys("space" if name in searched else "baseline" for name in mute)
    )
    hint = f"leave it out, or give {mute[0]} a value above 0 in the {places}"
    own = {knob.name for knob in own_knobs(steps.legs)}
    needed = _needed(steps, live)
    for name in searched:
        if name in own:
            is_mixing = name in MIXING or name == weight_name(live[0])
            if len(live) == 1 and is_mixing and name not in steps.parameters:
                said = f"one leg is left, {live[0]!r}, and nothing is mixed"
                yield Problem(f"has no effect {where}: {said}; {hint}", key=("space", name))
            continue
        readers = [step.name for step in steps.steps if name in step.names]
        if readers and needed.isdisjoint(readers):
            said = f"read by {' and '.join(map(repr, readers))} alone, for no leg that counts"
            yield Problem(f"has no effect {where}: {said}; {hint}", key=("space", name))


def _needed(steps: Steps, legs: Sequence[str]) -> set[str]:
    """Return the steps that the documents of these legs come from, by name."""
    needed = set(legs)
    for place in reversed(range(len(steps.steps))):
        if steps.steps[place].name in needed:
            needed |= set(steps.sources(place))
    return needed
