"""An index on disk: LightRAG's files, which documents its chunks are, and the embedder's data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.corpus import Corpus
from tuner.core.errors import TunerError
from tuner.core.rankings import Step
from tuner.retrieval.adapters.embedding import (
    Counting,
    make_embedder,
    open_embedder,
    passage_text,
    save_embedder,
)
from tuner.retrieval.adapters.event_loop import once
from tuner.retrieval.adapters.lightrag import runtime
from tuner.retrieval.adapters.lightrag.knowledge import Knowledge, read_knowledge
from tuner.retrieval.adapters.lightrag.working_dir import WorkingDir
from tuner.retrieval.adapters.vectors import Vectors
from tuner.retrieval.embedder import embed


@dataclass(frozen=True, eq=False)
class Index:
    """An index that is open in this process.

    ``documents`` maps a chunk's id to the ids of its documents; ``steps`` two names, in
    alphabetical order, to the corpus's facts between them.
    """

    opened: runtime.Opened
    vectors: Vectors
    documents: Mapping[str, Sequence[str]]
    steps: Mapping[tuple[str, str], Sequence[Step]]

    def counts(self, chunks: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Return the documents of ranked chunks, and with how many chunks each is there."""
        counts: dict[str, int] = {}
        for count, chunk in enumerate(chunks, start=1):
            for id_ in self.documents[str(chunk["chunk_id"])]:
                counts.setdefault(id_, count)
        return counts


def write_index(
    directory: Path,
    corpus: Corpus,
    embedder: str,
    existing: WorkingDir | None,
    cut: Callable[[str], Sequence[str]],
) -> None:
    """Write an index into an empty directory: a working directory's copy, or a new one.

    ``cut`` gives the chunks of a document's text.
    """
    model = make_embedder(embedder, map(passage_text, corpus.documents))
    dimensions = embed(model, ["size"], lambda _: "the word 'size'").shape[1]
    steps: Mapping[tuple[str, str], Sequence[Step]] = {}
    if existing is not None:
        documents: Mapping[str, Sequence[str]] = existing.documents(corpus)
        runtime.copy_files(existing.path, directory)
    else:
        knowledge = read_knowledge(corpus, runtime.normalise_name, cut)
        counting = Counting(model)
        runtime.build(knowledge, counting, dimensions, directory)
        counting.write(directory)
        documents, steps = _documents(knowledge), knowledge.steps
    record = {
        "dimensions": dimensions,
        "documents": documents,
        "steps": [[*pair, facts] for pair, facts in steps.items()],
    }
    (directory / "documents.json").write_text(json.dumps(record), encoding="utf-8")
    save_embedder(model, directory)


def _documents(knowledge: Knowledge) -> dict[str, list[str]]:
    """Return the documents of each chunk; those with the same text share one."""
    documents: dict[str, dict[str, None]] = {}
    for chunk in knowledge.chunks.values():
        documents.setdefault(runtime.chunk_id(chunk.text), {}).setdefault(chunk.document_id)
    return {id_: list(of) for id_, of in documents.items()}


@once(kept=8)
def open_index(directory: Path, embedder: str) -> Index:
    """Open the index in ``directory``, once a process however many retrievers point at it."""
    try:
        record = json.loads((directory / "documents.json").read_text(encoding="utf-8"))
        model = open_embedder(embedder, directory)
    except FileNotFoundError as error:
        raise TunerError(f"the index in {directory} is gone: build the retriever again") from error
    steps = {
        (first, second): [tuple(fact) for fact in facts] for first, second, facts in record["steps"]
    }
    opened = runtime.open_index(directory, record["dimensions"])
    vectors = Vectors(model, record["dimensions"], opened.vectors)
    return Index(opened, vectors, record["documents"], steps)
