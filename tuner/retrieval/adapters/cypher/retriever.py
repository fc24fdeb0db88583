"""The retriever that asks a graph database in steps of Cypher."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from tuner.core.checks import option_problems
from tuner.core.corpus import Corpus, Query, corpus_fingerprint
from tuner.core.errors import InputError, OutageError, TunerError, refuse
from tuner.core.json_text import digest_of
from tuner.core.ledger import teller
from tuner.core.outages import is_outage
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.alternatives import file_digest
from tuner.retrieval.adapters.answers import (
    Passages,
    collected,
    passage_tokens,
    rankings_of,
    read_answer,
)
from tuner.retrieval.adapters.cypher.address import FALKORDB, LADYBUG, NEO4J, Address, is_url
from tuner.retrieval.adapters.cypher.asking import Asking
from tuner.retrieval.adapters.cypher.by_words import open_by_words, write_by_words
from tuner.retrieval.adapters.cypher.database import open_database
from tuner.retrieval.adapters.cypher.mixing import answer_of, check_weights, free_of, own_knobs
from tuner.retrieval.adapters.cypher.steps import Steps
from tuner.retrieval.adapters.cypher.weightless import weight_problems
from tuner.retrieval.adapters.embedding import (
    identity,
    make_embedder,
    open_embedder,
    passages,
    save_embedder,
)
from tuner.retrieval.adapters.event_loop import once
from tuner.retrieval.adapters.options import code_digest, installed_version
from tuner.retrieval.adapters.vectors import Kept, Vectors
from tuner.retrieval.dead import dead_problems
from tuner.retrieval.embedder import Embedder
from tuner.retrieval.free import FreeKnobs
from tuner.retrieval.hybrid.cache import ensure
from tuner.retrieval.knobs import Knob, knob_params

TIMEOUT_S = 30.0
# What is installed for each driver: the package, its oldest version, and the extra that brings it.
_PACKAGES = {
    LADYBUG: ("ladybug", (0, 22), "ladybug"),
    NEO4J: ("neo4j", (5, 26), "neo4j"),
    FALKORDB: ("FalkorDB", (1, 8), "falkordb"),
}


@dataclass(frozen=True)
class Cypher:
    """Answers from a graph in a database; made by ``Cypher.build``.

    Small and picklable: it knows the database's address and where what it made lies. Each process
    opens the database once, read-only.
    """

    takes_knobs: ClassVar[bool] = True
    tells_spans: ClassVar[bool] = False

    address: Address
    steps: Steps
    timeout_s: float
    knobs: tuple[Knob, ...]
    fingerprint: str
    embedder: str | None = None
    models: Path | None = None
    words: Path | None = None
    known: Passages = field(default=None, repr=False)
    tells_legs: bool = False
    _prepared: Kept = field(default_factory=Kept, repr=False, compare=False)

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:  # noqa: ARG003
        """Return the options with the path of a database's file from the root."""
        database = options.get("database")
        if not isinstance(database, str) or is_url(database):
            return dict(options)
        return {**options, "database": str(Path(database).expanduser().resolve())}

    @classmethod
    def declare_knobs(
        cls,
        *,
        steps: Any = None,
        legs: Any = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
    ) -> tuple[Knob, ...]:
        """Return the parameters that the statements read, and those of the answer.

        Raises:
            InputError: what is wrong with the steps.
        """
        if steps is None:
            return own_knobs(("",))
        return _knobs(Steps.read(steps, legs), space, baseline)

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        database: Annotated[
            str,
            "a file of ladybug's, or a server: neo4j:// or bolt:// (Neo4j, Memgraph), falkor://; a "
            "password is written as `${VARIABLE}`",
        ],
        steps: Annotated[
            Any,
            "a list of steps, each as name: statement; `{bm25: $starts}` in place of a statement "
            "is the built-in search by words",
        ],
        legs: Annotated[
            Sequence[str] | None,
            "the steps that find the documents of an answer, which are mixed by weights; left out: "
            "the last one",
        ] = None,
        embedder: Annotated[
            str | None,
            "what makes `$vector` of a question: module:function, a model of "
            "sentence-transformers, wordllama, lsa or hashed-words; the one that made those in the "
            "database",
        ] = None,
        timeout_s: Annotated[
            float, "seconds for one statement, and for reaching a server"
        ] = TIMEOUT_S,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
    ) -> Self:
        """Check the steps, open the database, and see that it is not empty; nothing else is asked.

        Raises:
            InputError: everything that is wrong with the options, or the driver is not installed.
            OutageError: the server does not answer.
            TunerError: the database cannot be opened, or holds no node.
        """
        refuse(option_problems({"timeout_s": timeout_s}, {"timeout_s": 0}))
        address = Address.read(database)
        read = Steps.read(steps, legs)
        knobs = _knobs(read, space, baseline)
        refuse((*weight_problems(read, space, baseline), *dead_problems(space, baseline, knobs)))
        _check_embedder(read, embedder)
        package, oldest, extra = _PACKAGES[address.driver]
        version = installed_version(package, oldest=oldest, kind="cypher", extra=extra)
        content = file_digest(address.path) if address.driver == LADYBUG else ""
        parts = [version, address.text, content, read.as_record(), corpus_fingerprint(corpus)]
        open_database(address, float(timeout_s))
        words = models = None
        if read.reads_words:
            own = digest_of([code_digest("cypher"), corpus_fingerprint(corpus)])
            parts.append(own)
            words = Path(cache_dir).absolute() / f"cypher-words-{own}"
            write_by_words(words, corpus)
        if embedder is not None:
            own = digest_of([identity(embedder), corpus_fingerprint(corpus)])
            parts.append(own)
            models = Path(cache_dir).absolute() / f"cypher-embedder-{own}"
            ensure(models, partial(_write_model, corpus, embedder))
        return cls(
            address,
            read,
            float(timeout_s),
            knobs,
            digest_of(["cypher", *parts]),
            embedder,
            models,
            words,
            passage_tokens(corpus),
        )

    @property
    def queries_at_once(self) -> int:
        """Return that queries are asked one after the other."""
        return 1

    @property
    def tells_each_query(self) -> bool:
        """Say that it tells of each query."""
        return True

    def notes(self) -> tuple[str, ...]:
        """Say which statements cut among equals by chance."""
        return tuple(
            f"step {step.name!r} does not say which of equals comes first, so a limit may cut "
            "others another time: end it with ORDER BY score DESC, id"
            for step in self.steps.steps
            if step.statement is not None and not step.statement.breaks_ties
        )

    def free_knobs(self, fixed: Params, searched: Collection[str]) -> FreeKnobs:
        """Return ``top_k`` and the weights of the legs, as far as no statement reads them."""
        return free_of(self.steps.legs, self.steps.parameters, fixed, searched)

    def telling_legs(self) -> Cypher:
        """Return the same retriever, with answers that carry their legs."""
        return replace(self, tells_legs=True)

    def prepare(self, queries: Sequence[Query]) -> None:
        """Open the database in this process, and embed the queries once for all workers.

        Raises:
            TunerError: the database cannot be opened, or the embedder failed.
        """
        if not queries:
            return
        open_database(self.address, self.timeout_s)
        if self.models is not None and (labels := _labels(queries)):
            self._prepared.make(self.models, self._model, labels)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Take each query through the steps.

        Raises:
            InputError: a parameter that nothing reads, or a value of the wrong kind.
            OutageError: the server does not answer.
            TunerError: a statement failed, took too long, or found no documents of the data set.
        """
        return self._answered(queries, params, again=False)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query with nothing prepared: its vector is made anew."""
        return self._answered([query], params, again=True)

    def _answered(self, queries: Sequence[Query], params: Params, *, again: bool) -> Rankings:
        values = knob_params(params, self.knobs)
        check_weights(self.steps.legs, values)
        if not queries:
            return rankings_of([], [], self.known, {})
        tell, begin = teller(), time.perf_counter()
        vectors = self._vectors(queries, again=again)
        asking = Asking(
            self.steps,
            self.address,
            open_database(self.address, self.timeout_s),
            None if self.words is None else open_by_words(self.words).best,
            self.known,
        )
        with collected(queries, self.known) as collection:
            for row, query in enumerate(queries):
                tell(1)
                try:
                    legs = asking.legs(query.text, vectors.get(query.text), values)
                    answer = answer_of(legs, values, tells_legs=self.tells_legs)
                    collection.take([read_answer(answer, self.known)], row)
                except TunerError as error:
                    kind = OutageError if is_outage(error) else TunerError
                    raise kind(f"query {query.id!r}: {error}") from error
        seconds = {"call": time.perf_counter() - begin}
        answers = [collection.answers[row] for row in range(len(queries))]
        return rankings_of(queries, answers, self.known, seconds)

    def _model(self) -> Embedder:
        return _vectors_of(self.embedder or "", self.models or Path()).model

    def _vectors(self, queries: Sequence[Query], *, again: bool) -> Mapping[str, list[float]]:
        """Return the vectors of queries by their text, as a driver can send them."""
        if self.embedder is None or self.models is None:
            return {}
        vectors = _vectors_of(self.embedder, self.models)
        vectors.take_up(self._prepared)
        labels = _labels(queries)
        vectors.embed(labels, again=again)
        return {text: vectors.known[text].tolist() for text in labels}


@once(kept=4)
def _vectors_of(embedder: str, directory: Path) -> Vectors:
    """Open an embedder once a process."""
    return Vectors(open_embedder(embedder, directory), 0)


def _write_model(corpus: Corpus, embedder: str, directory: Path) -> None:
    texts = list(passages(corpus).values()) if corpus.documents else []
    save_embedder(make_embedder(embedder, texts), directory)


def _labels(queries: Sequence[Query]) -> dict[str, str]:
    return {query.text: f"query {query.id!r}" for query in queries if query.text.strip()}


def _knobs(steps: Steps, space: SearchSpace | None, baseline: Params | None) -> tuple[Knob, ...]:
    """Return the retriever's own knobs, and the statements' parameters."""
    own = own_knobs(steps.legs)
    names = {knob.name for knob in own}
    read = steps.knobs(space, baseline, own)
    return (*own, *(knob for knob in read if knob.name not in names))


def _check_embedder(steps: Steps, embedder: str | None) -> None:
    if steps.reads_vector and embedder is None:
        message = "a statement reads $vector: name what makes it of a question, as module:function"
        raise InputError(message, key=("embedder",))
    if embedder is not None and not steps.reads_vector:
        raise InputError("no statement reads $vector: leave it out", key=("embedder",))
