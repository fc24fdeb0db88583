"""The graph from which questions are made: names, relations between them, and where each stands."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tuner.core.corpus import Corpus

# "was written by", "is written by" and "written by" are one relation.
_COPULA = re.compile(r"^(?:is|are|was|were|be|been|has been|have been|had been)\s+(?=\S)")

# "1941", "27 September 1941", "1941年", "1941年9月27日"; but not 公元前, before Christ, nor what
# is named after a year, such as "Paris 2024"
_DATE_WORDS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|spring|summer|autumn|fall|"
    r"winter|early|mid|late|in|on|of|the|year|about|around|circa|ca|c|(?:mon|tues|wednes|thurs|"
    r"fri|satur|sun)day|\d{1,2}(?:st|nd|rd|th)?|公元|西元|约|約"
)
_YEAR = re.compile(
    rf"(?:(?:{_DATE_WORDS})(?:[\s,.-]+|(?<=[元约約])))*"
    r"([12]\d{3})(?:年(?:\d{1,2}月(?:\d{1,2}[日号])?)?)?"
)
# "12th century", "1940s" and "850年" are neither years nor numbers.
_NO_UNITS = ("st", "nd", "rd", "th", "s", "'s", "年")
_NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?\s*(\D*)")


@dataclass(frozen=True, slots=True)
class Fact:
    """One relation between two names, by their keys, and every document that states it."""

    subject: str
    relation: str
    object: str
    documents: tuple[str, ...]


@dataclass(frozen=True)
class FactGraph:
    """Facts by subject and relation. Names and relations are keys; ``label`` spells them out.

    Attributes:
        facts: subject -> relation -> the facts with both, in the order of the source.
        labels: key of a name or relation -> its most frequent spelling.
        names: the keys that stand for a thing in the world, from which a question may start.
        degrees: name -> how many other names it has a fact with, in either direction.
    """

    facts: Mapping[str, Mapping[str, tuple[Fact, ...]]]
    labels: Mapping[str, str]
    names: frozenset[str]
    degrees: Mapping[str, int]

    @classmethod
    def build(cls, corpus: Corpus) -> FactGraph:
        """Join the triples of a corpus by what they say.

        Letter case, white space and width of characters do not tell names or relations apart,
        nor does a form of "to be" in front of a relation. A fact that several documents state is
        one fact with several documents. Where the corpus lists entities, those and the titles of
        its documents are the names; elsewhere every subject and object is one.
        """
        spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        documents: dict[tuple[str, str, str], dict[str, None]] = {}
        for triple in corpus.triples:
            subject, object_ = name_key(triple.subject), name_key(triple.object)
            relation = relation_key(triple.relation)
            if not (subject and relation and object_) or subject == object_:
                continue
            for key, written in ((subject, triple.subject), (object_, triple.object)):
                spellings[key][" ".join(written.split())] += 1
            spellings[_relation_label(relation)][" ".join(triple.relation.split())] += 1
            stated = documents.setdefault((subject, relation, object_), {})
            stated[triple.document_id] = None
        facts: defaultdict[str, defaultdict[str, list[Fact]]] = defaultdict(
            lambda: defaultdict(list)
        )
        neighbours: defaultdict[str, set[str]] = defaultdict(set)
        for (subject, relation, object_), stated in documents.items():
            facts[subject][relation].append(Fact(subject, relation, object_, tuple(stated)))
            neighbours[subject].add(object_)
            neighbours[object_].add(subject)
        return cls(
            facts={
                subject: {relation: tuple(found) for relation, found in by_relation.items()}
                for subject, by_relation in facts.items()
            },
            labels={key: _most_frequent(written) for key, written in spellings.items()},
            names=_names(corpus) if corpus.entities else frozenset(neighbours),
            degrees={name: len(others) for name, others in neighbours.items()},
        )

    def label(self, name: str) -> str:
        """Return how a name is spelled."""
        return self.labels[name]

    def relation_label(self, relation: str) -> str:
        """Return how a relation is spelled."""
        return self.labels[_relation_label(relation)]

    def between(self, first: str, second: str) -> list[Fact]:
        """Return the facts about two names, in either direction, by any relation."""
        return [
            fact
            for subject, object_ in ((first, second), (second, first))
            for facts in self.facts.get(subject, {}).values()
            for fact in facts
            if fact.object == object_
        ]

    def leads_to(self, first: str, second: str, *, hops: int = 2) -> bool:
        """Return whether at most so many facts lead from one name to the other."""
        reached = {first}
        for _ in range(hops):
            reached = {
                fact.object
                for name in reached
                for facts in self.facts.get(name, {}).values()
                for fact in facts
            }
            if second in reached:
                return True
        return False

    def by_relation(self) -> dict[str, dict[str, tuple[Fact, ...]]]:
        """Return relation -> subject -> facts."""
        found: defaultdict[str, dict[str, tuple[Fact, ...]]] = defaultdict(dict)
        for subject, relations in self.facts.items():
            for relation, facts in relations.items():
                found[relation][subject] = facts
        return dict(found)


def name_key(text: str) -> str:
    """Return the form in which names are compared.

    >>> name_key("  The  Nile ") == name_key("THE NILE")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def relation_key(text: str) -> str:
    """Return the form in which relations are compared.

    >>> relation_key("was Written by"), relation_key("is")
    ('written by', 'is')
    """
    return _COPULA.sub("", name_key(text.replace("_", " ")))


def documents_of(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Return every document that states one of the facts, once, in their order."""
    return tuple(dict.fromkeys(id_ for fact in facts for id_ in fact.documents))


def _relation_label(relation: str) -> str:
    # A name may be spelled like a relation ("capital"); their labels are kept apart.
    return f"\0{relation}"


def _most_frequent(written: Counter[str]) -> str:
    return min(written, key=lambda text: (-written[text], text))


def _names(corpus: Corpus) -> frozenset[str]:
    listed = (name for names in corpus.entities.values() for name in names)
    titles = (document.title for document in corpus.documents)
    return frozenset(filter(None, map(name_key, (*listed, *titles))))


def size_of(text: str) -> tuple[float, str] | None:
    """Return the size of what a fact says: a year, or a number with its unit; else None.

    >>> size_of("27 september 1941"), size_of("1,200 m"), size_of("lima")
    ((1941.0, 'year'), (1200.0, 'm'), None)
    """
    year = _YEAR.fullmatch(text)
    if year:
        return float(year[1]), "year"
    number = _NUMBER.fullmatch(text)
    if number is None or (number[3].startswith(_NO_UNITS) and text[number.start(3) - 1] != " "):
        return None
    return float(number[1].replace(",", "") + (number[2] or "")), number[3].strip()
