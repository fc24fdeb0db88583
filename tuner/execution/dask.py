"""Evaluations on the workers of a Dask cluster.

joblib's dask backend makes a task of every call, and Dask runs a task again when its worker dies,
with whatever else was under way there: with two workers an evaluation that kills its worker ran
four times, and joblib's call never returned. It also pulls its input ahead of the results: one
suggestion had not seen 13 results that were there. So joblib runs the slots, as it does for threads
and processes, and each slot uses what lies below joblib's backend: an evaluation is a call of an
actor on a worker, which Dask never repeats.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

from tuner.core.errors import InputError, TunerError
from tuner.core.trial import Outcome, Trial
from tuner.execution._cluster import ANSWER_GRACE_S, LostError, Seats, knock, wait_for_workers
from tuner.execution._folders import Package, archive, pack, unpack
from tuner.execution._options import check_options, counted
from tuner.execution._plain import one_line
from tuner.execution._pool import START_TIMEOUT_S, CannotSendError
from tuner.execution._seat import Seat
from tuner.execution._slots import LONGEST_WAIT_S, run_in_slots
from tuner.execution.base import Evaluate, Outcomes

CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0

Answer = TypeVar("Answer")


class Dask:
    """Evaluates on the Dask cluster whose scheduler is at ``address``, such as tcp://host:8786.

    ``workers`` is the largest number of evaluations at once; None: as many as the cluster's workers
    have threads when the run begins. Each evaluation has a process of its own on its worker, with
    one BLAS thread, as with ``processes``: a crash, or a kill at ``trial_timeout_s``, costs its
    trial and nothing else. A trial whose Dask worker is lost is evaluated once more, alone on a
    worker. The evaluate function reaches a worker once, however many trials it evaluates. A
    suggestion has seen all results but those of the other trials under way.
    """

    def __init__(
        self, workers: int | None = None, trial_timeout_s: float | None = None, *, address: str
    ) -> None:
        check_options(1 if workers is None else workers, trial_timeout_s)
        if not isinstance(address, str) or not re.fullmatch(r"(tcp|tls)://[^/\s]+:\d+", address):
            message = f"{address!r} is no address of a scheduler; write tcp://host:8786"
            raise InputError(message, key=("address",))
        if find_spec("distributed") is None:
            message = "Dask is not installed: pip install 'graphrag-tuner[dask]'"
            raise InputError(message, key=("kind",))
        self.workers = workers
        self.trial_timeout_s = trial_timeout_s
        self.address = address
        self._slots = workers or 1
        self._remarks: Callable[[], str] = str

    @property
    def slots(self) -> int:
        """Return how many evaluations run at once; with ``workers`` None, once a run has begun."""
        return self._slots

    @property
    def choice(self) -> str:
        """Say where evaluations run."""
        remarks = self._remarks()
        where = f"evaluations run on Dask at {self.address}, {counted(self._slots, 'worker')}"
        return f"{where}; {remarks}" if remarks else where

    def check(self) -> None:
        """See whether a scheduler answers.

        Raises:
            InputError: none does.
        """
        with _quiet():
            _connect(self.address).close()

    def run(
        self,
        evaluate: Evaluate,
        trials: Iterable[Trial],
        *,
        suspects: Container[int] = (),  # noqa: ARG002  # the protocol's; all run in such a place
    ) -> Outcomes:
        """Yield every trial with its outcome, in the order in which they end.

        Raises:
            InputError: the evaluate function cannot be pickled, or no scheduler answers.
            TunerError: the scheduler is lost, or no worker is left that could evaluate.
        """
        package = pack(evaluate)
        with _quiet(), closing(_Dask(self.address, package)) as cluster:
            self._slots = self.workers or wait_for_workers(cluster, f"dask worker {self.address}")
            seats = Seats(cluster)
            self._remarks = lambda: seats.remarks

            def call(trial: Trial) -> Outcome:
                return seats.evaluate(trial, self.trial_timeout_s)

            yield from run_in_slots(call, trials, slots=self._slots)


class _Dask:
    """A client of a scheduler, with an evaluate function to bring to the workers."""

    def __init__(self, address: str, package: Package) -> None:
        self._address = address
        self._package = package
        self._sending = threading.Lock()
        self._sent: dict[str, Any] = {}
        self.seats: set[_DaskSeat] = set()
        self.client = _connect(address)

    def workers(self) -> Mapping[str, int]:
        """Return each worker's address and threads."""
        try:
            found: Mapping[str, int] = self.ask(self.client.scheduler.ncores, ANSWER_GRACE_S)
        except LostError as error:
            raise self._gone() from error
        return found

    def seat(self, worker: str) -> _DaskSeat:
        """Make a seat on a worker, which fetches the evaluate function unless it has it."""
        future = self._wait(
            worker, Seat, self._there("", lambda: self._package.payload), actor=True
        )
        try:
            seat = _DaskSeat(self, worker, future, future.result(timeout=ANSWER_GRACE_S))
        except ImportError as error:  # of the tuner itself
            raise CannotSendError(one_line(error)) from error
        except Exception as error:
            raise LostError(f"{worker}: {one_line(error)}") from error
        self.seats.add(seat)
        try:
            for name in seat.missing(self._package.folders):
                path = self._package.folders[name]
                self._wait(worker, unpack, name, self._there(name, partial(archive, path)))
            seat.check()
        except BaseException:
            seat.close()
            raise
        return seat

    def _wait(self, worker: str, function: Any, *arguments: Any, actor: bool = False) -> Any:
        """Call a function on a worker; return the future when it is done."""
        key = f"{function.__name__}-{uuid.uuid4().hex}"
        future = self.client.submit(function, *arguments, key=key, workers=[worker], actor=actor)
        is_done = threading.Event()
        future.add_done_callback(lambda _: is_done.set())
        deadline = time.monotonic() + START_TIMEOUT_S
        while not is_done.wait(LONGEST_WAIT_S):
            self.check()
            if worker not in self.workers() or time.monotonic() > deadline:
                future.cancel()
                raise LostError(f"{worker} is gone")
        return future

    def ask(
        self,
        make: Callable[[], Awaitable[Answer]],
        timeout_s: float,
        *,
        is_lost: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Await something in the client's loop, but no longer than there is hope.

        Raises:
            LostError: no answer within the time, or from one that is lost, or it is an error.
            TunerError: the scheduler is gone.
            CannotSendError: that is the answer.
        """

        async def answer() -> Answer:
            return await make()

        future = asyncio.run_coroutine_threadsafe(answer(), self.client.loop.asyncio_loop)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return future.result(LONGEST_WAIT_S)
            except CannotSendError:
                raise
            except Exception as error:  # a TimeoutError of this wait, if it is not done
                if future.done():
                    self.check()
                    raise LostError(one_line(error)) from error
            self.check()
            if is_lost() or time.monotonic() > deadline:
                future.cancel()
                raise LostError("it does not answer")

    def check(self) -> None:
        """See whether the scheduler is there.

        Raises:
            TunerError: it is not. A scheduler that came back would not know of this client.
        """
        if self.client.status != "running":
            raise self._gone()

    def close(self) -> None:
        """End what is under way, and leave the cluster."""
        if self.client.status == "running":
            ends = [seat.end for seat in self.seats if not seat.is_lost]
            with suppress(LostError, TunerError):
                self.ask(lambda: asyncio.gather(*(end() for end in ends)), CLOSE_TIMEOUT_S)
        self.seats.clear()
        self._sent.clear()
        self.client.close(timeout=CLOSE_TIMEOUT_S)

    def _there(self, name: str, read: Callable[[], bytes]) -> Any:
        """Return bytes as they lie on some worker, for others to fetch; sent when first needed."""
        with self._sending:
            sent = self._sent.get(name)
            if sent is None or sent.status != "finished":
                sent = self._sent[name] = self.client.scatter(read(), hash=False)
            return sent

    def _gone(self) -> TunerError:
        return TunerError(
            f"the Dask scheduler at {self._address} is gone; what has been evaluated is kept: "
            "start scheduler and workers again and resume the study"
        )


class _DaskSeat:
    """An actor on a worker."""

    def __init__(self, cluster: _Dask, worker: str, future: Any, actor: Any) -> None:
        self._cluster = cluster
        self._worker = worker
        self._future = future
        # Bound here: an actor looks for a client when it is asked for a method, and finds ours only
        # while that is the current one.
        with cluster.client.as_current():
            self._missing = actor.missing
            self._check = actor.check
            self._evaluate = actor.evaluate
            self._answer = actor.answer
            self.end = actor.close

    @property
    def is_lost(self) -> bool:
        return bool(self._future.status != "finished")

    def missing(self, folders: Mapping[str, str]) -> list[str]:
        names: list[str] = self._ask(lambda: self._missing(dict(folders)), START_TIMEOUT_S)
        return names

    def check(self) -> None:
        self._ask(self._check, START_TIMEOUT_S)

    def evaluate(self, trial: Trial, timeout_s: float | None, *, wait_s: float) -> Outcome | None:
        found: Outcome | None = self._ask(
            lambda: self._evaluate(trial, timeout_s, wait_s=wait_s), wait_s
        )
        return found

    def answer(self, *, wait_s: float) -> Outcome | None:
        found: Outcome | None = self._ask(lambda: self._answer(wait_s=wait_s), wait_s)
        return found

    def close(self) -> None:
        self._cluster.seats.discard(self)
        self._future.release()  # Dask then drops the actor

    def _ask(self, make: Callable[[], Awaitable[Answer]], wait_s: float) -> Answer:
        try:
            timeout_s = wait_s + ANSWER_GRACE_S
            return self._cluster.ask(make, timeout_s, is_lost=lambda: self.is_lost)
        except LostError as error:
            raise LostError(f"{self._worker}: {error}") from error


def _connect(address: str) -> Any:
    """Return a client of the scheduler.

    Raises:
        InputError: no scheduler answers.
    """
    from distributed import Client

    try:
        knock(address.partition("://")[2])
        return Client(address, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except Exception as error:  # OSError, and whatever a server of another kind makes of it
        message = (
            f"no Dask scheduler answers at {address} ({one_line(error)}); start one: dask scheduler"
        )
        raise InputError(message, key=("execution", "address")) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log, which shows a traceback where a scheduler is lost; we say it in words."""
    import distributed  # noqa: F401  # sets its levels when it is imported

    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
