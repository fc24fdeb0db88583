"""Knobs of systems that declare none: the configuration's space and baseline say what there is."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.retrieval.base import Knob


def space_knobs(
    space: SearchSpace | None,
    baseline: Params | None,
    *,
    defaults: Mapping[str, Scalar] | None = None,
    names: Collection[str] | None = None,
) -> tuple[Knob, ...]:
    """Return a knob for each parameter of the space, the baseline and the system's own defaults.

    Its kind is that of the space; numbers have no bounds, since what a system can take is its own
    affair and a baseline may lie outside of what is searched. Its default is the baseline's value,
    else the system's own, else the middle of the range. ``names`` leaves out all others.
    """
    parameters = {} if space is None else dict(space.parameters)
    today: Params = dict(baseline or {})
    own = dict(defaults or {})
    knobs = []
    for name in dict.fromkeys((*parameters, *today, *own)):
        if names is not None and name not in names:
            continue
        fallback = today.get(name, own.get(name))
        has_fallback = name in today or name in own
        guess = not has_fallback
        match parameters.get(name):
            case Real() as parameter:
                default = fallback if has_fallback else parameter.at(0.5)
                knobs.append(Knob(name, "real", default, scale=parameter.scale, is_guess=guess))
            case Integer() as parameter:
                default = fallback if has_fallback else parameter.at(0.5)
                knobs.append(Knob(name, "integer", default, scale=parameter.scale, is_guess=guess))
            case Categorical() as parameter:
                default = fallback if has_fallback else parameter.choices[0]
                choices = dict.fromkeys((*parameter.choices, default))
                knobs.append(
                    Knob(name, "categorical", default, choices=tuple(choices), is_guess=guess)
                )
            case None:
                knobs.append(_fixed(name, fallback))
    return tuple(knobs)


def _fixed(name: str, value: Scalar) -> Knob:
    """Return the knob of a parameter that is not searched: of its value's kind."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Knob(name, "categorical", value, choices=(value,))
    return Knob(name, "integer" if isinstance(value, int) else "real", value)
