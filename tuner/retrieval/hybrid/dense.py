"""Dense vectors for the text leg: matrices made before, or those of an embedder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.files import read_input
from tuner.core.rankings import BoolArray, Float32Array
from tuner.core.steps import Advance, unheard
from tuner.retrieval.embedder import Embedder
from tuner.retrieval.hybrid.cache import read_array, write_array
from tuner.retrieval.hybrid.embedders import (
    LSA,
    NONE,
    Lsa,
    make,
    may_be_silent,
    reopen,
    vectors_of,
)
from tuner.retrieval.hybrid.options import DenseOptions, HybridOptions
from tuner.retrieval.hybrid.text import full_text


@dataclass(frozen=True)
class DenseLeg:
    """Score documents by cosine; rows of both matrices have length 1, or are all zeros.

    ``query_rows`` maps a query's id to its row of ``queries``; with an embedder, ``encode``, both
    are empty and queries are encoded as they come.
    """

    documents: Float32Array
    queries: Float32Array
    query_rows: dict[str, int]
    encode: Embedder | None
    options: HybridOptions

    @classmethod
    def build(
        cls,
        options: HybridOptions,
        documents: Sequence[Document],
        order: Sequence[int],
        advance: Advance = unheard,
    ) -> DenseLeg | None:
        """Read or compute vectors; None where the options name no source of any.

        ``order`` gives the place in the corpus of each of the ``documents``.
        """
        name = options.embedder
        if options.dense is not None:
            return cls._from_files(options, options.dense, len(documents), order)
        if name == NONE:
            return None
        texts = [full_text(document) for document in documents]
        encode = make(name, texts, dimensions=options.embedding_dim)
        vectors = vectors_of(encode, texts, name, advance)
        if options.embedding_dim > vectors.shape[1] and name != LSA:
            raise InputError(
                f"embedding_dim={options.embedding_dim} is more than the {vectors.shape[1]} "
                f"numbers of {name!r}; 0 takes all of them"
            )
        return cls(_embedded(vectors, options), np.zeros((0, 0), np.float32), {}, encode, options)

    @classmethod
    def _from_files(
        cls, options: HybridOptions, files: DenseOptions, count: int, order: Sequence[int]
    ) -> DenseLeg:
        matrix, queries, ids = _read_files(files)
        if len(matrix) != count:
            raise InputError(f"{len(matrix)} rows for {count} documents", file=files.matrix)
        if matrix.shape[1] != queries.shape[1]:
            raise InputError(
                f"vectors of {queries.shape[1]} numbers, but the documents' have {matrix.shape[1]}",
                file=files.queries,
            )
        if options.embedding_dim > matrix.shape[1]:
            raise InputError(
                f"vectors of {matrix.shape[1]} numbers, fewer than "
                f"embedding_dim={options.embedding_dim}; 0 takes all of them",
                file=files.matrix,
            )
        if options.embedding_dim:
            matrix = _unit(matrix[:, : options.embedding_dim], str(files.matrix))
            queries = _unit(queries[:, : options.embedding_dim], str(files.queries))
        rows = {name: row for row, name in enumerate(ids)}
        return cls(matrix[list(order)], queries, rows, None, options)

    @cached_property
    def _is_silent(self) -> BoolArray:
        return np.logical_not(self.documents.any(axis=1))

    def scores(self, queries: Sequence[Query]) -> Float32Array:
        """Return 1 + cosine of every document, shape (queries, documents), at least 0.

        It is 0 where a query or a document has no vector.

        Raises:
            InputError: a query that the matrix of queries does not hold.
        """
        vectors = self._vectors(queries)
        scores = np.asarray(np.maximum(1 + vectors @ self.documents.T, 0), dtype=np.float32)
        scores[~vectors.any(axis=1)] = 0
        if self._is_silent.any():
            scores[:, self._is_silent] = 0
        return scores

    @property
    def embed(self) -> Callable[[Sequence[str]], Float32Array] | None:
        """Return what gives vectors of any texts; None where vectors are those of files."""
        encode = self.encode
        if encode is None:
            return None
        name = self.options.embedder
        return lambda texts: _embedded(vectors_of(encode, list(texts), name), self.options)

    def _vectors(self, queries: Sequence[Query]) -> Float32Array:
        embed = self.embed
        if embed is not None:
            return embed([query.text for query in queries])
        missing = [query.id for query in queries if query.id not in self.query_rows]
        if missing:
            raise InputError(
                f"no dense vector for query {missing[0]!r} ({len(missing)} missing): add it to "
                "the query matrix and its ids, or use a model"
            )
        return self.queries[[self.query_rows[query.id] for query in queries]]

    def save(self, directory: Path) -> None:
        """Write the vectors into ``directory``."""
        write_array(directory, "dense_documents", self.documents)
        write_array(directory, "dense_queries", self.queries)
        ids = json.dumps(list(self.query_rows))
        (directory / "dense_query_ids.json").write_text(ids, encoding="utf-8")
        if isinstance(self.encode, Lsa):
            self.encode.save(directory)

    @classmethod
    def load(cls, directory: Path, options: HybridOptions) -> DenseLeg | None:
        """Read what ``save`` wrote; None where the index has no vectors."""
        if options.dense is None and options.embedder == NONE:
            return None
        ids = json.loads((directory / "dense_query_ids.json").read_text(encoding="utf-8"))
        return cls(
            read_array(directory, "dense_documents"),
            read_array(directory, "dense_queries"),
            {name: row for row, name in enumerate(ids)},
            None if options.dense is not None else reopen(options.embedder, directory),
            options,
        )


def _embedded(vectors: Float32Array, options: HybridOptions) -> Float32Array:
    """Return the leading numbers of an embedder's vectors, with length 1."""
    if options.embedding_dim:
        vectors = vectors[:, : options.embedding_dim]
    return _unit(vectors, options.embedder, may_be_zero=may_be_silent(options.embedder))


def _read_files(options: DenseOptions) -> tuple[Float32Array, Float32Array, list[str]]:
    matrix, queries = _read_matrix(str(options.matrix)), _read_matrix(str(options.queries))
    try:
        ids = read_input(str(options.query_ids)).decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read query ids: {error}", file=options.query_ids) from error
    ids = [line.strip() for line in ids if line.strip()]
    if len(ids) != len(queries):
        raise InputError(f"{len(ids)} ids for {len(queries)} vectors", file=options.query_ids)
    return matrix, queries, ids


def _read_matrix(path: str) -> Float32Array:
    try:
        matrix: npt.NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read a numpy matrix: {error}", file=path) from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise InputError(
            f"must be a matrix of numbers, got shape {matrix.shape} of {matrix.dtype}", file=path
        )
    return _unit(matrix, path)


def _unit(matrix: npt.NDArray[Any], source: str, *, may_be_zero: bool = False) -> Float32Array:
    """Scale rows to length 1; NaN is refused, and zeros too, since they rank by accident."""
    vectors = np.asarray(matrix, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    is_zero = lengths == 0
    broken = np.flatnonzero(~np.isfinite(lengths) | (is_zero & (not may_be_zero)))
    if len(broken):
        raise InputError(f"row {broken[0]} is zero or not finite ({len(broken)} rows)", file=source)
    return np.asarray(vectors / np.where(is_zero, 1, lengths), dtype=np.float32)
