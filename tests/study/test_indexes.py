"""A study with parameters of the index: its arms share what is built, and its budget."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tuner.backends.grid import Grid
from tuner.backends.random import Random
from tuner.backends.tpe import Tpe
from tuner.core.errors import InputError
from tuner.core.trial import Params
from tuner.study.arms import Arm, Fixed
from tuner.study.index_shares import shared_out
from tuner.study.spec import StudySpec
from tuner.study.study import Study


def spec(toy: ModuleType, most: int | None) -> StudySpec:
    arms = [Arm("tpe", Tpe(15, initial=3), 15), Arm("random", Random(15), 15)]
    return StudySpec(arms, toy.SPACE.with_index(["hops"]), toy.OBJECTIVE, most_indexes=most)


def asked(study: Study, toy: ModuleType, trials: int = 100) -> list[Params]:
    while len(study.trials) < trials and (ready := study.ask(1)):
        study.tell(ready[0], toy.evaluate(ready[0].params))
    return [trial.params for trial in study.trials]


def test_arms_build_together_no_more_indexes_than_the_budget(toy: ModuleType) -> None:
    params = asked(Study.create(toy.header(15), spec(toy, 3)), toy)
    assert len(params) == 31
    assert params[0] == toy.BASELINE
    assert len({one["hops"] for one in params}) == 3


def test_the_baselines_index_is_searched_first(toy: ModuleType) -> None:
    params = asked(Study.create(toy.header(15), spec(toy, None)), toy)
    assert [one["hops"] for one in params[:5]] == [toy.BASELINE["hops"]] * 5


def test_a_resumed_study_asks_the_same_indexes(toy: ModuleType, tmp_path: Path) -> None:
    whole = asked(Study.create(toy.header(15), spec(toy, 3)), toy)
    path = tmp_path / "journal.jsonl"
    begun = Study.create(toy.header(15), spec(toy, 3), path)
    asked(begun, toy, 13)
    begun.close()
    header = replace(toy.header(15))
    assert asked(Study.resume(header, spec(toy, 3), path), toy) == whole


def test_another_budget_of_indexes_is_another_study(toy: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    header = replace(toy.header(15), index={"budget": 3})
    Study.create(header, spec(toy, 3), path).close()
    with pytest.raises(InputError, match=r"index\.budget was 3 and is 4 now"):
        Study.resume(replace(header, index={"budget": 4}), spec(toy, 4), path)
    with pytest.raises(InputError, match=r"index\.budget was 3 and is null now"):
        Study.resume(replace(header, index={"budget": None}), spec(toy, None), path)


def test_a_journal_of_before_the_budget_was_written_resumes(
    toy: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"
    Study.create(toy.header(15), spec(toy, 3), path).close()
    first, *others = path.read_text().splitlines()
    old = json.loads(first)
    del old["index"]
    path.write_text("\n".join([json.dumps(old), *others, ""]))
    now = replace(toy.header(15), index={"budget": 3})
    Study.resume(now, spec(toy, 3), path).close()


def test_no_arm_uses_up_the_indexes_of_the_others(toy: ModuleType) -> None:
    def spent(*arms: Arm, most: int) -> dict[str, int]:
        study_spec = StudySpec(arms, toy.SPACE.with_index(["hops"]), toy.OBJECTIVE)
        study = Study.create(toy.header(15), replace(study_spec, most_indexes=most))
        asked(study, toy)
        first: dict[object, str] = {}
        for trial in study.trials:
            first.setdefault(trial.params["hops"], trial.arm)
        return Counter(first.values())

    grid = Arm("grid", Grid(30, levels={"weight": [0.0, 0.3, 0.6]}, edges=True), 30)
    tpe = Arm("tpe", Tpe(30, initial=3), 30)
    # Two beside the baseline's: one for each arm, although the grid alone would use both.
    assert spent(grid, tpe, most=3) == {"baseline": 1, "grid": 1, "tpe": 1}
    assert spent(grid, most=3) == {"baseline": 1, "grid": 2}


def test_starting_points_come_first_and_a_smaller_arm_gets_less(toy: ModuleType) -> None:
    space = toy.SPACE.with_index(["hops"])
    given = Arm("given", Fixed(({"hops": 1, "weight": 0.0}, {"hops": 1, "weight": 0.1})), 2)
    arms = shared_out([given, Arm("random", Random(40), 40), Arm("few", Random(10), 10)], space, 6)
    # random: 40 / 6 trials an index, and one where it begins in between; few: 10 of 50 trials.
    assert [arm.new_indexes for arm in arms] == [None, 4, 1]
