"""The retriever ``ms_graphrag_local``: text units in the order in which local search takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, ClassVar, Self

from tuner.core.checks import is_whole
from tuner.core.corpus import Corpus, Query
from tuner.core.digests import digest_of
from tuner.core.errors import InputError, Problem
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.adapters.embedding import HASHED_WORDS, EmbedderName, identity
from tuner.retrieval.adapters.identity import code_digest
from tuner.retrieval.adapters.installed import installed_version
from tuner.retrieval.adapters.ms_graphrag.judging import JudgedBy, judged_ids
from tuner.retrieval.adapters.ms_graphrag.output import OutputFolder, read_output, table_path
from tuner.retrieval.adapters.ms_graphrag_local.index import (
    TABLES,
    Index,
    labels,
    open_index,
    write_index,
)
from tuner.retrieval.adapters.ms_graphrag_local.options import CLAIMS, KNOBS, read_params
from tuner.retrieval.adapters.options import with_path_from_root
from tuner.retrieval.adapters.vectors import Kept
from tuner.retrieval.hybrid.cache import ensure
from tuner.retrieval.knobs import Knob


@dataclass(frozen=True)
class MsGraphragLocal:
    """Answers with the sources of ``LocalSearchMixedContext.build_context``, in their order.

    They follow the order of the entities that the query starts from, not their relevance, so
    score them by recall at a budget of tokens: ``context_tokens`` counts the whole context,
    reports, entities and relationships included.

    Small and picklable: it knows where its index lies, and each process opens that once.
    """

    knobs: ClassVar[tuple[Knob, ...]] = KNOBS

    directory: Path
    fingerprint: str
    folder: Path
    embedder: str
    community_level: int | None
    encoding: str
    _prepared: Kept = field(default_factory=Kept, repr=False, compare=False)

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:  # noqa: ARG003
        """Return the options with the output folder from the root."""
        return with_path_from_root(options, "path")

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        path: OutputFolder,
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

        ``path`` and ``judge`` as in ``MsGraphrag.build``. ``embedder`` names a function from texts
        to a matrix, ``package.module:function``: give the model that the index was made with, or
        other entities are found than in production. ``community_level`` is that of GraphRAG's
        query command, where it is 2 by default: it knows no entity that is in no community up to
        that level, in some indexes most of them. None takes all entities. ``encoding`` is
        the tokenizer by which budgets are counted.

        Raises:
            InputError: GraphRAG is not installed or too old, a broken folder, or wrong options.
            TunerError: the embedder failed, or gave zero or NaN vectors.
        """
        version = installed_version(
            "graphrag", oldest=(3, 3), kind="ms_graphrag_local", extra="graphrag"
        )
        if community_level is not None and not is_whole(community_level):
            message = f"must be a whole number, or null for all levels, got {community_level!r}"
            raise InputError(message, key=("community_level",))
        folder = Path(path).expanduser().absolute()
        judged_by = judged_ids(read_output(folder), corpus, judge)
        parts = [
            version,
            code_digest("ms_graphrag"),
            code_digest("ms_graphrag_local"),
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
    if problems:
        raise InputError(problems=problems)
    return hashes
