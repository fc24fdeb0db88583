"""The graph: passages and the names in them, as two matrices whose rows add up to 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tuner.core.corpus import Corpus, Document
from tuner.core.steps import Advance, followed, unheard
from tuner.core.words import name_words
from tuner.retrieval.hybrid.names import (
    Name,
    is_usable,
    known_names,
    own_names,
    phrases,
)

MENTION_WEIGHT = 1.0
OWN_WEIGHT = 10.0
# A name in more than this share of the passages says nothing about any of them. Small corpora
# are spared: there, a share would drop names that stand in two passages.
HUB_SHARE = 0.02
HUB_AT_LEAST = 10


@dataclass(frozen=True)
class Graph:
    """Names and passages, linked where a passage mentions a name.

    Attributes:
        names: every name, as a tuple of folded words, sorted; entity e is ``names[e]``.
        degrees: number of passages that each entity is linked to, at least 1.
        to_passages: shape (entities, passages); row e says where a walk goes from entity e.
        to_entities: shape (passages, entities); likewise, each name by its rarity
            ``log(1 + passages / degree)``. Here a passage's own title weighs no more than others,
            or walks would turn back to where they come from.
    """

    names: tuple[Name, ...]
    degrees: np.ndarray
    to_passages: sparse.csr_array
    to_entities: sparse.csr_array


def build_graph(corpus: Corpus, documents: Sequence[Document], advance: Advance = unheard) -> Graph:
    """Link each passage to its names; ``documents`` gives the order of the passages.

    Names are the passage's own title (weight 10), other passages' titles in its text, and (weight
    1) the entities and triples that the corpus brings for the passage, or else its capitalised
    phrases. Imported facts replace phrases because adding to them was measured to be worse.
    """
    numbers: dict[Name, int] = {}
    own = [
        [numbers.setdefault(name, len(numbers)) for name in own_names(document)]
        for document in documents
    ]
    titles = dict(numbers)
    longest = max(map(len, titles), default=0)
    facts = imported_names(corpus)
    edges: dict[tuple[int, int], float] = {}
    for passage, document in enumerate(followed(documents, advance)):
        found = facts.get(document.id)
        for name in phrases(document.text) if found is None else found:
            edges[passage, numbers.setdefault(name, len(numbers))] = MENTION_WEIGHT
        for entity in known_names(name_words(document.text), titles, longest=longest):
            edges[passage, entity] = MENTION_WEIGHT
        for entity in own[passage]:
            edges[passage, entity] = OWN_WEIGHT
    return _assemble(tuple(numbers), _without_hubs(edges, len(documents)), len(documents))


def imported_names(corpus: Corpus) -> dict[str, list[Name]]:
    """Return the names that the corpus brings along, by document id."""
    facts: dict[str, list[Name]] = {}
    for document_id, entities in corpus.entities.items():
        facts.setdefault(document_id, []).extend(map(name_words, entities))
    for triple in corpus.triples:
        pair = (name_words(triple.subject), name_words(triple.object))
        facts.setdefault(triple.document_id, []).extend(pair)
    return {
        document_id: [name for name in names if is_usable(name)]
        for document_id, names in facts.items()
    }


def _without_hubs(
    edges: dict[tuple[int, int], float], passage_count: int
) -> dict[tuple[int, int], float]:
    """Drop mentions of names that are nearly everywhere; a passage keeps its own title."""
    degrees = Counter(entity for _, entity in edges)
    limit = max(HUB_SHARE * passage_count, HUB_AT_LEAST)
    return {
        (passage, entity): weight
        for (passage, entity), weight in edges.items()
        if weight == OWN_WEIGHT or degrees[entity] <= limit
    }


def _assemble(
    names: tuple[Name, ...], edges: dict[tuple[int, int], float], passage_count: int
) -> Graph:
    pairs = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    weights = np.array(list(edges.values()))
    # In the order of names, so that ties between entities do not hang on where they were met.
    linked = sorted(set(pairs[:, 1].tolist()), key=names.__getitem__)
    number = np.zeros(len(names), dtype=np.int64)
    number[linked] = np.arange(len(linked))
    columns = number[pairs[:, 1]]
    shape = (passage_count, len(linked))
    links = sparse.csr_array((weights, (pairs[:, 0], columns)), shape=shape)
    degrees = np.bincount(columns, minlength=len(linked))
    rarity = np.log1p(passage_count / np.maximum(degrees, 1))
    return Graph(
        names=tuple(names[entity] for entity in linked),
        degrees=degrees,
        to_passages=_rows_to_one(links.T),
        to_entities=_rows_to_one(links.sign() * rarity[None, :]),
    )


def _rows_to_one(matrix: Any) -> sparse.csr_array:
    rows = sparse.csr_array(matrix)
    totals = np.repeat(rows.sum(axis=1), np.diff(rows.indptr))
    rows.data = (rows.data / totals).astype(np.float32)
    return rows
