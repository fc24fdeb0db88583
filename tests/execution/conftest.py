"""Real clusters on this machine's loopback, started when a test first asks for one."""

from __future__ import annotations

import contextlib
import os
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
