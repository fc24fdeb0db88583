"""Collect questions that bring their own paragraphs along, and make a data set of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuner.core.corpus import Document, Query, Triple
from tuner.core.errors import InputError, Problem
from tuner.datasets._items import Item
from tuner.datasets._lines import ProblemLog
from tuner.datasets.dataset import RELEVANT_GRADE, Dataset, Evidence

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


def refuse_split(split: str | None, path: Path) -> None:
    """Raise an InputError where a split is asked of a format that has none."""
    if split is not None:
        message = (
            f"no judgements named {split!r}: this format holds one set of them; leave --qrels out"
        )
        raise InputError(message, file=str(path))


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
    _places: dict[str, str] = field(default_factory=dict)
    _oddities: Counter[str] = field(default_factory=Counter)
    _first: dict[str, str] = field(default_factory=dict)

    def add_document(self, title: str, text: str) -> str:
        """Add a paragraph unless it is there already; return its id."""
        id_ = document_id(title, text)
        self.documents.setdefault(id_, Document(id_, title, text))
        return id_

    def add_query(
        self,
        item: Item,
        text: str,
        *,
        id: str = "",
        query_type: str = "",
        difficulty: str = "",
        group: str = "",
        relevant: Mapping[str, float],
        evidence: Evidence | None = None,
        answers: Iterable[str] = (),
    ) -> None:
        """Add a judged question; without an id, it gets one that is made from its text.

        A second question with the same id is reported. Two records with the same question and no
        id are the same question: the second one is left out with a warning.
        """
        id_ = id or question_id(text)
        first = self._places.setdefault(id_, item.place)
        if id_ in self.queries and not id:
            self.odd("records repeat an earlier question and were left out", item.place)
            return
        if id_ in self.queries:
            item.report("duplicate", f"duplicate id {id_!r}, first in {first}")
            return
        self.queries[id_] = Query(id_, text, query_type, difficulty, group)
        self.qrels[id_] = dict(relevant)
        if evidence is not None and (evidence.entities or evidence.paths):
            self.evidences[id_] = evidence
        kept = tuple(dict.fromkeys(filter(None, answers)))
        if kept:
            self.answers[id_] = kept

    def odd(self, what: str, place: str) -> None:
        """Count one more of an oddity; the place of the first is told with the number."""
        self._oddities[what] += 1
        self._first.setdefault(what, place)

    def dataset(
        self,
        path: Path,
        *,
        triples: Iterable[Triple] = (),
        entities: Mapping[str, tuple[str, ...]] | None = None,
        warnings: Sequence[str] = (),
    ) -> Dataset:
        """Return the data set of the queries that have a relevant document.

        ``warnings`` come before those about what was collected.

        Raises:
            InputError: everything in the log, or that no query has a relevant document.
        """
        problems = self.log.problems()
        if problems:
            raise InputError(problems=problems)
        kept = [q for q in self.queries.values() if self._is_answerable(q.id)]
        if not kept:
            reasons = "".join(f"; {oddity}" for oddity in self._told_oddities())
            message = f"no question has a relevant document, so none can be scored{reasons}"
            raise InputError(problems=[Problem(message, str(path))])
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
            warnings=[*warnings, *self._warnings()],
            unjudged=self._hopeless(),
        )

    def _is_answerable(self, query_id: str) -> bool:
        return any(grade >= RELEVANT_GRADE for grade in self.qrels[query_id].values())

    def _hopeless(self) -> list[str]:
        return [id_ for id_ in self.queries if not self._is_answerable(id_)]

    def _told_oddities(self) -> list[str]:
        return [f"{n} {what} (first: {self._first[what]})" for what, n in self._oddities.items()]

    def _warnings(self) -> list[str]:
        hopeless = self._hopeless()
        told = self._told_oddities()
        if hopeless:
            told.append(
                f"{len(hopeless)} of {len(self.queries)} questions have no relevant document "
                f"and were left out (first: {hopeless[0]!r})"
            )
        return told
