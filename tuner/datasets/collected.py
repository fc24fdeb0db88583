"""Collect questions that bring their own paragraphs along, and make a data set of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tuner.core.corpus import Document, Query, Triple
from tuner.core.errors import InputError, Problem
from tuner.core.grades import RELEVANT_FROM
from tuner.datasets.dataset import Dataset, Evidence
from tuner.datasets.items import Item
from tuner.datasets.lines import ABSENT, ProblemLog, places_told

_MOST_NAMES = 20
_SUFFIXES = (".gz", ".jsonl", ".json", ".txt", ".tsv")


def one_line(text: str) -> str:
    """Return the text with every run of white space as one space."""
    return " ".join(text.split())


def document_id(title: str, text: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-1 of title, line feed and text.

    So the same paragraph has the same id in whichever file it comes.
    """
    return hashlib.sha1(f"{title}\n{text}".encode(), usedforsecurity=False).hexdigest()[:12]


def question_id(question: str) -> str:
    """Return an id for a question without one: ``q-`` and 12 digits of its text's SHA-1."""
    digits = hashlib.sha1(one_line(question).encode(), usedforsecurity=False).hexdigest()
    return f"q-{digits[:12]}"


def data_set_name(path: Path) -> str:
    """Return what to call the data set at a path: its name without the suffix."""
    name = path.resolve().name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


@dataclass(frozen=True)
class Collected:
    """Documents, questions and labels so far, and what is odd about them.

    An oddity that published sets are known to have is counted, and becomes a warning; anything
    else that is wrong goes into ``log``, and `dataset` raises it.
    """

    log: ProblemLog = field(default_factory=ProblemLog)
    documents: dict[str, Document] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    qrels: dict[str, dict[str, float]] = field(default_factory=dict)
    evidences: dict[str, Evidence] = field(default_factory=dict)
    answers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    supports: dict[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    document_places: dict[str, Item] = field(default_factory=dict)
    relevant_from: float = RELEVANT_FROM
    # Whether names and paths alone are labels enough to judge a question by.
    may_lack_documents: bool = False
    _places: dict[str, Item] = field(default_factory=dict)
    _oddities: dict[str, list[Item | str]] = field(default_factory=dict)

    def add_document(self, title: str, text: str) -> str:
        """Add a paragraph unless it is there already; return its id."""
        id_ = document_id(title, text)
        self.documents.setdefault(id_, Document(id_, title, text))
        return id_

    def add_query(
        self,
        item: Item,
        query: Query,
        relevant: Mapping[str, float],
        evidence: Evidence | None = None,
        *,
        answers: Iterable[str] = (),
        supports: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Add a judged question; with an empty id, it gets one that is made from its text.

        ``supports`` are the texts in its documents that hold the answer, by document id.
        A second question with the same id is reported. Two records with the same question and no
        id are the same question: the second one is left out with a warning.
        """
        id_ = query.id or question_id(query.text)
        first = self._places.setdefault(id_, item)
        if id_ in self.queries and not query.id:
            self.odd("records repeat an earlier question and were left out", item)
            return
        if id_ in self.queries:
            item.report("duplicate", f"duplicate id {id_!r}, first in {first.place}")
            return
        self.queries[id_] = replace(query, id=id_)
        self.qrels[id_] = dict(relevant)
        if evidence is not None and (evidence.entities or evidence.paths):
            self.evidences[id_] = evidence
        kept = tuple(dict.fromkeys(filter(None, answers)))
        if kept:
            self.answers[id_] = kept
        if supports:
            self.supports[id_] = supports

    def odd(self, what: str, place: Item | str) -> None:
        """Count one more of an oddity; its place, or a name, is told."""
        self._oddities.setdefault(what, []).append(place)

    def dataset(
        self,
        path: Path,
        *,
        triples: Iterable[Triple] = (),
        entities: Mapping[str, tuple[str, ...]] | None = None,
        warnings: Sequence[str] = (),
    ) -> Dataset:
        """Return the data set of the queries that have a relevant document, or other labels.

        ``warnings`` come before those about what was collected.

        Raises:
            InputError: everything in the log, or that no query has a relevant document.
        """
        problems = self.log.problems()
        if not self.log.has_only(ABSENT):
            told = [Problem(f"warning: {text}", str(path)) for text in self._warnings(sound=True)]
            raise InputError(problems=[*problems, *told])
        kept = [q for q in self.queries.values() if self._is_answerable(q.id)]
        if not kept:
            reasons = "".join(f"; {oddity}" for oddity in self._told_oddities())
            message = f"no question has a relevant document, so none can be scored{reasons}"
            raise InputError(problems=[*problems, Problem(message, str(path))])
        return Dataset.create(
            data_set_name(path),
            str(path),
            documents=self.documents.values(),
            queries=kept,
            qrels=self.qrels,
            triples=triples,
            entities=entities,
            evidences=self.evidences,
            answers=self.answers,
            supports=self.supports,
            warnings=[*warnings, *self._warnings()],
            unjudged=self._hopeless(),
            lacking=problems,
        )

    def _is_answerable(self, query_id: str) -> bool:
        if self.may_lack_documents and query_id in self.evidences:
            return True
        return any(grade >= self.relevant_from for grade in self.qrels[query_id].values())

    def _hopeless(self) -> list[str]:
        return [id_ for id_ in self.queries if not self._is_answerable(id_)]

    def _told_oddities(self, *, sound: bool = False) -> list[str]:
        kept = {what: self._kept(places, sound=sound) for what, places in self._oddities.items()}
        return [
            f"{len(places)} {what} ({_told(places)})" for what, places in kept.items() if places
        ]

    def _warnings(self, *, sound: bool = False) -> list[str]:
        """Return what is odd; of ``sound`` records only: the rest may be due to what is wrong."""
        told = self._told_oddities(sound=sound)
        places = [self._places.get(id_, id_) for id_ in self._hopeless()]
        hopeless = self._kept(places, sound=sound)
        if hopeless:
            told.append(
                f"{len(hopeless)} of {len(self.queries)} questions have no relevant document "
                f"and were left out ({_told(hopeless)})"
            )
        return told

    def _kept(self, places: Sequence[Item | str], *, sound: bool) -> list[Item | str]:
        return [
            place
            for place in places
            if not sound
            or isinstance(place, str)
            or not self.log.mentions_place(place.file, place.place)
        ]


def _told(places: Sequence[Item | str]) -> str:
    """Name all lines and records, and the first names: of these there may be thousands."""
    names = [repr(place) for place in places if isinstance(place, str)]
    numbered = [
        place.place if place.line is None else place.line
        for place in places
        if not isinstance(place, str)
    ]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    told = [places_told(numbered), ", ".join(names[:_MOST_NAMES]) + more]
    return "; ".join(filter(None, told))
