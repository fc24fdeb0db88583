"""Evaluations on the nodes of a Ray cluster.

joblib's ray backend takes lists only, so a study would run in rounds, and when one evaluation kills
its worker the whole round is lost with an ActorDiedError. So joblib runs the slots, as it does for
threads and processes, and each slot calls an actor, of which joblib's backend is made as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from importlib.util import find_spec

from tuner.core.errors import InputError
from tuner.core.trial import Outcome, Trial
from tuner.execution._cluster import Seats, knock, wait_for_workers
from tuner.execution._folders import pack
from tuner.execution._options import check_options, counted
from tuner.execution._plain import one_line
from tuner.execution._ray import RayCluster
from tuner.execution._slots import run_in_slots
from tuner.execution.base import Evaluate, Outcomes


class Ray:
    """Evaluates on the Ray cluster whose head is at ``address``, such as host:6379.

    This machine must be part of the cluster. ``workers`` is the largest number of evaluations at
    once; None: as many as the cluster has CPUs when the run begins. Each evaluation has a process
    of its own below a Ray actor of one CPU, with one BLAS thread, as with ``processes``: a crash,
    or a kill at ``trial_timeout_s``, costs its trial and nothing else. A trial whose actor is lost
    is evaluated once more, alone on a node. The evaluate function reaches a node once, however many
    trials it evaluates. A suggestion has seen all results but those of the other trials under way.
    """

    def __init__(
        self, workers: int | None = None, trial_timeout_s: float | None = None, *, address: str
    ) -> None:
        check_options(1 if workers is None else workers, trial_timeout_s)
        if not isinstance(address, str) or not re.fullmatch(r"[^:/\s]+:\d+", address):
            message = f"{address!r} is no address of a head node; write host:6379"
            raise InputError(message, key=("address",))
        if find_spec("ray") is None:
            message = "Ray is not installed: pip install 'graphrag-tuner[ray]'"
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
        where = f"evaluations run on Ray at {self.address}, {counted(self._slots, 'worker')}"
        return f"{where}; {remarks}" if remarks else where

    def check(self) -> None:
        """See whether a head node answers.

        Raises:
            InputError: none does.
        """
        try:
            knock(self.address)
        except OSError as error:
            message = (
                f"no Ray head node answers at {self.address} ({one_line(error)}); start one: "
                "ray start --head"
            )
            raise InputError(message, key=("execution", "address")) from error

    def run(
        self,
        evaluate: Evaluate,
        trials: Iterable[Trial],
        *,
        suspects: Container[int] = (),  # noqa: ARG002  # the protocol's; all run in such a place
    ) -> Outcomes:
        """Yield every trial with its outcome, in the order in which they end.

        Raises:
            InputError: the evaluate function cannot be pickled, or no cluster answers.
            TunerError: the cluster is lost, or no node is left that could evaluate.
        """
        self.check()
        cluster = RayCluster(self.address, pack(evaluate))
        try:
            command = f"ray start --address={self.address}"
            self._slots = self.workers or wait_for_workers(cluster, command)
            seats = Seats(cluster)
            self._remarks = lambda: seats.remarks

            def call(trial: Trial) -> Outcome:
                return seats.evaluate(trial, self.trial_timeout_s)

            yield from run_in_slots(call, trials, slots=self._slots)
        finally:
            cluster.close()
