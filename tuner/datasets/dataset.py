"""A data set: the corpus that a retriever may see, judged queries, and labels for scoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tuner.core.corpus import Corpus, Document, Query, Triple, corpus_fingerprint
from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.grades import DEFAULT_SCALE, GradeScale
from tuner.core.json_text import fingerprint_of
from tuner.core.words import compare_key
from tuner.datasets.evidence import Spans, Supports, find_supporting

Step = tuple[str, str, str]
"""One relation (subject, relation, object) on the way from the query to its answer."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a right answer rests on: names, and paths of relations between them.

    Evidence is a label. It scores a retriever or explains a result; it never builds a graph.
    """

    entities: tuple[str, ...] = ()
    paths: tuple[tuple[Step, ...], ...] = ()


@dataclass(frozen=True)
class DatasetSummary:
    """How much a data set holds. ``relevant`` counts the judgements that say "relevant".

    ``query_types`` and ``difficulties`` count queries; a query without one counts under ``""``.
    """

    name: str
    documents: int
    queries: int
    judgements: int
    relevant: int
    triples: int
    evidences: int
    query_types: Mapping[str, int]
    difficulties: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Documents, judged queries, and labels, checked against each other.

    Attributes:
        name: what people call it; ``path``: where it was read from, as the user wrote it.
        queries: every query that has a judgement, or labelled evidence, in the order of the source.
        qrels: query id -> document id -> grade, for exactly the ids of ``queries``.
        evidences: query id -> labelled evidence, where the source has it.
        answers: query id -> the accepted answers, the preferred one first.
        supports: query id -> id of a judged document -> the texts in it that a right answer rests
            on, where the source has them. They count where ``scale`` says so.
        spans: with them, query id -> document id -> the characters ``[begin, end)`` of the
            document's text that hold them; None where whole documents are judged.
        fingerprint: a hash of all content; the same content in another file has the same one.
        warnings: what the reader left out or found odd, one sentence each.
        unjudged: ids of the questions that the reader left out, as they have no judgement.
        lacking: judgements of documents that the corpus does not hold, each with its place; a
            data set with any is only fit to be looked at.
        scale: from which grade a document is relevant, and how high grades go.
    """

    name: str
    path: str
    corpus: Corpus
    queries: tuple[Query, ...]
    qrels: Mapping[str, Mapping[str, float]]
    evidences: Mapping[str, Evidence] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    supports: Supports = field(default_factory=dict)
    spans: Spans | None = None
    fingerprint: str = ""
    warnings: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    lacking: tuple[Problem, ...] = ()
    scale: GradeScale = DEFAULT_SCALE

    @classmethod
    def create(
        cls,
        name: str,
        path: str,
        *,
        documents: Iterable[Document],
        queries: Iterable[Query],
        qrels: Mapping[str, Mapping[str, float]],
        triples: Iterable[Triple] = (),
        entities: Mapping[str, Sequence[str]] | None = None,
        evidences: Mapping[str, Evidence] | None = None,
        answers: Mapping[str, Sequence[str]] | None = None,
        supports: Supports | None = None,
        warnings: Sequence[str] = (),
        unjudged: Sequence[str] = (),
        lacking: Sequence[Problem] = (),
    ) -> Dataset:
        """Build a data set from records that are known to fit together, with its fingerprints.

        Labels of queries that are not among ``queries`` are dropped.

        Raises:
            InputError: a query has neither judgements nor evidence.
        """
        corpus = Corpus(
            documents=tuple(documents),
            triples=tuple(triples),
            entities={id_: tuple(names) for id_, names in (entities or {}).items()},
        )
        return cls(
            name,
            path,
            replace(corpus, fingerprint=corpus_fingerprint(corpus)),
            tuple(queries),
            qrels,
            evidences or {},
            {id_: tuple(texts) for id_, texts in (answers or {}).items()},
            supports or {},
            warnings=tuple(warnings),
            unjudged=tuple(unjudged),
            lacking=tuple(lacking),
        )._of_its_queries()

    def _of_its_queries(self) -> Dataset:
        """Return the data set with labels of its queries alone, and with its fingerprint."""
        ids = [query.id for query in self.queries]
        missing = [id_ for id_ in ids if not self.qrels.get(id_) and id_ not in self.evidences]
        if missing:
            raise InputError(f"data set {self.name!r}: query {missing[0]!r} has no judgements")
        qrels = {id_: dict(self.qrels.get(id_, {})) for id_ in ids}
        evidences = {id_: self.evidences[id_] for id_ in ids if id_ in self.evidences}
        answers = {id_: self.answers[id_] for id_ in ids if id_ in self.answers}
        supports = {
            id_: {n: tuple(texts) for n, texts in found.items() if texts and n in qrels[id_]}
            for id_ in ids
            if (found := self.supports.get(id_))
        }
        parts: list[Any] = [
            [self.corpus.fingerprint],
            [[q.id, q.text, q.query_type, q.difficulty, q.group] for q in self.queries],
            [[id_, sorted(_floats(grades).items())] for id_, grades in sorted(qrels.items())],
            [[id_, e.entities, e.paths] for id_, e in sorted(evidences.items())],
            sorted(answers.items()),
        ]
        return replace(
            self,
            qrels=qrels,
            evidences=evidences,
            answers=answers,
            supports={id_: found for id_, found in supports.items() if found},
            spans=None,
            fingerprint=fingerprint_of(parts),
            scale=DEFAULT_SCALE,
        )

    def with_scale(self, scale: GradeScale) -> Dataset:
        """Return the data set with its grades read in another way, and another fingerprint."""
        if scale == DEFAULT_SCALE:
            return self
        told: list[Any] = [self.fingerprint, [scale.relevant_from, scale.max_grade]]
        if scale.judge == "document":
            return replace(self, scale=scale, fingerprint=fingerprint_of([told]))
        found = find_supporting(self.supports, self.corpus.documents)
        spans = [[id_, sorted(each.items())] for id_, each in sorted(found.spans.items())]
        told.append([scale.judge, spans])
        return replace(
            self,
            scale=scale,
            spans=found.spans,
            fingerprint=fingerprint_of([told]),
            warnings=(*self.warnings, *_missing(found.missing)),
        )

    def select(self, query_ids: Iterable[str]) -> Dataset:
        """Return the data set with these queries only, in its own order, over the same corpus.

        Raises:
            InputError: an id is not among the queries, or none is given.
        """
        wanted = set(query_ids)
        queries = tuple(query for query in self.queries if query.id in wanted)
        unknown = sorted(wanted - {query.id for query in queries})
        if unknown:
            others = f" (nor {len(unknown) - 1} more)" if len(unknown) > 1 else ""
            hint = self._closest(unknown[0])
            raise InputError(f"data set {self.name!r} has no query {unknown[0]!r}{others}{hint}")
        if not queries:
            raise InputError(f"data set {self.name!r}: no query was selected")
        return replace(self, queries=queries)._of_its_queries().with_scale(self.scale)

    def relevant(self, query_id: str) -> tuple[str, ...]:
        """Return the documents that are relevant for a query; empty where none was judged so."""
        grades = self.qrels.get(query_id, {})
        return tuple(id_ for id_, grade in grades.items() if grade >= self.scale.relevant_from)

    def summary(self) -> DatasetSummary:
        """Count what the data set holds, and its queries by type and by difficulty."""
        grades = [grade for judged in self.qrels.values() for grade in judged.values()]
        return DatasetSummary(
            name=self.name,
            documents=len(self.corpus.documents),
            queries=len(self.queries),
            judgements=len(grades),
            relevant=sum(grade >= self.scale.relevant_from for grade in grades),
            triples=len(self.corpus.triples),
            evidences=len(self.evidences),
            query_types=_counts(query.query_type for query in self.queries),
            difficulties=_counts(query.difficulty for query in self.queries),
        )

    def _closest(self, query_id: str) -> str:
        hint = did_you_mean(query_id, [query.id for query in self.queries])
        return hint if hint.startswith("; did") else ""  # hundreds of known ids help nobody


def _floats(grades: Mapping[str, float]) -> dict[str, float]:
    # 1 and 1.0 are equal, and so are 0.0 and -0.0, which the sum makes one.
    return {document: float(grade) + 0.0 for document, grade in grades.items()}


def _missing(pairs: Sequence[tuple[str, str]]) -> list[str]:
    if not pairs:
        return []
    query, document = pairs[0]
    return [
        f"{len(pairs)} judged documents do not hold their supporting text word for word, and count "
        f"wherever a part of them is retrieved (first: {document!r} for query {query!r})"
    ]


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def duplicate_queries(dataset: Dataset) -> tuple[tuple[str, ...], ...]:
    """Return groups of queries that are one, as `compare_key` compares them.

    None where queries have no text but their id, as with judgements alone.
    """
    worded = (query for query in dataset.queries if query.text != query.id)
    return same_key(((query.id, compare_key(query.text)) for query in worded), fewest=2)


def same_key(keyed: Iterable[tuple[str, object]], *, fewest: int) -> tuple[tuple[str, ...], ...]:
    """Return the ids that share a key, in groups of at least ``fewest``."""
    groups: dict[object, list[str]] = {}
    for id_, key in keyed:
        groups.setdefault(key, []).append(id_)
    return tuple(tuple(ids) for ids in groups.values() if len(ids) >= fewest)
