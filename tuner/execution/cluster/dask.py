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
import importlib
import logging
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from tuner.core.errors import InputError, OutageError, TunerError, one_line
from tuner.core.logs import adopt
from tuner.execution.cluster.base import ClusterExecution, System
from tuner.execution.cluster.folders import Package, archive, unpack
from tuner.execution.cluster.pool import ANSWER_GRACE_S, Cluster, LostError, knock
from tuner.execution.cluster.slot import FarSlot, Slot
from tuner.execution.local.pool import START_TIMEOUT_S, CannotSendError
from tuner.execution.slots import LONGEST_WAIT_S

CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0

Answer = TypeVar("Answer")


class Dask(ClusterExecution):
    """Evaluates on the Dask cluster whose scheduler is at ``address``, such as tcp://host:8786.

    ``workers`` is the largest number of evaluations at once; None: as many as the cluster's workers
    have threads. Each evaluation has a process of its own on its worker, with
    one BLAS thread, as with ``processes``: a crash, or a kill at ``trial_timeout_s``, costs its
    trial and nothing else. A trial whose Dask worker is lost is evaluated once more, alone on a
    worker. The evaluate function reaches a worker once, however many trials it evaluates.
    A worker's memory limit does not cover these processes. Workers that come late are used, and one
    that lacks a module is left out.
    """

    system = System(
        name="Dask",
        package="distributed",
        extra="dask",
        entry="scheduler",
        address=r"(tcp|tls)://[^/\s]+:\d+",
        example="tcp://host:8786",
        start_worker="dask worker {address}",
    )

    def check(self) -> None:
        """See whether a scheduler answers.

        Raises:
            InputError: none does.
        """
        with quiet():
            connect(self.address).close()

    @contextmanager
    def _join(self, package: Package) -> Iterator[Cluster]:
        with quiet(), closing(DaskCluster(self.address, package)) as cluster:
            yield cluster


class DaskCluster:
    """A client of a scheduler, with an evaluate function to bring to the workers."""

    def __init__(self, address: str, package: Package) -> None:
        self._address = address
        self._package = package
        self._sending = threading.Lock()
        self._sent: dict[str, Any] = {}
        self.slots: set[_Slot] = set()
        self.client = connect(address)

    def workers(self) -> Mapping[str, int]:
        """Return each worker's address and threads."""
        try:
            found: Mapping[str, int] = self.ask(self.client.scheduler.ncores, ANSWER_GRACE_S)
        except LostError as error:
            raise self._gone() from error
        return found

    def slot(self, worker: str) -> _Slot:
        """Make a slot on a worker, which fetches the evaluate function unless it has it."""
        self._find_tuner(worker)
        future = self._wait(
            worker, Slot, self._there("", lambda: self._package.payload), actor=True
        )
        try:
            slot = _Slot(self, worker, future, future.result(timeout=ANSWER_GRACE_S))
        except Exception as error:
            raise LostError(f"{worker}: {one_line(error)}") from error
        self.slots.add(slot)

        def bring(name: str, path: str) -> None:
            sent = self._there(name, partial(archive, path))
            failure = self._wait(worker, unpack, name, sent).exception()
            if failure is not None:
                raise CannotSendError(f"{path} cannot be brought there: {one_line(failure)}")

        slot.prepare(self._package.folders, bring)
        return slot

    def _find_tuner(self, worker: str) -> None:
        """See whether a worker has this package: one that has not dies of what comes next.

        Raises:
            CannotSendError: it has not, or it cannot be imported there.
        """
        found = self._wait(worker, importlib.import_module, Slot.__module__)
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
            ends = [slot.end for slot in list(self.slots) if not slot.is_lost]
            with suppress(LostError, TunerError):
                self.ask(lambda: asyncio.gather(*(end() for end in ends)), CLOSE_TIMEOUT_S)
        self.slots.clear()
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


class _Slot(FarSlot):
    """An actor on a worker."""

    def __init__(self, cluster: DaskCluster, worker: str, future: Any, actor: Any) -> None:
        self._cluster = cluster
        self._worker = worker
        self._future = future
        # Bound here: an actor looks for a client when it is asked for a method, and finds ours only
        # while that is the current one.
        with cluster.client.as_current():
            self._methods = {
                name: getattr(actor, name) for name in ("missing", "check", "evaluate", "answer")
            }
            self.end = actor.close

    @property
    def is_lost(self) -> bool:
        return bool(self._future.status != "finished")

    def ask(self, method: str, *arguments: Any, lasts_s: float, **named: Any) -> Any:
        call = partial(self._methods[method], *arguments, **named)
        try:
            return self._cluster.ask(call, lasts_s + ANSWER_GRACE_S, is_lost=lambda: self.is_lost)
        except LostError as error:
            raise LostError(f"{self._worker}: {error}") from error

    def close(self) -> None:
        self._cluster.slots.discard(self)
        self._future.release()  # Dask then drops the actor


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

    adopt()
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
