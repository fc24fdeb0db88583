"""A worker process that dies in the middle of what it sends back costs its trial, and no time."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tuner.core.trial import Trial
from tuner.execution.local.processes import Processes


def dies_while_it_sends() -> Any:
    """Return a function that announces a result of a megabyte to its parent, and is gone."""

    def evaluate(params: Any) -> Any:
        import os
        import signal
        import struct
        import sys
        import time

        from tuner.core.trial import Outcome

        if params["x"] != 1:
            return Outcome({"a": 1.0})
        frame: Any = sys._getframe()
        while "result_queue" not in frame.f_locals:
            frame = frame.f_back
        frame.f_locals["result_queue"]._writer._send(struct.pack("!i", 1_000_000))
        if params["dies"]:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)
        raise AssertionError("nobody ended this process")

    return evaluate


@pytest.mark.parametrize("dies", [True, False], ids=["it dies", "it is killed at its time limit"])
def test_a_result_that_never_comes_whole_fails_its_trial_only(dies: bool) -> None:
    given = [Trial(number, "arm", {"x": number, "dies": dies}) for number in range(4)]
    run = Processes(2, trial_timeout_s=None if dies else 2.0).run(dies_while_it_sends(), given)
    errors = {trial.number: outcome.error for trial, outcome in run}
    reason = "died while it evaluated this trial" if dies else "its worker process was killed"
    assert reason in str(errors.pop(1))
    assert errors == {0: None, 2: None, 3: None}


def test_closing_waits_for_no_result_that_never_comes_whole() -> None:
    given = [Trial(number, "arm", {"x": number, "dies": False}) for number in range(4)]
    run = Processes(2).run(dies_while_it_sends(), given)
    assert next(run)[1].error is None
    run.close()


def test_a_worker_that_dies_before_it_has_read_anything_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from joblib.externals.loky.backend import fork_exec

    start, killed = fork_exec.fork_exec, []

    def start_and_kill(command: Any, *rest: Any, **named: Any) -> int:
        pid: int = start(command, *rest, **named)
        if "popen_loky_posix" in str(command) and len(killed) < 1:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return pid

    monkeypatch.setattr(fork_exec, "fork_exec", start_and_kill)
    large = b"x" * 1_000_000  # more than a pipe holds

    def evaluate(params: Any) -> Any:
        from tuner.core.trial import Outcome

        return Outcome({"size": float(len(large))})

    found: list[Any] = []

    def run() -> None:
        trials = [Trial(number, "arm", {"x": number}) for number in range(2)]
        found.extend(Processes(1).run(evaluate, trials))

    running = threading.Thread(target=run, daemon=True)
    running.start()
    running.join(120.0)
    assert killed
    assert not running.is_alive(), "it waits for a worker that is dead"
    assert "SIGKILL" in found[0][1].error
    assert found[1][1].metrics == {"size": 1_000_000.0}


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are looked up in /proc")
def test_a_worker_that_starts_is_out_of_reach_of_ctrl_c(capfd: pytest.CaptureFixture[str]) -> None:
    is_over = threading.Event()
    known: set[int] = set()

    def children() -> set[int]:
        found: set[int] = set()
        for task in Path("/proc/self/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                found |= {int(pid) for pid in task.read_text().split()}
        return found

    known |= children()
    reached: list[int] = []

    def interrupt() -> None:
        while not is_over.wait(0.0005):
            for pid in children() - known:
                known.add(pid)
                reached.append(pid)
                with contextlib.suppress(ProcessLookupError):
                    if os.getpgid(pid) == os.getpgid(0):  # not once it has a group of its own
                        os.kill(pid, signal.SIGINT)

    def evaluate(params: Any) -> Any:
        import signal

        from tuner.core.trial import Outcome

        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, set())
        return Outcome({"x": float(params["x"]), "deaf": float(signal.SIGINT in blocked)})

    storm = threading.Thread(target=interrupt)
    storm.start()
    try:
        given = [Trial(number, "arm", {"x": number}) for number in range(4)]
        outcomes = [outcome for _, outcome in Processes(2).run(evaluate, given)]
    finally:
        is_over.set()
        storm.join()
    assert [outcome.error for outcome in outcomes] == [None] * 4
    assert {outcome.metrics["deaf"] for outcome in outcomes} == {0.0}
    assert len(reached) >= 2
    assert "Traceback" not in capfd.readouterr().err
