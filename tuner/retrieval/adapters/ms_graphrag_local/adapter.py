"""The retriever ``ms_graphrag_local``: text units in the order in which local search takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from tuner.core.checks import is_whole
from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.json_text import digest_of
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.adapters.embedding import (
    HASHED_WORDS,
    Counting,
    EmbedderName,
    embedder_knob,
    identity,
    known_identity,
    make_embedder,
    open_embedder,
    read_cost,
    save_embedder,
)
from tuner.retrieval.adapters.event_loop import once
from tuner.retrieval.adapters.ms_graphrag.output import (
    JudgedBy,
    judged_ids,
    read_output,
    table_path,
)
from tuner.retrieval.adapters.ms_graphrag.outputs import (
    OutputFolder,
    OutputFolders,
    OutputName,
    chosen_folder,
    contents,
    output_knobs,
)
from tuner.retrieval.adapters.ms_graphrag_local.options import CLAIMS, KNOBS, Settings, read_params
from tuner.retrieval.adapters.options import code_digest, installed_version, path_from_root
from tuner.retrieval.adapters.vectors import Kept, Vectors
from tuner.retrieval.embedder import embed
from tuner.retrieval.hybrid.cache import ensure, read_array, write_array
from tuner.retrieval.knobs import Knob

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
    save_embedder(model, directory)
    counting = Counting(model)
    vectors = embed(counting, texts, lambda row: f"the entity {texts[row].partition(':')[0]!r}")
    counting.write(directory)
    write_array(directory, "entities", vectors)
    record = {"ids": ids, "judged_by": {unit.short_id: judged_by[unit.id] for unit in units}}
    (directory / "ids.json").write_text(json.dumps(record), encoding="utf-8")


@once(kept=4)
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


@dataclass(frozen=True)
class MsGraphragLocal:
    """Answers with the sources of ``LocalSearchMixedContext.build_context``, in their order.

    They follow the order of the entities that the query starts from, not their relevance, so
    score them by recall at a budget of tokens: ``context_tokens`` counts the whole context,
    reports, entities and relationships included.

    Small and picklable: it knows where its index lies, and each process opens that once.
    """

    knobs: ClassVar[tuple[Knob, ...]] = KNOBS
    tells_spans: ClassVar[bool] = False
    resolve_options = path_from_root("path", "outputs")

    directory: Path
    fingerprint: str
    folder: Path
    embedder: str
    community_level: int | None
    encoding: str
    _prepared: Kept = field(default_factory=Kept, repr=False, compare=False)

    @property
    def index_cost(self) -> Mapping[str, float]:
        """Return how many words were embedded."""
        return read_cost(self.directory)

    @classmethod
    def declare_knobs(
        cls,
        *,
        embedder: str = HASHED_WORDS,
        outputs: Any = None,
        output: Any = None,
    ) -> tuple[Knob, ...]:
        """Return those of local search, the embedder, and the choice among several outputs.

        Raises:
            InputError: impossible options.
        """
        return (*KNOBS, embedder_knob(embedder), *output_knobs(outputs, output))

    @classmethod
    def identify_index(
        cls,
        settings: Params,
        *,
        path: Any = None,
        outputs: Any = None,
        **options: Any,  # noqa: ARG003
    ) -> str:
        """Return a digest of code, package and embedder, and of the tables of every folder."""
        tables = contents(path, outputs, (*TABLES, CLAIMS))
        return digest_of([*_made_by(), known_identity(str(settings["embedder"])), tables])

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        path: OutputFolder = None,
        outputs: OutputFolders = None,
        output: OutputName = None,
        judge: JudgedBy = "document",
        embedder: EmbedderName = HASHED_WORDS,
        community_level: Annotated[
            int | None,
            "the community level of GraphRAG's query command, which takes 2; null: all "
            "entities can be found",
        ] = None,
        encoding: Annotated[
            str, "the name of the tokenizer that counts the budgets"
        ] = "o200k_base",
    ) -> Self:
        """Embed the entities of an output folder, or take up equal vectors in ``cache_dir``.

        ``path``, ``outputs``, ``output`` and ``judge`` as in ``MsGraphrag.build``. As ``embedder``
        give the model that the index was made with, or other entities are found than in
        production. ``community_level`` is that of GraphRAG's
        query command, where it is 2 by default: it knows no entity that is in no community up to
        that level, in some indexes most of them. None takes all entities. ``encoding`` is
        the tokenizer by which budgets are counted.

        Raises:
            InputError: GraphRAG is not installed or too old, a broken folder, or wrong options.
            TunerError: the embedder failed, or gave zero or NaN vectors.
        """
        made_by = _made_by()
        if community_level is not None and not is_whole(community_level):
            message = f"must be a whole number, or null for all levels, got {community_level!r}"
            raise InputError(message, key=("community_level",))
        folder = chosen_folder(path, outputs, output)
        judged_by = judged_ids(read_output(folder), corpus, judge)
        parts = [
            *made_by,
            _contents(folder),
            sorted(judged_by.items()),
            identity(embedder),
            community_level,
            encoding,
        ]
        fingerprint = digest_of(parts)
        directory = Path(cache_dir).absolute() / f"ms_graphrag_local-{fingerprint}"
        ensure(directory, lambda unfinished: write_index(unfinished, folder, judged_by, embedder))
        retriever = cls(directory, fingerprint, folder, embedder, community_level, encoding)
        retriever._open()
        return retriever

    def notes(self) -> tuple[str, ...]:
        """Say how many entities no query can find."""
        from tuner.retrieval.adapters.ms_graphrag_local.builder import hidden_entities

        hidden, of = hidden_entities(self.folder, self.community_level)
        if not hidden:
            return ()
        verb = "is" if hidden == 1 else "are"
        return (
            f"{hidden} of {of} entities {verb} in no community of level {self.community_level} or "
            "below; they cannot be found (retriever.community_level: null takes all)",
        )

    def prepare(self, queries: Sequence[Query]) -> None:
        """Embed the queries, once for all workers; keeps the vectors on disk.

        Raises:
            TunerError: the embedder failed, or gave a zero or NaN vector for a query.
        """
        if not queries:
            return
        self._prepared.make(self.directory, lambda: self._open().vectors.model, labels(queries))

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer a batch, one query after the other, as GraphRAG does.

        Raises:
            InputError: unknown parameters, values outside their range, or shares above 1.
            TunerError: the embedder failed, or gave a zero or NaN vector for a query.
        """
        settings = read_params(params)
        started = perf_counter()
        index = self._open()
        index.vectors.take_up(self._prepared)
        index.vectors.embed(labels(queries))
        return index.answer(queries, settings, started)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query with nothing prepared: its vector is made anew."""
        settings = read_params(params)
        started = perf_counter()
        index = self._open()
        index.vectors.embed(labels([query]), again=True)
        return index.answer([query], settings, started)

    def _open(self) -> Index:
        return open_index(
            self.directory, self.folder, self.embedder, self.community_level, self.encoding
        )


def _made_by() -> list[str]:
    """Return what tells the code that shapes an index from any other."""
    version = installed_version(
        "graphrag", oldest=(3, 3), kind="ms_graphrag_local", extra="graphrag"
    )
    return [version, code_digest("ms_graphrag"), code_digest("ms_graphrag_local")]


def _contents(folder: Path) -> list[str]:
    """Return a hash of each table that local search reads.

    Raises:
        InputError: one of them is missing.
    """
    problems, hashes = [], []
    has_claims = table_path(folder, CLAIMS).is_file()
    for table in (*TABLES, CLAIMS) if has_claims else TABLES:
        path = table_path(folder, table)
        try:
            hashes.append(sha256(path.read_bytes()).hexdigest())
        except OSError as error:
            problems.append(Problem(f"cannot be read: {error.strerror}", file=str(path)))
    refuse(problems)
    return hashes
