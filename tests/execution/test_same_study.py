"""The same seed, the same study: wherever it runs, however long trials take, killed and resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.backends.grid import Grid
from tuner.backends.random import Random
from tuner.backends.tpe import Tpe
from tuner.core import registry
from tuner.core.journal import read_journal, read_per_query
from tuner.core.space import SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.evaluation.objective import Objective
from tuner.study.arms import Arm
from tuner.study.loop import Event, run_study
from tuner.study.spec import StudySpec
from tuner.study.study import Study

SPACE = SearchSpace.from_mapping(
    {
        "hops": {"type": "integer", "low": 1, "high": 4},
        "weight": {"type": "real", "low": 0.0, "high": 1.0, "step": 0.05},
    }
)
OBJECTIVE = Objective({"score": 1.0}, {}, {})
# So few to start from that most suggestions depend on results; 4 x 21 points, so that some are
# equal; and a failure now and then.
ARMS = [
    Arm("tpe", Tpe(14, initial=3), 14),
    Arm("other tpe", Tpe(8, initial=2), 8),
    Arm("grid", Grid(12), 12),
    Arm("random", Random(8), 8),
]
HEADER = StudyHeader(
    study_id="same",
    name="same",
    created_at=0.0,
    seed=11,
    arms=tuple(ArmRecord(arm.name, "toy", arm.budget) for arm in ARMS),
    space=SPACE.to_mapping(),
    objective=OBJECTIVE.to_mapping(),
    baseline={"hops": 2, "weight": 0.5},
    ahead=3,
)
KINDS = registry.kinds("execution")


def by_query(per_query: Any) -> Any:
    return per_query["score"]


WAYS: dict[str, dict[str, Any]] = {
    "own": {},
    "racing, arms see all": {"arms_see": "all", "by_query": by_query},
}


def make_evaluate(longest_s: float, folder: str = "") -> Callable[..., Any]:
    """Make an evaluation that takes a while, which nothing decides but chance.

    A function within a function, so that it travels to workers by value. One that has a rival stops
    where it is far behind.
    """
    import random
    import time

    import numpy as np

    from tuner.core.trial import Outcome, Race

    def evaluate(params: Any, rival: Any = None) -> Outcome:
        time.sleep(longest_s * random.SystemRandom().random() ** 3)
        if params["hops"] == 3 and params["weight"] > 0.8:
            raise ValueError("too much")
        score = 0.1 * params["hops"] - (params["weight"] - 0.63) ** 2
        values = score + np.array([-0.1, 0.1])
        behind = 0.0 if rival is None else float(np.mean(rival - values))
        race = Race(1, score, score - 0.1, score + 0.1) if behind > 0.05 else None
        return Outcome({"score": score}, {"score": values}, race=race)

    return evaluate


@dataclass
class Killed(Exception):
    """What a kill leaves is what is left where this is raised: nothing is told from then on."""


def study_at(path: Path, way: str) -> Study:
    begin = Study.resume if path.exists() else Study.create
    return begin(HEADER, StudySpec(ARMS, SPACE, OBJECTIVE, **WAYS[way]), path)


def run(path: Path, way: str, execution: Any, *, longest_s: float, kill_after: int = 10**9) -> str:
    """Run or resume the study at a path; return its state, or "killed"."""
    told = 0

    def count(event: Event) -> None:
        nonlocal told
        told += event.kind == "told"
        if told == kill_after:
            raise Killed

    study = study_at(path, way)
    try:
        return run_study(study, execution, make_evaluate(longest_s), on_event=count)
    except Killed:
        return "killed"
    finally:
        study.close()


def recorded(path: Path) -> list[dict[str, Any]]:
    """Return all that a journal says of each trial, and its values by query, but for times."""
    found = []
    for trial in read_journal(path).trials.values():
        record = json.loads(json.dumps(trial.to_record()))
        for name in ("asked_at", "told_at", "seconds"):
            del record[name]
        values = read_per_query(path, trial.number)
        record["per_query"] = {name: np.asarray(array).tolist() for name, array in values.items()}
        found.append(record)
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """What a study's journal holds after one worker in this process, which waits for nothing."""
    known: dict[str, list[dict[str, Any]]] = {}

    def get(way: str) -> list[dict[str, Any]]:
        if way not in known:
            path = tmp_path_factory.mktemp("expected") / "journal.jsonl"
            inline = registry.load("execution", "inline")()
            assert run(path, way, inline, longest_s=0.0) == "finished"
            known[way] = recorded(path)
        return known[way]

    return get


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Callable[[str, int], Any]:
    def build(kind: str, workers: int) -> Any:
        options = {}
        if kind in ("dask", "ray"):
            options["address"] = request.getfixturevalue(f"{kind}_address")
        return registry.load("execution", kind)(workers=workers, **options)

    return build


def test_the_study_is_worth_repeating(expected: Callable[[str], Any]) -> None:
    # That it would notice: trials that learn, that fail, that share, and that are stopped.
    own, all_ = (expected(way) for way in WAYS)
    # The baseline and 42; arms that see all leave the grid four points fewer.
    assert (len(own), len(all_)) == (43, 39)
    assert {record["state"] for record in own} == {"finished", "failed", "shared"}
    assert "raced_out" in {record["state"] for record in all_}
    assert [record["params"] for record in own] != [record["params"] for record in all_]


# A cluster is slow to start and does no more than the others.
CASES = [
    pytest.param(kind, workers, way, marks=pytest.mark.slow if kind in ("dask", "ray") else ())
    for kind in KINDS
    for workers in (1, 4)
    for way in WAYS
    if kind not in ("dask", "ray") or (workers == 4 and way != "own")
]


@pytest.mark.parametrize(("kind", "workers", "way"), CASES)
def test_the_same_seed_gives_the_same_study_wherever_it_runs(
    tmp_path: Path, expected: Any, make: Any, kind: str, workers: int, way: str
) -> None:
    path = tmp_path / "journal.jsonl"
    # At 0.1 s some are long enough for auto to use workers, and some are not.
    longest_s = 0.1 if workers == 4 else 0.01
    assert run(path, way, make(kind, workers), longest_s=longest_s) == "finished"
    assert recorded(path) == expected(way)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "way"), [("inline", "own"), ("threads", "own"), ("processes", "racing, arms see all")]
)
def test_a_study_that_is_killed_again_and_again_is_the_same_in_the_end(
    tmp_path: Path, expected: Any, make: Any, kind: str, way: str
) -> None:
    path = tmp_path / "journal.jsonl"
    states = [
        run(path, way, make(kind, workers), longest_s=0.03, kill_after=kill_after)
        for workers, kill_after in ((4, 1), (4, 9), (2, 11), (1, 2), (4, 10**9))
    ]
    assert states == ["killed"] * 4 + ["finished"]
    assert recorded(path) == expected(way)
