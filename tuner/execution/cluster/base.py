"""What the executions on a cluster share: options, a pool of slots, and a slot for every trial."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from tuner.core.errors import InputError
from tuner.core.shown import counted
from tuner.core.trial import Outcome, Trial
from tuner.execution.base import Evaluate, Outcomes, check_options
from tuner.execution.call import readied
from tuner.execution.cluster.folders import Package, pack
from tuner.execution.cluster.pool import Cluster, ClusterPool, wait_for_workers
from tuner.execution.slots import run_in_slots

# Evaluations at once that a cluster may grow to while a study runs, or twice what it began with.
MOST_AT_ONCE = 64


@dataclass(frozen=True)
class System:
    """A kind of cluster in words.

    Attributes:
        name: what it is called.
        package: the module that must be installed.
        extra: of this package, which installs it.
        entry: the part of the cluster that has the address.
        address: a regular expression of addresses, and ``example`` one of them.
        start_worker: the command that adds a worker to the cluster at ``{address}``.
    """

    name: str
    package: str
    extra: str
    entry: str
    address: str
    example: str
    start_worker: str


class ClusterExecution(ABC):
    """Evaluates on a cluster; a subclass says which, and how it is joined.

    A base class, against the house's habit: the two kinds differ in these three things only.
    """

    system: ClassVar[System]

    def __init__(
        self, workers: int | None = None, trial_timeout_s: float | None = None, *, address: str
    ) -> None:
        check_options(1 if workers is None else workers, trial_timeout_s)
        system = self.system
        if not isinstance(address, str) or not re.fullmatch(system.address, address):
            message = f"{address!r} is no address of a {system.entry}; write {system.example}"
            raise InputError(message, key=("address",))
        if find_spec(system.package) is None:
            message = (
                f"{system.name} is not installed: pip install 'graphrag-tuner[{system.extra}]'"
            )
            raise InputError(message, key=("kind",))
        self.workers = workers
        self.trial_timeout_s = trial_timeout_s
        self.address = address
        self._slots: Callable[[], int] = lambda: workers or 1
        self._remarks: Callable[[], str] = str

    @property
    def slots(self) -> int:
        """Return how many evaluations run at once: with ``workers`` None, the cluster's of now."""
        return self._slots()

    @property
    def choice(self) -> str:
        """Say where evaluations run."""
        remarks = self._remarks()
        workers = counted(self.slots, "worker")
        where = f"evaluations run on {self.system.name} at {self.address}, {workers}"
        return f"{where}; {remarks}" if remarks else where

    @abstractmethod
    def check(self) -> None:
        """See whether the cluster answers.

        Raises:
            InputError: it does not.
        """

    @abstractmethod
    def _join(self, package: Package) -> AbstractContextManager[Cluster]:
        """Join the cluster, with an evaluate function to bring to its workers, and leave it."""

    def run(
        self,
        evaluate: Evaluate,
        trials: Iterable[Trial],
        *,
        suspects: Container[int] = (),  # noqa: ARG002  # the protocol's; a crash harms none
    ) -> Outcomes:
        """Yield every trial with its outcome, in the order in which they end.

        Raises:
            InputError: the evaluate function cannot be pickled, or the cluster does not answer.
            TunerError: the cluster is lost, or no worker is left that could evaluate.
        """
        with self._join(pack(evaluate)) as cluster:
            command = self.system.start_worker.format(address=self.address)
            found = wait_for_workers(cluster, command)
            pool = ClusterPool(cluster)
            self._remarks = lambda: pool.remarks
            most = self.workers or max(MOST_AT_ONCE, 2 * found)
            self._slots = lambda: self.workers or pool.capacity or found

            def call(trial: Trial) -> Outcome:
                return pool.evaluate(trial, self.trial_timeout_s)

            yield from run_in_slots(readied(evaluate, call), trials, slots=most, pool=pool)
