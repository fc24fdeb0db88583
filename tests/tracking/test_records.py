"""Names, values, URIs: what MLflow refuses or mangles never reaches it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial, TrialState
from tuner.tracking._records import Curve, clean_name, in_order_of_telling, trial_content
from tuner.tracking._uri import absolute, without_password
from tuner.tracking.mlflow import Mlflow, ui_command


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


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:///mlflow.db",
        "http://localhost:5000",
        "https://mlflow.example.org/base",
        "postgresql+psycopg2://user:word@host/db",
        "databricks",
        "databricks://profile",
    ],
)
def test_usable_uris_pass(uri):
    Mlflow.check(uri)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("htp://localhost:5000", "unknown scheme 'htp'; did you mean 'http'?"),
        ("http://", "has no host; write http://host:5000"),
        ("mlruns", "is a folder, .*write sqlite:///mlflow.db"),
        ("", "is a folder, "),
        ("file:///tmp/mlruns", "is a folder, "),
        ("sqlite://", "names no file; write sqlite:///mlflow.db"),
        ("sqlite:///:memory:", "names no file"),
        ("http://[::1", "cannot be read"),
    ],
)
def test_other_uris_are_explained(uri, message):
    with pytest.raises(InputError, match=message):
        Mlflow.check(uri)


def test_a_directory_is_no_sqlite_store(tmp_path):
    with pytest.raises(InputError, match="is a directory; name a file in it"):
        Mlflow.check(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("name", ["", "  ", "x" * 501])
def test_experiment_names_are_checked(name):
    with pytest.raises(InputError, match="the MLflow experiment"):
        Mlflow.check("sqlite:///mlflow.db", name)


def test_sqlite_paths_become_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert absolute("sqlite:///a/mlflow.db?timeout=5") == (
        f"sqlite:///{tmp_path}/a/mlflow.db?timeout=5"
    )
    assert absolute("http://localhost:5000") == "http://localhost:5000"


def test_passwords_are_hidden():
    assert without_password("at http://a:b3@c/", "http://a:b3@c/") == "at http://a:***@c/"


def test_the_ui_serves_the_same_store(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    command = ui_command("sqlite:///mlflow.db", port=5050)
    assert command[:4] == [sys.executable, "-m", "mlflow", "ui"]
    assert command[command.index("--backend-store-uri") + 1] == f"sqlite:///{tmp_path}/mlflow.db"
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--port") + 1] == "5050"


def test_a_tracker_is_made_without_importing_mlflow(tmp_path):
    script = (
        "import sys; from tuner.tracking.mlflow import Mlflow\n"
        "Mlflow('sqlite:///mlflow.db', 'x'); Mlflow.check('sqlite:///mlflow.db')\n"
        "assert not {'mlflow', 'sqlalchemy', 'requests'} & set(sys.modules), 'loaded'"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not list(Path(tmp_path).iterdir())
