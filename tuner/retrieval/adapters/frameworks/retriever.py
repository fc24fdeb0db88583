"""The retriever that asks an object of a framework, whichever framework it is."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tuner.core.checks import option_problems
from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, OutageError, TunerError, one_line, refuse
from tuner.core.json_text import digest_of
from tuner.core.ledger import teller
from tuner.core.outages import is_outage
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.answers import (
    Answer,
    Passages,
    collected,
    passage_tokens,
    rankings_of,
    read_answer,
)
from tuner.retrieval.adapters.event_loop import run_concurrently
from tuner.retrieval.adapters.frameworks.factory import Factory
from tuner.retrieval.adapters.frameworks.matching import Hit, Matching
from tuner.retrieval.adapters.frameworks.seam import Seam
from tuner.retrieval.adapters.frameworks.settings import AT_MOST, knob_of
from tuner.retrieval.adapters.frameworks.weights import weight_problems, without_weight
from tuner.retrieval.adapters.function.target import within
from tuner.retrieval.adapters.function.threads import run_in_threads
from tuner.retrieval.adapters.own_index import made_once, place_of
from tuner.retrieval.dead import dead_problems
from tuner.retrieval.knobs import Knob, knob_params, space_knobs, unvalued
from tuner.retrieval.rules import rule_problems

ASYNC_TIMEOUT_S = 60.0
Concurrency = Annotated[
    int | None, "how many queries each process asks at once; left out: 1, without threads"
]
"""An option of every kind of framework."""
AwaitedTimeout = Annotated[
    float | None, "seconds for one query; left out: no limit, 60 where it is awaited"
]
"""An option of each kind whose queries may be awaited."""
_LOWS: dict[str, float] = {"concurrency": 1, "timeout_s": 0}


@dataclass(frozen=True)
class Limits:
    """How many queries are asked at once, and the seconds for each; None: not limited."""

    concurrency: int = 1
    timeout_s: float | None = None

    @classmethod
    def read(cls, concurrency: Any, timeout_s: Any) -> Limits:
        """Check the options; None: not given.

        Raises:
            InputError: an option of the wrong kind.
        """
        options = {"concurrency": concurrency, "timeout_s": timeout_s}
        given = {option: value for option, value in options.items() if value is not None}
        lows = {option: low for option, low in _LOWS.items() if option in given}
        refuse(option_problems(given, lows, whole=("concurrency",)))
        seconds = None if timeout_s is None else float(timeout_s)
        return cls(1 if concurrency is None else int(concurrency), seconds)


@dataclass(frozen=True)
class Framework:
    """Asks an object that a factory of the user's makes, once in each process.

    Only the order of what it finds is believed: frameworks mix scores that rise, fall and mean
    different things. ``counts`` are the documents of its stores in the process that built this, and
    ``today`` is what the object is set to when the factory has made it; ``always`` are the names
    of what it is set to by a configuration alone.
    """

    takes_knobs: ClassVar[bool] = True
    tells_spans: ClassVar[bool] = False

    seam: Seam
    factory: Factory
    matching: Matching
    limits: Limits
    knobs: tuple[Knob, ...]
    fingerprint: str
    index_params: Params
    counts: Mapping[str, int]
    today: Params
    always: frozenset[str] = frozenset()
    folder: Path | None = None
    known: Passages = field(default=None, repr=False)

    @property
    def queries_at_once(self) -> int:
        """Return how many queries are asked side by side."""
        return self.limits.concurrency

    @property
    def tells_each_query(self) -> bool:
        """Say that it tells of each query."""
        return True

    def prepare(self, queries: Sequence[Query]) -> None:
        """Have the object made in this process; queries are not asked ahead."""
        if queries:
            self._object()

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Ask the object, set to the parameters that are given; others stay as it was made.

        Raises:
            InputError: a parameter that it does not have, or a value of the wrong kind.
            TunerError: it raised, or found something else than documents of the data set.
        """
        checked = knob_params(params, self.knobs)
        if said := without_weight(self.knobs, checked):
            raise InputError(said)
        made = self._object()
        begin = time.perf_counter()
        named = [knob for knob in self.knobs if knob.name in {*params, *self.always}]
        values = {knob.name: checked[knob.name] for knob in named if self._sets(knob, params)}
        at_most = values.pop(AT_MOST, None)
        bound = self._bound(made, values)
        answers = self._ask_each(queries, made, bound, None if at_most is None else int(at_most))
        seconds = {"call": time.perf_counter() - begin}
        return rankings_of(queries, answers, self.known, seconds)

    def _sets(self, knob: Knob, params: Params) -> bool:
        """Say whether a parameter is to be set.

        Not where what else is set does not read it: a framework may refuse to be given it. Nor
        where an argument of the factory shapes it: where it has another value today than with the
        first arguments, and is asked for with that of the first, as are all parameters that a
        configuration does not name.
        """
        for other, values in knob.when.items():
            if params.get(other, self.today.get(other)) not in values:
                return False
        value = params.get(knob.name, knob.default)
        return value != knob.default or self.today.get(knob.name) == knob.default

    def _object(self) -> Any:
        made = self.factory.made(self.index_params, self.folder)
        here = self.seam.counts(made)
        for name, count in self.counts.items():
            if here.get(name, 0) != count:
                raise TunerError(
                    f"the store of {name} holds {here.get(name, 0)} documents here, and held "
                    f"{count} in the process of the run: a store in memory does not travel; let "
                    f"{self.factory.name} fill it, or open one on a disk or a server"
                )
        return made

    def _bound(self, made: Any, values: Params) -> Any:
        try:
            return self.seam.bound(made, values)
        except TunerError:
            raise
        except Exception as error:  # whatever the framework makes of a value
            shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
            raise TunerError(f"cannot be set to {shown}: {one_line(error)}") from error

    def _ask_each(
        self, queries: Sequence[Query], made: Any, bound: Any, at_most: int | None
    ) -> list[Answer]:
        tell, limits, shared_by = teller(), self.limits, self.factory.name
        rows = range(len(queries))
        with collected(queries, self.known) as collection:

            def taken(row: int, hits: list[Hit]) -> None:
                ids = self.matching.ids(hits[:at_most], self.known)
                collection.take([read_answer(ids, self.known)], row)

            def called(row: int) -> None:
                tell(1)
                with _of_query(queries[row]):
                    try:
                        hits = self.seam.ask(bound, queries[row].text)
                    except NotImplementedError as error:
                        if not self.seam.can_wait(made):
                            raise
                        hint = "where it can be awaited alone, write concurrency: 2"
                        raise TunerError(f"{one_line(error)}; {hint}") from error
                    taken(row, hits)

            async def awaited(row: int) -> None:
                tell(1)
                with _of_query(queries[row]):
                    call = partial(self.seam.ask_async, bound, queries[row].text)
                    taken(row, await within(limits.timeout_s or ASYNC_TIMEOUT_S, call))

            if limits.concurrency == 1 and limits.timeout_s is None:
                for row in rows:
                    called(row)
            elif self.seam.can_wait(made):
                calls = [partial(awaited, row) for row in rows]
                run_concurrently(calls, limit=limits.concurrency, shared_by=shared_by)
            else:
                run_in_threads(
                    [partial(called, row) for row in rows],
                    names=[f"query {query.id!r}" for query in queries],
                    limit=limits.concurrency,
                    timeout_s=limits.timeout_s,
                    shared_by=shared_by,
                )
        return [collection.answers[row] for row in rows]


class _of_query:  # a context, read as words
    """Says of what is raised in it which query that was."""

    def __init__(self, query: Query) -> None:
        self.query = query

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception | SystemExit):
            return
        reason = str(error) if isinstance(error, TunerError) else one_line(error)
        failed = OutageError if is_outage(error) else TunerError
        raise failed(f"query {self.query.id!r}: {reason}") from error


def build_framework(
    seam: Seam,
    corpus: Corpus,
    *,
    make: Any,
    search_path: Any,
    id: Any,  # as the option is called
    concurrency: Any,
    timeout_s: Any,
    cache_dir: Path | None,
    index_params: Params | None,
    space: SearchSpace | None,
    baseline: Params | None,
) -> Framework:
    """Call the factory, and look at what it made.

    Raises:
        InputError: the package is missing, an option is wrong, the object is none that the
            framework can ask, its store is empty, or a parameter of the space has no effect, or
            none beyond another.
        TunerError: the factory failed.
    """
    version = seam.version()
    factory = Factory.read(make, search_path)
    limits = Limits.read(concurrency, timeout_s)
    matching = Matching.read(id, corpus)
    shaping = factory.knobs(space, baseline)
    params = knob_params(index_params or {}, shaping)
    folder = None
    if factory.takes_data:
        if cache_dir is None:
            raise InputError(f"{make!r} is given the documents: give a `cache_dir` to keep them in")
        folder = place_of(cache_dir, seam.kind, factory.name, corpus, params)
        made_from = digest_of([factory.fingerprint(), corpus.fingerprint, version, params], 24)
        made_once(folder, made_from, partial(_fill, factory, corpus, folder, params))
    made = factory.made(params, folder)
    _check(seam, made, factory.name)
    counts = seam.counts(made)
    for name, count in counts.items():
        if count == 0:
            raise InputError(
                f"the store of {name} that {make!r} made is empty: a store in memory is that of "
                "one process, so the factory has to fill it, or open one on a disk or a server",
                key=("make",),
            )
    knobs = query_knobs(seam, made, {knob.name for knob in shaping}, space, baseline)
    every = (*knobs, *shaping)
    checks = (dead_problems, rule_problems, weight_problems)
    refuse([one for check in checks for one in check(space, baseline, every)])
    return Framework(
        seam,
        factory,
        matching,
        limits,
        knobs,
        digest_of([seam.kind, version, factory.fingerprint(), corpus.fingerprint, matching.how]),
        params,
        counts,
        {knob.name: knob.default for knob in knobs},
        frozenset(setting.name for setting in seam.settings(made) if setting.is_open),
        folder,
        passage_tokens(corpus),
    )


def _check(seam: Seam, made: Any, name: str) -> None:
    if isinstance(made, type):  # which has the methods of its objects
        raise InputError(
            f"{name} returned the class {made.__name__} itself: let it return an object, as in "
            f"return {made.__name__}(…)",
            key=("make",),
        )
    seam.check(made, name)


def _fill(factory: Factory, corpus: Corpus, folder: Path, params: Params) -> str:
    factory.write_data(folder, corpus)
    factory.made(params, folder)
    return ""


def query_knobs(
    seam: Seam, made: Any, shaping: set[str], space: SearchSpace | None, baseline: Params | None
) -> tuple[Knob, ...]:
    """Return what an object can be set to; a parameter of the factory by the same name is that.

    Raises:
        InputError: a parameter that has no value of its own is not named.
    """
    settings = [one for one in seam.settings(made) if one.name not in shaping]
    told = [knob_of(one) for one in settings if not one.is_open]
    is_open = [one.name for one in settings if one.is_open]
    if space is None and baseline is None:
        named = tuple(map(unvalued, is_open))
    else:
        named = space_knobs(space, baseline, names=is_open)
    missing = [name for name in is_open if name not in {knob.name for knob in named}]
    if missing:
        listed = ", ".join(map(repr, missing))
        raise InputError(f"{listed} has no value: name it in the space, or in the baseline")
    return (*(knob for knob in told if knob is not None), *named)


class OfFactory(ABC):
    """What a kind says of itself before it is built; its factory tells most of it."""

    tells_spans: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def seam_of(cls, **options: Any) -> Seam:
        """Return how objects of its framework are asked, with these options of its ``build``."""

    @classmethod
    def declare_knobs(
        cls,
        *,
        make: str,
        search_path: Sequence[str] | None = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
        read_run: Any = None,
        **options: Any,
    ) -> tuple[Knob, ...]:
        """Return the arguments of the factory, and with ``read_run`` what its object takes.

        Raises:
            InputError: the package is missing, an option is wrong, or the factory needs a data set.
            TunerError: the factory failed.
        """
        seam = cls.seam_of(**options)
        factory = Factory.read(make, search_path)
        shaping = factory.knobs(space, baseline)
        if read_run is None:
            return shaping
        seam.version()
        made = factory.made_of_stand_ins()
        _check(seam, made, factory.name)
        names = {knob.name for knob in shaping}
        return (*query_knobs(seam, made, names, space, baseline), *shaping)

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return the options with an absolute search path: the folder, then the working one."""
        given = options.get("search_path")
        if given is None:
            given = [str(folder), "."]
        if not isinstance(given, list):
            return dict(options)
        folders = [str(Path(str(part)).expanduser().resolve()) for part in given]
        return {**options, "search_path": list(dict.fromkeys(folders))}
