"""What is kept of a corpus on disk, and what a process opens once: that, or a user's store."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tuner.core.corpus import Corpus, Document
from tuner.core.errors import InputError, TunerError, one_line
from tuner.core.words import count_tokens
from tuner.retrieval.adapters.embedding import open_embedder
from tuner.retrieval.adapters.graph_retriever.options import mentions
from tuner.retrieval.adapters.vectors import Vectors
from tuner.retrieval.hybrid.cache import read_array


@dataclass(frozen=True, eq=False)
class Opened:
    """An index: its store in the library's form, and the vectors of queries."""

    adapter: Any
    vectors: Vectors


def passage_text(document: Document) -> str:
    """Return what is embedded and handed on of a document: title and text, a line each."""
    return f"{document.title}\n{document.text}".strip()


def write_documents(directory: Path, corpus: Corpus) -> None:
    """Write each document's names and its length in words."""
    record = {
        "ids": [document.id for document in corpus.documents],
        "mentions": mentions(corpus),
        "tokens": [count_tokens(passage_text(document)) for document in corpus.documents],
    }
    (directory / "documents.json").write_text(json.dumps(record), encoding="utf-8")


def _read_documents(directory: Path) -> dict[str, list[Any]]:
    try:
        record: dict[str, list[Any]] = json.loads(
            (directory / "documents.json").read_text(encoding="utf-8")
        )
    except FileNotFoundError as error:
        raise TunerError(f"the index in {directory} is gone: build the retriever again") from error
    return record


@lru_cache(maxsize=8)
def open_tokens(directory: Path) -> Mapping[str, int]:
    """Return each document's length in words."""
    record = _read_documents(directory)
    return dict(zip(record["ids"], record["tokens"], strict=True))


@lru_cache(maxsize=8)
def open_index(directory: Path, embedder: str) -> Opened:
    """Open the index in ``directory``, once a process however many retrievers point at it."""
    from tuner.retrieval.adapters.graph_retriever.corpus_store import CorpusStore

    record = _read_documents(directory)
    stored = read_array(directory, "vectors")
    model = open_embedder(embedder, directory)
    vectors = Vectors(model, stored.shape[1])
    adapter = CorpusStore(record["ids"], stored, record["mentions"], vectors.known.__getitem__)
    return Opened(adapter, vectors)


@lru_cache(maxsize=8)
def open_store(name: str, process: int) -> Any:  # noqa: ARG001  # a fork has its own connection
    """Call the user's function for a store, once a process.

    Raises:
        InputError: there is no such function, it failed, or it returned something else.
    """
    from graph_retriever.adapters import Adapter

    module, colon, attribute = name.partition(":")
    try:
        if not colon:
            raise AttributeError("write package.module:function")
        adapter = getattr(importlib.import_module(module), attribute)()
    except Exception as error:
        message = f"cannot open the store {name!r}: {one_line(error)}"
        raise InputError(message, key=("store",)) from error
    if not isinstance(adapter, Adapter):
        message = f"{name!r} returned {type(adapter).__name__}, no adapter of graph-retriever's"
        raise InputError(message, key=("store",))
    return adapter
