"""What a retriever is: a batch of queries and parameters in, rankings out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

from tuner.core.corpus import Corpus, Query
from tuner.core.feature_rule import Seen
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.steps import Advance, unheard
from tuner.core.trial import IndexUse, Params
from tuner.retrieval.free import NOTHING_FREE, FreeKnobs
from tuner.retrieval.knobs import Knob as Knob  # the address by which outside kinds know it

KINDS = {
    "command": "tuner.retrieval.adapters.command:Command",
    "cypher": "tuner.retrieval.adapters.cypher:Cypher",
    "function": "tuner.retrieval.adapters.function:Function",
    "graph_retriever": "tuner.retrieval.adapters.graph_retriever:GraphRetriever",
    "haystack": "tuner.retrieval.adapters.frameworks.haystack:Haystack",
    "http": "tuner.retrieval.adapters.http:Http",
    "hybrid": "tuner.retrieval.hybrid:Hybrid",
    "langchain": "tuner.retrieval.adapters.frameworks.langchain:LangChain",
    "lightrag": "tuner.retrieval.adapters.lightrag:Lightrag",
    "llama_index": "tuner.retrieval.adapters.frameworks.llama_index:LlamaIndex",
    "ms_graphrag": "tuner.retrieval.adapters.ms_graphrag:MsGraphrag",
    "ms_graphrag_local": "tuner.retrieval.adapters.ms_graphrag_local:MsGraphragLocal",
    "neo4j_graphrag": "tuner.retrieval.adapters.frameworks.neo4j_graphrag:Neo4jGraphrag",
    "runs": "tuner.retrieval.adapters.runs:Runs",
}
"""Each retriever by its name in a configuration."""


class Retriever(Protocol):
    """Answers queries. Must survive pickling, since worker processes receive it.

    ``knobs`` names every parameter; parameters left out of ``params`` take the knob's default.
    """

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return the parameters that the retriever understands."""
        ...

    @property
    def fingerprint(self) -> str:
        """Return a hash of the index and of all options that can change an answer."""
        ...

    def prepare(self, queries: Sequence[Query]) -> None:
        """Do once, ahead of the trials, what can be shared by them; a no-op where nothing can."""
        ...

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer every query of the batch; row i of the rankings answers ``queries[i]``."""
        ...


class RetrieverKind(Protocol):
    """What a configuration's ``retriever: {kind: …}`` names: a class that can build itself."""

    @classmethod
    def build(cls, corpus: Corpus, *, cache_dir: Path, **options: Any) -> Retriever:
        """Build or open the index; ``options`` are the configuration's ``retriever`` section.

        A ``build`` that names ``space`` (a SearchSpace) or ``baseline`` (Params) is given those of
        the configuration: for systems whose parameters are whatever the user says. One that names
        ``advance`` is given what to call with (done, of) while it works: then progress is shown.

        A parameter of stage ``"index"`` has the name of an option: for another value of it,
        ``build`` is called again, in a process of its own, with an empty ``cache_dir`` in which all
        that it writes has to lie. A ``build`` that names ``index_params`` is given those parameters
        there instead, as one mapping: for systems whose parameters are whatever the user says. One
        that names ``index_timeout_s`` is given the configuration's ``index.timeout_s``.

        A class attribute ``waits = True`` says that answering is waiting for another system:
        ``execution: {kind: auto}`` then means threads, which share one concurrency limit. One
        ``tells_spans = False`` says that no answer has spans, so ``judge: evidence`` is refused.
        """
        ...


Identify = Callable[[Params], str]
"""Tells, of index parameters, what else shapes their index, such as code or a file's content."""


def with_knobs(retriever: Retriever, knobs: Sequence[Knob]) -> Retriever:
    """Return a retriever that was kept, with these knobs where they are the configuration's."""
    if isinstance(retriever, TakesKnobs):
        retriever = replace(cast(Any, retriever), knobs=tuple(knobs))
    return retriever


def prepare(retriever: Retriever, queries: Sequence[Query], advance: Advance) -> None:
    """Let a retriever prepare; one whose ``prepare`` names ``advance`` tells how far it is."""
    given = {"advance": advance} if "advance" in signature(retriever.prepare).parameters else {}
    retriever.prepare(queries, **given)


def serve_one(retriever: Retriever, query: Query, params: Params) -> Rankings:
    """Answer one query as live traffic would have it answered, prepared work left aside."""
    if isinstance(retriever, Serves):
        return retriever.serve(query, params)
    return retriever.retrieve([query], params)


def with_reasons(
    retriever: Retriever, queries: Sequence[Query], params: Params, rankings: Rankings
) -> Rankings:
    """Return its rankings with names and paths, where the retriever can tell them."""
    if isinstance(retriever, Explains):
        return retriever.explain(queries, params, rankings)
    return rankings


def at_once_of(retriever: Retriever) -> int | None:
    """Return how many queries a retriever answers side by side; None where it does not tell."""
    return retriever.queries_at_once if isinstance(retriever, AnswersOneByOne) else None


def tells_each_query(retriever: Retriever) -> bool:
    """Say whether a retriever tells of each query just before it is sent."""
    return isinstance(retriever, TellsEachQuery) and retriever.tells_each_query


def ready(retriever: Retriever, params: Params, advance: Advance = unheard) -> IndexUse | None:
    """Have the index that parameters describe built; None where a retriever has one index only.

    Raises:
        TunerError: it cannot be built.
    """
    return retriever.ready(params, advance) if isinstance(retriever, OverIndexes) else None


def holding(retriever: Retriever, params: Params) -> AbstractContextManager[IndexUse | None]:
    """Have an index ready as ``ready`` does, and keep it while the block runs."""
    if isinstance(retriever, OverIndexes):
        return retriever.holding(params)
    return nullcontext()


def identity(retriever: Retriever, params: Params) -> str:
    """Return what the index that parameters describe is made from; "" of a retriever with one."""
    return retriever.identity(params) if isinstance(retriever, OverIndexes) else ""


def features_of(retriever: Retriever, queries: Sequence[Query], params: Params) -> Seen:
    """Return what a retriever can tell of queries before it answers them; nothing where it cannot.

    Each feature has shape (queries,), NaN where it is not known of one.
    """
    if isinstance(retriever, TellsFeatures):
        return retriever.features_of(queries, params)
    return {}


def pin(retriever: Retriever, params: Params, *, holder: Path, why: str) -> None:
    """Keep the index that parameters describe, where a retriever has several.

    Raises:
        OSError: the disk refuses.
    """
    if isinstance(retriever, OverIndexes):
        retriever.pin(params, holder=holder, why=why)


def free_knobs(retriever: Retriever, fixed: Params, searched: Collection[str]) -> FreeKnobs:
    """Return which of a retriever's parameters are free; none where it does not tell."""
    if isinstance(retriever, HasFreeKnobs):
        return retriever.free_knobs(fixed, searched)
    return NOTHING_FREE


def telling_legs(retriever: Retriever) -> Retriever:
    """Return the same retriever; where answers can carry their legs, these do."""
    return retriever.telling_legs() if isinstance(retriever, TellsLegs) else retriever


@runtime_checkable
class HasFreeKnobs(Protocol):
    """A retriever whose answers tell what other values of some parameters would have given.

    A study asks those no more, unless it says ``free: off``: what each value is worth is computed
    from one answer. A declaration is checked on a few queries before it is believed.
    """

    def free_knobs(self, fixed: Params, searched: Collection[str]) -> FreeKnobs:
        """Return them, where ``searched`` are the names of the space, and ``fixed`` all others.

        Where legs are mixed, the answers must carry them: see ``Rankings.legs``.
        """
        ...


@runtime_checkable
class TellsLegs(Protocol):
    """A retriever that makes its legs known where they are wanted, since they cost something."""

    def telling_legs(self) -> Retriever:
        """Return the same retriever, with answers that carry their legs."""
        ...


@runtime_checkable
class TellsFeatures(Protocol):
    """A retriever that tells, as numbers, what it sees in a query before it answers it.

    A policy by features looks at it.
    """

    def features_of(self, queries: Sequence[Query], params: Params) -> Seen:
        """Return features by name, each of shape (queries,); ``params`` tell which index."""
        ...


@runtime_checkable
class OverIndexes(Protocol):
    """A retriever with an index for each setting of its parameters of stage ``"index"``."""

    def ready(self, params: Params, advance: Advance = unheard) -> IndexUse | None:
        """Have the index that ``params`` describe built, and say what it is."""
        ...

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Have it built, and keep it from being deleted while the block runs."""
        ...

    def pin(self, params: Params, *, holder: Path, why: str) -> None:
        """Keep it for as long as ``holder`` exists, instead of what that kept for this before."""
        ...

    def identity(self, params: Params) -> str:
        """Return what the index is made from: its kind's code and data, and its settings."""
        ...


@runtime_checkable
class IdentifiesIndex(Protocol):
    """A kind that tells what shapes an index besides the corpus, options and index parameters.

    Then an index that is there is opened and not built again, the first one too.
    """

    @classmethod
    def identify_index(cls, settings: Params, **options: Any) -> str:
        """Return a digest of code, files and whatever else there is."""
        ...


@runtime_checkable
class TakesKnobs(Protocol):
    """A dataclass whose ``knobs`` are the configuration's, and so no part of what is kept of it."""

    takes_knobs: ClassVar[bool]


@runtime_checkable
class LivesElsewhere(Protocol):
    """A retriever whose index another system keeps, which may have lost it."""

    def is_there(self) -> bool:
        """Say whether the system still has it; each process asks once, and has it built if not."""
        ...


@runtime_checkable
class TellsIndexCost(Protocol):
    """A retriever that knows what building its index took, beside time and room."""

    @property
    def index_cost(self) -> Mapping[str, float]:
        """Return ``"tokens"`` that a model embedded or read, and ``"money"``, as far as known."""
        ...


@runtime_checkable
class ResolvesOptions(Protocol):
    """A kind with options that mean something else in another folder."""

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return the options as they hold from any folder; a study is resumed with these.

        ``folder`` is that of the configuration file.
        """
        ...


@runtime_checkable
class DeclaresKnobs(Protocol):
    """A kind whose knobs are known from its options, without a corpus.

    ``tuner knobs`` shows them. Those of stage ``"index"`` have to be declared so: they are known
    before anything is built. Each has the name of an option of ``build``, and its value as default.
    Retrievers need not understand them: they are asked with those of stage ``"query"`` alone.
    """

    @classmethod
    def declare_knobs(cls, **options: Any) -> tuple[Knob, ...]:
        """Return the knobs that a retriever built with these options would have.

        One that names ``space`` or ``baseline`` is given those, as ``build`` is, where there is a
        configuration. One that names ``read_run`` is given what reads run files, where all knobs
        are asked for, and not those of the index alone.
        """
        ...


@runtime_checkable
class Measures(Protocol):
    """A system that measures itself: it answers parameters with metrics, and needs no data set."""

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return the parameters that the system understands."""
        ...

    @property
    def fingerprint(self) -> str:
        """Return a hash of all that can change a result."""
        ...

    def measure(self, params: Params) -> Any:
        """Return a number, a mapping of metrics, or an Outcome; higher is better."""
        ...


@runtime_checkable
class MeasuresKind(Protocol):
    """A kind that a configuration without ``dataset:`` can name."""

    @classmethod
    def build_measure(cls, *, space: SearchSpace, baseline: Params, **options: Any) -> Measures:
        """Build the system; ``options`` are the configuration's ``retriever`` section."""
        ...


@runtime_checkable
class Serves(Protocol):
    """A retriever whose batch path reuses prepared work, so that serving is timed another way."""

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query as live traffic would: from the index alone, nothing prepared for it."""
        ...


@runtime_checkable
class AnswersOneByOne(Protocol):
    """A retriever for which a batch may be no cheaper than its queries, and so a small one.

    Answers are kept after each batch: the smaller, the less is paid again when a study is killed.
    """

    @property
    def queries_at_once(self) -> int | None:
        """Return how many queries it answers side by side; None where a batch is cheaper."""
        ...


@runtime_checkable
class TellsEachQuery(Protocol):
    """A retriever that tells ``core.ledger.teller()`` of each query just before it is sent.

    Then what it is asked is counted to the query, however the process ends. One that tells
    ``hearer()`` of answers as they come, of all of them, lets each be kept at once, too.
    """

    @property
    def tells_each_query(self) -> bool:
        """Say whether it does."""
        ...


@runtime_checkable
class Notes(Protocol):
    """A retriever with something to say before it is asked, such as what it cannot find."""

    def notes(self) -> tuple[str, ...]:
        """Return sentences for people; `tuner check` and a run print them."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A retriever that can tell which names and paths of its graph led to its answers.

    Asked only where a metric needs them, so that other trials do not pay for it. A retriever that
    has them at hand anyway puts them into its rankings instead.
    """

    def explain(self, queries: Sequence[Query], params: Params, rankings: Rankings) -> Rankings:
        """Return ``rankings``, its own answer to the batch, with ``entities`` and ``paths``."""
        ...
