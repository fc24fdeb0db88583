"""Compares the contexts of `ms_graphrag_local` with those of GraphRAG's own local search engine.

    pip install '.[graphrag]' && python experiments/ms_graphrag/same_context.py

Both read the folder of `make_fixture.py`. GraphRAG's engine is made by its own factory with its own
defaults, over entities in LanceDB; only the embedding is a stub, a sum of random vectors of the words.
Prints for how many of 16 queries and 4 settings the sources, their order, and the tokens of the whole
context are the same.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import make_fixture  # first, as it keeps the tokenizer from being downloaded
import numpy as np
import pandas
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.query.factory import get_local_search_engine
from graphrag.query.indexer_adapters import (
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_reports,
    read_indexer_text_units,
)
from graphrag.tokenizer.get_tokenizer import get_tokenizer
from graphrag_llm.completion.completion_factory import register_completion
from graphrag_llm.embedding.embedding import LLMEmbedding
from graphrag_llm.embedding.embedding_factory import register_embedding
from graphrag_llm.utils import create_embedding_response
from graphrag_vectors import VectorStoreDocument
from graphrag_vectors.lancedb import LanceDBVectorStore

from tuner.datasets import open_dataset
from tuner.retrieval.adapters.ms_graphrag_local import MsGraphragLocal
from tuner.retrieval.adapters.ms_graphrag_local.adapter import labels
from tuner.retrieval.adapters.ms_graphrag_local.builder import entity_texts
from tuner.retrieval.adapters.ms_graphrag_local.options import read_params

OUTPUT = make_fixture.DATA / "output"
LEVEL = 2
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"max_context_tokens": 500},
    {"top_k_mapped_entities": 2, "text_unit_prop": 0.7},
    {"top_k_relationships": 2, "max_context_tokens": 900},
)
DIMENSIONS = 256


def embed(texts: list[str]) -> np.ndarray:
    rows = []
    for text in texts:
        words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        seeds = [zlib.crc32(word.encode()) for word in words]
        vectors = [np.random.default_rng(seed).normal(size=DIMENSIONS) for seed in seeds]
        rows.append(np.sum(vectors, axis=0) / np.linalg.norm(np.sum(vectors, axis=0)))
    return np.array(rows)


class StubEmbedding(LLMEmbedding):
    """Embeds by ``embed``."""

    def __init__(self, *, tokenizer: Any, metrics_store: Any, **_: Any) -> None:
        self._tokenizer, self._metrics_store = tokenizer, metrics_store

    @property
    def metrics_store(self) -> Any:
        return self._metrics_store

    @property
    def tokenizer(self) -> Any:
        return self._tokenizer

    def embedding(self, /, **arguments: Any) -> Any:
        return create_embedding_response(embed(arguments["input"])[0].tolist())

    async def embedding_async(self, /, **arguments: Any) -> Any:
        return self.embedding(**arguments)


def their_engine(folder: str) -> Any:
    register_completion("stub", make_fixture.StubModel)
    register_embedding("stub", StubEmbedding)
    model = {"type": "stub", "model_provider": "openai", "model": "gpt-4o"}
    config = GraphRagConfig.model_validate(
        {
            "completion_models": {"default_completion_model": model},
            "embedding_models": {"default_embedding_model": model},
        }
    )
    tables = {name: pandas.read_parquet(OUTPUT / f"{name}.parquet") for name in make_fixture.TABLES}
    store = LanceDBVectorStore(db_uri=folder, index_name="entities", vector_size=DIMENSIONS)
    store.connect()
    store.create_index()
    ids, texts = entity_texts(OUTPUT)
    pairs = zip(ids, embed(texts), strict=True)
    store.load_documents([VectorStoreDocument(id_, vector.tolist()) for id_, vector in pairs])
    communities = tables["communities"]
    engine = get_local_search_engine(
        config,
        read_indexer_reports(tables["community_reports"], communities, LEVEL),
        read_indexer_text_units(tables["text_units"]),
        read_indexer_entities(tables["entities"], communities, LEVEL),
        read_indexer_relationships(tables["relationships"]),
        {"claims": []},
        "",
        store,
    )
    # The model's own would be looked up by its name; ours counts by GraphRAG's default.
    engine.context_builder.tokenizer = get_tokenizer()
    return engine


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = their_engine(folder)
        dataset = open_dataset(make_fixture.DATA / "data")
        ours = MsGraphragLocal.build(
            dataset.corpus,
            cache_dir=Path(folder),
            path=str(OUTPUT),
            embedder="same_context:embed",
            community_level=LEVEL,
        )
        index = ours._open()
        index.vectors.embed(labels(dataset.queries))
        same, count = 0, 0
        for params in SETTINGS:
            for query in dataset.queries:
                given = {**engine.context_builder_params, **params}
                theirs = engine.context_builder.build_context(query=query.text, **given)
                frame = theirs.context_records["sources"]
                sources = () if frame.empty else tuple(map(str, frame["id"]))
                vector = index.vectors.known[query.text]
                mine = index.builder.build(query.text, vector, read_params(params))
                tokens = len(get_tokenizer().encode(theirs.context_chunks))
                same += (sources, tokens) == (mine.sources, mine.tokens)
                count += 1
    print(f"{same} of {count} contexts are the same")
    sys.exit(0 if same == count else 1)


if __name__ == "__main__":
    main()
