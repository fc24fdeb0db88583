"""What one process keeps open of an index: GraphRAG's builder, and the vectors of the queries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from tuner.core.corpus import Query
from tuner.core.rankings import Rankings
from tuner.retrieval.adapters.embedding import (
    HashedWords,
    embed,
    make_embedder,
    open_embedder,
)
from tuner.retrieval.adapters.ms_graphrag.output import read_output
from tuner.retrieval.adapters.ms_graphrag_local.options import Settings
from tuner.retrieval.adapters.once import once
from tuner.retrieval.adapters.vectors import Vectors
from tuner.retrieval.hybrid.cache import read_array, write_array

if TYPE_CHECKING:
    from tuner.retrieval.adapters.ms_graphrag_local.builder import Builder

TABLES = (
    "documents",
    "text_units",
    "entities",
    "relationships",
    "communities",
    "community_reports",
)
"""The files of an output folder on which an answer depends, without ``.parquet``."""


def labels(queries: Sequence[Query]) -> dict[str, str]:
    """Return every text that is embedded for the queries, and whose it is."""
    return {query.text: f"query {query.id!r}" for query in reversed(queries)}


@dataclass(frozen=True, eq=False)
class Index:
    """An open index; ``judged_by`` maps a text unit's human-readable id to what it is judged by."""

    builder: Builder
    vectors: Vectors
    judged_by: Mapping[str, str]

    def answer(self, queries: Sequence[Query], settings: Settings, started: float) -> Rankings:
        """Build each query's context, its vector being known, and return what is in it."""
        embedded = perf_counter()
        contexts = [
            self.builder.build(query.text, self.vectors.known[query.text], settings)
            for query in queries
        ]
        return Rankings.from_ids(
            [query.id for query in queries],
            [[self.judged_by[id_] for id_ in context.sources] for context in contexts],
            seconds={"embed": embedded - started, "search": perf_counter() - embedded},
            context_tokens=np.array([float(context.tokens) for context in contexts]),
            graph_used=np.array([bool(context.entities) for context in contexts], dtype=np.bool_),
            entities=[context.entities for context in contexts],
            paths=[[[step] for step in context.relationships] for context in contexts],
        )


def write_index(directory: Path, folder: Path, judged_by: Mapping[str, str], embedder: str) -> None:
    """Embed the entities of an output folder and write what is needed to open it again.

    Raises:
        TunerError: the embedder failed, or gave a zero or NaN vector for an entity.
    """
    from tuner.retrieval.adapters.ms_graphrag_local.builder import entity_texts

    units = read_output(folder).units
    ids, texts = entity_texts(folder)
    model = make_embedder(embedder, [*texts, *(unit.text for unit in units)])
    if isinstance(model, HashedWords):
        model.save(directory)
    vectors = embed(model, texts, lambda row: f"the entity {texts[row].partition(':')[0]!r}")
    write_array(directory, "entities", vectors)
    record = {"ids": ids, "judged_by": {unit.short_id: judged_by[unit.id] for unit in units}}
    (directory / "ids.json").write_text(json.dumps(record), encoding="utf-8")


@once(kept=2)
def open_index(
    directory: Path, folder: Path, embedder: str, community_level: int | None, encoding: str
) -> Index:
    """Open an index once a process, however many retrievers point at it."""
    from tuner.retrieval.adapters.ms_graphrag_local.builder import open_builder

    record = json.loads((directory / "ids.json").read_text(encoding="utf-8"))
    entities = read_array(directory, "entities")
    builder = open_builder(
        folder,
        record["ids"],
        entities,
        community_level=community_level,
        encoding=encoding,
    )
    vectors = Vectors(open_embedder(embedder, directory), entities.shape[1])
    return Index(builder, vectors, record["judged_by"])
