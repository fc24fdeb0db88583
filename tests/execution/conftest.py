"""Real clusters on this machine's loopback, started when a test first asks for one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import tuner

WAIT_S = 900.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True
    return False


FAR_AWAY = Path(__file__).with_name("far_away.py")
CONFIG = """
study: {{name: far, seed: 3}}
dataset: {{path: data, split: {{holdout: 0}}}}
retriever: {{kind: "far_away:FarAway"}}
space: {{x: {{type: integer, low: 0, high: 23}}}}
objective: {{maximize: {{mrr: 1.0}}}}
metrics: []
backends: [{{kind: grid, trials: 24}}]
execution: {{kind: {kind}, address: "{address}", trial_timeout_s: 120}}
tracking: null
"""


def write_data(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{n}", "title": f"{n}", "text": f"number {n}"} for n in range(24)]
    queries = [{"_id": id_, "text": f"which number is {id_}?"} for id_ in ("q", "r")]
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td11\t1\nr\td11\t1\n")


def with_tuner(folders: str | Path) -> str:
    """Return a PYTHONPATH on which this tuner is found, and not one that is installed."""
    return f"{folders}{os.pathsep}{Path(tuner.__file__).parents[1]}"


class Project:
    """A folder with a configuration, a function that it tunes, and the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []
        shutil.copy(FAR_AWAY, folder)
        write_data(folder / "data")
        self.environment = {
            **os.environ,
            "PYTHONPATH": with_tuner(folder),
            "TUNER_CACHE_DIR": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
        }

    def configure(self, kind: str, address: str) -> None:
        (self.folder / "far.yaml").write_text(CONFIG.format(kind=kind, address=address))

    def order(self, x: int, what: str) -> None:
        (self.folder / f"order-{x}").write_text(what)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tuner", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def wait(self, process: subprocess.Popen[str], is_so: Callable[[], bool], what: str) -> None:
        """Wait for something that a command that runs will do."""
        wait_for(lambda: is_so() or process.poll() is not None, what)
        assert is_so(), f"{what}; exit {process.returncode}: {process.communicate()}"

    @staticmethod
    def wait_for(is_so: Callable[[], bool], what: str) -> None:
        wait_for(is_so, what)

    @staticmethod
    def descendants(pid: int) -> set[int]:
        return set(descendants(pid))

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()

    def end(self, process: subprocess.Popen[str], code: int) -> str:
        """Wait for a command's end, check its exit code, and return what it said."""
        said, complained = process.communicate(timeout=WAIT_S)
        assert process.returncode == code, f"exit {process.returncode}\n{said}\n{complained}"
        assert "Traceback" not in complained, complained
        return said + complained

    @property
    def run_dir(self) -> Path:
        (journal,) = self.folder.glob("runs/*/journal.jsonl")
        return journal.parent

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the journal's lines of a kind, such as ``told``; a torn last line is none."""
        journals = list(self.folder.glob("runs/*/journal.jsonl"))
        lines = journals[0].read_bytes().splitlines(keepends=True) if journals else []
        events = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [event for event in events if event["event"] == kind]

    def told(self) -> dict[int, dict[str, Any]]:
        """Return the trials that were told, by x, and check that each was told once."""
        told = self.events("told")
        assert len({event["trial"] for event in told}) == len(told)
        return {event["params"]["x"]: event for event in told}

    def evaluated(self) -> list[tuple[int, int]]:
        """Return each x that was evaluated, with the cluster's process that had it done."""
        return [(x, parent) for x, parent, _ in self._evaluated()]

    def evaluations(self) -> Counter[int]:
        return Counter(x for x, _, _ in self._evaluated())

    def evaluators(self) -> set[int]:
        """Return the processes that evaluated."""
        return {pid for _, _, pid in self._evaluated()}

    def _evaluated(self) -> list[tuple[int, int, int]]:
        log = self.folder / "evaluated"
        lines = log.read_text().splitlines() if log.exists() else []
        return [(int(x), int(parent), int(pid)) for x, parent, pid in map(str.split, lines)]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    found = Project(tmp_path)
    yield found
    found.close()


class DaskCluster:
    """A scheduler and workers, each a process that can be killed."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        wait_for(lambda: answers(self.port), "for the Dask scheduler")

    def add_worker(
        self, *options: str, python_path: str | Path | None = None, cwd: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a worker with one thread, which is not started again when it dies.

        It finds the study's modules, unless it is told to look elsewhere.
        """
        given = ("worker", self.address, "--nthreads", "1", "--no-nanny", *options)
        worker = self._start(*given, python_path=python_path, cwd=cwd)
        self.workers.append(worker)
        return worker

    def add_far_worker(self, hidden: Path) -> subprocess.Popen[bytes]:
        """Start a worker for which a folder of this machine is empty, as on another machine."""
        hidden.mkdir(exist_ok=True)
        (self.folder / "far-tmp").mkdir()
        script = 'mount -t tmpfs none "$0" && TMPDIR="$1" && export TMPDIR && shift && exec "$@"'
        elsewhere = ["unshare", "-m", "sh", "-c", script, str(hidden), str(self.folder / "far-tmp")]
        given = ("worker", self.address, "--nthreads", "1", "--no-nanny")
        worker = self._start(*given, before=elsewhere)
        self.workers.append(worker)
        return worker

    def wait_for_workers(self, count: int) -> None:
        """Wait until the scheduler knows of so many."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=WAIT_S)

    def add_workers(self, count: int) -> None:
        for _ in range(count):
            self.add_worker()

    def lose_head(self) -> None:
        self.scheduler.kill()

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(
        self,
        *arguments: str,
        python_path: str | Path | None = None,
        cwd: Path | None = None,
        before: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        python_path = with_tuner(python_path or self.folder)
        with (self.folder / "dask.log").open("ab") as log:
            return subprocess.Popen(
                [*before, sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
                cwd=cwd or self.folder,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": python_path},
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


class Relay:
    """Passes bytes on to an address, and counts those that it is sent."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.sent_bytes = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                for pair in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_sent: bool) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 16):
                with self._lock:
                    self.sent_bytes += len(content) * is_sent
                sink.sendall(content)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()


@pytest.fixture
def relay() -> Iterator[Callable[[str], Relay]]:
    started: list[Relay] = []

    def start(address: str) -> Relay:
        started.append(Relay(address))
        return started[-1]

    yield start
    for found in started:
        found.close()


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

    def __init__(self, folder: Path, *, cpus: int = 2, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
        options = ["--include-dashboard=false", "--disable-usage-stats", "--num-cpus", str(cpus)]
        place = ["--node-ip-address=127.0.0.1", f"--port={self.port}"]
        with (folder / "ray.log").open("wb") as log:
            self.head = subprocess.Popen(
                [*command, *options, *place], cwd=folder, stdout=log, stderr=log
            )
        started = folder / "ray.log"
        wait_for(lambda: b"Ray runtime started" in started.read_bytes(), "for Ray's head node")

    def add_workers(self, count: int) -> None:
        """Do nothing: the head evaluates itself, two at once."""

    def lose_head(self) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill all processes of the node at once, as a machine that is switched off does."""
        for pid in reversed(descendants(self.head.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.head.kill()
        self.head.wait()


Cluster = DaskCluster | RayCluster


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
    cluster = RayCluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def restart() -> Iterator[Callable[[Cluster], Cluster]]:
    """Kill what is left of a cluster, and start the head of a new one at its address."""
    started: list[Cluster] = []

    def start(cluster: Cluster) -> Cluster:
        cluster.stop()
        started.append(type(cluster)(cluster.folder, port=cluster.port))
        return started[-1]

    yield start
    for cluster in started:
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
