"""The retriever ``graph_retriever``: strategies over the corpus, or over a store of the user's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from tuner.core.corpus import Corpus, Query, corpus_fingerprint
from tuner.core.errors import InputError, TunerError, one_line, refuse
from tuner.core.json_text import digest_of
from tuner.core.rankings import Rankings
from tuner.core.registry import load_outside
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.core.words import count_tokens
from tuner.retrieval.adapters.embedding import (
    HASHED_WORDS,
    Counting,
    EmbedderName,
    identity,
    known_identity,
    make_embedder,
    open_embedder,
    passage_text,
    passages,
    read_cost,
    save_embedder,
)
from tuner.retrieval.adapters.graph_retriever.options import (
    KNOBS,
    NAMES,
    Edges,
    Settings,
    check_names,
    edges_knobs,
    index_knobs,
    mentions,
    read_edges,
    titles,
)
from tuner.retrieval.adapters.options import code_digest, installed_version
from tuner.retrieval.adapters.vectors import Kept, Vectors
from tuner.retrieval.embedder import embed
from tuner.retrieval.hybrid.cache import ensure, read_array, write_array
from tuner.retrieval.knobs import Knob, knob_params
from tuner.retrieval.rules import rule_problems


@dataclass(frozen=True, eq=False)
class Opened:
    """An index: its store in the library's form, and the vectors of queries."""

    adapter: Any
    vectors: Vectors


def write_documents(directory: Path, corpus: Corpus, names: str) -> None:
    """Write each document's names and its length in words."""
    record = {
        "ids": [document.id for document in corpus.documents],
        "mentions": mentions(corpus, names),
        "titles": titles(corpus),
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
    adapter = CorpusStore(
        record["ids"],
        stored,
        record["mentions"],
        record["titles"],
        vectors.known.__getitem__,
    )
    return Opened(adapter, vectors)


@lru_cache(maxsize=8)
def open_store(name: str, process: int) -> Any:  # noqa: ARG001  # a fork has its own connection
    """Call the user's function for a store, once a process.

    Raises:
        InputError: there is no such function, it failed, or it returned something else.
    """
    from graph_retriever.adapters import Adapter

    opener = load_outside("store", name, key=("store",))
    try:
        adapter = opener()
    except Exception as error:
        message = f"cannot open the store {name!r}: {one_line(error)}"
        raise InputError(message, key=("store",)) from error
    if not isinstance(adapter, Adapter):
        message = f"{name!r} returned {type(adapter).__name__}, no adapter of graph-retriever's"
        raise InputError(message, key=("store",))
    return adapter


_BATCH = 100  # documents asked for at once


@dataclass(frozen=True)
class GraphRetriever:
    """Search by vectors, then follow links between documents, as graph-retriever's strategies do.

    Small and picklable: it knows where its index lies or what its store is called, and each
    process opens that once. ``edges`` are the alternatives of links, by name, the default first.
    """

    tells_spans: ClassVar[bool] = False

    directory: Path
    fingerprint: str
    embedder: str
    store: str | None = None
    edges: Mapping[str, Edges] = field(default_factory=lambda: read_edges(None, over_store=False))
    _prepared: Kept = field(default_factory=Kept, repr=False, compare=False)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return those of a traversal."""
        return (*KNOBS, *edges_knobs(self.edges))

    @property
    def index_cost(self) -> Mapping[str, float]:
        """Return how many words were embedded; nothing of a store."""
        return read_cost(self.directory)

    @classmethod
    def declare_knobs(
        cls,
        *,
        embedder: str = HASHED_WORDS,
        names: str = NAMES[0],
        store: str | None = None,
        edges: Any = None,
    ) -> tuple[Knob, ...]:
        """Return those of a traversal, and those of the index over a corpus.

        Raises:
            InputError: wrong options.
        """
        own = index_knobs(names, embedder) if store is None else ()
        return (*KNOBS, *edges_knobs(read_edges(edges, over_store=store is not None)), *own)

    @classmethod
    def identify_index(cls, settings: Params, **options: Any) -> str:  # noqa: ARG003
        """Return a digest of code, package and embedder."""
        return digest_of([*_made_by(), known_identity(str(settings["embedder"]))])

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        embedder: EmbedderName = HASHED_WORDS,
        names: Annotated[
            str,
            "where the names come from that link documents: triples (and entities of the data "
            "set; of one without, titles), titles (and capitalised phrases), or both",
        ] = NAMES[0],
        store: Annotated[str | None, "module:function that opens a vector store of yours"] = None,
        edges: Annotated[
            Any,
            "pairs of metadata fields to follow, or alternatives as name: pairs; without a store "
            "the fields are mentions and title",
        ] = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
    ) -> Self:
        """Embed the corpus and link documents by names, or use a store that exists.

        ``store`` names a function without arguments, ``package.module:function``, that returns an
        adapter of graph-retriever's (Astra DB, Chroma, OpenSearch, …); ``edges`` are then pairs of
        its metadata fields, and its documents' ids must be the corpus's.

        Raises:
            InputError: the library is not installed or too old, the store cannot be opened or
                lacks documents of the corpus, the corpus cannot be indexed, or the space has
                values of ``start_k`` without effect.
            TunerError: the embedder failed or gave zero or NaN vectors, or the cache cannot be
                written.
        """
        parts = [*_made_by(), corpus_fingerprint(corpus)]
        texts = passages(corpus)
        refuse(rule_problems(space, baseline, KNOBS))
        check_names(names)
        links = read_edges(edges, over_store=store is not None)
        if store is not None:
            return cls._over_store(corpus, store, links, parts, Path(cache_dir))
        index = digest_of([*parts, identity(embedder), names])
        directory = Path(cache_dir).absolute() / f"graph-retriever-{index}"

        def write(unfinished: Path) -> None:
            ids, model = list(texts), make_embedder(embedder, texts.values())
            counting = Counting(model)
            vectors = embed(counting, list(texts.values()), lambda row: f"passage {ids[row]!r}")
            counting.write(unfinished)
            write_array(unfinished, "vectors", vectors)
            write_documents(unfinished, corpus, names)
            save_embedder(model, unfinished)

        ensure(directory, write)
        return cls(directory, digest_of([index, links]), embedder, None, links)

    @classmethod
    def _over_store(
        cls,
        corpus: Corpus,
        store: str,
        links: Mapping[str, Edges],
        parts: list[str],
        cache_dir: Path,
    ) -> Self:
        adapter = open_store(store, os.getpid())
        ids = [document.id for document in corpus.documents]
        known = set()
        for start in range(0, len(ids), _BATCH):
            known |= {content.id for content in adapter.get(ids[start : start + _BATCH])}
        missing = [id_ for id_ in ids if id_ not in known]
        if missing:
            some = ", ".join(map(repr, missing[:3]))
            raise InputError(
                f"the store lacks {len(missing)} of the corpus's {len(ids)} documents: {some}; "
                "its documents must have the corpus's ids",
                key=("store",),
            )
        fingerprint = digest_of([*parts, store, links])
        directory = cache_dir.absolute() / f"graph-retriever-{fingerprint}"
        ensure(directory, lambda unfinished: write_documents(unfinished, corpus, NAMES[0]))
        return cls(directory, fingerprint, "", store, links)

    def prepare(self, queries: Sequence[Query]) -> None:
        """Embed the queries once for all workers; a store of the user's embeds them itself.

        Raises:
            TunerError: the embedder failed, or gave a zero or NaN vector for a query.
        """
        labels = _labels(queries)
        if self.store is not None or not labels:
            return
        self._prepared.make(self.directory, lambda: self._opened().vectors.model, labels)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer a batch; the vectors of prepared queries are not made again.

        Raises:
            InputError: unknown parameters or values outside their range.
            TunerError: the embedder failed, or the store returned a document of no corpus.
        """
        return self._answer(queries, params, again=False)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query with nothing prepared: its vector is made anew."""
        return self._answer([query], params, again=True)

    def _opened(self) -> Opened:
        return open_index(self.directory, self.embedder)

    def _answer(self, queries: Sequence[Query], params: Params, *, again: bool) -> Rankings:
        from graph_retriever import traverse

        values: dict[str, Any] = knob_params(params, self.knobs)
        edges: list[Any] = list(self.edges[values.pop("edges", next(iter(self.edges)))])
        strategy = _strategy(Settings(**values))
        started = perf_counter()
        if self.store is None:
            opened = self._opened()
            opened.vectors.take_up(self._prepared)
            opened.vectors.embed(_labels(queries), again=again)
            adapter = opened.adapter
        else:
            adapter = open_store(self.store, os.getpid())
        tokens = open_tokens(self.directory)
        embedded = perf_counter()
        answers = [
            traverse(query.text, edges=edges, strategy=strategy, store=adapter)
            if query.text.strip()
            else []
            for query in queries
        ]
        rows = [[str(node.id) for node in nodes] for nodes in answers]
        return Rankings.from_ids(
            [query.id for query in queries],
            rows,
            seconds={"embed": embedded - started, "search": perf_counter() - embedded},
            context_tokens=np.array(
                [
                    _context_tokens(row, query, tokens)
                    for row, query in zip(rows, queries, strict=True)
                ],
                dtype=np.float64,
            ),
            graph_used=np.array(
                [any(node.extra_metadata["_depth"] > 0 for node in nodes) for nodes in answers],
                dtype=np.bool_,
            ),
        )


def _made_by() -> list[str]:
    """Return what tells the code that shapes an index from any other."""
    version = installed_version("graph-retriever", oldest=(0, 8), kind="graph_retriever")
    return [version, code_digest("graph_retriever")]


def _context_tokens(row: Sequence[str], query: Query, tokens: Mapping[str, int]) -> float:
    unknown = [id_ for id_ in row if id_ not in tokens]
    if unknown:
        raise TunerError(
            f"the store returned {unknown[0]!r} for query {query.id!r}, which is no document of "
            "the corpus; add what else the store holds to the corpus"
        )
    return float(sum(tokens[id_] for id_ in row))


def _strategy(settings: Settings) -> Any:
    from graph_retriever.strategies import Eager, Mmr, Scored

    common: dict[str, Any] = {
        "select_k": settings.select_k,
        "start_k": settings.start_k,
        "adjacent_k": settings.adjacent_k,
        "max_depth": settings.max_depth,
    }
    match settings.strategy:
        case "mmr":
            return Mmr(lambda_mult=settings.lambda_mult, **common)
        case "scored":
            return Scored(scorer=_similarity, **common)
        case _:
            return Eager(**common)


def _similarity(node: Any) -> float:
    return float(node.similarity_score)


def _labels(queries: Sequence[Query]) -> dict[str, str]:
    return {query.text: f"query {query.id!r}" for query in queries if query.text.strip()}
