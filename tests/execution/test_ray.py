"""A study on a real Ray cluster: actors and the head node are killed mid-run."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tuner.core.errors import InputError
from tuner.core.trial import Outcome, Params, Trial

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")

from tuner.execution.cluster.ray import Ray

pytestmark = pytest.mark.slow

EVERY_X = set(range(24))


def test_actors_that_are_killed_cost_a_second_evaluation_of_their_trial(
    project: Any, ray_address: str
) -> None:
    project.configure("ray", ray_address)
    project.order(6, "kill the worker")
    project.order(9, "die")
    project.order(12, "wait")
    run = project.start("run", "far.yaml")
    project.wait(run, lambda: 12 in project.evaluations(), "trial 12")
    (victim,) = (pid for x, pid in project.evaluated() if x == 12)
    os.kill(victim, signal.SIGKILL)
    project.wait(run, lambda: project.evaluations()[12] > 1, "a second evaluation of trial 12")
    (project.folder / "go").touch()
    said = project.end(run, 0)
    assert f"evaluations run on Ray at {ray_address}, 3 workers" in said
    assert "raylet" not in said  # of what Ray says itself
    told = project.told()
    assert told.keys() == EVERY_X
    assert "two workers of the cluster were lost" in told.pop(6)["error"]
    # This one kills the process below the actor only: the actor saw it happen.
    assert told.pop(9)["error"].endswith("died while it evaluated this trial: exit code 7")
    assert [event["error"] for event in told.values()] == [None] * 22
    evaluations = project.evaluations()
    assert (evaluations.pop(6), evaluations.pop(12)) == (2, 2)
    # Every evaluation has an actor of its own, so that nobody dies with another.
    assert set(evaluations.values()) == {1}


def test_another_cluster_than_the_one_that_was_joined_is_refused(ray_address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        execution = Ray(address=f"127.0.0.1:{other.getsockname()[1]}")
        with pytest.raises(InputError, match="this process has joined the Ray cluster at"):
            list(execution.run(make_counting(), [Trial(0, "arm", {})]))


def test_the_evaluate_function_is_loaded_once_by_each_process(ray_address: str) -> None:
    given = [Trial(number, "arm", {}) for number in range(30)]
    results = list(Ray(2, address=ray_address).run(make_counting(), given))
    assert [outcome.error for _, outcome in results] == [None] * 30
    loads = {outcome.metrics["pid"]: outcome.metrics["loads"] for _, outcome in results}
    assert len(loads) == 2
    assert set(loads.values()) == {1.0}


def make_counting() -> Callable[[Params], Outcome]:
    """Return a function that counts how often it is unpickled in a process."""
    import os
    import time

    from tuner.core.trial import Outcome

    class Counting:
        def __init__(self) -> None:
            self.loads = 0

        def __setstate__(self, state: Any) -> None:
            import builtins

            self.loads = builtins.__dict__.get("loads_of_counting", 0) + 1
            builtins.__dict__["loads_of_counting"] = self.loads

        def __call__(self, params: Any) -> Outcome:
            time.sleep(0.05)
            return Outcome({"pid": float(os.getpid()), "loads": float(self.loads)})

    return Counting()
