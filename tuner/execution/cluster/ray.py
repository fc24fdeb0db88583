"""Evaluations on the nodes of a Ray cluster.

joblib's ray backend takes lists only, so a study would run in rounds, and when one evaluation kills
its worker the whole round is lost with an ActorDiedError. So joblib runs the slots, as it does for
threads and processes, and each slot calls an actor, of which joblib's backend is made as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from tuner.core.errors import InputError, one_line
from tuner.execution.cluster.folders import Package
from tuner.execution.cluster.frame import OnCluster, System
from tuner.execution.cluster.ray_nodes import RayCluster
from tuner.execution.cluster.seats import Cluster, knock


class Ray(OnCluster):
    """Evaluates on the Ray cluster whose head is at ``address``, such as host:6379.

    This machine must be part of the cluster. ``workers`` is the largest number of evaluations at
    once; None: as many as the cluster has CPUs when the run begins. Each evaluation has a process
    of its own below a Ray actor of one CPU, with one BLAS thread, as with ``processes``: a crash,
    or a kill at ``trial_timeout_s``, costs its trial and nothing else. A trial whose actor is lost
    is evaluated once more, alone on a node. The evaluate function reaches a node once, however many
    trials it evaluates.
    """

    system = System(
        name="Ray",
        package="ray",
        extra="ray",
        entry="head node",
        address=r"[^:/\s]+:\d+",
        example="host:6379",
        start_worker="ray start --address={address}",
    )

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

    @contextmanager
    def _join(self, package: Package) -> Iterator[Cluster]:
        self.check()
        with closing(RayCluster(self.address, package)) as cluster:
            yield cluster
