"""A worker process that dies in the middle of what it sends back costs its trial, and no time."""

from __future__ import annotations

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
