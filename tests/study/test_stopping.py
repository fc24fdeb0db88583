"""When a search ends before its trials are spent: by what is told, in its order, nothing else."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tuner.backends.random import Random
from tuner.backends.tpe import Tpe
from tuner.core.journal import ENDING, read_journal
from tuner.core.shown import counted
from tuner.core.space import Real, SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Outcome, Params, Trial, TrialState
from tuner.evaluation.objective import Objective
from tuner.execution.local.inline import Inline
from tuner.study.arms import Arm
from tuner.study.loop import run_study
from tuner.study.spec import StudySpec
from tuner.study.stopping import Stop, enough, likely_gain, results
from tuner.study.study import Study


def test_what_may_be_gained_grows_with_how_far_the_best_lie_apart_and_with_what_is_left() -> None:
    rest = np.random.default_rng(0).permutation(np.arange(119) / 1000)
    values = np.concatenate([[0.119], rest])  # nothing was gained since the first
    # The best 10 exceed the 11th by 0.0055 in the mean; 20 * 60 / 120 = 10
    assert likely_gain(values, 60) == pytest.approx(0.0055 * math.log(11))
    assert likely_gain(values * 2, 60) == pytest.approx(0.011 * math.log(11))
    assert likely_gain(values, 120) == pytest.approx(0.0055 * math.log(21))


@pytest.mark.parametrize(
    ("number", "place", "gained"), [(200, 101, 0.2), (200, 99, 0.0), (70, 11, 0.2)]
)
def test_what_was_gained_of_late_may_be_gained_again(
    number: int, place: int, gained: float
) -> None:
    values = 0.5 + np.arange(number)[::-1] * 1e-9
    values[place] = 0.7
    found = likely_gain(values, 1)
    # One that stands alone makes the best lie apart too: (0.2 / 10) log(1 + 20 / n)
    assert found == pytest.approx(max(gained, 0.02 * math.log1p(20 / number)), rel=1e-4)


def test_few_results_and_results_that_are_equal_tell_nothing() -> None:
    assert likely_gain(np.arange(60) / 1e9, 100) == math.inf
    assert likely_gain(np.tile([0.1, 0.2], 50), 100) == math.inf


def test_results_are_those_that_keep_the_constraints_each_point_once() -> None:
    def trial(number: int, x: int, objective: float, violation: float = 0.0) -> Trial:
        found = {"objective": objective, "violation": violation}
        return Trial(number, "a", {"x": x}, TrialState.FINISHED, **found)  # type: ignore[arg-type]

    failed = Trial(3, "a", {"x": 4}, TrialState.FAILED, error="no")
    trials = [trial(0, 1, 0.5), trial(1, 2, 0.9, 0.1), trial(2, 1, 0.5), failed, trial(4, 3, 0.2)]
    assert results(trials).tolist() == [0.5, 0.2]


SPACE = SearchSpace({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
OBJECTIVE = Objective({"score": 1.0}, {}, {})
TRIALS = 100


def evaluate(params: Params) -> Outcome:
    x, y = float(params["x"]), float(params["y"])  # type: ignore[arg-type]
    return Outcome({"score": 1 - (x - 0.7) ** 2 - 2 * (y - 0.2) ** 2})


def searched(path: Path, stop: Stop | None) -> list[Trial]:
    """Run a study of two arms to its end, or go on with the one that is there."""
    arms = [Arm("tpe", Tpe(40), 40), Arm("random", Random(60), 60)]
    records = tuple(ArmRecord(arm.name, arm.name, arm.budget) for arm in arms)
    space, objective = SPACE.to_mapping(), OBJECTIVE.to_mapping()
    header = StudyHeader("s", "s", 0.0, 3, records, space, objective)
    begin = Study.resume if path.exists() else Study.create
    study = begin(header, StudySpec(arms, SPACE, OBJECTIVE), path)
    state = run_study(study, Inline(), evaluate, limit=enough(study, stop))
    assert state == "finished"
    study.close()
    trials: list[Trial] = study.trials
    return trials


def known(trials: list[Trial]) -> list[tuple[int, str, object, object]]:
    return [(trial.number, trial.arm, trial.params, trial.objective) for trial in trials]


def test_a_search_ends_where_little_is_to_gain_and_the_journal_says_why(tmp_path: Path) -> None:
    whole = searched(tmp_path / "whole" / "journal.jsonl", None)
    path = tmp_path / "short" / "journal.jsonl"
    short = searched(path, Stop(0.1))
    assert 61 < len(short) < len(whole) == TRIALS
    assert known(short) == known(whole)[: len(short)]
    ending = [note for note in read_journal(path).notes if note["kind"] == ENDING][-1]
    left = counted(TRIALS - len(short), "more trial")
    assert ending["reason"] == f"{left} would hardly gain 0.1 (stop.gain_below)"
    # Resumed it ends at once, and where less is worth having it goes on.
    assert known(searched(path, Stop(0.1))) == known(short)
    assert known(searched(path, Stop(1e-6))) == known(whole)


def test_a_search_that_was_killed_ends_at_the_same_trial(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole = known(searched(path, Stop(0.1)))
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in (20, len(lines) // 2, len(lines) - 6):
        path.write_bytes(b"".join(lines[:kept]))
        assert known(searched(path, Stop(0.1))) == whole
