"""Real clusters on this machine's loopback, started when a test first asks for one."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

WAIT_S = 120.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True
    return False


class DaskCluster:
    """A scheduler and workers, each a process that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        wait_until(lambda: answers(self.port), "for the Dask scheduler")

    def add_worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker with one thread, which is not started again when it dies."""
        worker = self._start("worker", self.address, "--nthreads", "1", "--no-nanny", *options)
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "dask.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
                cwd=self.folder,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=log,
                stderr=log,
            )


@pytest.fixture(scope="session")
def needs_dask() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[dask]'")


@pytest.fixture
def dask_cluster(needs_dask: None, tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler without workers."""
    cluster = DaskCluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def dask_address(needs_dask: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with one worker process of three threads."""
    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        cluster.add_worker("--nthreads", "3")
        yield cluster.address
    finally:
        cluster.stop()


class RayCluster:
    """A head node on which evaluations run, and its processes."""

    def __init__(self, folder: Path, *, cpus: int) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
        options = ["--include-dashboard=false", "--disable-usage-stats", "--num-cpus", str(cpus)]
        place = ["--node-ip-address=127.0.0.1", f"--port={self.port}"]
        with (folder / "ray.log").open("ab") as log:
            self.head = subprocess.Popen(
                [*command, *options, *place], cwd=folder, stdout=log, stderr=log
            )
        started = folder / "ray.log"
        wait_until(lambda: b"Ray runtime started" in started.read_bytes(), "for Ray's head node")

    def stop(self) -> None:
        """Kill all processes of the node at once, as a machine that is switched off does."""
        for pid in reversed(descendants(self.head.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.head.kill()
        self.head.wait()


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and those that these started."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found[1:]


@pytest.fixture(scope="session")
def needs_ray() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")


@pytest.fixture
def ray_cluster(needs_ray: None, tmp_path: Path) -> Iterator[RayCluster]:
    """A node with two CPUs."""
    cluster = RayCluster(tmp_path, cpus=2)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def ray_address(needs_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node with three CPUs, which this process has joined already."""
    import ray

    cluster = RayCluster(tmp_path_factory.mktemp("ray"), cpus=3)
    try:
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        yield cluster.address
        ray.shutdown()
    finally:
        cluster.stop()
