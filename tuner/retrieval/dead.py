"""Parameters of a space that would change nothing, since what else is set does not read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tuner.core.errors import Problem
from tuner.core.space import Categorical, SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.retrieval.knobs import Knob


def dead_problems(
    space: SearchSpace | None, baseline: Params | None, knobs: Sequence[Knob]
) -> Iterator[Problem]:
    """Yield each parameter that is searched where it has no effect, and what to write instead.

    So is one that a baseline sets to another value than today's, where nothing searched reads it.
    """
    by_name = {knob.name: knob for knob in knobs}
    parameters = {} if space is None else space.parameters
    for name, parameter in parameters.items():
        for other, needed in (by_name[name].when if name in by_name else {}).items():
            if other not in by_name:
                continue
            values = _values(other, space, baseline, by_name)
            allowed = parameter.when.get(other)
            reached = [value for value in values if allowed is None or value in allowed]
            dead = [value for value in reached if value not in needed]
            if not dead:
                continue
            shown = ", ".join(map(str, needed))
            said = f"{name!r} has no effect where {other} is {' or '.join(map(str, dead))}"
            if other in parameters:
                alive = [value for value in needed if value in values] or list(needed)
                hint = f"write when: {{{other}: [{', '.join(map(str, alive))}]}}"
            else:
                hint = f"leave it out, or set {other} in the baseline to one of {shown}"
            yield Problem(f"{said}; {hint}", key=("space", name))
    # Without a space the baseline is what a study chose: it names what was fixed in it, too.
    fixed = {} if space is None or baseline is None else baseline
    for name, value in fixed.items():
        if name in parameters or name not in by_name or value == by_name[name].default:
            continue
        for other, needed in by_name[name].when.items():
            values = _values(other, space, baseline, by_name) if other in by_name else ()
            if values and not set(values) & set(needed):
                said = f"{name!r} has no effect where {other} is {' or '.join(map(str, values))}"
                hint = f"leave it out, or set {other} to one of {', '.join(map(str, needed))}"
                yield Problem(f"{said}; {hint}", key=("baseline", name))


def no_weight(names: Sequence[str]) -> str:
    """Say that these weights are all 0."""
    return f"{', '.join(names)} are all 0, which leaves nothing; give one a weight"


def no_weight_problems(
    names: Sequence[str], space: SearchSpace | None, today: Params
) -> Iterator[Problem]:
    """Yield that weights are all 0: those of today, or all that a trial can ask for."""
    if not any(today[name] for name in names):
        yield Problem(no_weight(names), key=("baseline", names[0]))
    elif space is not None and not any(can_be_above_0(name, space, today) for name in names):
        searched = next(name for name in names if name in space.parameters)
        yield Problem(no_weight(names), key=("space", searched))


def can_be_above_0(name: str, space: SearchSpace | None, today: Params) -> bool:
    """Say whether a weight can be above 0 in a study: one that is searched can, as a rule."""
    parameter = None if space is None else space.parameters.get(name)
    if parameter is None:
        return bool(today[name])
    return not isinstance(parameter, Categorical) or any(parameter.choices)


def _values(
    name: str,
    space: SearchSpace | None,
    baseline: Params | None,
    knobs: Mapping[str, Knob],
) -> tuple[Scalar, ...]:
    """Return the values that a parameter can take in a study."""
    parameter = space.parameters.get(name) if space is not None else None
    if isinstance(parameter, Categorical):
        return parameter.choices
    if parameter is not None:
        return ()
    return ((baseline or {}).get(name, knobs[name].default),)
