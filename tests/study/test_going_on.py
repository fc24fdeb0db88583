"""A study that is given more trials, or further arms: it goes on as one that was long at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tuner.backends.base import Backend
from tuner.backends.grid import Grid
from tuner.core import registry
from tuner.core.journal import AMENDED, read_journal
from tuner.core.space import Integer, Real, SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Outcome, Params, Trial
from tuner.evaluation.objective import Objective
from tuner.study.arms import Arm
from tuner.study.spec import StudySpec
from tuner.study.study import Study

SPACE = SearchSpace({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0), "k": Integer(1, 9)})
OBJECTIVE = Objective({"score": 1.0}, {}, {})
# Model-based backends get a short start-up, so that few trials reach the model before the end.
SHORT = {"gp": {"initial": 4}, "tpe": {"initial": 4}}
SAME_WHEN_LONGER = [
    pytest.param(kind, marks=pytest.mark.slow if kind == "gp" else ())
    for kind in registry.kinds("backends")
]


def evaluate(params: Params) -> Outcome:
    x, y, k = (float(params[name]) for name in ("x", "y", "k"))  # type: ignore[arg-type]
    return Outcome({"score": 1 - (x - 0.7) ** 2 - 2 * (y - 0.2) ** 2 - 0.01 * (k - 4) ** 2})


def backend_of(name: str, trials: int) -> Backend:
    """Return the backend of an arm; ``even`` is a grid of at most so many points, and no more."""
    if name == "even":
        return Grid(trials, coarse=trials)
    backend: Backend = registry.load("backends", name)(trials, **SHORT.get(name, {}))
    return backend


def opened(path: Path, budgets: Mapping[str, int], **options: Any) -> Study:
    """Begin a study of these arms, or go on with the one that is there."""
    arms = [Arm(name, backend_of(name, trials), trials) for name, trials in budgets.items()]
    header = StudyHeader(
        study_id="s",
        name="s",
        created_at=0.0,
        seed=3,
        arms=tuple(ArmRecord(arm.name, arm.name, arm.budget) for arm in arms),
        space=SPACE.to_mapping(),
        objective=OBJECTIVE.to_mapping(),
        baseline={"x": 0.1, "y": 0.9, "k": 9},
    )
    spec = StudySpec(arms, SPACE, OBJECTIVE, **options)
    begin = Study.resume if path.exists() else Study.create
    return begin(header, spec, path)


def searched(path: Path, *stages: Mapping[str, int], **options: Any) -> list[Trial]:
    """Run a study to its end, then with the budgets of the next stage, and so on."""
    trials: list[Trial] = []
    for budgets in stages:
        study = opened(path, budgets, **options)
        while asked := study.ask(1):
            study.tell(asked[0], evaluate(asked[0].params))
        assert study.is_done
        trials = study.trials
        study.close()
    return trials


def found(trials: list[Trial]) -> list[tuple[int, str, Params, float | None]]:
    return [(trial.number, trial.arm, trial.params, trial.objective) for trial in trials]


def found_by(trials: list[Trial], arm: str) -> list[tuple[Params, float | None]]:
    return [(trial.params, trial.objective) for trial in trials if trial.arm == arm]


@pytest.mark.parametrize("kind", SAME_WHEN_LONGER)
def test_a_search_that_goes_on_is_one_that_was_long_at_once(tmp_path: Path, kind: str) -> None:
    longer = searched(tmp_path / "longer.jsonl", {kind: 7}, {kind: 10}, {kind: 14})
    assert found(longer) == found(searched(tmp_path / "long.jsonl", {kind: 14}))
    assert len(longer) == 1 + 14


def test_arms_that_are_given_the_same_more_go_on_as_one_study(tmp_path: Path) -> None:
    stages = {"tpe": 6, "random": 3}, {"tpe": 12, "random": 6}
    longer = searched(tmp_path / "longer.jsonl", *stages)
    assert found(longer) == found(searched(tmp_path / "long.jsonl", stages[1]))


@pytest.mark.parametrize(
    "stages",
    [
        ({"tpe": 6, "random": 6}, {"tpe": 12, "random": 6}),
        ({"tpe": 6, "random": 6}, {"tpe": 6, "random": 12}, {"tpe": 12, "random": 12}),
    ],
)
def test_each_arm_goes_on_as_it_would_have_whatever_the_others_are_given(
    tmp_path: Path, stages: tuple[dict[str, int], ...]
) -> None:
    longer = searched(tmp_path / "longer.jsonl", *stages)
    long = searched(tmp_path / "long.jsonl", stages[-1])
    assert found(longer) != found(long)  # the turns cannot be the same
    for arm, trials in stages[-1].items():
        assert found_by(longer, arm) == found_by(long, arm)
        assert len(found_by(longer, arm)) == trials


def test_a_further_arm_leaves_those_alone_that_were_there(tmp_path: Path) -> None:
    before = {"tpe": 9}
    both = searched(tmp_path / "both.jsonl", before, {**before, "random": 5})
    assert found(both)[:10] == found(searched(tmp_path / "alone.jsonl", before))
    assert [trial.arm for trial in both[10:]] == ["random"] * 5
    further = searched(tmp_path / "both.jsonl", {"tpe": 12, "random": 5})
    assert found_by(further, "tpe") == found_by(
        searched(tmp_path / "long.jsonl", {"tpe": 12}), "tpe"
    )


def test_a_study_that_was_interrupted_goes_on_with_more_too(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    study = opened(path, {"tpe": 8})
    for trial in study.ask(3):  # under way, and lost with the process
        assert not trial.is_told
    study.close()
    longer = searched(path, {"tpe": 12})
    assert found(longer) == found(searched(tmp_path / "long.jsonl", {"tpe": 12}))


def test_an_arm_that_had_nothing_left_is_asked_again(tmp_path: Path) -> None:
    # The finest even grid of at most 5 points has 4, and one of at most 12 has 12.
    path = tmp_path / "journal.jsonl"
    first = searched(path, {"even": 5, "random": 4})
    assert len(found_by(first, "even")) == 4
    second = searched(path, {"even": 12, "random": 8})
    assert len(found_by(second, "even")) == 12
    resumed = opened(path, {"even": 12, "random": 8})
    assert resumed.is_done
    resumed.close()


def test_a_resumed_study_knows_which_arms_had_nothing_left_in_which_stage(tmp_path: Path) -> None:
    budgets = {"even": 5, "random": 12}  # of the 5 the grid asks 4
    path = tmp_path / "journal.jsonl"
    searched(path, budgets)
    whole = searched(path, more := {"even": 5, "random": 16})
    lines = path.read_text().splitlines(keepends=True)
    told = [place for place, line in enumerate(lines) if '"event":"told"' in line]
    path.write_text("".join(lines[: told[-2] + 1]))
    assert found(searched(path, more)) == found(whole)


def test_the_journal_tells_what_the_study_was_given(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    searched(path, {"random": 3})
    begun = path.read_text()
    searched(path, {"random": 5})
    searched(path, {"random": 5, "tpe": 2})
    assert path.read_text().startswith(begun)  # nothing that stood there is another
    content = read_journal(path)
    assert content.header.arms == (ArmRecord("random", "random", 5), ArmRecord("tpe", "tpe", 2))
    assert [(stage.begin, [arm.budget for arm in stage.arms]) for stage in content.stages] == [
        (0, [3]),
        (4, [5]),
        (6, [5, 2]),
    ]
    notes = [note["arms"] for note in content.notes if note["kind"] == AMENDED]
    assert notes[0] == [{"name": "random", "kind": "random", "budget": 5}]
    assert len(notes) == 2
    # Resumed with what it has by now, it is not given anything.
    searched(path, {"random": 5, "tpe": 2})
    assert len([note for note in read_journal(path).notes if note["kind"] == AMENDED]) == 2
    assert json.loads(begun.splitlines()[0])["arms"][0]["budget"] == 3
