"""A study on a real Ray cluster: actors and the head node are killed mid-run."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tuner.core.errors import InputError, TunerError
from tuner.core.trial import Outcome, Params, Trial

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")

from tuner.execution.ray import Ray

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


def test_a_run_whose_head_node_dies_ends_in_words_and_can_be_resumed(
    project: Any, ray_cluster: Any, restart_ray: Callable[[Any], Any]
) -> None:
    project.configure("ray", ray_cluster.address)
    project.order(9, "wait")
    run = project.start("run", "far.yaml")
    project.wait(run, lambda: len(project.events("told")) >= 8, "eight results")
    ray_cluster.stop()
    said = project.end(run, 1)
    assert f"the Ray cluster at {ray_cluster.address} is gone" in said
    before = project.told()
    (project.folder / "go").touch()

    restart_ray(ray_cluster)
    project.end(project.start("resume", project.run_dir), 0)
    told = project.told()
    assert told.keys() == EVERY_X
    assert all(event["state"] == "finished" for event in told.values())
    assert {x: told[x] for x in before} == before
    assert all(project.evaluations()[x] == 1 for x in before)


def test_without_a_head_node_nothing_begins(project: Any) -> None:
    with socket.socket() as nobody:  # bound, but it does not listen
        nobody.bind(("127.0.0.1", 0))
        project.configure("ray", f"127.0.0.1:{nobody.getsockname()[1]}")
        said = project.end(project.start("run", "far.yaml"), 2)
    assert "far.yaml:9: execution.address: no Ray head node answers at 127.0.0.1:" in said
    assert "ray start --head" in said
    assert not (project.folder / "runs").exists()


@pytest.mark.parametrize("address", ["", "10.0.0.1", "ray://10.0.0.1:10001", "auto", 5, None])
def test_a_wrong_address_is_refused(address: Any) -> None:
    with pytest.raises(InputError, match="write host:6379") as caught:
        Ray(address=address)
    assert caught.value.problems[0].key == ("address",)


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


def test_a_function_that_no_worker_can_load_ends_the_run(ray_address: str) -> None:
    execution = Ray(2, address=ray_address)
    with pytest.raises(TunerError, match=r"ImportError: no module.*\(on .*install there"):
        list(execution.run(Unloadable(), [Trial(number, "arm", {}) for number in range(4)]))


class Unloadable:
    """Travels to another process, but cannot be unpickled there."""

    def __call__(self, params: Params) -> Outcome:
        return Outcome({"a": 1.0})

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise ImportError('no module named nowhere')",)
