"""Dense vectors for the text leg: matrices made before, or a sentence-transformers model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.files import read_input
from tuner.core.rankings import Float32Array
from tuner.retrieval.hybrid.cache import read_array, write_array
from tuner.retrieval.hybrid.options import DenseOptions
from tuner.retrieval.hybrid.text import full_text


@dataclass(frozen=True)
class DenseLeg:
    """Score documents by cosine; rows of both matrices have length 1.

    ``query_rows`` maps a query's id to its row of ``queries``; with a model both are empty and
    queries are encoded as they come.
    """

    documents: Float32Array
    queries: Float32Array
    query_rows: dict[str, int]
    model: str | None

    @classmethod
    def build(
        cls, options: DenseOptions, documents: Sequence[Document], order: Sequence[int]
    ) -> DenseLeg:
        """Read or compute vectors; ``order`` gives each document's place in the corpus."""
        if options.model is not None:
            vectors = _encode(options.model, [full_text(document) for document in documents])
            return cls(
                _unit(vectors, options.model), np.zeros((0, 0), np.float32), {}, options.model
            )
        matrix, queries, ids = _read_files(options)
        if len(matrix) != len(documents):
            raise InputError(
                f"{len(matrix)} rows for {len(documents)} documents", file=options.matrix
            )
        if matrix.shape[1] != queries.shape[1]:
            raise InputError(
                f"vectors of {queries.shape[1]} numbers, but the documents' have {matrix.shape[1]}",
                file=options.queries,
            )
        return cls(matrix[list(order)], queries, {name: row for row, name in enumerate(ids)}, None)

    def scores(self, queries: Sequence[Query]) -> Float32Array:
        """Return 1 + cosine of every document, shape (queries, documents), at least 0.

        Raises:
            InputError: a query that the matrix of queries does not hold.
        """
        if self.model is not None:
            vectors = _unit(_encode(self.model, [query.text for query in queries]), self.model)
        else:
            missing = [query.id for query in queries if query.id not in self.query_rows]
            if missing:
                raise InputError(
                    f"no dense vector for query {missing[0]!r} ({len(missing)} missing): add it to "
                    "the query matrix and its ids, or use a model"
                )
            vectors = self.queries[[self.query_rows[query.id] for query in queries]]
        cosines = vectors @ self.documents.T
        return np.asarray(np.maximum(1 + cosines, 0), dtype=np.float32)

    def save(self, directory: Path) -> None:
        """Write the vectors into ``directory``."""
        write_array(directory, "dense_documents", self.documents)
        write_array(directory, "dense_queries", self.queries)
        ids = json.dumps(list(self.query_rows))
        (directory / "dense_query_ids.json").write_text(ids, encoding="utf-8")

    @classmethod
    def load(cls, directory: Path, options: DenseOptions) -> DenseLeg:
        """Read what ``save`` wrote."""
        ids = json.loads((directory / "dense_query_ids.json").read_text(encoding="utf-8"))
        return cls(
            read_array(directory, "dense_documents"),
            read_array(directory, "dense_queries"),
            {name: row for row, name in enumerate(ids)},
            options.model,
        )


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


def _unit(matrix: npt.NDArray[Any], source: str) -> Float32Array:
    """Scale rows to length 1; zero and NaN vectors are refused, since they rank by accident."""
    vectors = np.asarray(matrix, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    broken = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(broken):
        raise InputError(f"row {broken[0]} is zero or not finite ({len(broken)} rows)", file=source)
    return np.asarray(vectors / lengths, dtype=np.float32)


def _encode(model: str, texts: list[str]) -> npt.NDArray[Any]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise InputError(
            "dense vectors from a model need sentence-transformers: "
            "pip install 'graphrag-tuner[dense]'"
        ) from error
    try:
        encoder = SentenceTransformer(model)
    except OSError as error:  # of a name that is none, or without a network
        raise InputError(f"cannot load dense model {model!r}: {error}") from error
    return np.asarray(encoder.encode(texts, show_progress_bar=False))
