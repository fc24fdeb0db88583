"""A LightRAG working directory: is it whole, and which document does each of its chunks come from?

LightRAG itself takes a missing or broken file for an empty one and answers with nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path, PurePath
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, TunerError
from tuner.core.rankings import Float32Array
from tuner.retrieval.adapters.embedding import passage_text
from tuner.retrieval.embedder import Embedder, embed

CHUNKS = "kv_store_text_chunks.json"
GRAPH = "graph_chunk_entity_relation.graphml"
VECTORS = ("vdb_chunks.json", "vdb_entities.json", "vdb_relationships.json")
FILES = (CHUNKS, GRAPH, *VECTORS)
"""All that retrieval reads. The other files serve indexing and the language model's cache."""

Ids = tuple[str, ...]
_SAMPLE = 8  # chunks to embed again


@dataclass(frozen=True, eq=False)
class WorkingDir:
    """What was read of a working directory: its chunks, and the vectors of the chunks."""

    path: Path
    chunks: Mapping[str, Mapping[str, Any]]
    vectors: Float32Array
    vector_ids: tuple[str, ...]

    def documents(self, corpus: Corpus) -> dict[str, Ids]:
        """Return the ids of the documents that each chunk stands for; see `match_documents`."""
        return match_documents(self.chunks, corpus)


def read_working_dir(path: Path) -> WorkingDir:
    """Read and check a working directory, the one that holds the files themselves.

    Raises:
        InputError: a file is missing or broken, a vector is zero or not finite, or the directory
            was written by a LightRAG that did not keep a passage's text beside its vector.
    """
    missing = [name for name in FILES if not (path / name).is_file()]
    if missing:
        raise InputError(
            f"{path} is no LightRAG working directory: {', '.join(missing)} missing; name the "
            "folder that holds these files (with a workspace: its subfolder), written by LightRAG "
            "1.5 with its file storages",
            key=("working_dir",),
        )
    chunks = _read_json(path / CHUNKS)
    if not chunks or not all(isinstance(chunk, dict) for chunk in chunks.values()):
        raise InputError("holds no chunks", file=str(path / CHUNKS))
    sizes = set()
    for name in reversed(VECTORS):  # the chunks' last, since they are what is returned
        ids, vectors = _read_vectors(path / name)
        sizes.add(vectors.shape[1])
    if len(sizes) > 1:
        raise InputError(f"its vectors have different sizes: {sorted(sizes)}", file=str(path))
    unlike = set(chunks).symmetric_difference(ids)
    if unlike:
        raise InputError(
            f"{CHUNKS} and {VECTORS[0]} do not hold the same chunks: {_some(sorted(unlike))}; the "
            "index is damaged, or was being written",
            file=str(path),
        )
    try:
        ElementTree.parse(path / GRAPH)
    except (OSError, ElementTree.ParseError) as error:
        raise InputError(f"is no graph: {error}", file=str(path / GRAPH)) from error
    return WorkingDir(path, chunks, vectors, ids)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=str(path)) from error
    if not isinstance(content, dict):
        raise InputError("does not hold a JSON object", file=str(path))
    return content


def _read_vectors(path: Path) -> tuple[tuple[str, ...], Float32Array]:
    content = _read_json(path)
    try:
        ids = tuple(str(row["__id__"]) for row in content["data"])
        flat = np.frombuffer(base64.b64decode(content["matrix"]), dtype=np.float32)
        vectors = flat.reshape(len(ids), int(content["embedding_dim"]))
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"is no vector file of LightRAG's ({reason})", file=str(path)) from error
    if not all("content" in row for row in content["data"]):
        raise InputError(
            "has no texts beside its vectors: it was written by an older LightRAG, and the "
            "installed one would find nothing in it; index again",
            file=str(path),
        )
    lengths = np.linalg.norm(vectors, axis=1)
    broken = [ids[row] for row in np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))]
    if broken:
        raise InputError(f"zero or NaN vectors: {_some(broken)}; index again", file=str(path))
    return ids, vectors


def check_model(working_dir: WorkingDir, model: Embedder) -> None:
    """Check that an embedder is the one that made the vectors of a working directory.

    It embeds a few chunks again. Only their own stored vectors should be most like them; a prefix
    that the index used for passages does no harm to that.

    Raises:
        TunerError: it is another embedder, or it failed.
    """
    step = max(1, len(working_dir.vector_ids) // _SAMPLE)
    rows = list(range(0, len(working_dir.vector_ids), step))[:_SAMPLE]
    ids = [working_dir.vector_ids[row] for row in rows]
    made = embed(
        model,
        [str(working_dir.chunks[id_].get("content", "")) for id_ in ids],
        lambda row: f"chunk {ids[row]!r}",
        dimensions=working_dir.vectors.shape[1],
    )
    stored = working_dir.vectors / np.linalg.norm(working_dir.vectors, axis=1, keepdims=True)
    likeness = made @ stored.T
    own = likeness[np.arange(len(rows)), rows]
    agreeing = int((own >= likeness.max(axis=1) * (1 - 1e-3)).sum())
    if 2 * agreeing < len(rows):
        raise TunerError(
            f"the embedder is not the one that made {working_dir.path}: embedded again, "
            f"{len(rows) - agreeing} of {len(rows)} chunks are more like other chunks' vectors "
            "than their own"
        )


def match_documents(chunks: Mapping[str, Mapping[str, Any]], corpus: Corpus) -> dict[str, Ids]:
    """Return the ids of the corpus's documents that each chunk stands for, by one rule for all.

    The first rule that knows every chunk holds: its ``full_doc_id`` is a document's id; its
    ``file_path`` is, with or without folder and suffix; its own id is; ``full_doc_id`` is
    LightRAG's hash of a document's text; its text is a document's text.

    Raises:
        InputError: no rule knows every chunk; tells which rule comes closest, and what it misses.
    """
    known = {document.id for document in corpus.documents}
    by_hash: dict[str, list[str]] = {}
    by_text: dict[str, list[str]] = {}
    for document in corpus.documents:
        forms = {passage_text(document), f"{document.title} {document.text}".strip(), document.text}
        for form in forms:
            by_hash.setdefault(f"doc-{md5(form.strip().encode()).hexdigest()}", []).append(
                document.id
            )
        for form in {_squeezed(form) for form in forms}:
            by_text.setdefault(form, []).append(document.id)

    def own(value: object) -> Ids:
        return (value,) if isinstance(value, str) and value in known else ()

    def by_path(value: object) -> Ids:
        path = PurePath(value) if isinstance(value, str) else PurePath()
        return own(value) or own(path.name) or own(path.stem)

    rules: dict[str, Callable[[Mapping[str, Any]], Ids]] = {
        "full_doc_id": lambda chunk: own(chunk.get("full_doc_id")),
        "file_path": lambda chunk: by_path(chunk.get("file_path")),
        "its own id": lambda chunk: own(chunk["id"]),
        "the hash in full_doc_id": lambda chunk: tuple(
            by_hash.get(str(chunk.get("full_doc_id")), ())
        ),
        "its text": lambda chunk: tuple(by_text.get(_squeezed(str(chunk.get("content", ""))), ())),
    }
    closest, unknown = "", list(chunks)
    for name, rule in rules.items():
        found = {id_: rule({**chunk, "id": id_}) for id_, chunk in chunks.items()}
        missed = [id_ for id_, documents in found.items() if not documents]
        if not missed:
            return found
        if len(missed) < len(unknown):
            closest, unknown = name, missed
    examples = [f"{id_} (full_doc_id {chunks[id_].get('full_doc_id')!r})" for id_ in unknown]
    rule_text = f"by {closest}" if closest else f"by any of {', '.join(rules)}"
    raise InputError(
        f"{len(unknown)} of {len(chunks)} chunks belong to no document of the corpus {rule_text}: "
        f"{_some(examples)}; index with the corpus's ids: insert(texts, ids=[…])",
        key=("working_dir",),
    )


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _some(names: Sequence[str], count: int = 3) -> str:
    more = f" and {len(names) - count} more" if len(names) > count else ""
    return ", ".join(names[:count]) + more
