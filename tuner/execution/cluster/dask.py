"""Evaluations on the workers of a Dask cluster.

joblib's dask backend makes a task of every call, and Dask runs a task again when its worker dies,
with whatever else was under way there: with two workers an evaluation that kills its worker ran
four times, and joblib's call never returned. It also pulls its input ahead of the results: one
suggestion had not seen 13 results that were there. So joblib runs the slots, as it does for threads
and processes, and each slot uses what lies below joblib's backend: an evaluation is a call of an
actor on a worker, which Dask never repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from tuner.execution.cluster.dask_workers import DaskCluster, connect, quiet
from tuner.execution.cluster.folders import Package
from tuner.execution.cluster.frame import OnCluster, System
from tuner.execution.cluster.seats import Cluster


class Dask(OnCluster):
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
