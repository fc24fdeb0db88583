"""The LightRAG package at work: in one event loop a process, and without a language model.

The only file that imports LightRAG.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from tuner.core.errors import TunerError, one_line
from tuner.core.rankings import Float32Array
from tuner.core.words import UNSPACED
from tuner.retrieval.adapters.event_loop import once, run_concurrently
from tuner.retrieval.adapters.lightrag.knowledge import SOURCES, Knowledge
from tuner.retrieval.adapters.lightrag.options import Settings
from tuner.retrieval.adapters.lightrag.working_dir import FILES
from tuner.retrieval.embedder import Embedder, embed

PACKAGE = "lightrag-hku"

T = TypeVar("T")

# About as long as the tokens of current language models are on English, JSON and Chinese.
_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W_]{{1,6}}|[^\w\s]|_")


class Tokens:
    """Count tokens without a download: pieces of at most six letters, one sign, one ideograph."""

    def encode(self, content: str) -> Sequence[int]:
        """Return as many numbers as the text has tokens: LightRAG's retrieval only counts them."""
        # Entities and relations come again in every trial, whole contexts hardly ever.
        return range(_short(content) if len(content) < 4000 else _count(content))

    def decode(self, tokens: Sequence[int]) -> str:
        """Refuse: LightRAG would need it to cut texts, which neither insertion nor search does."""
        raise TunerError(
            f"LightRAG asked to spell out {len(tokens)} tokens, which are only counted"
        )


def _count(text: str) -> int:
    return len(_TOKEN.findall(text))


_short = lru_cache(maxsize=1 << 16)(_count)

_SPELLED = re.compile(rf"\s*(?:{_TOKEN.pattern})\s*")


class _Spelled:
    """The same tokens as texts, each with the space around it: LightRAG cuts by them."""

    def encode(self, content: str) -> list[str]:
        return _SPELLED.findall(content)

    def decode(self, tokens: Sequence[str]) -> str:
        return "".join(tokens)


def cut(text: str, *, tokens: int, overlap: int) -> list[str]:
    """Return the chunks that LightRAG makes of a text: ``tokens`` each, at most.

    Neighbours have ``overlap`` tokens in common, fewer than a chunk has.
    """
    _load()
    from lightrag.chunker import chunking_by_token_size

    made = chunking_by_token_size(
        _Spelled(), text, chunk_token_size=tokens, chunk_overlap_token_size=overlap
    )
    return [str(chunk["content"]) for chunk in made]


@dataclass(eq=False)
class Opened:
    """One index, open in this process. Answers one batch at a time.

    ``vectors`` holds those of the texts that may be asked for; they are made and checked before
    LightRAG runs, since it would go on without them and answer something else.
    """

    rag: Any
    vectors: dict[str, Float32Array] = field(default_factory=dict)

    def answer(
        self, asked: Sequence[tuple[str, list[str], list[str]]], settings: Settings
    ) -> list[dict[str, Any]]:
        """Return LightRAG's data for each (query, low-level, high-level keywords)."""
        return _run(lambda: self._answer(asked, settings))

    async def _answer(
        self, asked: Sequence[tuple[str, list[str], list[str]]], settings: Settings
    ) -> list[dict[str, Any]]:
        from lightrag import QueryParam

        rag = self.rag
        for storage in (rag.chunks_vdb, rag.entities_vdb, rag.relationships_vdb):
            storage.cosine_better_than_threshold = settings.cosine_better_than_threshold
        # LightRAG takes these two from its constructor, but reads them at each query.
        rag.text_chunks.global_config["related_chunk_number"] = settings.related_chunk_number
        rag.text_chunks.global_config["kg_chunk_pick_method"] = settings.kg_chunk_pick_method
        answers = []
        for query, low, high in asked:
            param = QueryParam(
                mode=settings.mode,
                top_k=settings.top_k,
                chunk_top_k=settings.chunk_top_k,
                max_entity_tokens=settings.max_entity_tokens,
                max_relation_tokens=settings.max_relation_tokens,
                max_total_tokens=settings.max_total_tokens,
                ll_keywords=low,
                hl_keywords=high,
                enable_rerank=False,
                response_type="Multiple Paragraphs",
                user_prompt="",
            )
            try:
                answers.append(await rag.aquery_data(query, param))
            except Exception as error:
                raise TunerError(f"LightRAG failed on {query!r}: {one_line(error)}") from error
        return answers


def build(knowledge: Knowledge, embedder: Embedder, dimensions: int, target: Path) -> None:
    """Insert the knowledge into a new LightRAG index and put its files into ``target``.

    Raises:
        TunerError: the embedder failed, or LightRAG did.
    """
    with tempfile.TemporaryDirectory(prefix="lightrag-build-", dir=target.parent) as made:
        folder = Path(made)
        names = {chunk.text: chunk.document_id for chunk in knowledge.chunks.values()}
        failures: list[TunerError] = []

        async def vectors(texts: list[str], **_: Any) -> Float32Array:
            def label(row: int) -> str:
                text = texts[row]
                if text in names:
                    return f"passage {names[text]!r}"
                return f"the entity or relation {text.split(chr(10))[0]!r}"

            try:
                return embed(embedder, texts, label, dimensions=dimensions)
            except TunerError as error:
                failures.append(error)
                raise

        try:
            _run(lambda: _insert(knowledge, _make(folder, vectors, dimensions)))
        except Exception as error:
            if failures:
                raise failures[0] from error
            message = f"LightRAG could not build the index: {one_line(error)}"
            raise TunerError(message) from error
        copy_files(folder, target)


async def _insert(knowledge: Knowledge, rag: Any) -> None:
    from lightrag.constants import GRAPH_FIELD_SEP

    await rag.initialize_storages()
    try:
        await rag.ainsert_custom_kg(knowledge.custom_kg())
        chunk_ids = {id_: chunk_id(chunk.text) for id_, chunk in knowledge.chunks.items()}

        def sources(chunks: Mapping[str, None]) -> str:
            ids = dict.fromkeys(chunk_ids[id_] for id_ in chunks)
            return str(GRAPH_FIELD_SEP).join(list(ids)[:SOURCES])

        # insert_custom_kg keeps one passage an entity; LightRAG's own extraction keeps all.
        graph = rag.chunk_entity_relation_graph
        nodes = await graph.get_nodes_batch(list(knowledge.entities))
        await graph.upsert_nodes_batch(
            [
                (name, {**nodes[name], "source_id": sources(found.chunks)})
                for name, found in knowledge.entities.items()
            ]
        )
        edges = await graph.get_edges_batch(
            [{"src": first, "tgt": second} for first, second in knowledge.pairs]
        )
        await graph.upsert_edges_batch(
            [
                (*pair, {**edges[pair], "source_id": sources(found.chunks)})
                for pair, found in knowledge.pairs.items()
            ]
        )
        await graph.index_done_callback()
    finally:
        await rag.finalize_storages()


def open_index(directory: Path, dimensions: int) -> Opened:
    """Open the index in ``directory``, once a process however many retrievers point at it."""
    return _open_index(directory, dimensions, os.getpid())


@once(kept=8)
def _open_index(directory: Path, dimensions: int, process: int) -> Opened:  # noqa: ARG001
    known: dict[str, Float32Array] = {}

    async def vectors(texts: list[str], **_: Any) -> Float32Array:
        import numpy as np

        return np.stack([known[text] for text in texts])

    try:
        rag = _make(directory, vectors, dimensions)
        _run(rag.initialize_storages)
    except Exception as error:
        raise TunerError(f"LightRAG cannot open {directory}: {one_line(error)}") from error
    return Opened(rag, known)


def _make(directory: Path, vectors: Callable[..., Any], dimensions: int) -> Any:
    """Construct LightRAG over the files in ``directory``; its defaults come from nowhere else.

    LightRAG shares what it holds in memory between all instances with one workspace, whatever
    their folder; so the folder's own name, which is unique, becomes the workspace.
    """
    helpers = _load()
    from lightrag import LightRAG

    return LightRAG(
        working_dir=str(directory.parent),
        workspace=directory.name,
        kv_storage="JsonKVStorage",
        vector_storage="NanoVectorDBStorage",
        graph_storage="NetworkXStorage",
        doc_status_storage="JsonDocStatusStorage",
        tokenizer=helpers.Tokenizer("tuner", Tokens()),
        embedding_func=helpers.EmbeddingFunc(embedding_dim=dimensions, func=vectors),
        embedding_func_max_async=1,
        embedding_batch_num=256,
        default_embedding_timeout=24 * 3600,
        llm_model_func=_no_language_model,
        enable_llm_cache=False,
        enable_content_headings=False,
        rerank_model_func=None,
        vector_db_storage_cls_kwargs={"cosine_better_than_threshold": 0.2},
        user_prompt_prefix="",
    )


async def _no_language_model(*_: Any, **__: Any) -> str:
    raise TunerError("LightRAG asked for a language model; tuning its retrieval needs none")


@lru_cache(maxsize=1)
def _load() -> Any:
    """Import LightRAG, silenced, and return its module of helpers.

    Its vector store sets up the root logger on import; that is undone.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        import lightrag.utils
        import nano_vectordb  # noqa: F401
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    for name in ("lightrag", "nano-vectordb"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return lightrag.utils


def _run(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine in this process's loop, after those before it, and return its result."""
    return run_concurrently([work], limit=1, shared_by=PACKAGE)[0]


def copy_files(source: Path, target: Path) -> None:
    """Copy the files of an index."""
    for name in FILES:
        shutil.copyfile(source / name, target / name)


def normalise_name(name: str) -> str:
    """Return a name as LightRAG stores it; empty where nothing is left of it."""
    return str(_load().normalize_entity_name(name))


def chunk_id(text: str) -> str:
    """Return the id that ``insert_custom_kg`` gives to a chunk of this text."""
    helpers = _load()
    content = helpers.sanitize_text_for_encoding(text)
    return str(helpers.compute_mdhash_id(content, prefix="chunk-"))


def is_long_enough(query: str) -> bool:
    """Say whether LightRAG answers a query: from three letters, or two ideographs."""
    _load()
    from lightrag.query_validation import meets_min_rag_query_weight

    is_enough: bool = meets_min_rag_query_weight(query)
    return is_enough
