"""Word questions about facts in English or Chinese, from templates that a user can extend."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError, Problem, did_you_mean, refuse
from tuner.core.files import read_input
from tuner.evalset.facts import relation_key

LANGUAGES = ("english", "chinese")

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_MOST_BYTES = 1_000_000
_MOST_LEVELS = 20
_FORMS = ("phrase", "verb")
_PHRASES = (
    "phrase", "question", "verb_step", "property_step", "verb_link", "property_link", "asked",
    "intersection", "verb_condition", "property_condition", "verb_earlier", "property_earlier",
    "verb_larger", "property_larger", "verb_same", "property_same", "yes", "no",
)  # fmt: skip


@dataclass(frozen=True)
class Wording:
    """One language's templates: see ``templates/english.yaml`` for what each is for.

    ``relations`` words single relations by hand: key -> ``{"phrase", "verb"}``, one or both.
    """

    phrases: Mapping[str, str]
    relations: Mapping[str, Mapping[str, str]]
    vague: frozenset[str]
    quantities: frozenset[str]
    auxiliaries: frozenset[str]
    prepositions: frozenset[str]
    verbs: frozenset[str]
    participles: frozenset[str]
    adverbs: frozenset[str]

    def path(self, subject: str, relations: Sequence[str]) -> str:
        """Ask for what is reached from ``subject`` along relations, as the graph writes them.

        Properties at the start fold into a phrase; from the first verb on, each step is a clause.
        """
        start, left = subject, list(relations)
        while left and self._verb(left[0]) is None:
            start = self._phrase(left.pop(0), start)
        if not left:
            return self._fill("question", phrase=start)
        start = start[0].upper() + start[1:]
        for position, relation in enumerate(left):
            following = left[position + 1 : position + 2]
            start = self._step(start, relation, self._link(following))
        return start

    def intersection(self, conditions: Sequence[tuple[str, str]]) -> str:
        """Ask for what meets two conditions, each a relation and an object."""
        first, second = (self._condition(relation, name) for relation, name in conditions)
        return self._fill("intersection", first=first, second=second)

    def comparison(self, form: str, relation: str, first: str, second: str) -> str:
        """Ask which of two is ``earlier`` or ``larger``, or whether they have the ``same``."""
        verb = self._own_verb(relation) or self._verb(relation)
        kind = "property" if verb is None else "verb"
        words = (verb or "").split()
        bare = words[:-1] if words and words[-1] in self.prepositions else words
        return self._fill(
            f"{kind}_{form}",
            relation=self._property(relation),
            verb=verb or "",
            bare_verb=" ".join(bare),
            first=first,
            second=second,
        )

    def answer(self, word: str) -> str:
        """Return "yes" or "no" in this language."""
        return self.phrases[word]

    def _step(self, start: str, relation: str, object_: str) -> str:
        verb = self._verb(relation)
        if verb is None:
            relation = self._property(relation)
            return self._fill("property_step", start=start, relation=relation, object=object_)
        return self._fill("verb_step", start=start, verb=verb, object=object_)

    def _link(self, following: Sequence[str]) -> str:
        if not following:
            return self.phrases["asked"]
        return self.phrases["property_link" if self._verb(following[0]) is None else "verb_link"]

    def _condition(self, relation: str, name: str) -> str:
        verb = self._own_verb(relation) or self._verb(relation)
        kind = "property_condition" if verb is None else "verb_condition"
        return self._fill(kind, relation=self._property(relation), verb=verb or "", object=name)

    def _phrase(self, relation: str, subject: str) -> str:
        by_hand = self.relations.get(relation_key(relation), {}).get("phrase")
        if by_hand is not None:
            return by_hand.replace("{subject}", subject)
        return self._fill("phrase", relation=self._property(relation), subject=subject)

    def _property(self, relation: str) -> str:
        """Return a relation as a noun: "hottest month is" is the hottest month."""
        *words, last = relation.split()
        return " ".join(words) if words and last.casefold() in self.auxiliaries else relation

    def _own_verb(self, relation: str) -> str | None:
        return self.relations.get(relation_key(relation), {}).get("verb")

    def _verb(self, relation: str) -> str | None:
        """Return a relation as a verb that takes an object, or None where it is a property."""
        by_hand = self.relations.get(relation_key(relation), {})
        if by_hand:
            return None if "phrase" in by_hand else by_hand["verb"]
        words = relation.casefold().split()
        first = next((word for word in words if word not in self.adverbs), words[0])
        is_linking = words[-1] in self.prepositions
        if words[0] in self.auxiliaries:
            return relation
        if is_linking and (words[-1] == "by" or first in self.participles):
            return f"was {relation}"
        if first in self.verbs or (first.endswith("ed") and self.verbs):
            return relation
        if is_linking:
            return f"is {relation}" if len(words) == 1 or words[-1] == "of" else relation
        return None

    def _fill(self, template: str, **values: str) -> str:
        text = self.phrases[template]
        # One pass: braces inside a name must not be taken for a place to fill.
        return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)


def is_chinese(text: str) -> bool:
    """Return whether a text holds Chinese characters."""
    return bool(_HAN.search(text))


def load_wording(
    language: str, *, relations: Mapping[str, Mapping[str, str]] | None = None
) -> Wording:
    """Return the templates that ship for a language, with further relations worded by hand.

    Raises:
        InputError: no such language.
    """
    if language not in LANGUAGES:
        raise InputError(f"unknown language {language!r}{did_you_mean(language, LANGUAGES)}")
    place = files("tuner.evalset") / "templates" / f"{language}.yaml"
    values = _parse_yaml(place.read_text(encoding="utf-8"))
    wording = Wording(
        phrases={name: values[name] for name in _PHRASES},
        relations=values["relations"],
        vague=frozenset(values["vague"]),
        quantities=frozenset(values["quantities"]),
        auxiliaries=frozenset(values["auxiliaries"]),
        prepositions=frozenset(values["prepositions"]),
        verbs=frozenset(values["verbs"]),
        participles=frozenset(values["participles"]),
        adverbs=frozenset(values["adverbs"]),
    )
    return replace(wording, relations={**wording.relations, **(relations or {})})


def vague_relations() -> frozenset[str]:
    """Return the relations that say too little to ask about, of all languages.

    A graph's relations need not be in the language of the questions.
    """
    return frozenset().union(*(load_wording(language).vague for language in LANGUAGES))


def quantity_words() -> frozenset[str]:
    """Return the words that make a relation one of numbers with a size, of all languages."""
    return frozenset().union(*(load_wording(language).quantities for language in LANGUAGES))


def read_relations(file: Path) -> dict[str, dict[str, str]]:
    """Read how relations are worded: YAML, relation -> ``{phrase: …, verb: …}``, one or both.

    For example ``written by: {phrase: "the author of {subject}", verb: "was written by"}``.

    Raises:
        InputError: everything that is wrong with the file.
    """
    try:
        values = _parse_yaml(read_input(file, most=_MOST_BYTES).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=str(file)) from error
    if not isinstance(values, dict):
        raise InputError("must be a mapping of relations", file=str(file))
    problems = [
        Problem(message, str(file), key=(str(relation),))
        for relation, forms in values.items()
        for message in (*_key_problems(relation), *_problems(forms))
    ]
    refuse(problems)
    return {relation_key(str(relation)): dict(forms) for relation, forms in values.items()}


def _key_problems(relation: object) -> list[str]:
    # YAML takes a bare "on" or "1" for something else than the word.
    is_text = isinstance(relation, str)
    return [] if is_text else ["a relation must be a string, put it in quotation marks"]


def _problems(forms: object) -> list[str]:
    if not isinstance(forms, dict) or not forms:
        return ["must be a mapping with phrase, verb or both"]
    found = [
        f"unknown form {name!r}{did_you_mean(str(name), _FORMS)}"
        for name in forms
        if name not in _FORMS
    ]
    found += [f"{name} must be a string" for name, text in forms.items() if type(text) is not str]
    phrase = forms.get("phrase")
    if isinstance(phrase, str) and "{subject}" not in phrase:
        found.append(f"phrase {phrase!r} does not hold {{subject}}")
    return found


def _parse_yaml(text: str) -> Any:
    import yaml

    try:
        depth = 0
        for event in yaml.parse(
            text, Loader=yaml.SafeLoader
        ):  # the parser is slow where it is deep
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_LEVELS:
                raise ValueError(f"invalid YAML: nested deeper than {_MOST_LEVELS} levels")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"invalid YAML: {error}") from error
