"""What a process opens once: an index on disk, or a store of the user's."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError, TunerError
from tuner.retrieval._embedding import open_embedder
from tuner.retrieval._vectors import Vectors
from tuner.retrieval.hybrid.cache import read_array


@dataclass(frozen=True, eq=False)
class Opened:
    """An index: its store in the library's form, and the vectors of queries."""

    adapter: Any
    vectors: Vectors


@lru_cache(maxsize=8)
def open_index(directory: Path, embedder: str) -> Opened:
    """Open the index in ``directory``, once a process however many retrievers point at it."""
    from tuner.retrieval.graph_retriever.corpus_store import CorpusStore

    try:
        record = json.loads((directory / "documents.json").read_text(encoding="utf-8"))
        stored = read_array(directory, "vectors")
        model = open_embedder(embedder, directory)
    except FileNotFoundError as error:
        raise TunerError(f"the index in {directory} is gone: build the retriever again") from error
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
        reason = " ".join(str(error).split())
        message = f"cannot open the store {name!r}: {type(error).__name__}: {reason}"
        raise InputError(message, key=("store",)) from error
    if not isinstance(adapter, Adapter):
        message = f"{name!r} returned {type(adapter).__name__}, no adapter of graph-retriever's"
        raise InputError(message, key=("store",))
    return adapter
