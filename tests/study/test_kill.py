"""Runs that are killed at random moments lose no told trial, repeat none, and go on as before."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tuner.core.errors import InputError
from tuner.core.journal import read_journal
from tuner.core.trial import Trial
from tuner.execution.local.inline import Inline
from tuner.study.loop import run_study

TRIALS = 60  # of each of two arms; some share their results
DEADLINE_S = 900.0


def told_trials(path: Path) -> dict[int, Trial]:
    """Read what is told so far; nothing before the run has written its first line."""
    try:
        trials = read_journal(path).trials.values()
    except InputError:
        return {}
    return {trial.number: trial for trial in trials if trial.is_told}


def evaluations(run_dir: Path) -> list[str]:
    file = run_dir / "evaluated"
    return file.read_text().splitlines() if file.exists() else []


def identity(trial: Trial) -> tuple[object, ...]:
    return (trial.number, trial.arm, trial.params, trial.state, trial.objective, trial.shared_from)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "workers", "kills"), [("inline", 1, 20), ("threads", 2, 6)])
def test_killed_runs_lose_and_repeat_nothing(
    tmp_path: Path,
    toy: ModuleType,
    spawn: Callable[..., object],
    kind: str,
    workers: int,
    kills: int,
) -> None:
    rng = random.Random(f"{kind}/{kills}")
    options = {"kind": kind, "workers": workers, "trials": TRIALS, "sleep_s": 0.01}
    deadline = time.monotonic() + DEADLINE_S
    killed = 0
    finished: list[Path] = []
    folder = 0
    # A run that ends before its kill arrives is a finished study; the next kill gets a new one.
    while killed < kills:
        assert time.monotonic() < deadline
        run_dir = tmp_path / str(folder)
        run_dir.mkdir(exist_ok=True)
        path = run_dir / "journal.jsonl"
        before = told_trials(path)
        done_before = {json.dumps(trial.params) for trial in before.values()}
        evaluated_before = len(evaluations(run_dir))
        process = spawn(**options, run_dir=str(run_dir))
        if rng.random() < 0.75:  # mostly while it evaluates, and at times while it starts
            target = len(before) + rng.randint(1, 12)
            while len(told_trials(path)) < target and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.002)
            time.sleep(rng.random() * 0.02)
        else:
            time.sleep(rng.random() * 0.3)
        process.kill()
        process.wait()
        after = told_trials(path)
        assert before.items() <= after.items()
        repeated = done_before.intersection(evaluations(run_dir)[evaluated_before:])
        assert not repeated
        if process.returncode == -signal.SIGKILL:
            killed += 1
        else:
            finished.append(run_dir)
            folder += 1
    run_dir = tmp_path / str(folder)
    process = spawn(**options, run_dir=str(run_dir))
    output, _ = process.communicate(timeout=DEADLINE_S)
    assert "state finished" in output
    finished.append(run_dir)

    whole = toy.create(None, TRIALS)
    run_study(whole, Inline(), toy.evaluate)
    for run_dir in finished:
        trials = list(read_journal(run_dir / "journal.jsonl").trials.values())
        assert list(map(identity, trials)) == list(map(identity, whole.trials))
        assert len(trials) == 2 * TRIALS + 1
        assert all(trial.is_told for trial in trials)
        params = [json.dumps(trial.params) for trial in trials]
        assert set(params) == set(evaluations(run_dir))
        # Only an evaluation that a kill cut off before it was told may be there twice.
        repeats = len(evaluations(run_dir)) - len(set(params))
        assert repeats <= kills * workers


@pytest.mark.slow
def test_a_crash_ends_one_run_and_then_costs_its_own_trial(
    tmp_path: Path, spawn: Callable[..., object]
) -> None:
    # The baseline, which is the first trial, has 2 hops.
    options = {"kind": "auto", "workers": 1, "trials": 8, "sleep_s": 0.0, "crash_at_hops": 2}
    path = tmp_path / "journal.jsonl"
    first = spawn(**options, run_dir=str(tmp_path))
    first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 9
    assert read_journal(path).suspects == {0}
    second = spawn(**options, run_dir=str(tmp_path))
    output, _ = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0, output
    assert "state finished" in output
    assert "one of them crashes its process" in output
    content = read_journal(path)
    assert content.suspects == frozenset()
    for trial in content.trials.values():
        crashed = "exit code 9" in (trial.error or "")
        assert crashed == (trial.params["hops"] == 2)
        assert trial.is_scored != crashed
