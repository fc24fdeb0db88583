"""The slots of a cluster's workers: who evaluates which trial, and what if a worker is lost.

A slot evaluates one trial at a time, in a process of its own on a worker of the cluster (see
``cluster.slot``). An evaluation that crashes its process is dealt with there, as on one machine.
Here a worker is lost as a whole, with every slot on it: a machine that was switched off or taken
away, or an evaluation that was the death of its machine. Nobody can tell these apart, so a trial
whose worker was lost is evaluated a second time, alone on a worker: one that is to blame then fails
by itself, and those that were beside it do not.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tuner.core.brought import name_of
from tuner.core.errors import InputError, OutageError, TunerError
from tuner.core.trial import Outcome, Trial
from tuner.execution.call import failed
from tuner.execution.cluster.slot import FarSlot
from tuner.execution.local.pool import START_TIMEOUT_S, STARTS_PER_TRIAL, CannotSendError

# How long to wait for workers, where none is left or none has come yet.
WORKERS_WAIT_S = 30.0
# How often to look for workers that came or went, while somebody waits for a slot.
LOOK_S = 0.5
# A worker is asked again and again for an outcome, each time for so long. So one that vanished
# without a word is noticed, and one whose client vanished ends what it does for that client.
ASK_S = 5.0
KNOCK_TIMEOUT_S = 5.0
# An answer is lost, and not just late on a busy machine, after so much more.
ANSWER_GRACE_S = 60.0
# A process that died may have to be started again before an evaluation begins.
LONGEST_DELAY_S = STARTS_PER_TRIAL * START_TIMEOUT_S + ANSWER_GRACE_S


class LostError(Exception):
    """A worker of the cluster is gone, with all that was under way on it."""


class Cluster(Protocol):
    """What a kind of cluster has to offer; its methods are called from many threads."""

    def workers(self) -> Mapping[str, int]:
        """Return the workers that are there now, each with the evaluations it can take at once.

        Raises:
            TunerError: the cluster is gone.
        """
        ...

    def slot(self, worker: str) -> FarSlot:
        """Make a slot on a worker, and load the evaluate function there.

        Raises:
            LostError: the worker is gone.
            CannotSendError: the evaluate function cannot be loaded there.
        """
        ...


@dataclass(eq=False)
class _Worker:
    """A worker and its slots; ``busy`` counts those that are being made as well."""

    name: str
    capacity: int
    free: list[FarSlot] = field(default_factory=list)
    busy: int = 0
    is_reserved: bool = False


class ClusterPool:
    """Evaluates on a cluster's workers, on slots that are made when they are first needed."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        look_s: float = LOOK_S,
        workers_wait_s: float = WORKERS_WAIT_S,
    ) -> None:
        self._cluster = cluster
        self._look_s = look_s
        self._workers_wait_s = workers_wait_s
        self._workers: dict[str, _Worker] = {}
        self._refused: dict[str, str] = {}
        self._has_made_slot = False
        # Its own condition: of all that wait for a slot, one is woken by each that gives one back.
        self._waiting = threading.Condition()
        self._under_way = 0
        self._lost: list[str] = []
        self._repeated: list[int] = []
        self._changed = threading.Condition()
        self._looked_at = -look_s
        self._worker_seen_at = time.monotonic()

    @property
    def remarks(self) -> str:
        """Say which workers are left out, and why, and what was lost; empty where nothing was."""
        told = [f"without {name}: {reason}" for name, reason in list(self._refused.items())]
        if told:
            told[-1] += "; install there what is installed here"
        if lost := list(self._lost):
            were = "worker was" if len(lost) == 1 else "workers were"
            told.append(f"{len(lost)} {were} lost (the last: {lost[-1]})")
        if repeated := list(self._repeated):
            trials = "trial was" if len(repeated) == 1 else "trials were"
            told.append(
                f"{len(repeated)} {trials} evaluated once more (the last: trial {repeated[-1]})"
            )
        return "; ".join(told)

    @property
    def capacity(self) -> int:
        """Return how many evaluations the workers that are there can take at once."""
        with self._changed:
            return sum(worker.capacity for worker in self._workers.values())

    def wait_for_slot(self, is_over: Callable[[], bool]) -> bool:
        """Wait until one more evaluation has a slot; False where ``is_over`` before.

        A trial that is pulled earlier would wait for a worker while time runs out for others. Who
        has a slot has to ``give_back``.

        Raises:
            TunerError: the cluster is gone, or has no worker left that could evaluate.
        """
        with self._waiting:
            while not is_over():
                if self._under_way < self._look_for_slots():
                    self._under_way += 1
                    return True
                self._waiting.wait(self._look_s)
        return False

    def give_back(self) -> None:
        """Let another evaluation have the slot."""
        with self._waiting:
            self._under_way -= 1
            self._waiting.notify()

    def wake(self) -> None:
        """Let everybody who waits for a slot look whether it is over."""
        with self._waiting:
            self._waiting.notify_all()

    def _look_for_slots(self) -> int:
        with self._changed:
            self._look()
            return self.capacity

    def evaluate(self, trial: Trial, timeout_s: float | None) -> Outcome:
        """Evaluate on a free slot; where the worker is lost, once more, alone on a worker.

        Raises:
            TunerError: the cluster is gone, or has no worker left that could evaluate.
        """
        begin = time.perf_counter()
        reason = ""
        for is_alone in (False, True):
            worker, slot = self._take(is_alone=is_alone)
            is_lost = True
            try:
                deadline = math.inf if timeout_s is None else timeout_s + LONGEST_DELAY_S
                deadline += time.monotonic()
                slot.fetch(_folders(trial))
                outcome = slot.evaluate(trial, timeout_s, wait_s=ASK_S)
                while outcome is None:
                    if time.monotonic() > deadline:  # the worker itself should have seen to that
                        raise LostError(f"{worker.name} does not keep the time limit")
                    outcome = slot.answer(wait_s=ASK_S)
                is_lost = False
                return outcome
            except CannotSendError as error:  # its index cannot be brought there
                is_lost = False
                return failed(str(error), time.perf_counter() - begin)
            except LostError as error:
                reason = str(error)
                self._lost.append(worker.name)
                if not is_alone:
                    self._repeated.append(trial.number)
                self._cluster.workers()  # where all of it is gone, no trial is to blame
            finally:
                self._release(worker, slot, is_lost=is_lost, was_alone=is_alone)
        blame = "two workers of the cluster were lost while they evaluated this trial"
        remark = f"{blame}, the second with nothing else on it: {reason}"
        return failed(remark, time.perf_counter() - begin)

    def _take(self, *, is_alone: bool) -> tuple[_Worker, FarSlot]:
        """Wait for a slot; ``is_alone``: on a worker where nothing else is under way."""
        while True:
            with self._changed:
                self._look()
                worker = self._reserve() if is_alone else self._choose()
                if worker is None:
                    self._changed.wait(self._look_s)
                    continue
                if worker.free:
                    return worker, worker.free.pop()
            try:
                slot = self._cluster.slot(worker.name)
                self._has_made_slot = True
                return worker, slot
            except LostError:  # of which no trial has seen anything
                self._release(worker, None, is_lost=True, was_alone=is_alone)
                time.sleep(self._look_s)
            except CannotSendError as error:
                self._release(worker, None, is_lost=True, was_alone=is_alone)
                with self._changed:
                    self._refused[worker.name] = str(error)
                    self._workers.pop(worker.name, None)

    def _choose(self) -> _Worker | None:
        """Return the worker that is least busy, by one evaluation busier."""
        able = [worker for worker in self._workers.values() if not worker.is_reserved]
        able = [worker for worker in able if worker.busy < worker.capacity]
        # A slot that is there costs less than a new one.
        able = [worker for worker in able if worker.free] or able
        if not able:
            return None
        worker = min(able, key=lambda worker: worker.busy)
        worker.busy += 1
        return worker

    def _reserve(self) -> _Worker | None:
        """Return a worker where nothing else is under way, and keep others away from it."""
        able = [worker for worker in self._workers.values() if not worker.is_reserved]
        if not able:
            return None
        worker = min(able, key=lambda worker: worker.busy)
        worker.is_reserved = True
        while worker.busy:
            self._changed.wait(self._look_s)
            self._look()
            if self._workers.get(worker.name) is not worker:  # lost as well
                return None
        worker.busy = 1
        return worker

    def _release(
        self, worker: _Worker, slot: FarSlot | None, *, is_lost: bool, was_alone: bool
    ) -> None:
        """Give a slot back. ``is_lost``: other free slots of that worker are not trusted either."""
        with self._changed:
            worker.busy -= 1
            if was_alone:
                worker.is_reserved = False
            if slot is not None:
                worker.free.append(slot)
            lost = list(worker.free) if is_lost else []
            if is_lost:
                worker.free.clear()
            self._changed.notify_all()
        for slot in lost:
            slot.close()

    def _look(self) -> None:
        """Take note of workers that came or went, now and then.

        Raises:
            TunerError: the cluster is gone, or there has been no worker for a while.
        """
        if time.monotonic() - self._looked_at < self._look_s:
            return
        there = self._cluster.workers()
        now = self._looked_at = time.monotonic()
        for name in self._workers.keys() - there.keys():
            del self._workers[name]
        for name in there.keys() - self._workers.keys() - self._refused.keys():
            self._workers[name] = _Worker(name, there[name])
        if self._workers:
            self._worker_seen_at = now
            return
        is_over = now - self._worker_seen_at > self._workers_wait_s
        if there and (is_over or not self._has_made_slot):
            reasons = "; ".join(f"{self._refused[name]} (on {name})" for name in there)
            raise TunerError(
                f"no worker can load the evaluate function: {reasons}; install there what is "
                "installed here"
            )
        if is_over:
            raise OutageError(f"there has been no worker for {self._workers_wait_s:g} s")


def _folders(trial: Trial) -> dict[str, str]:
    """Return the folder of the index that a trial asks, by its name, where there is one."""
    folder = "" if trial.index is None else trial.index.folder
    name = name_of(Path(folder)) if folder else None
    return {} if name is None else {name: folder}


def knock(host_and_port: str) -> None:
    """See whether anybody listens at ``host:port``; quicker than to wait for a library to give up.

    Raises:
        OSError: nobody does.
    """
    host, _, port = host_and_port.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_TIMEOUT_S).close()


def wait_for_workers(cluster: Cluster, command: str) -> int:
    """Return how many evaluations a cluster can take at once, when its first worker is there.

    Raises:
        InputError: none comes; ``command`` starts one.
    """
    deadline = time.monotonic() + WORKERS_WAIT_S
    while not (found := sum(cluster.workers().values())):
        if time.monotonic() > deadline:
            message = f"the cluster has no worker; start one: {command}"
            raise InputError(message, key=("execution", "address"))
        time.sleep(LOOK_S)
    return found
