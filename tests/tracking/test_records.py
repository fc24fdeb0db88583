"""Names and values: what MLflow refuses or mangles never reaches it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.index_costs import index_costs
from tuner.core.study_record import Savings, StudyHeader
from tuner.core.trial import IndexUse, Trial, TrialState
from tuner.tracking.mlflow.records import (
    Curve,
    finished_study,
    in_order_of_telling,
    trial_content,
)
from tuner.tracking.mlflow.values import clean_name


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("recall@10", "recall_at_10"),
        ("graph weight", "graph weight"),
        ("weights[0]", "weights_0_"),
        ("a//b", "a__b"),
        ("../up", "_up"),
        ("", "_"),
        ("..", "_"),
        ("naïve", "na_ve"),
    ],
)
def test_names_are_made_acceptable(name, clean):
    assert clean_name(name) == clean


@given(st.text(max_size=300) | st.from_regex(r"[a-z./ @\[]{0,20}", fullmatch=True))
def test_every_clean_name_is_accepted_by_mlflow(name):
    from mlflow.utils.validation import (
        MAX_ENTITY_KEY_LENGTH,
        _validate_metric_name,
        _validate_param_name,
    )

    clean = clean_name(name)
    _validate_param_name(clean)
    _validate_metric_name(clean)
    assert len(clean) <= MAX_ENTITY_KEY_LENGTH
    assert clean_name(clean) == clean


def test_names_that_become_equal_stay_apart(study):
    params = {"a[0]": 1, "a(0)": 2, "a@": 3}
    content = trial_content(study.header, replace(study.trials[0], params=params))
    assert content.params == {"a_0_": "1", "a_0__2": "2", "a_at_": "3"}


@given(st.dictionaries(st.text(max_size=5), st.floats(), max_size=5))
def test_only_finite_metrics_are_logged_and_the_others_are_named(metrics):
    trial = Trial(0, "tpe", {}, TrialState.FINISHED, 0.5, metrics=metrics, told_at=1.0)
    header = StudyHeader("id", "name", 0.0, 1, (), {}, {})
    content = trial_content(header, trial)
    assert all(isfinite(value) for value in content.metrics.values())
    if all(isfinite(value) for value in metrics.values()):
        assert "tuner.not_finite" not in content.tags
        assert len(content.metrics) >= len(metrics)
    elif "objective" not in metrics and "violation" not in metrics:
        assert "tuner.not_finite" in content.tags


@given(st.lists(st.one_of(st.none(), st.floats(-10, 10)), max_size=20))
def test_best_so_far_is_the_running_maximum(objectives):
    curve = Curve()
    shown: list[tuple[int, float]] = []
    for number, objective in enumerate(objectives):
        state = TrialState.FAILED if objective is None else TrialState.FINISHED
        trial = Trial(number, "tpe", {}, state, objective, told_at=float(number))
        curve, points = curve.add(trial)
        shown += [(point.step, point.value) for point in points if point.name == "best_so_far"]
    expected = []
    for step in range(len(objectives)):
        seen = [value for value in objectives[: step + 1] if value is not None]
        if seen:
            expected.append((step, max(seen)))
    assert shown == expected


def test_running_trials_are_not_told(study):
    running = Trial(9, "tpe", {})
    assert in_order_of_telling([running, *reversed(study.trials)]) == study.trials


def test_a_tracker_is_made_without_importing_mlflow(tmp_path):
    script = (
        "import sys; from tuner.tracking.mlflow.tracker import Mlflow\n"
        "Mlflow('sqlite:///mlflow.db', 'x'); Mlflow.check('sqlite:///mlflow.db')\n"
        "assert not {'mlflow', 'sqlalchemy', 'requests'} & set(sys.modules), 'loaded'"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not list(Path(tmp_path).iterdir())


def test_numbers_are_logged_plainly_and_log_scaled_ones_twice(study):
    space = {
        "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
        "top_k": {"type": "integer", "low": 1, "high": 100, "scale": "log"},
        "deep": {"type": "real", "low": 0.1, "high": 1.0, "scale": "log", "when": {"mode": "a"}},
        "weight": {"type": "real", "low": 0.0, "high": 1.0},
    }
    params = {"temperature": 1e-05, "top_k": 100, "weight": np.float64(0.1), "on": True}
    header = replace(study.header, space=space)
    assert trial_content(header, replace(study.trials[0], params=params)).params == {
        "temperature": "1e-05",
        "top_k": "100",
        "weight": "0.1",
        "on": "True",
        "log10_temperature": "-5.0",
        "log10_top_k": "2.0",
    }


def test_what_racing_saved_is_a_metric_of_the_study(study):
    raced = replace(study.summary, racing=Savings(192, 1320))
    metrics = finished_study(study.header, raced, 1).metrics
    assert metrics["query_evaluations_saved"] == 192
    assert "query_evaluations_saved" not in finished_study(study.header, study.summary, 1).metrics


def test_the_winners_effect_size_is_a_metric_of_the_study(study):
    verdict = {"outcome": "deploy", "sentence": "Deploy.", "effect_size": 0.31}
    judged = replace(study.summary, verdict=verdict)
    assert finished_study(study.header, judged, 1).metrics["winner_effect_size"] == 0.31
    constant = replace(study.summary, verdict={**verdict, "effect_size": None})
    assert "winner_effect_size" not in finished_study(study.header, constant, 1).metrics


def test_a_trial_is_found_by_its_index_and_a_study_tells_what_all_cost(study):
    index = IndexUse("a1b2", 12.5, 42.0, 100, is_new=True)
    trial = Trial(3, "grid", {"k1": 0.9}, TrialState.FINISHED, objective=0.5, index=index)
    content = trial_content(study.header, trial)
    assert (content.tags["tuner.index"], content.tags["tuner.index_is_new"]) == ("a1b2", "true")
    assert (content.metrics["index_seconds"], content.metrics["index_mb"]) == (12.5, 42.0)
    summary = replace(study.summary, indexes=index_costs([trial]), index_wait_s=11.0)
    values = finished_study(study.header, summary, 0).metrics
    found = ("indexes", "indexes_built", "indexes_found", "indexes_failed", "index_seconds")
    assert [values[name] for name in found] == [1, 1, 0, 0, 12.5]
    assert (values["index_mb"], values["seconds_search_indexes"]) == (42.0, 11.0)
    assert "index_tokens" not in values
