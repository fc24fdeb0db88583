"""Studies to show, stores to show them in, and one real MLflow server for the whole session."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tuner.core.study_record import ArmRecord, Standing, StudyHeader, StudySummary
from tuner.core.trial import Trial, TrialState, best_trial

# Before anything imports MLflow: tests talk to loopback only.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

CREATED_AT = 1_790_000_000.0


def make_header(study_id: str) -> StudyHeader:
    return StudyHeader(
        study_id=study_id,
        name="graphrag-atlas",
        created_at=CREATED_AT,
        seed=42,
        arms=(ArmRecord("tpe", "tpe", 4), ArmRecord("wide", "random", 3)),
        space={"max_hops": {"type": "integer", "low": 1, "high": 5}},
        objective={"maximize": {"recall@10": 1.0}},
        dataset={
            "name": "atlas",
            "path": "builtin:atlas",
            "fingerprint": "0123456789abcdef",
            "tune_queries": 150,
            "holdout_queries": 160,
        },
        config={"study": {"name": "graphrag-atlas"}},
        fingerprints={"space": "aa11"},
        versions={"graphrag-tuner": "0.1.0", "git": "c0ffee" + "0" * 34},
    )


def make_trials() -> list[Trial]:
    """Six told trials of two arms: scored, failed, infeasible, shared, and one with a NaN."""
    rows: list[dict[str, Any]] = [
        {"arm": "tpe", "objective": 0.5},
        {"arm": "wide", "objective": 0.6},
        {"arm": "tpe", "state": TrialState.FAILED, "error": "TimeoutError: no answer in 600 s"},
        {"arm": "tpe", "objective": 0.9, "violation": 12.0},
        {"arm": "wide", "objective": 0.5, "state": TrialState.SHARED, "shared_from": 0},
        {"arm": "tpe", "objective": 0.7, "metrics": {"ndcg@10": float("nan"), "mrr@10": 0.25}},
    ]
    trials = []
    for number, row in enumerate(rows):
        asked_at = CREATED_AT + 10.0 * number
        defaults: dict[str, Any] = {
            "state": TrialState.FINISHED,
            "params": {
                "graph_weight": 0.25,
                "max_hops": number % 3,
                "mode": "hybrid",
                "deep": True,
            },
            "metrics": {"recall@10": row["objective"]} if "objective" in row else {},
            "seconds": {"total": 1.5, "graph": 0.5},
        }
        trial = Trial(number, asked_at=asked_at, told_at=asked_at + 1.5, **{**defaults, **row})
        trials.append(trial)
    return trials


def make_summary(trials: list[Trial], state: str = "finished") -> StudySummary:
    def standing(arm: str | None = None) -> Standing | None:
        best = best_trial([trial for trial in trials if arm in (None, trial.arm)])
        if best is None or best.objective is None:
            return None
        holdout = {"recall@10": 0.65}
        return Standing(
            best.arm, best.number, best.params, best.objective, best.metrics, 0.65, holdout
        )

    baseline = Standing("baseline", -1, {"max_hops": 2}, 0.4, {"recall@10": 0.4}, 0.45, {})
    arms = [found for arm in ("tpe", "wide") if (found := standing(arm)) is not None]
    winner = standing() if state == "finished" else None
    return StudySummary(
        state, standing(), baseline, tuple(arms), 3, 1, 1, seconds=61.5, winner=winner
    )


@dataclass
class Study:
    """Everything a tracker is given."""

    header: StudyHeader
    trials: list[Trial]
    summary: StudySummary
    run_dir: Path


@pytest.fixture(scope="session")
def make_study() -> Callable[[Path], Study]:
    def make(folder: Path) -> Study:
        run_dir = folder / "run"
        run_dir.mkdir()
        (run_dir / "config.yaml").write_text("study: {name: graphrag-atlas}\n")
        (run_dir / "best.yaml").write_text("params: {max_hops: 2}\n")
        (run_dir / "journal.jsonl").write_text('{"event": "header"}\n')
        trials = make_trials()
        return Study(make_header(f"study-{folder.name}"), trials, make_summary(trials), run_dir)

    return make


@pytest.fixture
def study(tmp_path: Path, make_study: Callable[[Path], Study]) -> Study:
    return make_study(tmp_path)


@pytest.fixture
def summarize() -> Callable[..., StudySummary]:
    return make_summary


@pytest.fixture
def store_uri(tmp_path: Path, fresh_store: Path) -> str:
    shutil.copy(fresh_store, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


@dataclass
class Server:
    """A real ``mlflow server`` on loopback."""

    folder: Path
    store: Path
    port: int = field(default_factory=lambda: free_port())
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, timeout_s: float = 900.0) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
                    *("--backend-store-uri", f"sqlite:///{self.store}"),
                    *("--artifacts-destination", str(self.folder / "artifacts")),
                    *("--host", "127.0.0.1", "--port", str(self.port)),
                ],
                cwd=self.folder,
                env={
                    **os.environ,
                    "MLFLOW_DISABLE_TELEMETRY": "true",
                    # Half of the time to start would go into what runs MLflow's own jobs.
                    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + timeout_s
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                pytest.fail(f"mlflow server did not start:\n{self.log()}")
            time.sleep(0.1)

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, 9)
            self.process.wait(900)
            self.process = None

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-3000:]


class Link:
    """A way to a server that can be cut and restored, as a server that dies and comes back.

    Cutting closes the open connections and refuses new ones; the server itself takes seconds to
    start, and what it says is not ours.
    """

    def __init__(self, port: int) -> None:
        self._to = ("127.0.0.1", port)
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self.port = free_port()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def restore(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def cut(self) -> None:
        listener, self._listener = self._listener, None
        for end in (listener, *self._open):
            if end is not None:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits on it
                end.close()
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._to)
            self._open += [client, server]
            if self._listener is not listener:  # cut meanwhile
                client.close()
                server.close()
                return
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=[source, sink], daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(65536):
                sink.sendall(part)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def unused_port() -> int:
    return free_port()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, fresh_store: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(fresh_store, folder / "mlflow.db")
    running = Server(folder, folder / "mlflow.db")
    running.start()
    yield running
    running.kill()


@pytest.fixture
def link(server: Server) -> Iterator[Link]:
    between = Link(server.port)
    between.restore()
    yield between
    between.cut()


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    """Poll for a condition; the bound only ends a test that would never end."""

    def wait(is_met: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 900.0
        while not is_met():
            if time.monotonic() > deadline:
                pytest.fail("the condition was not met within 900 s")
            time.sleep(0.02)

    return wait


@dataclass(frozen=True)
class Shown:
    """One run as the store shows it, without anything that differs between two equal views."""

    name: str
    parent: str | None
    status: str
    params: dict[str, str]
    metrics: dict[str, list[tuple[int, float]]]
    tags: dict[str, str]
    start_ms: int
    end_ms: int | None
    datasets: list[tuple[str, str, str]]
    artifacts: list[str]


@pytest.fixture
def read_view() -> Callable[[str, str], dict[str, Shown]]:
    """Read a study's runs by name; every run has its own name, or the test fails."""
    from mlflow import MlflowClient
    from mlflow.entities import Run

    def shown(client: MlflowClient, run: Run, names: dict[str, str]) -> Shown:
        run_id = run.info.run_id
        parent = run.data.tags.get("mlflow.parentRunId")
        return Shown(
            name=run.info.run_name,
            parent=None if parent is None else names[parent],
            status=run.info.status,
            params=dict(run.data.params),
            metrics={
                name: [(m.step, m.value) for m in client.get_metric_history(run_id, name)]
                for name in run.data.metrics
            },
            tags={
                key: value
                for key, value in run.data.tags.items()
                if key not in {"mlflow.parentRunId", "mlflow.runName"}
            },
            start_ms=run.info.start_time,
            end_ms=run.info.end_time,
            datasets=[
                (entry.dataset.name, entry.dataset.digest, entry.tags[0].value)
                for entry in run.inputs.dataset_inputs
            ],
            artifacts=sorted(file.path for file in client.list_artifacts(run_id)),
        )

    def read(uri: str, study_id: str) -> dict[str, Shown]:
        client = MlflowClient(uri)
        experiments = [found.experiment_id for found in client.search_experiments()]
        runs = client.search_runs(experiments, f"tags.`tuner.study_id` = '{study_id}'")
        names = {run.info.run_id: run.info.run_name for run in runs}
        assert len(set(names.values())) == len(runs), f"duplicates: {sorted(names.values())}"
        return {run.info.run_name: shown(client, run, names) for run in runs}

    return read
