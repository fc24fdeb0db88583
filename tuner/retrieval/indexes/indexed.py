"""A retriever over many indexes: each trial asks the one that its parameters describe."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuner.core.brought import candidates
from tuner.core.corpus import Corpus, Query, corpus_fingerprint
from tuner.core.errors import NotBuiltError, OutageError, TunerError
from tuner.core.feature_rule import Seen
from tuner.core.files import whole
from tuner.core.json_text import digest_of
from tuner.core.rankings import Rankings
from tuner.core.steps import Advance, unheard
from tuner.core.trial import IndexUse, Params, params_key
from tuner.retrieval.base import (
    Identify,
    LivesElsewhere,
    Notes,
    Retriever,
    features_of,
    serve_one,
    telling_legs,
    with_knobs,
    with_reasons,
)
from tuner.retrieval.base import prepare as prepare_one
from tuner.retrieval.indexes.apart import build_apart, build_first_apart, prepare_apart
from tuner.retrieval.indexes.building import (
    Building,
    Make,
    Order,
    Tell,
    alone,
    build_first,
    made_from,
    prepared,
    untold,
)
from tuner.retrieval.indexes.keeping import discard, held, make_room, pin, touch
from tuner.retrieval.indexes.limits import NO_LIMITS, IndexLimits
from tuner.retrieval.indexes.opened import OPENED
from tuner.retrieval.indexes.record import RECORD, IndexRecord
from tuner.retrieval.knobs import Knob, knob_params
from tuner.retrieval.wrapped.around import Around

FOLDER = "indexes"
_CORPORA = "corpora"


class Indexed(Around):
    """Answers each query from the index that its parameters describe, built where it is missing.

    The first is the one that the configuration describes, built when this is made; in this process,
    unless it has a time limit. The others are built when they are needed, in processes of their
    own. All lie in folders of the cache, so that processes and studies share them. What cannot be
    built is not tried again by this process, unless a system did not answer. ``tell`` hears, in
    this process, what is being built.
    """

    def __init__(
        self,
        name: str,
        make: Make,
        corpus: Corpus,
        cache_dir: Path,
        *,
        knobs: Sequence[Knob],
        first: Params,
        identify: Identify | None = None,
        limits: IndexLimits = NO_LIMITS,
        keeps_time: bool = False,
        advance: Advance = unheard,
    ) -> None:
        """Build or open the first index.

        ``name`` tells this kind and its options from others. ``knobs`` are those of the index, and
        ``first`` the values with which the first one is built. ``identify`` tells, of index
        parameters, what else shapes their index, such as code or the content of a file; without it
        that is the first retriever's fingerprint, and its kind finds out itself whether the first
        index is there. ``keeps_time``: the kind itself ends when ``limits.timeout_s`` is over.

        Raises:
            TunerError: the first index took too long.
            Exception: whatever the kind's ``build`` raises.
        """
        self._name = name
        self._make = make
        self._tells_legs = False
        self._identify = identify
        self._limits = limits
        # Whether a copy in another process may have to build an index.
        self.may_build = True
        self._folder = Path(cache_dir).absolute() / FOLDER
        self._corpus: Corpus | None = corpus
        self._corpus_name = (corpus.fingerprint or corpus_fingerprint(corpus))[:24]
        self._queries: tuple[Query, ...] = ()
        self._begin()
        self._knobs = tuple(knobs)
        self._settings = today = knob_params(first, knobs)
        self._index_knobs = tuple(replace(knob, default=today[knob.name]) for knob in knobs)
        self._first_limit_s = limit_s = None if keeps_time else limits.timeout_s
        place = self._place(self._settings)
        made = "" if identify is None else self._made_from(self._settings)
        order = Order(place, self._settings, made, make, self._corpus_file, is_first=True)
        found = order.found() if made else None
        if found is not None:
            self.retriever = OPENED.retriever(place, found.made_from)
            self._first, self._is_first_new = found, False
        elif limit_s is None:
            self.retriever, self._first, self._is_first_new = build_first(order, corpus, advance)
        else:
            self._write_corpus()
            self._first, self._is_first_new = build_first_apart(order, limit_s, advance)
            self.retriever = OPENED.retriever(place, self._first.made_from)

    def _begin(self) -> None:
        self.tell: Tell = untold
        self._lock = threading.Lock()
        self._building: dict[str, threading.Lock] = {}
        self._failed: dict[str, str] = {}
        # Names of those that were built for a trial which was never told.
        self._untold: set[str] = set()
        # What names an index is read once: files may be large.
        self._orders: dict[str, Order] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave the corpus behind: who builds reads it from its file."""
        if self.may_build:
            self._write_corpus()
        left = ("_corpus", "_lock", "_building", "tell", "_orders", "_untold")
        return {**self.__dict__, **dict.fromkeys(left), "_is_first_new": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what ``__getstate__`` gave."""
        self.__dict__.update(state)
        self._begin()
        self._failed |= state["_failed"]

    @property
    def fingerprint(self) -> str:
        """Return a hash of all indexes, where that can be told; else the first retriever's.

        So a study that begins from another index, as a night after a promotion, is of the same
        system.
        """
        if self._identify is None:
            return self.retriever.fingerprint
        own = self._identify({knob.name: knob.default for knob in self._knobs})
        return digest_of([self._name, self._corpus_name, own])

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return those of the retriever; its index has the values of the first one."""
        own = [knob for knob in self.retriever.knobs if knob.name not in self._settings]
        return (*own, *self._index_knobs)

    def prepare(self, queries: Sequence[Query], advance: Advance = unheard) -> None:
        """Let the first retriever prepare; the others do when they are built."""
        self._queries = tuple(queries)
        self._orders.clear()
        if self._is_first_new and self._first_limit_s is not None:
            order = replace(self._order(self._settings), is_there=True)
            self._first = prepare_apart(order, self._first, self._first_limit_s, advance)
        begin = time.perf_counter()
        prepare_one(self.retriever, queries, advance)
        if self._is_first_new:
            place, seconds = self._place(self._settings), time.perf_counter() - begin
            self._first = prepared(place, self._first, seconds)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer from the index that ``params`` describe.

        Raises:
            TunerError: that index cannot be built.
        """
        retriever, rest = self._at(params)
        return retriever.retrieve(queries, rest)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query as live traffic would."""
        retriever, rest = self._at(params)
        return serve_one(retriever, query, rest)

    def explain(self, queries: Sequence[Query], params: Params, rankings: Rankings) -> Rankings:
        """Return the rankings with names and paths, where the retriever can tell them."""
        retriever, rest = self._at(params)
        return with_reasons(retriever, queries, rest, rankings)

    def handed_on(
        self,
        query: Query,  # noqa: ARG002  # as in HandsOn
        params: Params,
    ) -> tuple[Retriever, Params]:
        """Return the retriever of the index that ``params`` describe, and the rest of them."""
        return self._at(params)

    def features_of(self, queries: Sequence[Query], params: Params) -> Seen:
        """Return what the index's retriever tells of queries before it answers them."""
        retriever, rest = self._at(params)
        return features_of(retriever, queries, rest)

    def ready(self, params: Params, advance: Advance = unheard) -> IndexUse:
        """Have the index that ``params`` describe built, and say what it is.

        Raises:
            TunerError: it cannot be built, or could not be built before.
        """
        settings = self._settings_of(params)
        place = self._place(settings)
        if settings == self._settings:
            folder, record = place, self._first
            is_new, self._is_first_new = self._is_first_new, False
        else:
            folder, record, is_new = self._built(self._order(settings), advance)
        is_new = is_new or place.name in self._untold
        self._untold.discard(place.name)
        return record.use(folder, is_new=is_new)

    @contextmanager
    def holding(self, params: Params) -> Iterator[IndexUse]:
        """Have the index built, and keep it from being deleted while the block runs.

        Raises:
            TunerError: it cannot be built.
        """
        with held(self._place(self._settings_of(params))):
            yield self.ready(params)

    def pin(self, params: Params, *, holder: Path, why: str) -> None:
        """Keep the index that ``params`` describe for as long as ``holder`` exists.

        What the same holder kept before for the same reason is let go.

        Raises:
            OSError: the disk refuses.
        """
        name = self._place(self._settings_of(params)).name
        pin(self._folder, name, holder=holder, why=why)

    def is_there(self, params: Params) -> bool:
        """Say whether the index that ``params`` describe need not be built to be asked."""
        settings = self._settings_of(params)
        if settings == self._settings:
            return True
        order = self._order(settings)
        return any(order.found(folder) is not None for folder in candidates(order.folder))

    def remember_failed(self, params: Params, reason: str) -> None:
        """Take an index for one that could not be built: it is not tried again by this process."""
        settings = self._settings_of(params)
        if settings != self._settings:
            self._failed[self._place(settings).name] = reason

    def remember_built(self, names: Iterable[str]) -> None:
        """Take indexes for new that were built for trials which were never told."""
        self._untold.update(names)

    @property
    def new_first(self) -> str | None:
        """Return the name of the first index, where this process built it; else None."""
        return self._place(self._settings).name if self._is_first_new else None

    def starting_s(self) -> float:
        """Start a process as for another index, which finds the first one; return the seconds.

        Raises:
            TunerError: it could not be started.
        """
        self._write_corpus()
        begin = time.perf_counter()
        build_apart(self._order(self._settings), timeout_s=None)
        return time.perf_counter() - begin

    def identity(self, params: Params) -> str:
        """Return what the index that ``params`` describe is made from."""
        return self._order(self._settings_of(params)).made_from

    def notes(self) -> tuple[str, ...]:
        """Return what the first retriever has to say before it is asked."""
        return self.retriever.notes() if isinstance(self.retriever, Notes) else ()

    def telling_legs(self) -> Indexed:
        """Let answers from now on carry their legs, where they can."""
        self._tells_legs = True
        return self

    def _at(self, params: Params) -> tuple[Retriever, Params]:
        retriever, rest = self._opened_at(params)
        return telling_legs(retriever) if self._tells_legs else retriever, rest

    def _opened_at(self, params: Params) -> tuple[Retriever, Params]:
        settings = self._settings_of(params)
        rest = {name: value for name, value in params.items() if name not in settings}
        if settings == self._settings:
            return self.retriever, rest
        order = self._order(settings)
        folder, _, _ = self._built(order, unheard)
        opened = OPENED.retriever(folder, order.made_from)
        # Another study may have kept it, with other knobs.
        return with_knobs(opened, self.retriever.knobs), rest

    def _settings_of(self, params: Params) -> Params:
        given = {name: params[name] for name in self._settings if name in params}
        return knob_params(given, self._index_knobs) if given else self._settings

    def _place(self, settings: Params) -> Path:
        parts = [self._name, self._corpus_name, settings]
        if self._identify is None and settings != self._settings:
            # Of another first one, whose fingerprint may differ, they would be other indexes.
            parts.append(self.retriever.fingerprint)
        return self._folder / digest_of(parts, 24)

    def _made_from(self, settings: Params) -> str:
        own = self.retriever.fingerprint if self._identify is None else self._identify(settings)
        return made_from(own, settings)

    def _order(self, settings: Params) -> Order:
        key = params_key(settings)
        if key not in self._orders:
            self._orders[key] = Order(
                folder=self._place(settings),
                settings=settings,
                made_from=self._made_from(settings),
                make=self._make,
                corpus=self._corpus_file,
                queries=self._queries,
            )
        return self._orders[key]

    def _built(self, order: Order, advance: Advance) -> tuple[Path, IndexRecord, bool]:
        """Return where an index lies, its record, and whether it was built now."""
        for folder in candidates(order.folder):
            known = OPENED.record(folder, order.made_from)
            if known is not None:
                return folder, known, False
        key = order.folder.name
        with self._lock:
            building = self._building.setdefault(key, threading.Lock())
        with building:
            if key in self._failed:
                raise NotBuiltError(self._failed[key])
            for folder in candidates(order.folder):
                found = order.found(folder)
                if found is not None and self._is_there(folder, order, found):
                    touch(folder)
                    OPENED.remember(folder, found)
                    return folder, found, False
            built, is_new = self._build(order, advance)
            OPENED.remember(order.folder, built)
            make_room(self._folder, self._limits, spare=order.folder)
            return order.folder, built, is_new

    def _is_there(self, folder: Path, order: Order, found: IndexRecord) -> bool:
        """Say whether the system that keeps an index still has it; forget one that is lost."""
        opened = OPENED.retriever(folder, order.made_from)
        if not isinstance(opened, LivesElsewhere) or opened.is_there():
            return True
        OPENED.forget(folder)
        with alone(folder):
            if order.found(folder) == found:  # else it was built again in the meantime
                (folder / RECORD).unlink()
        return False

    def _build(self, order: Order, advance: Advance) -> tuple[IndexRecord, bool]:
        own = self._settings.items()
        told = {name: order.settings[name] for name, v in own if order.settings[name] != v}

        def tell(done: int = 0, of: int = 0, **ended: bool) -> None:
            advance(done, of)
            self.tell(Building(order.folder.name, told, done, of, **ended))

        self._write_corpus()
        is_new = is_found = False
        tell()
        try:
            record, is_new = build_apart(order, timeout_s=self._limits.timeout_s, advance=tell)
            is_found = not is_new
            return record, is_new
        except OutageError:
            raise  # it may answer later
        except TunerError as error:
            shown = ", ".join(f"{name}={value}" for name, value in told.items())
            reason = f"the index with {shown} could not be built: {error}"
            discard(order.folder)
            self._failed[order.folder.name] = reason
            raise NotBuiltError(reason) from error
        finally:
            tell(is_over=True, is_new=is_new, is_found=is_found)

    @property
    def _corpus_file(self) -> Path:
        return self._folder.with_name(_CORPORA) / f"{self._corpus_name}.pickle"

    def _write_corpus(self) -> None:
        if self._corpus is None or self._corpus_file.is_file():
            return
        self._corpus_file.parent.mkdir(parents=True, exist_ok=True)
        with whole(self._corpus_file) as stream:
            pickle.dump(self._corpus, stream, protocol=pickle.HIGHEST_PROTOCOL)


def indexed_in(retriever: object) -> Indexed | None:
    """Return the retriever over many indexes that others may stand around; None where none is."""
    while not isinstance(retriever, Indexed):
        if not isinstance(retriever, Around):
            return None
        retriever = retriever.retriever
    return retriever
