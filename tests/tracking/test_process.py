"""The writer's process: it works, it may die, and it ends with the study."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tuner.tracking.mlflow.quiet import Timeouts
from tuner.tracking.mlflow.tracker import Mlflow


def child_of(pid: int) -> int | None:
    """Return the process id of the writer that a process has started."""
    if shutil.which("ps") is None:
        pytest.skip("finding a child process needs ps (package procps)")
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        child, parent, *command = line.split(None, 2)  # a process may have no arguments at all
        if int(parent) == pid and command and "tuner.tracking.mlflow.process" in command[0]:
            return int(child)
    return None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_the_process_writes_the_view_whatever_signal_the_terminal_sends(
    study, store_uri, read_view, wait_until
):
    warnings: list[str] = []
    before = dict(os.environ)
    tracker = Mlflow(store_uri, "atlas", warn=warnings.append)
    tracker.start(study.header, study.run_dir)
    for trial in study.trials[:3]:
        tracker.record(trial)
    wait_until(lambda: tracker.run_id is not None)
    child = child_of(os.getpid())
    assert child is not None
    for name in (signal.SIGINT, signal.SIGTERM):
        os.kill(child, name)
    for trial in study.trials[3:]:
        tracker.record(trial)
    tracker.finish(study.summary)

    assert warnings == []
    assert (tracker.status.written, tracker.status.pending) == (6, 0)
    assert tracker.status.is_complete
    view = read_view(store_uri, study.header.study_id)
    assert len(view) == 9
    assert view["tpe #5"].tags["tuner.not_finite"] == "ndcg_at_10"
    assert not is_alive(child)
    assert {**os.environ, "PYTEST_CURRENT_TEST": ""} == {**before, "PYTEST_CURRENT_TEST": ""}


def test_a_writer_that_is_killed_is_said_and_completed_by_sync(
    study, store_uri, read_view, wait_until
):
    warnings: list[str] = []
    tracker = Mlflow(store_uri, "atlas", warn=warnings.append)
    assert not tracker.in_thread
    tracker.start(study.header, study.run_dir)
    tracker.record(study.trials[0])
    wait_until(lambda: child_of(os.getpid()) is not None)
    child = child_of(os.getpid())
    assert child is not None
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: len(warnings) == 1)
    for trial in study.trials[1:]:
        tracker.record(trial)
    tracker.finish(study.summary)

    assert warnings[0].startswith("MLflow is not written any more (its process ended with exit")
    assert "the study's end" in warnings[1]
    assert len(warnings) == 2
    Mlflow(store_uri, "atlas").sync(study.header, study.trials, study.summary, study.run_dir)
    assert len(read_view(store_uri, study.header.study_id)) == 9


def test_the_process_ends_with_a_study_that_is_killed(store_uri, tmp_path, wait_until):
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from tuner.core.study_record import StudyHeader\n"
        "from tuner.tracking.mlflow.tracker import Mlflow\n"
        "header = StudyHeader('killed', 'killed', 1.0, 1, (), {}, {})\n"
        "Mlflow(sys.argv[1], 'atlas').start(header, Path(sys.argv[2]))\n"
        "sys.stdin.read()\n"
    )
    study = subprocess.Popen(
        [sys.executable, "-c", script, store_uri, str(tmp_path)], stdin=subprocess.PIPE
    )
    wait_until(lambda: child_of(study.pid) is not None)
    child = child_of(study.pid)
    assert child is not None
    study.kill()
    study.communicate()
    wait_until(lambda: not is_alive(child))


def test_a_missing_python_is_said_and_stops_nothing(study, store_uri, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    warnings: list[str] = []
    tracker = Mlflow(store_uri, "atlas", warn=warnings.append)
    tracker.start(study.header, study.run_dir)
    tracker.record(study.trials[0])
    tracker.finish(study.summary)
    assert warnings[0].startswith("MLflow is not written any more (its process cannot be started")
    assert tracker.status.pending == 1


def test_what_cannot_be_sent_is_said_and_finish_does_not_wait(study, store_uri):
    warnings: list[str] = []
    tracker = Mlflow(store_uri, "atlas", warn=warnings.append, timeouts=Timeouts(finish_s=600.0))
    tracker.start(replace(study.header, config={"path": study.run_dir}), study.run_dir)
    tracker.finish(study.summary)
    assert warnings[0].startswith("MLflow is not written any more (this cannot be sent")
    assert "the study's end" in warnings[1]
    assert len(warnings) == 2
