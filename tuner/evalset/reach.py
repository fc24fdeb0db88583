"""Measure what share of the relevant documents a retriever could find, by words or by a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tuner.datasets.dataset import Dataset

Walk = Callable[[Dataset, Sequence[tuple[str, str]]], list[int | None]]
"""Takes pairs of query and document id; returns the fewest hops from one to the other, or None."""


@dataclass(frozen=True)
class Reach:
    """Shares of a query's relevant documents, averaged over queries as recall is, in [0, 1].

    Each is the highest recall, at any depth, of what is named. None where no query has a relevant
    document.

    Attributes:
        in_corpus: of any retriever: the document is in the corpus.
        by_words: of matching words: query and document have an index term in common.
        by_graph: hops -> of walks of so many hops at most through a graph of names.
        by_either: hops -> of both together: a document that no such walk reaches may share a
            term, and the other way round. Only vectors may find the others.
    """

    in_corpus: float | None
    by_words: float | None
    by_graph: Mapping[int, float | None]
    by_either: Mapping[int, float | None]


def measure_reach(
    dataset: Dataset,
    gold: Mapping[str, Sequence[str]],
    *,
    terms_of: Callable[[Iterable[str]], list[list[str]]],
    walk: Walk,
    most_hops: int,
) -> Reach:
    """Measure reach; ``gold`` is query id -> relevant documents, ``terms_of`` gives index terms."""
    pairs = [(query, id_) for query, ids in gold.items() for id_ in ids]
    documents = {document.id: document for document in dataset.corpus.documents}
    wanted = sorted({id_ for _, id_ in pairs} & documents.keys())
    texts = [f"{documents[id_].title} {documents[id_].text}" for id_ in wanted]
    terms = dict(zip(wanted, map(set, terms_of(texts)), strict=True))
    asked = terms_of(query.text for query in dataset.queries)
    terms_asked = {
        query.id: set(found) for query, found in zip(dataset.queries, asked, strict=True)
    }
    shares = [not terms_asked[query].isdisjoint(terms.get(id_, ())) for query, id_ in pairs]
    hops = walk(dataset, pairs)
    within = {
        most: [found is not None and found <= most for found in hops]
        for most in range(1, most_hops + 1)
    }

    def mean(claims: Sequence[bool]) -> float | None:
        return _mean(gold, pairs, claims)

    return Reach(
        in_corpus=mean([id_ in documents for _, id_ in pairs]),
        by_words=mean(shares),
        by_graph={most: mean(walked) for most, walked in within.items()},
        by_either={
            most: mean([a or b for a, b in zip(shares, walked, strict=True)])
            for most, walked in within.items()
        },
    )


def _mean(
    gold: Mapping[str, Sequence[str]], pairs: Sequence[tuple[str, str]], claims: Sequence[bool]
) -> float | None:
    """Return the mean over queries of the share of their documents for which the claim holds."""
    found = dict.fromkeys(gold, 0)
    for (query, _), holds in zip(pairs, claims, strict=True):
        found[query] += holds
    each = [found[query] / len(ids) for query, ids in gold.items() if ids]
    return sum(each) / len(each) if each else None
