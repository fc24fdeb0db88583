"""The index: everything the engine needs to answer a query, and its form on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError
from tuner.core.rankings import WHOLE, Float32Array, FloatArray, IntArray
from tuner.core.steps import Advance, portion, unheard
from tuner.retrieval.hybrid.cache import read_array, write_array
from tuner.retrieval.hybrid.chunks import cut_documents
from tuner.retrieval.hybrid.columns import Places, Texts
from tuner.retrieval.hybrid.dense import DenseLeg
from tuner.retrieval.hybrid.embedders import NONE
from tuner.retrieval.hybrid.fusion import best, normalise_text
from tuner.retrieval.hybrid.graph import Graph, build_graph
from tuner.retrieval.hybrid.knobs import Settings
from tuner.retrieval.hybrid.mixture import dense_share, lexical_share, passage_weights
from tuner.retrieval.hybrid.options import HybridOptions
from tuner.retrieval.hybrid.propagation import cumulative_scores
from tuner.retrieval.hybrid.rerank import RERANKERS, check
from tuner.retrieval.hybrid.seeds import EntityLookup, build_lookup, softmax
from tuner.retrieval.hybrid.text import Bm25, full_text
from tuner.retrieval.hybrid.words import Words


@dataclass(frozen=True)
class Index:
    """A searchable corpus. Documents are in the order of their ids, so position breaks ties.

    A passage is a document, or a chunk of one. Passages are in the order of their documents.

    Attributes:
        token_counts: shape (passages,), words of title and text, or characters of scripts without
            spaces.
        texts: of each passage, title and text; None where no model reads them.
        owners: shape (passages,), the document of each passage; None where they are the same.
        spans: shape (passages, 2), which characters of its document's text each passage is; None
            likewise.
    """

    document_ids: Texts
    token_counts: FloatArray
    bm25: Bm25
    graph: Graph
    lookup: EntityLookup
    dense: DenseLeg | None
    texts: Texts | None
    owners: IntArray | None
    spans: npt.NDArray[np.int32] | None
    options: HybridOptions

    @classmethod
    def build(cls, corpus: Corpus, options: HybridOptions, advance: Advance = unheard) -> Index:
        """Index the corpus; ``advance`` is told how far that is.

        Raises:
            InputError: no document, two documents with one id, or unusable dense vectors.
        """
        if not corpus.documents:
            raise InputError("the corpus has no documents")
        order = sorted(range(len(corpus.documents)), key=lambda i: corpus.documents[i].id)
        documents: Sequence[Document] = [corpus.documents[position] for position in order]
        ids = tuple(document.id for document in documents)
        for first, second in pairwise(ids):
            if first == second:
                raise InputError(f"document id {first!r} occurs twice in the corpus")
        # In shares of the time of 100,000 passages; the vectors' are guessed.
        is_embedded = options.embedder != NONE
        of_vectors = portion(advance, 0.0, 0.5) if is_embedded else unheard
        advance = portion(advance, 0.5, 1.0) if is_embedded else advance
        is_read = options.rerank not in RERANKERS
        check(options.rerank)
        owners = spans = None
        if options.chunk_tokens:
            chunks = cut_documents(corpus, documents, options)
            corpus, documents = chunks.corpus, chunks.corpus.documents
            owners, spans = chunks.owners, chunks.spans
        dense = DenseLeg.build(options, documents, order, of_vectors)
        embed = None if dense is None else dense.embed
        words = Words.of(documents, portion(advance, 0.0, 0.25))
        of_graph = portion(advance, 0.25, 0.65)
        graph = build_graph(corpus, documents, words, options, of_graph, embed=embed)
        of_text, of_lookup = portion(advance, 0.65, 0.75), portion(advance, 0.75, 1.0)
        bm25 = Bm25.build(words, k1=options.bm25_k1, b=options.bm25_b, advance=of_text)
        return cls(
            document_ids=Texts.of(ids),
            token_counts=words.text_lengths().astype(np.float64),
            bm25=bm25,
            graph=graph,
            lookup=build_lookup(graph, documents, words, of_lookup),
            dense=dense,
            texts=Texts.of(map(full_text, documents)) if is_read else None,
            owners=owners,
            spans=spans,
            options=options,
        )

    def text_parts(self, queries: list[Query]) -> tuple[Float32Array, Float32Array | None]:
        """Return what words and what vectors say, each of shape (queries, documents), in [0, 1].

        Without vectors the first part is the text leg's score.
        """
        lexical = self.bm25.scores([query.text for query in queries])
        if self.dense is None:
            return normalise_text(lexical), None
        return lexical_share(lexical), dense_share(self.dense.scores(queries))

    def candidates(self, texts: list[str], *, count: int) -> tuple[IntArray, FloatArray]:
        """Return each query's seed candidates: entities (-1 fills) and scores (-inf fills)."""
        entities = np.full((len(texts), count), -1, dtype=np.int64)
        scores = np.full((len(texts), count), -np.inf)
        for row, text in enumerate(texts):
            found, values = self.lookup.candidates(text, count=count)
            entities[row, : len(found)] = found
            scores[row, : len(found)] = values
        return entities, scores

    @property
    def passage_count(self) -> int:
        """Return how many passages there are."""
        return len(self.token_counts)

    def documents_of(
        self, passages: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.signedinteger]]:
        """Return the documents of some passages, and which characters of them these are.

        Shapes (queries, any) and (queries, any, 2); -1 fills.
        """
        if self.owners is None or self.spans is None:
            return passages, np.broadcast_to(np.array(WHOLE), (*passages.shape, 2))
        return np.where(passages >= 0, self.owners[passages], -1), self.spans[passages]

    def passages_of(self, documents: IntArray) -> IntArray:
        """Return the passages of some documents, in their order."""
        if self.owners is None:
            return documents
        first = np.searchsorted(self.owners, documents)
        last = np.searchsorted(self.owners, documents, side="right")
        spans = [np.arange(a, b) for a, b in zip(first, last, strict=True)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *spans])

    @property
    def passage_starts(self) -> int:
        """Return from how many passages a query's walks start beside those from its names."""
        return 1 if self.dense is None else 2

    def best_passages(self, lexical: Float32Array, dense: Float32Array | None) -> IntArray:
        """Return the passage that words rank first, and the one that vectors do, if any.

        Shape (queries, ``passage_starts``), positions; -1 where nothing matches.
        """
        parts = [lexical] if dense is None else [lexical, dense]
        return np.concatenate([best(part, 1)[0] for part in parts], axis=1)

    def names_of(self, passages: IntArray, rows: IntArray, row_count: int) -> sparse.csr_array:
        """Return walks that start from the names of passages, shape (rows, entities)."""
        place = sparse.csr_array(
            (np.ones(len(rows), dtype=np.float32), (rows, passages)),
            shape=(row_count, self.passage_count),
        )
        return sparse.csr_array(place @ self.graph.to_entities)

    def starts(
        self, texts: list[str], settings: Settings, passages: IntArray | None = None
    ) -> sparse.csr_array:
        """Return where walks start and what they count, shape (queries, entities).

        ``passages`` are those of ``best_passages``; None where no walk starts from them.
        """
        entities, scores = self.candidates(texts, count=settings.seeds)
        weights = softmax(scores, settings.temperature)
        rows, places = np.nonzero(weights)
        seeds = sparse.csr_array(
            (weights[rows, places].astype(np.float32), (rows, entities[rows, places])),
            shape=(len(texts), len(self.graph.names)),
        )
        if passages is not None:
            rows, places = np.nonzero(passages >= 0)
            walks = self.names_of(passages[rows, places], np.arange(len(rows)), len(rows))
            counted = passage_weights(settings, passages.shape[1])[places]
            share = sparse.csr_array(
                (counted, (rows, np.arange(len(rows)))), shape=(len(texts), len(rows))
            )
            seeds = sparse.csr_array(seeds + share @ walks)
        return seeds

    def graph_scores(
        self, texts: list[str], settings: Settings, passages: IntArray | None = None
    ) -> Float32Array:
        """Return the raw graph scores of every passage, shape (queries, documents).

        ``passages`` are as in ``starts``.
        """
        seeds = self.starts(texts, settings, passages)
        return cumulative_scores(
            self.graph, seeds, hops=settings.max_hops, decay=settings.hop_decay
        )

    def save(self, directory: Path) -> None:
        """Write the index into an empty directory."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "token_counts": self.token_counts,
            "degrees": self.graph.degrees,
            "information": self.lookup.information,
            "weight": self.lookup.weight,
            "word_information": self.lookup.word_information,
            "postings": self.lookup.postings,
            "posting_bounds": self.lookup.posting_bounds,
            "unseen_information": np.array(self.lookup.unseen_information),
        }
        matrices = {
            "bm25": self.bm25.weights,
            "to_passages": self.graph.to_passages,
            "to_entities": self.graph.to_entities,
        }
        for name, matrix in matrices.items():
            for part in ("data", "indices", "indptr"):
                arrays[f"{name}_{part}"] = getattr(matrix, part)
        for name, array in arrays.items():
            write_array(directory, name, array)
        self.document_ids.save(directory, "document_ids")
        self.bm25.terms.save(directory, "terms")
        self.lookup.names.save(directory, "names")
        self.lookup.words.save(directory, "words")
        if self.dense is not None:
            self.dense.save(directory)
        if self.texts is not None:
            self.texts.save(directory, "texts")
        if self.owners is not None:
            write_array(directory, "owners", self.owners)
        if self.spans is not None:
            write_array(directory, "spans", self.spans)

    @classmethod
    def load(cls, directory: Path, options: HybridOptions) -> Index:
        """Read an index that ``save`` wrote; its arrays stay on disk, mapped into memory."""
        ids = Texts.load(directory, "document_ids")
        terms, names, words = (Places.load(directory, n) for n in ("terms", "names", "words"))
        token_counts = read_array(directory, "token_counts")
        shapes = {
            "bm25": (len(terms.texts), len(token_counts)),
            "to_passages": (len(names.texts), len(token_counts)),
            "to_entities": (len(token_counts), len(names.texts)),
        }
        bm25, to_passages, to_entities = (
            sparse.csr_array(
                tuple(
                    read_array(directory, f"{name}_{part}")
                    for part in ("data", "indices", "indptr")
                ),
                shape=shape,
            )
            for name, shape in shapes.items()
        )
        degrees = read_array(directory, "degrees")
        return cls(
            document_ids=ids,
            token_counts=token_counts,
            bm25=Bm25(bm25, terms),
            graph=Graph(names.texts, degrees, to_passages, to_entities),
            lookup=EntityLookup(
                names=names,
                information=read_array(directory, "information"),
                weight=read_array(directory, "weight"),
                words=words,
                word_information=read_array(directory, "word_information"),
                postings=read_array(directory, "postings"),
                posting_bounds=read_array(directory, "posting_bounds"),
                unseen_information=float(read_array(directory, "unseen_information")),
            ),
            dense=DenseLeg.load(directory, options),
            texts=Texts.load(directory, "texts") if options.rerank not in RERANKERS else None,
            owners=read_array(directory, "owners") if options.chunk_tokens else None,
            spans=read_array(directory, "spans") if options.chunk_tokens else None,
            options=options,
        )


@lru_cache(maxsize=4)
def open_index(directory: Path, options: HybridOptions) -> Index:
    """Load the index in ``directory`` once a process, however many engines point at it."""
    return Index.load(directory, options)
