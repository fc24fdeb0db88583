"""Evaluations on the workers of a Dask cluster.

joblib's dask backend makes a task of every call, and Dask runs a task again when its worker dies,
with whatever else was under way there: with two workers an evaluation that kills its worker ran
four times, and joblib's call never returned. It also pulls its input ahead of the results: one
suggestion had not seen 13 results that were there. So joblib runs the slots, as it does for threads
and processes, and each slot uses what lies below joblib's backend: an evaluation is a call of an
actor on a worker, which Dask never repeats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from contextlib import closing
from importlib.util import find_spec

from tuner.core.errors import InputError
from tuner.core.trial import Outcome, Trial
from tuner.execution._cluster import Seats, wait_for_workers
from tuner.execution._dask import DaskCluster, connect, quiet
from tuner.execution._folders import pack
from tuner.execution._options import check_options, counted
from tuner.execution._slots import run_in_slots
from tuner.execution.base import Evaluate, Outcomes


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
        with quiet():
            connect(self.address).close()

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
        with quiet(), closing(DaskCluster(self.address, package)) as cluster:
            self._slots = self.workers or wait_for_workers(cluster, f"dask worker {self.address}")
            seats = Seats(cluster)
            self._remarks = lambda: seats.remarks

            def call(trial: Trial) -> Outcome:
                return seats.evaluate(trial, self.trial_timeout_s)

            yield from run_in_slots(call, trials, slots=self._slots)
