"""A study with parameters of the index: its arms share what is built, and its budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

from tuner.backends.random import Random
from tuner.backends.tpe import Tpe
from tuner.core.trial import Params
from tuner.study.arms import Arm
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
