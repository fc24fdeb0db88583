"""The graph: passages and the names in them, as two matrices whose rows add up to 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tuner.core.corpus import Corpus, Document
from tuner.core.rankings import BoolArray, Float32Array, FloatArray, IntArray
from tuner.core.steps import Advance, followed, portion, unheard
from tuner.core.words import name_words
from tuner.retrieval.hybrid.columns import Texts
from tuner.retrieval.hybrid.names import Name, is_usable, own_names, phrases
from tuner.retrieval.hybrid.options import HybridOptions
from tuner.retrieval.hybrid.synonyms import synonyms
from tuner.retrieval.hybrid.titles import known_titles
from tuner.retrieval.hybrid.words import Vocabulary, Words, flattened, index_kind

MENTION_WEIGHT = 1.0
# Small corpora are spared from `hub_cut`: there, a share would drop names in two passages.
HUB_AT_LEAST = 10


@dataclass(frozen=True)
class Graph:
    """Names and passages, linked where a passage mentions a name.

    Attributes:
        names: every name, its folded words joined by spaces, sorted; entity e is ``names[e]``.
        degrees: number of passages that each entity is linked to, at least 1.
        to_passages: shape (entities, passages); row e says where a walk goes from entity e.
        to_entities: shape (passages, entities); likewise, each name by its rarity
            ``log(1 + passages / degree)``. Here a passage's own title weighs no more than others,
            or walks would turn back to where they come from.
    """

    names: Texts
    degrees: np.ndarray
    to_passages: sparse.csr_array
    to_entities: sparse.csr_array


def build_graph(
    corpus: Corpus,
    documents: Sequence[Document],
    words: Words,
    options: HybridOptions,
    advance: Advance = unheard,
    *,
    embed: Callable[[Sequence[str]], Float32Array] | None = None,
) -> Graph:
    """Link each passage to its names; ``documents`` gives the order of the passages.

    Names are the passage's own title (``edge_weight``) and, with weight 1, what ``names`` says:

    - ``titles``: other passages' titles in its text, and its capitalised phrases;
    - ``triples``: the entities and triples that the corpus brings for the passage;
    - ``both``: other passages' titles, and what the corpus brings for the passage, or else its
      phrases. Imported facts replace phrases because adding to them was measured to be worse.

    A walk from a name goes to the passages of its synonyms too, by how alike the names are; with
    ``embed``, which gives vectors of length 1, also by how alike these are.
    """
    names = Vocabulary()
    number_of = names.__getitem__
    pieces = [
        flattened(
            [number_of(" ".join(name)) for name in own_names(document)] for document in documents
        )
    ]
    if options.names != "triples":
        pieces.append(known_titles(words, names, portion(advance, 0.0, 0.35)))
    named_in = _sources(corpus, options)
    pieces.append(
        flattened(
            [number_of(" ".join(name)) for name in named_in(document)]
            for document in followed(documents, portion(advance, 0.35, 0.8))
        )
    )
    rows, columns, is_own = _links(pieces, len(names))
    degrees = np.bincount(columns, minlength=len(names))
    kept = is_own | (degrees <= _limit(options.hub_cut, len(documents)))[columns]
    weights = np.where(is_own, options.edge_weight, MENTION_WEIGHT)
    return _assemble(
        list(names),
        rows[kept],
        columns[kept],
        weights[kept],
        len(documents),
        synonym_threshold=options.synonym_threshold,
        embed=embed,
    )


def _links(
    pieces: list[tuple[IntArray, IntArray]], size: int
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return passage and name of each link, ascending, and whether it is of the first piece.

    ``pieces`` hold names and their passages, and are used up: of many passages they are large.
    """
    keys = np.empty(sum(len(columns) for columns, _ in pieces), dtype=np.int64)
    end = 0
    for number in range(len(pieces)):
        columns, rows = pieces.pop(0)
        begin, end = end, end + len(columns)
        np.multiply(rows, 2 * size, out=keys[begin:end])
        keys[begin:end] += 2 * columns + min(number, 1)
    del columns, rows
    keys.sort()
    is_first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:] >> 1, keys[:-1] >> 1, out=is_first[1:])
    keys = keys[is_first]
    is_own = (keys & 1) == 0
    keys >>= 1
    kind = index_kind(keys.size)
    found = keys // max(size, 1)
    keys -= found * size
    return found.astype(kind), keys.astype(kind), is_own


def _limit(share: float, passages: int) -> float:
    """Return how many passages may mention a name; a passage keeps its own title."""
    return max(share * passages, HUB_AT_LEAST)


def _sources(corpus: Corpus, options: HybridOptions) -> Callable[[Document], Iterable[Name]]:
    """Return what finds a passage's names beside titles."""
    facts = {} if options.names == "titles" else imported_names(corpus)
    if options.names == "triples":
        return lambda document: facts.get(document.id, ())
    return lambda document: facts[document.id] if document.id in facts else phrases(document.text)


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


def _assemble(
    names: list[str],
    rows: IntArray,
    columns: IntArray,
    weights: FloatArray,
    passages: int,
    *,
    synonym_threshold: float,
    embed: Callable[[Sequence[str]], Float32Array] | None,
) -> Graph:
    # In the order of names, so that ties between entities do not hang on where they were met.
    linked = sorted(np.unique(columns).tolist(), key=names.__getitem__)
    number = np.zeros(len(names), dtype=np.int64)
    number[linked] = np.arange(len(linked))
    columns = number[columns].astype(columns.dtype)
    bounds = np.zeros(passages + 1, dtype=columns.dtype)
    np.cumsum(np.bincount(rows, minlength=passages), out=bounds[1:])
    links = sparse.csr_array((weights, columns, bounds), shape=(passages, len(linked)))
    links.sort_indices()
    degrees = np.bincount(columns, minlength=len(linked))
    rarity = np.log1p(passages / np.maximum(degrees, 1))
    texts = [names[entity] for entity in linked]
    from_names = links.T
    if synonym_threshold > 0 and texts:
        vectors = None if embed is None else embed(texts)
        from_names = from_names + synonyms(texts, synonym_threshold, vectors) @ from_names
    to_passages = _rows_to_one(from_names)
    links.data = rarity[links.indices]
    return Graph(
        names=Texts.of(texts),
        degrees=degrees,
        to_passages=to_passages,
        to_entities=_rows_to_one(links),
    )


def _rows_to_one(matrix: Any) -> sparse.csr_array:
    rows = sparse.csr_array(matrix)
    totals = np.repeat(rows.sum(axis=1), np.diff(rows.indptr))
    rows.data = (rows.data / totals).astype(np.float32)
    return rows
