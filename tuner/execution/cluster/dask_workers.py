"""A Dask cluster as the seats see it: its workers, and actors on them."""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from tuner.core.errors import InputError, OutageError, TunerError, one_line
from tuner.core.trial import Outcome, Trial
from tuner.execution.cluster.folders import Package, archive, unpack
from tuner.execution.cluster.seat import Seat
from tuner.execution.cluster.seats import ANSWER_GRACE_S, LostError, knock
from tuner.execution.local.pool import START_TIMEOUT_S, CannotSendError
from tuner.execution.slots import LONGEST_WAIT_S

CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0

Answer = TypeVar("Answer")


class DaskCluster:
    """A client of a scheduler, with an evaluate function to bring to the workers."""

    def __init__(self, address: str, package: Package) -> None:
        self._address = address
        self._package = package
        self._sending = threading.Lock()
        self._sent: dict[str, Any] = {}
        self.seats: set[_Seat] = set()
        self.client = connect(address)

    def workers(self) -> Mapping[str, int]:
        """Return each worker's address and threads."""
        try:
            found: Mapping[str, int] = self.ask(self.client.scheduler.ncores, ANSWER_GRACE_S)
        except LostError as error:
            raise self._gone() from error
        return found

    def seat(self, worker: str) -> _Seat:
        """Make a seat on a worker, which fetches the evaluate function unless it has it."""
        self._find_tuner(worker)
        future = self._wait(
            worker, Seat, self._there("", lambda: self._package.payload), actor=True
        )
        try:
            seat = _Seat(self, worker, future, future.result(timeout=ANSWER_GRACE_S))
        except Exception as error:
            raise LostError(f"{worker}: {one_line(error)}") from error
        self.seats.add(seat)
        try:
            for name in seat.missing(self._package.folders):
                path = self._package.folders[name]
                sent = self._there(name, partial(archive, path))
                failure = self._wait(worker, unpack, name, sent).exception()
                if failure is not None:
                    raise CannotSendError(f"{path} cannot be brought there: {one_line(failure)}")
            seat.check()
        except BaseException:
            seat.close()
            raise
        return seat

    def _find_tuner(self, worker: str) -> None:
        """See whether a worker has this package: one that has not dies of what comes next.

        Raises:
            CannotSendError: it has not, or it cannot be imported there.
        """
        found = self._wait(worker, importlib.import_module, Seat.__module__)
        if found.status != "finished":
            reason = one_line(found.exception())
            raise CannotSendError(f"graphrag-tuner cannot be imported there ({reason})")

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
            ends = [seat.end for seat in list(self.seats) if not seat.is_lost]
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

    def _gone(self) -> OutageError:
        return OutageError(
            f"the Dask scheduler at {self._address} is gone; what has been evaluated is kept: "
            "start scheduler and workers again and resume the study"
        )


class _Seat:
    """An actor on a worker."""

    def __init__(self, cluster: DaskCluster, worker: str, future: Any, actor: Any) -> None:
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


def connect(address: str) -> Any:
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
def quiet() -> Iterator[None]:
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
