"""What runs on a machine of a cluster: a worker process of its own, in which trials are evaluated.

It is the same process as that of ``processes``, so whatever an evaluation does to its worker
(raise, hang, exit, run out of memory) has the same outcome, costs the same single trial, and spares
the cluster's own worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

from tuner.core.trial import Outcome, Trial
from tuner.execution.base import Evaluate
from tuner.execution.cluster.folders import missing, unpack
from tuner.execution.local.pool import START_TIMEOUT_S, ProcessPool


class Packed:
    """A pickled evaluate function; unpickling it gives the function itself."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        """Unpickle to what was packed."""
        return pickle.loads, (self.payload,)


class Slot:
    """Evaluates one trial at a time in a process of its own. Made on a cluster's worker."""

    def __init__(self, payload: bytes) -> None:
        # The pool asks for a function, but uses its pickled form only.
        self._pool = ProcessPool(cast(Evaluate, Packed(payload)), 1)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="slot")
        self._answer: Future[Outcome] = Future()

    async def missing(self, folders: Mapping[str, str]) -> list[str]:
        """Return the names of the folders that are not on this machine."""
        return missing(folders)

    async def unpack(self, name: str, content: bytes) -> None:
        """Write a folder to this machine."""
        await asyncio.get_running_loop().run_in_executor(self._thread, unpack, name, content)

    async def check(self) -> None:
        """Start the process and load the evaluate function there.

        Raises:
            CannotSendError: it cannot be loaded.
        """
        # Dask's nanny marks its workers as daemons, in order that they end with it, and
        # multiprocessing then refuses to start processes below them, since these would stay
        # behind. Ours look after their parent and end with it.
        getattr(multiprocessing.current_process(), "_config", {}).pop("daemon", None)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._pool.check)

    async def evaluate(
        self, trial: Trial, timeout_s: float | None, *, wait_s: float
    ) -> Outcome | None:
        """Begin to evaluate in the process, which is started anew where it died.

        Returns the outcome, or None where there is none yet after ``wait_s``; then ask ``answer``.
        """
        self._answer = self._thread.submit(self._pool.evaluate, trial, timeout_s)
        return await self.answer(wait_s=wait_s)

    async def answer(self, *, wait_s: float) -> Outcome | None:
        """Return the outcome of what was begun, or None where there is none after ``wait_s``."""
        answer = asyncio.wrap_future(self._answer)
        await asyncio.wait([answer], timeout=wait_s)
        return answer.result() if answer.done() else None

    async def close(self) -> None:
        """End the process, at once where it evaluates."""
        await asyncio.get_running_loop().run_in_executor(None, self._end)

    def __del__(self) -> None:
        # A cluster drops what it holds for a client that is gone, and with it the process. Ending
        # it may take a moment, which the cluster's own threads do not have.
        if hasattr(self, "_thread"):
            with contextlib.suppress(RuntimeError):  # the interpreter ends, and the process too
                threading.Thread(target=self._end, name="slot-end", daemon=True).start()

    def _end(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._pool.close()


Bring = Callable[[str, str], None]


class FarSlot(ABC):
    """A ``Slot`` on a worker, seen from here; a subclass knows how a kind of cluster asks it."""

    @abstractmethod
    def ask(self, method: str, *arguments: Any, lasts_s: float, **named: Any) -> Any:
        """Call one of the slot's methods, which may last so long, and return what it returns.

        Raises:
            LostError: the worker is gone, which it names.
        """

    @abstractmethod
    def close(self) -> None:
        """Give up the slot and what is under way on it; does not wait."""

    def prepare(self, folders: Mapping[str, str], bring: Bring) -> None:
        """Bring the folders that are missing there, and load the evaluate function.

        ``bring`` brings one to the slot's machine: its name, and where it lies here.
        """
        self._bring = bring
        try:
            self.fetch(folders)
            self.ask("check", lasts_s=START_TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    def fetch(self, folders: Mapping[str, str]) -> None:
        """Bring the folders, by name, that are missing there.

        Raises:
            LostError: the worker is gone.
            CannotSendError: one cannot be brought.
        """
        for name in self.ask("missing", dict(folders), lasts_s=START_TIMEOUT_S) if folders else ():
            self._bring(name, folders[name])

    def evaluate(self, trial: Trial, timeout_s: float | None, *, wait_s: float) -> Outcome | None:
        """Begin to evaluate; return the outcome, or None where there is none after ``wait_s``."""
        return cast(
            Outcome | None, self.ask("evaluate", trial, timeout_s, lasts_s=wait_s, wait_s=wait_s)
        )

    def answer(self, *, wait_s: float) -> Outcome | None:
        """Return the outcome of what was begun, or None where there is none after ``wait_s``."""
        return cast(Outcome | None, self.ask("answer", lasts_s=wait_s, wait_s=wait_s))
