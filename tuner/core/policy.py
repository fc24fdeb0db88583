"""A policy: parameters for each type of query, and the rule that tells a new query's type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tuner.core.errors import InputError
from tuner.core.json_text import read_as
from tuner.core.trial import Params
from tuner.core.words import split_words

_NOT_ONE = "not a policy as `tuner policy` writes it"

# The parameter that names a policy where a study's baseline is one.
POLICY = "policy"
FIRST_WORD = "first word "
HAS_NAME = "a capital after the first word"


@dataclass(frozen=True)
class WordRule:
    """Tells a query's type by its words: the type with the highest sum of weights.

    Attributes:
        start: the weight that each type begins with (the log of how common it is).
        weights: feature -> type -> weight. Features are words, ``"first word "`` + the first
            one, and whether a later word begins with a capital.
    """

    start: Mapping[str, float]
    weights: Mapping[str, Mapping[str, float]]

    def classify(self, text: str) -> str:
        """Return the type; of equals the first in alphabetical order."""
        totals = dict(self.start)
        for feature in features(text):
            for name, weight in self.weights.get(feature, {}).items():
                totals[name] += weight
        return min(totals, key=lambda name: (-totals[name], name))


def features(text: str) -> set[str]:
    """Return what a rule looks at in a query.

    >>> sorted(features("Who wrote Emma?"))
    ['a capital after the first word', 'emma', 'first word who', 'who', 'wrote']
    """
    words = split_words(text)
    found = set(words)
    if words:
        found.add(FIRST_WORD + words[0])
    if any(word[:1].isupper() for word in text.split()[1:]):
        found.add(HAS_NAME)
    return found


@dataclass(frozen=True)
class Policy:
    """Parameters by query type; a type without its own takes the default."""

    default: Params
    types: Mapping[str, Params]
    rule: WordRule

    @property
    def choices(self) -> list[Params]:
        """Return all parameters that queries may be answered with, the default first."""
        return [self.default, *self.types.values()]

    def params_for(self, text: str) -> Params:
        """Return the parameters for one query."""
        return self.types.get(self.rule.classify(text), self.default)

    def to_record(self) -> dict[str, Any]:
        """Return the policy as plain data, the content of ``policy.yaml``."""
        return {
            "default": dict(self.default),
            "types": {name: dict(params) for name, params in self.types.items()},
            "rule": {
                "start": dict(self.rule.start),
                "weights": {word: dict(by_type) for word, by_type in self.rule.weights.items()},
            },
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Policy:
        """Read a policy back.

        Raises:
            InputError: a part is missing, or a weight is not a finite number.
        """
        try:
            policy: Policy = read_as(cls, record)
        except ValueError as error:
            raise InputError(f"{_NOT_ONE}: {error}") from error
        start, weights = policy.rule.start, policy.rule.weights
        for name, weight in chain(start.items(), *(of.items() for of in weights.values())):
            if not math.isfinite(weight):
                raise InputError(f"{_NOT_ONE}: the weight of {name!r} is not a finite number")
        unknown = {name for by_type in weights.values() for name in by_type} - set(start)
        if not start:
            raise InputError(f"{_NOT_ONE}: the rule knows no type")
        if unknown:
            names = ", ".join(sorted(unknown))
            raise InputError(f"{_NOT_ONE}: the rule weighs types that it does not start: {names}")
        return policy


def is_policy(params: Mapping[str, Any]) -> bool:
    """Say whether what stands in the place of parameters is a policy."""
    return "types" in params
