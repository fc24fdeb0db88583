"""What a configuration says of free parameters: which they are, and how."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tuner.core.errors import Problem, did_you_mean, refuse
from tuner.core.shown import shortened
from tuner.retrieval.free import FreeKnobs

PREFIX = "prefix"


def declared_free(given: Mapping[str, Any], searched: Collection[str]) -> FreeKnobs:
    """Read the mapping ``free``: parameter -> how it is free, such as ``{top_k: prefix}``.

    Args:
        given: the mapping.
        searched: the names of the space.

    Raises:
        InputError: a parameter that is not searched, or another word; everything, at once.
    """
    problems = []
    if not given:
        problems.append(Problem("names no parameter; write {top_k: prefix}, on or off"))
    for name, how in given.items():
        if name not in searched:
            hint = did_you_mean(str(name), searched)
            problems.append(Problem(f"is no parameter of the space{hint}", key=(str(name),)))
        elif how != PREFIX:
            got = shortened(repr(how), 60)
            problems.append(Problem(f"must be {PREFIX}, got {got}", key=(name,)))
    refuse(problems)
    return FreeKnobs(tuple(given))
