"""A study on a real Dask cluster: workers, scheduler and the study itself are killed mid-run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tuner
from tuner.core.errors import InputError
from tuner.core.trial import Outcome, Params, Trial

pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[dask]'")

from tuner.execution.cluster.dask import Dask

pytestmark = pytest.mark.slow

QUICK = Path(__file__).resolve().parents[2] / "configs" / "quick.yaml"
BACKENDS = ("--set", "backends=[{kind: random, trials: 6}, {kind: grid, trials: 6}]")
EVERY_X = set(range(24))


def test_a_worker_that_is_killed_costs_a_second_evaluation(project: Any, dask_cluster: Any) -> None:
    project.configure("dask", dask_cluster.address)
    project.order(6, "wait")
    workers = {dask_cluster.add_worker().pid for _ in range(2)}
    run = project.start("run", "far.yaml")
    project.wait(run, lambda: 6 in project.evaluations(), "trial 6")
    (victim,) = (pid for x, pid in project.evaluated() if x == 6)
    assert victim in workers
    os.kill(victim, signal.SIGKILL)
    project.wait(run, lambda: project.evaluations()[6] > 1, "a second evaluation of trial 6")
    (project.folder / "go").touch()
    said = project.end(run, 0)
    assert "evaluations run on Dask at tcp://127.0.0.1:" in said
    told = project.told()
    assert told.keys() == EVERY_X
    assert all(event["state"] == "finished" for event in told.values())
    evaluations = project.evaluations()
    assert evaluations.pop(6) == 2
    # Nothing else was under way on that worker, which has one thread.
    assert set(evaluations.values()) == {1}


def test_an_evaluation_that_kills_workers_is_one_failed_trial(
    project: Any, dask_cluster: Any
) -> None:
    project.configure("dask", dask_cluster.address)
    project.order(6, "kill the worker")
    project.order(9, "die")
    for _ in range(3):
        dask_cluster.add_worker("--nthreads", "2")
    project.end(project.start("run", "far.yaml"), 0)
    told = project.told()
    assert told.keys() == EVERY_X
    assert "two workers of the cluster were lost" in told.pop(6)["error"]
    # This one kills the process below the worker only: the worker saw it happen.
    assert told.pop(9)["error"].endswith("died while it evaluated this trial: exit code 7")
    assert [event["error"] for event in told.values()] == [None] * 22
    evaluations = project.evaluations()
    assert (evaluations[6], evaluations[9]) == (2, 1)
    # What shared a worker with the killer was evaluated a second time; only its first death
    # had company.
    assert max(evaluations.values()) == 2
    assert list(evaluations.values()).count(2) <= 2


def test_the_evaluate_function_reaches_a_worker_once(dask_address: str, relay: Any) -> None:
    """Count the bytes that leave this process, and how often the function is loaded."""
    tolls = relay(dask_address)
    evaluate = make_large(5_000_000)
    given = [Trial(number, "arm", {"x": number}) for number in range(60)]
    results = list(Dask(3, address=tolls.address).run(evaluate, given))
    assert [outcome.error for _, outcome in results] == [None] * 60
    loads = {outcome.metrics["pid"]: outcome.metrics["loads"] for _, outcome in results}
    assert len(loads) > 1
    assert set(loads.values()) == {1.0}
    assert 5_000_000 < tolls.sent_bytes < 6_000_000


def make_large(size: int) -> Callable[[Params], Outcome]:
    """Return a function that holds so many bytes, and counts how often it is unpickled."""
    import os

    from tuner.core.trial import Outcome

    class Large:
        def __init__(self) -> None:
            self.content = os.urandom(size)

        def __setstate__(self, state: Any) -> None:
            import builtins

            self.__dict__ |= state
            self.loads = builtins.__dict__.get("loads_of_large", 0) + 1  # of this process
            builtins.__dict__["loads_of_large"] = self.loads

        def __call__(self, params: Any) -> Outcome:
            assert len(self.content) == size
            return Outcome({"pid": float(os.getpid()), "loads": float(self.loads)})

    return Large()


def test_the_engine_on_a_cluster_finds_what_it_finds_here(project: Any, dask_cluster: Any) -> None:
    for _ in range(2):
        dask_cluster.add_worker()
    here = tune_engine(project, "execution.kind=inline")
    far = tune_engine(project, "execution.kind=dask", f"execution.address={dask_cluster.address}")
    assert far["execution"] == f"evaluations run on Dask at {dask_cluster.address}, 2 workers"
    assert far["trials"] == here["trials"]
    assert len(far["trials"]) == 13  # and the baseline


def can_hide_folders() -> bool:
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    return shutil.which("unshare") is not None and subprocess.run(command).returncode == 0


@pytest.mark.skipif(not can_hide_folders(), reason="needs the right to mount")
def test_an_index_is_built_here_and_fetched_by_a_machine_that_has_it_not(
    project: Any, dask_cluster: Any
) -> None:
    k1 = "bm25_k1: {type: categorical, choices: [0.5, 1.5, 2.5]}"
    space = f"space={{top_k: {{type: integer, low: 5, high: 9}}, {k1}}}"
    dask_cluster.add_far_worker(project.folder / "cache")
    baseline = "baseline={top_k: 7, bm25_k1: 1.5}"
    cluster = (f"execution.address={dask_cluster.address}", "execution.kind=dask")
    far = tune_engine(project, *cluster, space, baseline)
    here = tune_engine(project, "execution.kind=inline", space, baseline)
    assert far["trials"] == here["trials"]
    built = {path.parent for path in (project.folder / "cache" / "indexes").glob("*/manifest.json")}
    assert len(built) >= 2  # a search need not ask all three
    fetched = {
        path.parent for path in (project.folder / "far-tmp").glob("*/indexes-*/manifest.json")
    }
    assert len(fetched) >= len(built) - 1  # the first travels as the engine's own folders


def tune_engine(project: Any, *settings: str) -> dict[str, Any]:
    """Tune the built-in engine; return where evaluations ran, and each trial's metrics."""
    sets = [part for setting in settings for part in ("--set", setting)]
    run = project.start("run", str(QUICK), "--set", "tracking=null", *BACKENDS, *sets)
    said = project.end(run, 0)
    (journal,) = project.folder.glob("runs/*/journal.jsonl")
    told = project.events("told")
    journal.unlink()
    metrics = {json.dumps(e["params"], sort_keys=True): e["metrics"] for e in told}
    where = [line for line in said.splitlines() if line.startswith("evaluations run")]
    return {"execution": where[0], "trials": metrics}


def test_what_a_study_that_was_killed_left_on_the_workers_ends(
    project: Any, dask_cluster: Any
) -> None:
    project.configure("dask", dask_cluster.address)
    for x in range(24):
        project.order(x, "wait")
    worker = dask_cluster.add_worker("--nthreads", "2")
    run = project.start("run", "far.yaml")
    project.wait(run, lambda: len(project.evaluated()) == 2, "two trials")
    evaluators = project.evaluators()
    assert evaluators <= project.descendants(worker.pid)
    run.kill()
    project.wait_for(
        lambda: not evaluators & project.descendants(worker.pid), "for the evaluations' end"
    )
    assert worker.poll() is None


def test_tune_takes_a_cluster_as_a_configuration_does(dask_address: str) -> None:
    space = {"x": {"type": "integer", "low": 0, "high": 7}}
    here = os.getpid()

    def evaluate(params: Params) -> dict[str, float]:
        import os

        return {"objective": -abs(params["x"] - 5), "is_elsewhere": float(os.getpid() != here)}

    study = tuner.tune(
        evaluate,
        space,
        backends=["grid"],
        trials=8,
        maximize={"objective": 1.0},
        execution={"kind": "dask", "address": dask_address},
    )
    assert study.best_params == {"x": 5}
    assert {trial.metrics["is_elsewhere"] for trial in study.trials} == {1.0}


def test_tune_begins_nothing_without_a_scheduler(tmp_path: Path) -> None:
    with socket.socket() as nobody:  # bound, but it does not listen
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(InputError, match=r"execution\.address: no Dask scheduler answers"):
            tuner.tune(
                lambda params: 1.0,
                {"x": {"type": "integer", "low": 0, "high": 7}},
                execution={"kind": "dask", "address": address},
                run_dir=tmp_path / "run",
            )
    assert not (tmp_path / "run").exists()


def test_workers_that_cannot_do_it_are_left_out_and_named(project: Any, dask_cluster: Any) -> None:
    """One without the user's module, one without the tuner, and one that comes late."""
    project.configure("dask", dask_cluster.address)
    modules = project.folder / "modules"
    modules.mkdir()
    (modules / "by_name.py").write_text(
        "from far_away import FarAway\n"
        "def search(query, x):\n"
        "    class Asked:\n"
        "        id, text = 'q', query\n"
        "    return FarAway().retrieve([Asked], {'x': x}).ids(0)\n"
    )
    config = (project.folder / "far.yaml").read_text()
    (project.folder / "far.yaml").write_text(
        config.replace('{kind: "far_away:FarAway"}', "{kind: function, function: 'by_name:search'}")
    )
    elsewhere = project.folder.parent / "elsewhere"
    broken = elsewhere / "broken" / "tuner"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no tuner on this machine')\n")
    dask_cluster.add_worker("--name", "without-module", python_path=elsewhere, cwd=elsewhere)
    dask_cluster.add_worker("--name", "without-tuner", python_path=broken.parent, cwd=elsewhere)
    dask_cluster.wait_for_workers(2)
    both = f"{project.folder}{os.pathsep}{modules}"
    project.environment["PYTHONPATH"] += f"{os.pathsep}{modules}"
    run = project.start("run", "far.yaml")
    dask_cluster.add_worker("--name", "able", python_path=both)
    said = project.end(run, 0)
    told = project.told()
    assert told.keys() == EVERY_X
    assert [event["error"] for event in told.values()] == [None] * 24
    assert "no module 'by_name'" in said
    assert "graphrag-tuner cannot be imported there (ImportError: no tuner on this machine)" in said
    assert "install there what is installed here" in said
    lines = said.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("evaluations run"))
    assert first < next(place for place, line in enumerate(lines) if "best 0" in line)
