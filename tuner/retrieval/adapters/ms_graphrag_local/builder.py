"""GraphRAG's context builder, opened from an output folder; imports GraphRAG's package."""

from __future__ import annotations

import importlib.util
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
from graphrag.query.indexer_adapters import (
    read_indexer_covariates,
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_reports,
    read_indexer_text_units,
)
from graphrag.query.structured_search.local_search.mixed_context import LocalSearchMixedContext
from graphrag.tokenizer.get_tokenizer import get_tokenizer
from graphrag_vectors import VectorStore, VectorStoreDocument, VectorStoreSearchResult

from tuner.core.errors import InputError, one_line
from tuner.core.rankings import Float32Array
from tuner.retrieval.adapters.ms_graphrag.output import table_path
from tuner.retrieval.adapters.ms_graphrag_local.options import CLAIMS, Settings

# At each context that is full, GraphRAG warns that it is; that is what a budget is for.
logging.getLogger("graphrag.query").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Context:
    """What GraphRAG would hand to the language model for one query.

    Attributes:
        sources: human-readable ids of the text units, in their order.
        entities: their titles, in their order.
        relationships: source, description and target of each.
        tokens: of the whole context, by GraphRAG's tokenizer.
    """

    sources: tuple[str, ...]
    entities: tuple[str, ...]
    relationships: tuple[tuple[str, str, str], ...]
    tokens: int


@dataclass(frozen=True, eq=False)
class Builder:
    """An open index."""

    mixed: LocalSearchMixedContext
    count_tokens: Callable[[str], int]
    # GraphRAG notes on shared records which of them matched, for as long as it builds.
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def build(self, query: str, vector: Float32Array, settings: Settings) -> Context:
        """Build the context of one query, whose vector is given."""
        with self._turn:
            self.mixed.text_embedder.vector = vector
            built = self.mixed.build_context(
                query,
                text_unit_prop=settings.text_unit_prop,
                community_prop=settings.community_prop,
                top_k_mapped_entities=settings.top_k_mapped_entities,
                top_k_relationships=settings.top_k_relationships,
                max_context_tokens=settings.max_context_tokens,
                # As GraphRAG's own local search does.
                include_entity_rank=True,
                include_relationship_weight=True,
            )
        records = built.context_records
        relationships = _columns(records, "relationships", "source", "description", "target")
        return Context(
            sources=tuple(id_ for (id_,) in _columns(records, "sources", "id")),
            entities=tuple(name for (name,) in _columns(records, "entities", "entity")),
            relationships=tuple((s, d, t) for s, d, t in relationships),
            tokens=self.count_tokens(built.context_chunks),
        )


def entity_texts(folder: Path) -> tuple[list[str], list[str]]:
    """Return the entities' ids, and the texts that GraphRAG embeds them by."""
    table = pandas.read_parquet(table_path(folder, "entities"), columns=_ENTITY_COLUMNS)
    rows = table.fillna("").itertuples(index=False)
    texts = {str(id_): f"{title}:{description}" for id_, title, description in rows}
    return list(texts), list(texts.values())


def hidden_entities(folder: Path, community_level: int | None) -> tuple[int, int]:
    """Return how many entities GraphRAG leaves out at a level of communities, and of how many."""
    ids = set(pandas.read_parquet(table_path(folder, "entities"), columns=["id"])["id"])
    if community_level is None:
        return 0, len(ids)
    table = table_path(folder, "communities")
    communities = pandas.read_parquet(table, columns=["level", "entity_ids"])
    kept = communities[communities.level <= community_level]["entity_ids"].explode()
    return len(ids - set(kept)), len(ids)


def open_builder(
    folder: Path,
    ids: Sequence[str],
    vectors: Float32Array,
    *,
    community_level: int | None,
    encoding: str,
) -> Builder:
    """Open an index; ``vectors`` holds one row for each of the entities' ``ids``.

    Raises:
        InputError: a table is broken, or the tokenizer cannot be had.
    """
    try:
        tables = {name: pandas.read_parquet(table_path(folder, name)) for name in _TABLES}
        communities = tables["communities"]
        reports = tables["community_reports"]
        claims = table_path(folder, CLAIMS)
        mixed = LocalSearchMixedContext(
            entities=read_indexer_entities(tables["entities"], communities, community_level),
            entity_text_embeddings=_Vectors(ids, vectors),
            text_embedder=_GivenVector(),
            text_units=read_indexer_text_units(tables["text_units"]),
            community_reports=read_indexer_reports(reports, communities, community_level),
            relationships=read_indexer_relationships(tables["relationships"]),
            covariates={
                "claims": read_indexer_covariates(pandas.read_parquet(claims))
                if claims.is_file()
                else []
            },
            tokenizer=_tokenizer(encoding),
        )
    except (OSError, KeyError, ValueError, AttributeError) as error:
        reason = one_line(error)
        raise InputError(f"GraphRAG cannot read it: {reason}", file=str(folder)) from error
    return Builder(mixed, mixed.tokenizer.num_tokens)


_TABLES = ("entities", "relationships", "text_units", "communities", "community_reports")
_ENTITY_COLUMNS = ["id", "title", "description"]


class _GivenVector:
    """Stands for GraphRAG's embedding model: the queries are embedded ahead, all at once."""

    vector: Float32Array

    def embedding(self, *, input: list[str]) -> SimpleNamespace:  # noqa: ARG002
        return SimpleNamespace(first_embedding=self.vector.tolist())


class _Vectors(VectorStore):  # type: ignore[misc]
    """The entities' vectors in memory, searched as LanceDB does, which is GraphRAG's default.

    By Euclidean distance, which for vectors of length 1 orders as the cosine does; of equally near
    entities the first one in the folder comes first.
    """

    def __init__(self, ids: Sequence[str], vectors: Float32Array) -> None:
        super().__init__(vector_size=vectors.shape[1])
        self._documents = [VectorStoreDocument(id=id_, vector=None) for id_ in ids]
        self._vectors = vectors

    def similarity_search_by_vector(
        self, query_embedding: list[float], k: int = 10, **_: Any
    ) -> list[VectorStoreSearchResult]:
        away = self._vectors - np.asarray(query_embedding, dtype=np.float32)
        distances = np.einsum("ij,ij->i", away, away)
        order = np.argsort(distances, kind="stable")[:k]
        # LanceDB's distance is the squared one too.
        return [VectorStoreSearchResult(self._documents[i], 1 - distances[i]) for i in order]

    def count(self) -> int:
        return len(self._documents)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an index that is being searched is not changed")

    connect = create_index = load_documents = search_by_id = remove = update = _refuse


def _tokenizer(encoding: str) -> Any:
    """Return GraphRAG's tokenizer; from the tables that litellm brings along, where it has them."""
    litellm = importlib.util.find_spec("litellm")
    if litellm is not None and litellm.origin is not None:
        tables = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
        if tables.is_dir():
            os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    try:
        return get_tokenizer(encoding_model=encoding)
    except Exception as error:  # unknown, or not to be downloaded
        reason = " ".join(str(error).split())
        message = f"cannot load the tokenizer {encoding!r}: {reason}"
        raise InputError(message, key=("encoding",)) from error


def _columns(records: Any, table: str, *names: str) -> list[tuple[str, ...]]:
    """Return columns of a record table as strings; nothing where it is missing or empty."""
    frame = records.get(table)
    if frame is None or frame.empty:
        return []
    return [tuple(map(str, row)) for row in zip(*(frame[name] for name in names), strict=True)]
