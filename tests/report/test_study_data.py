"""The columns that the page's script reads: of all trials, in a stable order, and no larger."""

from __future__ import annotations

import base64
import gzip
import json

from tuner.report.review import read_review
from tuner.report.study_data import study_data


def data_of(run_dir):
    return study_data(read_review(run_dir))


def test_each_trial_is_a_row_of_every_column(study):
    run_dir = study(failing=2, stopped=3)
    review, data = read_review(run_dir), data_of(run_dir)
    trials = review.trials
    assert {len(column) for column in data["columns"].values()} == {len(trials)}
    for row, trial in enumerate(trials):
        assert data["arms"][data["arm"][row]]["name"] == trial.arm
        assert data["states"][data["state"][row]] == trial.state.value
        assert data["columns"]["param:max_hops"][row] == trial.params["max_hops"]
        if trial.worth is None:
            assert data["columns"]["objective"][row] is None
            assert data["reasons"][data["reason"][row]] in (trial.error or "")
        else:
            assert abs(data["columns"]["objective"][row] - trial.worth) < 1e-5
            assert data["reason"][row] is None
    assert set(data["queries"]) == {str(t.number) for t in trials if t.race is not None}
    assert data["chosen"] == review.chosen.trial
    assert data["baseline"] == 0


def test_fields_come_in_the_order_of_the_space_and_costs_are_known_as_such(study):
    fields = data_of(study())["fields"]
    assert [field["key"] for field in fields] == [
        "objective",
        *(f"param:{name}" for name in ("graph_weight", "max_hops", "temperature", "mode")),
        *(f"metric:{name}" for name in ("recall@10", "ndcg@10", "context_tokens")),
        "metric:latency_p95_ms",
        "seconds",
    ]
    by_name = {field["name"]: field for field in fields}
    assert [name for name, field in by_name.items() if field.get("lower")] == [
        "context_tokens",
        "latency_p95_ms",
        "seconds",
    ]
    assert by_name["temperature"]["isLog"]
    assert by_name["mode"]["choices"] == ["plain", "graph"]
    # On a log scale a value lies at its power of ten: 0.01 to 1.
    assert (by_name["temperature"]["edges"][0], by_name["temperature"]["edges"][-1]) == (-2, 0)


def test_choices_that_python_holds_equal_are_told_apart(study):
    space = {
        "mode": {"type": "categorical", "choices": [1, True, "1", 1.5]},
        "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
    }
    run_dir = study(space=space, has_baseline=False)
    review, data = read_review(run_dir), data_of(run_dir)
    values = review.space.parameters["mode"].choices
    for trial, place in zip(review.trials, data["columns"]["param:mode"], strict=True):
        assert repr(values[place]) == repr(trial.params["mode"])


def test_a_baseline_outside_the_space_has_its_choice_too(study):
    space = {"mode": {"type": "categorical", "choices": ["graph", "none"]}}
    data = data_of(study(space=space))
    field = next(field for field in data["fields"] if field["key"] == "param:mode")
    assert field["choices"] == ["graph", "none", "plain"]
    assert field["choices"][data["columns"]["param:mode"][0]] == "plain"


def test_the_page_holds_the_data_packed(study, report):
    page = report(failing=1)
    (packed,) = [text for a, text in page.scripts if a.get("id") == "study"]
    assert json.loads(gzip.decompress(base64.b64decode(packed))) == data_of(study(failing=1))


def test_a_study_without_a_trial_has_no_data(study):
    assert data_of(study(arms=(), has_baseline=False, state=None)) == {}
