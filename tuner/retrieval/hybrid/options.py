"""Build options of the hybrid engine: what each is, and what values it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from tuner.core.checks import integer_problem, native, number_problem
from tuner.core.errors import InputError, Problem, did_you_mean

NAMES = ("titles", "triples", "both")
MOST_HOPS = 6


@dataclass(frozen=True)
class DenseOptions:
    """Where dense vectors come from: a model by name, or matrices made before.

    ``matrix`` holds one row a document in the order of the corpus, ``queries`` one row for each
    line of the text file ``query_ids``.
    """

    model: str | None = None
    matrix: str | None = None
    queries: str | None = None
    query_ids: str | None = None


@dataclass(frozen=True)
class HybridOptions:
    """What is fixed when the index is built.

    Prepared queries are ranked within the pools of both legs; ``serve`` ranks everything.
    """

    bm25_k1: Annotated[float, "k1 of BM25, above 0: the higher, the more a repeated word adds"] = (
        1.5
    )
    bm25_b: Annotated[
        float, "b of BM25, 0 to 1: the higher, the more long passages are held back"
    ] = 0.75
    chunk_tokens: Annotated[
        int,
        "documents are cut into passages of so many words at most, sentence by sentence; "
        "0: they are whole",
    ] = 0
    chunk_overlap: Annotated[
        int,
        "so many words of a passage, in whole sentences, begin the next one too; at most "
        "half of chunk_tokens",
    ] = 0
    names: Annotated[
        str,
        "where the graph's names come from: titles (and capitalised phrases), triples (and "
        "entities of the data set), or both",
    ] = "both"
    hub_cut: Annotated[
        float, "names in more than this share of the passages make no links, 0 to 1"
    ] = 0.02
    edge_weight: Annotated[
        float, "what a passage's own title weighs in its links, above 0; a mention weighs 1"
    ] = 10.0
    synonym_threshold: Annotated[
        float,
        "names that are written alike, or whose vectors are, by at least this much lead to each "
        "other's passages, "
        "0 to 1; 0: none do",
    ] = 0.0
    seeds: Annotated[int, "how many names of the graph a query starts from, 1 to 64"] = 8
    most_seeds: Annotated[
        int | None, "how many names `seeds` can be tuned up to, 1 to 64; by default as `seeds`"
    ] = None
    most_hops: Annotated[
        int,
        "how many hops `max_hops` can be tuned up to, 1 to 6; the fewer, the sooner queries are "
        "prepared over a large corpus",
    ] = MOST_HOPS
    text_pool: Annotated[
        int, "how many passages found by text are kept for each query, at least 100"
    ] = 200
    graph_pool: Annotated[
        int, "how many passages found by the graph are kept for each query, at least 100"
    ] = 300
    embedder: Annotated[
        str,
        "what makes dense vectors for the search by text: none, lsa, wordllama, module:function, "
        "or a model of sentence-transformers by name or folder",
    ] = "none"
    embedding_dim: Annotated[
        int, "how many leading numbers of each vector are kept; 0 keeps all"
    ] = 0
    dense: Annotated[
        DenseOptions | None,
        "dense vectors from files: {matrix, queries, query_ids}; {model: name} is the same as "
        "embedder: name",
    ] = None
    dense_weight: Annotated[float, "share of the dense vectors in the search by text, 0 to 1"] = 0.5
    rerank: Annotated[
        str,
        "what orders the first passages anew: none, lexical, a cross-encoder of "
        "sentence-transformers by name, or module:function",
    ] = "none"
    rerank_depth: Annotated[int, "how many passages are ordered anew, 2 to 100"] = 20

    @property
    def seed_room(self) -> int:
        """Return how many seeds a query has at most."""
        return self.seeds if self.most_seeds is None else self.most_seeds


_LEAST_POOL = 100  # top_k can ask for as many
_RANGES: dict[str, tuple[str, float | None, float | None]] = {
    "bm25_k1": ("real", 1e-6, None),
    "bm25_b": ("real", 0.0, 1.0),
    "seeds": ("integer", 1, 64),
    "most_seeds": ("integer", 1, 64),
    "most_hops": ("integer", 1, MOST_HOPS),
    "text_pool": ("integer", _LEAST_POOL, None),
    "graph_pool": ("integer", _LEAST_POOL, None),
    "embedding_dim": ("integer", 0, None),
    "chunk_tokens": ("integer", 0, None),
    "chunk_overlap": ("integer", 0, None),
    "hub_cut": ("real", 0.0, 1.0),
    "edge_weight": ("real", 1e-6, None),
    "synonym_threshold": ("real", 0.0, 1.0),
    "dense_weight": ("real", 0.0, 1.0),
    "rerank_depth": ("integer", 2, 100),
}


def read_options(options: Mapping[str, Any]) -> HybridOptions:
    """Check build options.

    Raises:
        InputError: unknown names, wrong types, values out of range; all of them at once.
    """
    known = [field.name for field in fields(HybridOptions)]
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            hint = did_you_mean(name, known)
            problems.append(Problem(f"unknown option of the hybrid retriever{hint}", key=(name,)))
        elif name == "dense":
            values[name] = None if value is None else _read_dense(value, problems)
        elif name in ("embedder", "rerank"):
            if not isinstance(value, str) or not value:
                problems.append(Problem(f"must be a name, got {value!r}", key=(name,)))
            values[name] = value
        elif name == "names":
            if value not in NAMES:
                message = f"{value!r} is not one of {', '.join(NAMES)}"
                problems.append(Problem(message, key=(name,)))
            values[name] = value
        elif name == "most_seeds" and value is None:
            values[name] = None
        else:
            kind, low, high = _RANGES[name]
            problem = value_problem(name, value, low=low, high=high, kind=kind)
            if problem:
                problems.append(Problem(problem, key=(name,)))
            elif kind == "integer":
                value = int(native(value))
            values[name] = value
    if "dense_weight" in values and values.get("dense") is None and "embedder" not in values:
        problems.append(Problem("dense_weight needs dense vectors: give `embedder` as well"))
    if problems:
        raise InputError(problems=problems)
    checked = _with_model(HybridOptions(**values), is_named="embedder" in values)
    if checked.seeds > checked.seed_room:
        message = f"must be at least seeds={checked.seeds}, got {checked.most_seeds}"
        raise InputError(message, key=("most_seeds",))
    if 2 * checked.chunk_overlap > checked.chunk_tokens:
        message = f"must be at most half of chunk_tokens={checked.chunk_tokens}, got "
        raise InputError(f"{message}{checked.chunk_overlap}", key=("chunk_overlap",))
    if checked.chunk_tokens and checked.dense is not None:
        message = "vectors from files are those of whole documents: name an `embedder` instead"
        raise InputError(message, key=("chunk_tokens",))
    return checked


def _with_model(options: HybridOptions, *, is_named: bool) -> HybridOptions:
    """Write ``dense: {model: name}`` as ``embedder: name``; an embedder that is named counts."""
    dense = options.dense
    if dense is None:
        return options
    if dense.model is not None:
        name = options.embedder if is_named else dense.model
        return replace(options, embedder=name, dense=None)
    if options.embedder != "none":
        message = f"vectors come from the files of `dense` or from {options.embedder!r}, not both"
        raise InputError(message, key=("embedder",))
    return options


def _read_dense(value: Any, problems: list[Problem]) -> DenseOptions | None:
    if isinstance(value, DenseOptions):
        return value
    ways = (
        "write {model: name}, or {matrix: documents.npy, queries: queries.npy, query_ids: ids.txt}"
    )
    if not isinstance(value, Mapping):
        problems.append(Problem(f"got {value!r}; {ways}", key=("dense",)))
        return None
    for name, part in value.items():
        key = ("dense", str(name))
        if name not in DenseOptions.__dataclass_fields__:
            hint = did_you_mean(str(name), DenseOptions.__dataclass_fields__)
            problems.append(Problem(f"unknown option{hint}", key=key))
        elif not isinstance(part, str) or not part:
            problems.append(Problem(f"must be a name or path, got {part!r}", key=key))
    if set(value) not in ({"model"}, {"matrix", "queries", "query_ids"}):
        problems.append(
            Problem(f"got {', '.join(map(str, value)) or 'nothing'}; {ways}", key=("dense",))
        )
    return None if problems else DenseOptions(**value)


def value_problem(
    name: str, value: object, *, low: float | None, high: float | None, kind: str
) -> str | None:
    """Say why a value is no number of this kind within these ends, or return None."""
    problem = integer_problem(value) if kind == "integer" else number_problem(value)
    if problem:
        return f"{name}: {problem}"
    number = native(value)
    is_low = low is not None and number < low
    is_high = high is not None and number > high
    if not is_low and not is_high:
        return None
    return (
        f"{name}={number} must be at least {low:g}"
        if high is None
        else f"{name}={number} is outside [{low:g}, {high:g}]"
    )
