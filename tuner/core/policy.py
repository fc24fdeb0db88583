"""A policy: parameters for each type of query, or by what is seen of it, and its rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tuner.core.errors import InputError
from tuner.core.feature_rule import DEFAULT, FeatureRule, Seen, check_settings, read_rule
from tuner.core.json_text import read_as
from tuner.core.policy_record import POLICY as POLICY  # the address by which all know them
from tuner.core.policy_record import is_policy as is_policy
from tuner.core.trial import Params
from tuner.core.words import split_words

_NOT_ONE = "not a policy as `tuner policy` writes it"

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

    def to_record(self) -> dict[str, Any]:
        """Return the rule as plain data."""
        return {
            "start": dict(self.start),
            "weights": {word: dict(by_type) for word, by_type in self.weights.items()},
        }

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
    """Parameters by query type; a type without its own takes the default.

    Where the rule looks at features, the types are settings that it chooses from.
    """

    default: Params
    types: Mapping[str, Params]
    rule: WordRule | FeatureRule

    @property
    def told(self) -> str:
        """Return by what the parameters are chosen, as tables say it."""
        return "by features" if isinstance(self.rule, FeatureRule) else "by query type"

    @property
    def choices(self) -> list[Params]:
        """Return all parameters that queries may be answered with, the default first."""
        return [self.default, *self.types.values()]

    def params_for(self, texts: Sequence[str], seen: Seen) -> list[Params]:
        """Return the parameters for some queries.

        ``seen`` are the features of the queries, which only a rule that looks at them needs.
        """
        if isinstance(self.rule, FeatureRule):
            names = self.rule.choose(seen, len(texts), {DEFAULT: self.default, **self.types})
        else:
            names = [self.rule.classify(text) for text in texts]
        return [self.types.get(name, self.default) for name in names]

    def to_record(self) -> dict[str, Any]:
        """Return the policy as plain data, the content of ``policy.yaml``."""
        return {
            "default": dict(self.default),
            "types": {name: dict(params) for name, params in self.types.items()},
            "rule": self.rule.to_record(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Policy:
        """Read a policy back.

        Raises:
            InputError: a part is missing, or a weight is not a finite number.
        """
        rule = record.get("rule")
        if isinstance(rule, Mapping) and "features" in rule:
            return _by_features(record, rule)
        try:
            words: _ByWords = read_as(_ByWords, record)
        except ValueError as error:
            raise InputError(f"{_NOT_ONE}: {error}") from error
        policy = cls(words.default, words.types, words.rule)
        start, weights = words.rule.start, words.rule.weights
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


@dataclass(frozen=True)
class _Settings:
    default: Params
    types: Mapping[str, Params]


@dataclass(frozen=True)
class _ByWords(_Settings):
    rule: WordRule


def _by_features(record: Mapping[str, Any], rule: Mapping[str, Any]) -> Policy:
    try:
        found: _Settings = read_as(_Settings, record)
        read = read_rule(rule)
    except ValueError as error:
        raise InputError(f"{_NOT_ONE}: {error}") from error
    try:
        check_settings(read, {DEFAULT: found.default, **found.types})
    except InputError as error:
        raise InputError(f"{_NOT_ONE}: {error}") from error
    return Policy(found.default, found.types, read)
