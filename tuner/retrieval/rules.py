"""Values of a space that break a rule between knobs, where the system says nothing of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from tuner.core.errors import Problem
from tuner.core.space import Categorical, Parameter, SearchSpace
from tuner.core.space.expression import UNKNOWN, Domain, parse
from tuner.core.trial import Params, Scalar
from tuner.retrieval.knobs import Knob

# Looked at to find where a rule is broken: the ends of the ranges first, then points drawn.
_MOST_CORNERS = 1000
_DRAWN = 200
_NAME = re.compile(r"[A-Za-z_][\w.]*")


def rule_problems(
    space: SearchSpace | None, baseline: Params | None, knobs: Sequence[Knob]
) -> Iterator[Problem]:
    """Yield each rule ``a <= b`` between knobs that a trial could break, and what to write.

    A rule that nothing searched takes part in is that of today's system, and left alone.
    """
    if space is None:
        return
    by_name = {knob.name: knob for knob in knobs}
    domains = {name: Domain(UNKNOWN) for name in by_name}
    fixed = {name: one for name, one in (baseline or {}).items() if name not in space.parameters}
    today = {knob.name: knob.default for knob in knobs} | fixed
    for knob in knobs:
        if not knob.constraint:
            continue
        rule = parse(knob.constraint, domains)
        if rule.names.isdisjoint(space.names):
            continue
        for point in _points(space, {*rule.names, *knob.constraint_when}):
            asked = today | point
            values = {name: asked[name] for name in sorted(rule.names, key=rule.text.find)}
            if None not in values.values() and _counts(knob, asked) and not rule.holds(asked):
                yield _problem(space, knob, rule.text, values)
                break


def _points(space: SearchSpace, names: set[str]) -> Iterator[Params]:
    """Yield points that the space's own constraints allow: its corners, and some in between."""
    for name in list(names):
        names |= set(space.parameters[name].when) if name in space.parameters else set()
    levels = {name: _levels(one, name in names) for name, one in space.parameters.items()}
    yield from islice(space.combinations(levels), _MOST_CORNERS)
    draw = np.random.default_rng(0)
    for _ in range(_DRAWN):
        yield space.sample(draw)


def _levels(parameter: Parameter, is_named: bool) -> Sequence[Scalar]:
    if not is_named:
        return (parameter.at(0.5),)
    if isinstance(parameter, Categorical):
        return parameter.choices
    return tuple(dict.fromkeys((parameter.at(0.0), parameter.at(1.0))))


def _counts(knob: Knob, asked: Params) -> bool:
    """Say whether a rule counts beside what else is set."""
    conditions = (*knob.when.items(), *knob.constraint_when.items())
    return all(asked[other] in needed for other, needed in conditions if other in asked)


def _problem(space: SearchSpace, knob: Knob, rule: str, values: Params) -> Problem:
    (name, value), *others = values.items()
    beside = " and ".join(f"{other} is {one}" for other, one in others)
    above = "that" if len(others) == 1 else rule.partition("<=")[2].strip()
    said = f"{name!r} can be {value} where {beside}, and what is above {above} has no effect"
    fixed = [one for one in values if one not in space.parameters]
    if len(values) - len(fixed) > 1:
        hint = f'write space_constraints: ["{_written(space, knob, values)}"]'
    else:
        hint = f"search values with {knob.constraint}, or name {fixed[0]} in the baseline or space"
    searched = next(one for one in values if one in space.parameters)
    return Problem(f"{said}; {hint}", key=("space", searched))


def _written(space: SearchSpace, knob: Knob, values: Params) -> str:
    """Return a rule as a constraint that forbids nothing where the rule does not count.

    A constraint names what is searched; of what is fixed, it has the value.
    """
    text = _NAME.sub(lambda found: _shown(space, found[0], values), knob.constraint)
    own = space.parameters.get(knob.name)
    for other, needed in knob.constraint_when.items():
        if own is not None and other in own.when:
            continue  # a constraint on what is not active is met
        parameter = space.parameters.get(other)
        if isinstance(parameter, Categorical) and not set(parameter.choices) <= set(needed):
            text = f"{other} not in {list(needed)} or {text}"
    return text


def _shown(space: SearchSpace, name: str, values: Params) -> str:
    return name if name in space.parameters else str(values.get(name, name))
