"""Describe a data set: its size, how it is judged, and what is odd about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tuner.core.words import compare_key
from tuner.datasets.dataset import Dataset, duplicate_queries, same_key
from tuner.evalset.distinct import Pair, near_duplicates
from tuner.evalset.facts import name_key

CUT_OFFS = (5, 10, 20)

_SHOWN = 3


@dataclass(frozen=True)
class Spread:
    """How a count varies from one thing to the next; all None where there is nothing."""

    least: int | None
    median: float | None
    mean: float | None
    most: int | None

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        """Describe whole numbers."""
        if not values:
            return cls(None, None, None, None)
        return cls(min(values), float(median(values)), sum(values) / len(values), max(values))


@dataclass(frozen=True)
class Statistics:
    """What a data set holds and what is odd about it. Ids are those of its documents and queries.

    Attributes:
        counts: documents, queries, judgements, triples, and what else can be counted.
        relevant_per_query: relevant documents.
        query_tokens, document_tokens: lengths, as ``count_tokens`` counts.
        grades: grade -> how many judgements have it.
        query_types, difficulties: how many queries; ``""`` where a query has none.
        recall_ceiling: cut-off k -> mean over queries of min(k, R) / R, with R relevant
            documents: no ranking has a higher recall@k.
        unjudged: queries that the reader left out, as nobody has judged a document for them.
        without_relevant: queries with judgements, none of which says relevant.
        duplicate_queries, duplicate_documents: groups of ids with the same text; letter case,
            white space and final marks do not tell queries apart.
        near_duplicate_queries: pairs of ids and their similarity.
        unknown_gold: relevant documents that are not in the corpus, as query and document id;
            None without a corpus, where that is not known.
        unknown_judged: the same of other judged documents.
        empty_gold: relevant documents without a text, of which the title alone can be found.
        twins: relevant documents of which the corpus holds a copy that the same query's
            judgements leave out: a retriever that returns the copy is wrongly marked down.
    """

    counts: Mapping[str, int]
    relevant_per_query: Spread
    query_tokens: Spread
    document_tokens: Spread
    grades: Mapping[str, int]
    query_types: Mapping[str, int]
    difficulties: Mapping[str, int]
    recall_ceiling: Mapping[int, float | None]
    unjudged: tuple[str, ...]
    without_relevant: tuple[str, ...]
    duplicate_queries: tuple[tuple[str, ...], ...]
    near_duplicate_queries: tuple[tuple[str, str, float], ...]
    duplicate_documents: tuple[tuple[str, ...], ...]
    unknown_gold: tuple[tuple[str, str], ...] | None
    unknown_judged: tuple[tuple[str, str], ...] | None
    empty_gold: tuple[str, ...]
    twins: tuple[tuple[str, str], ...]


def describe(
    dataset: Dataset,
    *,
    count_tokens: Callable[[str], int],
    threshold: float = 0.9,
) -> Statistics:
    """Measure a data set.

    ``count_tokens`` gives the length of a text. Two queries with a similarity of at least
    ``threshold`` are near duplicates (see `near_duplicates`).
    """
    summary, corpus = dataset.summary(), dataset.corpus
    gold = relevant_documents(dataset)
    documents = {document.id: document for document in corpus.documents}
    copies = same_key(((d.id, (d.title, d.text)) for d in corpus.documents), fewest=2)
    copies_of = {id_: group for group in copies for id_ in group}
    names = {name_key(n) for t in corpus.triples for n in (t.subject, t.object)}
    return Statistics(
        counts={
            "documents": summary.documents,
            "queries": summary.queries,
            "judgements": summary.judgements,
            "relevant": summary.relevant,
            "triples": summary.triples,
            "names_in_triples": len(names),
            "documents_with_triples": len({t.document_id for t in corpus.triples}),
            "documents_with_entities": sum(bool(found) for found in corpus.entities.values()),
            "queries_with_evidence": summary.evidences,
            "queries_with_answer": len(dataset.answers),
        },
        relevant_per_query=Spread.of([len(ids) for ids in gold.values()]),
        query_tokens=Spread.of([count_tokens(query.text) for query in dataset.queries]),
        document_tokens=Spread.of([count_tokens(f"{d.title} {d.text}") for d in corpus.documents]),
        grades=_grades(dataset),
        query_types=summary.query_types,
        difficulties=summary.difficulties,
        recall_ceiling={k: _ceiling(gold, k) for k in CUT_OFFS},
        unjudged=dataset.unjudged,
        without_relevant=tuple(id_ for id_, ids in gold.items() if not ids),
        duplicate_queries=duplicate_queries(dataset),
        near_duplicate_queries=near_duplicate_queries(dataset, threshold=threshold),
        duplicate_documents=copies,
        unknown_gold=_unknown(dataset, documents, are_relevant=True),
        unknown_judged=_unknown(dataset, documents, are_relevant=False),
        empty_gold=tuple(
            dict.fromkeys(
                id_
                for ids in gold.values()
                for id_ in ids
                if id_ in documents and not documents[id_].text.strip()
            )
        ),
        twins=tuple(
            (query, copy)
            for query, ids in gold.items()
            for id_ in ids
            for copy in copies_of.get(id_, ())
            if copy not in dataset.qrels[query]
        ),
    )


def errors_of(dataset: Dataset, found: Statistics) -> list[str]:
    """Return what would make scores wrong: queries of the same text that may be torn apart."""
    group_of = {query.id: query.group for query in dataset.queries}
    named = [
        ", ".join(map(repr, ids))
        for ids in found.duplicate_queries
        if len({group_of[id_] for id_ in ids}) > 1 or not group_of[ids[0]]
    ]
    errors = [
        f"queries {ids} have the same text: one may be tuned on and the other held out; "
        "remove one, or give them the same group"
        for ids in named[:_SHOWN]
    ]
    if named[_SHOWN:]:
        rest = "; ".join(named[_SHOWN:])
        errors.append(
            f"and {len(named) - _SHOWN} more like this: queries {rest} ({len(named)} in all)"
        )
    return errors


def warnings_of(found: Statistics) -> list[str]:
    """Return what may make scores doubtful."""
    near = [
        f"{first!r} and {second!r} ({similarity:.2f})"
        for first, second, similarity in found.near_duplicate_queries
    ]
    told = (
        (near, "pairs of queries are worded nearly alike"),
        (found.empty_gold, "relevant documents have no text"),
        (found.duplicate_documents, "documents are in the corpus more than once"),
        (found.twins, "copies of relevant documents are not judged, so finding one is no hit"),
    )
    return [f"{len(things)} {text}: {some(things)}" for things, text in told if things]


def some(things: Sequence[Any]) -> str:
    """Write the first few things, and how many more there are."""
    shown = "; ".join(
        thing if isinstance(thing, str) else ", ".join(map(str, thing)) for thing in things[:_SHOWN]
    )
    more = len(things) - _SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown


def _unknown(
    dataset: Dataset, documents: Collection[str], *, are_relevant: bool
) -> tuple[tuple[str, str], ...] | None:
    if not documents:
        return None
    return tuple(
        (query, id_)
        for query, judged in dataset.qrels.items()
        for id_, grade in judged.items()
        if id_ not in documents and (grade >= dataset.scale.relevant_from) is are_relevant
    )


def relevant_documents(dataset: Dataset) -> dict[str, list[str]]:
    """Return query id -> the documents with a grade of at least 1."""
    return {query.id: list(dataset.relevant(query.id)) for query in dataset.queries}


def near_duplicate_queries(
    dataset: Dataset, *, threshold: float = 0.9
) -> tuple[tuple[str, str, float], ...]:
    """Return pairs of queries with similar texts, without those whose text is the same."""
    queries = [query for query in dataset.queries if query.text != query.id]
    keys = [compare_key(query.text) for query in queries]
    pairs: list[Pair] = near_duplicates(keys, threshold=threshold)
    return tuple(
        (queries[pair.first].id, queries[pair.second].id, pair.similarity)
        for pair in pairs
        if keys[pair.first] != keys[pair.second]
    )


def torn_pairs(dataset: Dataset, held_out: Collection[str]) -> list[tuple[str, str]]:
    """Return the pairs of queries that are worded alike, of which one only is held out."""
    alike = [(ids[0], other) for ids in duplicate_queries(dataset) for other in ids[1:]]
    alike += [(first, second) for first, second, _ in near_duplicate_queries(dataset)]
    return [pair for pair in alike if (pair[0] in held_out) is not (pair[1] in held_out)]


def _grades(dataset: Dataset) -> dict[str, int]:
    grades = Counter(grade for judged in dataset.qrels.values() for grade in judged.values())
    return {f"{grade:g}": grades[grade] for grade in sorted(grades)}


def _ceiling(gold: Mapping[str, Sequence[str]], k: int) -> float | None:
    shares = [min(k, len(ids)) / len(ids) for ids in gold.values() if ids]
    return sum(shares) / len(shares) if shares else None
