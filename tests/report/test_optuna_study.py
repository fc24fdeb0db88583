"""Studies in Optuna's form: every value, state, goal and constraint arrives as it was."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.core.space import Categorical, Integer, Parameter, Real, SearchSpace
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Race, Trial, TrialState
from tuner.report.optuna_study import optuna_study

PARAMETERS: dict[str, Parameter] = {
    "real": Real(-1.0, 1.0),
    "log": Real(0.001, 1.0, scale="log"),
    "step": Real(0.0, 1.0, step=0.3),
    "third": Real(0.0, 1.0, step=1 / 3),
    "fixed": Real(0.5, 0.5),
    "log_step": Real(0.1, 5.0, scale="log", step=0.7),
    "integer": Integer(-3, 10, step=4),
    "log_integer": Integer(1, 300, scale="log"),
    "log_integer_step": Integer(5, 300, scale="log", step=5),
    "wide_integer": Integer(-(2**52), 2**52),
    "choice": Categorical((None, "a", True, 2, 0.5)),
    "alike": Categorical((True, 1, 1.0, "1")),
    "only_a": Real(0.0, 1.0, when={"choice": ("a",)}),
}
SPACE = SearchSpace(PARAMETERS)
ASKED = datetime(2026, 11, 30, 2, 0).timestamp()


def header_of(space: SearchSpace, **objective: Any) -> StudyHeader:
    return StudyHeader(
        study_id="1f",
        name="night",
        created_at=ASKED,
        seed=3,
        arms=(ArmRecord("tpe", "tpe", 5),),
        space=space.to_mapping(),
        objective={"maximize": {"ndcg@10": 1.0}, **objective},
    )


def finished(number: int, params: Any, objective: float, **more: Any) -> Trial:
    state = more.pop("state", TrialState.FINISHED)
    times = {"asked_at": ASKED + number, "told_at": ASKED + number + 0.5}
    return Trial(number, "tpe", params, state, objective, **times, **more)


def random_trials(space: SearchSpace, count: int, objective: Any) -> list[Trial]:
    rng = np.random.default_rng(0)
    points = [space.sample(rng) for _ in range(count)]
    return [finished(number, point, objective(point)) for number, point in enumerate(points)]


@given(st.lists(st.floats(0, 1), min_size=len(PARAMETERS), max_size=len(PARAMETERS)))
def test_every_point_of_the_space_arrives(positions: list[float]) -> None:
    params = SPACE.decode(positions)
    study = optuna_study(header_of(SPACE), [finished(0, params, 0.25)])
    (trial,) = study.trials
    assert trial.params == {**params, "alike": json.dumps(params["alike"])}


def test_choices_that_python_holds_for_equal_stay_apart() -> None:
    space = SearchSpace({"alike": PARAMETERS["alike"]})
    shown = {}
    for choice in (True, 1, 1.0, "1"):
        study = optuna_study(header_of(space), [finished(0, {"alike": choice}, 0.5)])
        shown[repr(choice)] = study.trials[0].params["alike"]
    assert shown == {"True": "true", "1": "1", "1.0": "1.0", "'1'": '"1"'}


def test_steps_and_scales_are_those_of_the_space() -> None:
    study = optuna_study(header_of(SPACE), [finished(0, SPACE.decode([0.3] * 13), 0.25)])
    found = study.trials[0].distributions
    assert found["log"] == optuna.distributions.FloatDistribution(0.001, 1.0, log=True)
    # 0, .3, .6, .9: the end of the range is not one of its values.
    assert found["step"] == optuna.distributions.FloatDistribution(0.0, 0.9, step=0.3)
    assert found["third"] == optuna.distributions.FloatDistribution(0.0, 1.0)
    # -3, 1, 5, 9
    assert found["integer"] == optuna.distributions.IntDistribution(-3, 9, step=4)
    assert found["log_integer_step"] == optuna.distributions.IntDistribution(5, 300, log=True)
    assert found["choice"] == optuna.distributions.CategoricalDistribution(
        (None, "a", True, 2, 0.5)
    )


def test_a_conditional_parameter_is_there_only_where_it_is_active() -> None:
    space = SearchSpace({name: PARAMETERS[name] for name in ("choice", "only_a")})
    params = [{"choice": "a", "only_a": 0.5}, {"choice": None}]
    study = optuna_study(header_of(space), [finished(n, p, 0.1) for n, p in enumerate(params)])
    assert [trial.params for trial in study.trials] == params


def test_states_values_times_and_attributes() -> None:
    space = SearchSpace({"x": Real(0.0, 1.0)})
    race = Race(queries=12, estimate=0.3, low=0.2, high=0.4)
    trials = [
        finished(0, {"x": 0.5}, 0.7, metrics={"ndcg@10": 0.7, "mrr": math.nan}),
        finished(1, {"x": 0.5}, 0.7, state=TrialState.SHARED, shared_from=0),
        Trial(2, "gp", {"x": 0.1}, TrialState.FAILED, error="timeout", asked_at=ASKED),
        Trial(3, "gp", {"x": 0.2}, TrialState.RACED_OUT, asked_at=ASKED, race=race),
        Trial(4, "gp", {"x": 0.3}, asked_at=ASKED),
    ]
    study = optuna_study(header_of(space), trials)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "COMPLETE", "FAIL", "PRUNED", "RUNNING"]
    assert [trial.number for trial in study.trials] == [0, 1, 2, 3, 4]
    assert study.best_value == 0.7
    assert study.study_name == "night"
    assert study.metric_names == ["objective"]
    assert study.user_attrs["study_id"] == "1f"
    first, shared, failed, raced, running = study.trials
    assert first.user_attrs == {"trial": 0, "arm": "tpe", "metrics.ndcg@10": 0.7}
    assert first.datetime_start == datetime(2026, 11, 30, 2, 0)
    assert first.duration is not None
    assert first.duration.total_seconds() == 0.5
    assert shared.user_attrs["shared_from"] == 0
    assert failed.user_attrs["error"] == "timeout"
    assert raced.intermediate_values == {12: 0.3}
    assert raced.user_attrs["estimate"] == 0.3
    assert running.datetime_complete is None


def test_what_breaks_a_constraint_is_not_the_best() -> None:
    space = SearchSpace({"x": Real(0.0, 1.0)})
    trials = [
        finished(0, {"x": 0.9}, 0.9, violation=0.5),
        finished(1, {"x": 0.5}, 0.5),
    ]
    bounded = {"constraints": {"latency_ms": {"min": None, "max": 5.0}}}
    study = optuna_study(header_of(space, **bounded), trials)
    assert study.best_trial.number == 1


def test_a_baseline_outside_the_space_keeps_its_score() -> None:
    space = SearchSpace({"x": Real(0.0, 1.0), "k": Integer(1, 9)})
    study = optuna_study(header_of(space), [finished(0, {"x": 7.0, "k": 3, "other": "a"}, 0.4)])
    (trial,) = study.trials
    assert trial.params == {"k": 3}
    assert trial.user_attrs["params.x"] == 7.0
    assert trial.user_attrs["params.other"] == "a"
    assert trial.value == 0.4


def test_several_goals_give_a_front_as_measured() -> None:
    space = SearchSpace({"x": Real(0.0, 1.0)})
    measured = [(0.7, 900.0), (0.6, 300.0), (0.5, 400.0)]
    trials = [
        finished(n, {"x": 0.1 * n}, score, metrics={"ndcg@10": score, "context_tokens": tokens})
        for n, (score, tokens) in enumerate(measured)
    ]
    header = header_of(space, pareto=["composite", "context_tokens"])
    study = optuna_study(header, trials)
    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert [tuple(trial.values) for trial in study.trials] == measured
    # The third is worse than the second in both.
    assert sorted(trial.number for trial in study.best_trials) == [0, 1]
    assert study.metric_names == ["composite", "context_tokens"]


@pytest.mark.parametrize("storage", ["sqlite:///{}/study.db", "{}/study.log"])
def test_a_storage_keeps_it_and_refuses_a_second_of_that_name(storage: str, tmp_path: Path) -> None:
    url = storage.format(tmp_path)
    trials = random_trials(SPACE, 5, lambda params: params["real"])
    held = optuna_study(header_of(SPACE), trials, storage=url)
    assert len(held.trials) == 5
    assert held.trials[3].params["log"] == pytest.approx(trials[3].params["log"])
    with pytest.raises(InputError, match="holds a study called 'night' already"):
        optuna_study(header_of(SPACE), trials, storage=url)
    other = optuna_study(header_of(SPACE), trials, storage=url, name="another")
    assert other.study_name == "another"


@pytest.mark.parametrize(
    "storage", ["sqlite:////nowhere/at/all/study.db", "nothing://x", "/nowhere/at/all/study.log"]
)
def test_a_storage_that_cannot_be_opened_is_said(storage: str) -> None:
    with pytest.raises(InputError, match="cannot open the storage"):
        optuna_study(header_of(SPACE), [], storage=storage)
