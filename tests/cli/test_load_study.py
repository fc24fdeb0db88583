"""What a run leaves is read back in Python, and a service is told what to use."""

from __future__ import annotations

import json
import shutil
import warnings

import numpy as np
import pytest
import yaml

import tuner as python
from tuner.core.files import read_lines
from tuner.core.run_files import SO_FAR
from tuner.evaluation.objective import Bounds, Objective
from tuner.tracking.registry import Registry


@pytest.fixture
def tuner(tuner_here):
    return tuner_here


def ran(tuner, *arguments):
    tuner("run", "config.yaml", "-q", *arguments)
    return tuner.runs()[-1]


def judged(run_dir, outcome, **more):
    path = run_dir / "best.yaml"
    record = {
        **yaml.safe_load(path.read_text()),
        "outcome": outcome,
        "verdict": "So be it.",
        **more,
    }
    path.write_text(yaml.safe_dump(record))
    return record["params"]


def test_a_run_names_the_queries_of_its_values(tuner):
    run_dir = ran(tuner)
    study = python.load_study(run_dir)
    values = study.per_query("recall@5")
    types = dict(
        read_lines(
            run_dir / "trials" / "queries.jsonl",
            lambda row: (row["query_id"], row["query_type"]),
            "query",
        )
    )
    assert values.index.tolist() == list(types)
    assert all(id_.endswith(query_type) for id_, query_type in types.items())
    assert not set(values.index) & set(study.compared().index)  # those were held out
    ranked = study.frame()["metrics.recall@5"].dropna()
    assert values.mean().to_dict() == pytest.approx(ranked.to_dict())


def test_a_study_to_deploy_tells_a_service_its_parameters(tuner):
    run_dir = ran(tuner)
    params = judged(run_dir, "deploy")
    assert python.best_params(run_dir) == params
    assert python.best_params(str(run_dir / "best.yaml")) == params
    assert python.params_by_query(run_dir)("how old is Lima?") == params


@pytest.mark.parametrize("outcome", ["keep the baseline", "not enough queries"])
def test_a_study_that_does_not_deploy_gives_no_advice(tuner, outcome):
    run_dir = ran(tuner)
    judged(run_dir, outcome)
    for ask in (python.best_params, python.params_by_query):
        with pytest.raises(python.InputError, match=rf"its verdict is '{outcome}' \(So be it\.\)"):
            ask(run_dir)


def test_what_meets_no_constraint_is_no_advice(tuner):
    run_dir = ran(tuner)
    judged(run_dir, None, is_feasible=False)
    with pytest.raises(python.InputError, match="constraint"):
        python.best_params(run_dir)


@pytest.mark.parametrize("outcome", ["keep the baseline", "not enough queries"])
def test_a_verdict_counts_where_its_file_is_gone(tuner, outcome):
    run_dir = ran(tuner)
    (run_dir / "best.yaml").unlink()
    journal = run_dir / "journal.jsonl"
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    (ended,) = (event for event in events if "verdict" in event)
    ended["verdict"] = {**(ended["verdict"] or {}), "outcome": outcome, "sentence": "So be it."}
    journal.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    with pytest.raises(python.InputError, match=rf"its verdict is '{outcome}' \(So be it\.\)"):
        python.best_params(run_dir)


def test_what_a_function_of_python_finds_outside_its_constraints_is_no_advice(tmp_path):
    python.tune(
        lambda params: {"recall": params["x"] / 4, "cost": 5.0},
        {"x": {"type": "integer", "low": 0, "high": 4}},
        backends="grid",
        trials=5,
        maximize=Objective({"recall": 1.0}, constraints={"cost": Bounds(max=1.0)}),
        run_dir=tmp_path / "mine",
        progress=False,
    )
    with pytest.raises(python.InputError, match="meets no constraint"):
        python.best_params(tmp_path / "mine")
    assert python.load_study(tmp_path / "mine").best_params == {"x": 4}


def test_an_interrupted_study_gives_no_advice_and_says_how_it_goes_on(tuner):
    run_dir = ran(tuner)
    path = run_dir / "best.yaml"
    path.write_text(SO_FAR + path.read_text())
    with pytest.raises(python.InputError, match=f"tuner resume {run_dir}"):
        python.best_params(run_dir)


def test_a_configuration_tells_what_to_give_instead(tuner):
    path = tuner.folder / "config.yaml"
    for ask in (python.best_params, python.params_by_query):
        with pytest.raises(python.InputError, match=r"is a configuration.*give the directory of"):
            ask(path)


def test_a_failed_study_gives_no_advice(tuner):
    source = tuner.folder / "word_overlap.py"
    fails = 'if params["top_k"] > 1:'
    source.write_text(source.read_text().replace('if params.get("mode") == "crash":', fails))
    tuner.edit("top_k: 10", "top_k: 1")
    tuner("run", "config.yaml", "-q", code=1)
    (run_dir,) = tuner.runs()
    assert not (run_dir / "best.yaml").exists()
    with pytest.raises(python.InputError, match="gives no advice: Failed"):
        python.best_params(run_dir)


def test_a_file_of_ones_own_is_taken_at_its_word(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("top_k: 10\nmode: no\n")
    assert python.best_params(path) == {"top_k": 10, "mode": "no"}
    path.write_text("top_k: [10]\n")
    with pytest.raises(python.InputError, match="top_k"):
        python.best_params(path)
    with pytest.raises(python.InputError, match="no such file"):
        python.best_params(tmp_path / "other.yaml")
    with pytest.raises(python.InputError, match="this folder holds no"):
        python.best_params(tmp_path)


def test_the_best_of_a_function_of_python_is_its_advice(tmp_path):
    space = {"x": {"type": "integer", "low": 0, "high": 4}}
    ended = python.tune(
        lambda params: -abs(params["x"] - 3.0),
        space,
        backends="grid",
        trials=5,
        run_dir=tmp_path / "mine",
        progress=False,
    )
    study = python.load_study(tmp_path / "mine")
    assert (
        python.best_params(tmp_path / "mine") == study.best_params == ended.best_params == {"x": 3}
    )
    table = ended.frame().set_index("trial")
    assert study.frame()[list(table)].equals(table)
    with pytest.raises(python.InputError, match="no values by query"):
        study.per_query()


POLICY = {
    "default": {"top_k": 5},
    "types": {"wide": {"top_k": 9}},
    "rule": {"start": {"wide": 0.0, "narrow": 0.5}, "weights": {"every": {"wide": 2.0}}},
}


def test_a_policy_gives_each_query_its_parameters(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(POLICY))
    choose = python.params_by_query(path)
    assert choose("name every river") == {"top_k": 9}
    assert choose("name a river") == {"top_k": 5}
    with pytest.raises(python.InputError, match="params_by_query"):
        python.best_params(path)
    path.write_text(yaml.safe_dump({**POLICY, "outcome": "keep the baseline"}))
    with pytest.raises(python.InputError, match="gives no advice"):
        python.params_by_query(path)
    path.write_text(yaml.safe_dump({**POLICY, "rule": {}}))
    with pytest.raises(python.InputError, match="not a policy"):
        python.params_by_query(path)


def by_feature(name):
    gains = {"start": {"wide": 0.0}, "weights": {"wide": {name: 1.0}}}
    features = {name: {"mean": 3.0, "deviation": 1.0}}
    return {**POLICY, "rule": {"features": features, "gains": gains}}


def test_a_policy_by_features_looks_at_the_words(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(by_feature("words")))
    choose = python.params_by_query(path)
    # Five words are two deviations above the mean of three, one word as many below.
    assert choose("which river is the longest") == {"top_k": 9}
    assert choose("rivers") == {"top_k": 5}
    path.write_text(yaml.safe_dump(by_feature("best_seed")))
    with pytest.warns(UserWarning, match="best_seed"):
        choose = python.params_by_query(path)
    assert choose("rivers") == {"top_k": 5}


@pytest.fixture
def tracked(tuner, fresh_store, written_by_a_thread, monkeypatch):
    shutil.copy(fresh_store, tuner.folder / "mlflow.db")
    uri = f"sqlite:///{tuner.folder}/mlflow.db"
    tuner.edit("tracking: null", f"tracking: {{uri: '{uri}', experiment: small}}")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tuner, uri


@pytest.mark.slow
def test_a_study_in_mlflow_is_the_same_without_its_run_directory(tracked, monkeypatch):
    tuner, uri = tracked
    run_dir = ran(tuner)
    here = python.load_study(run_dir)
    tables = [here.frame(), here.per_query("ndcg@10"), here.compared()]
    (version,) = Registry(uri, "small").versions()
    assert version.run_id
    shutil.rmtree(run_dir)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there = python.load_study(version.run_id)
    assert there.header == here.header
    assert there.verdict == here.verdict
    assert there.frame().equals(tables[0])
    assert there.per_query("ndcg@10").equals(tables[1])
    for name in ("change", "winner.recall@5", "baseline.retrieved"):
        assert there.compared().loc[tables[2].index, name].tolist() == tables[2][name].tolist()
    folder = there.run_dir
    assert folder.is_dir()
    del there
    assert not folder.exists()
    with pytest.raises(python.InputError, match="there is no run"):
        python.load_study("0" * 32, tracking=uri)


def test_a_registered_model_tells_its_parameters(tracked):
    tuner, uri = tracked
    run_dir = ran(tuner)
    record = yaml.safe_load((run_dir / "best.yaml").read_text())
    registry = Registry(uri, "small")
    (version,) = registry.versions()
    registry.set_alias("champion", version.version)
    assert python.best_params("models:/small@champion", tracking=uri) == record["params"]
    choose = python.params_by_query("models:/small@champion", tracking=uri)
    assert choose("how old is Lima?") == record["params"]
    registry.tag(version.version, {"tuner.outcome": "deploy"})
    for named in ("small@challenger", "small/1", "small/latest"):
        assert python.best_params(f"models:/{named}", tracking=uri) == record["params"]
    registry.tag(version.version, {"tuner.outcome": "not enough queries"})
    assert python.best_params("models:/small@champion", tracking=uri) == record["params"]
    for named in ("small@challenger", "small/1", "small/latest"):
        with pytest.raises(python.InputError, match="promote it"):
            python.best_params(f"models:/{named}", tracking=uri)
    registry.tag(version.version, {"tuner.outcome": "no verdict"})
    assert version.tags["tuner.is_feasible"] == "true"
    assert python.best_params("models:/small/1", tracking=uri) == record["params"]
    registry.tag(version.version, {"tuner.is_feasible": "false"})
    assert python.best_params("models:/small@champion", tracking=uri) == record["params"]
    with pytest.raises(python.InputError, match="meets no constraint"):
        python.best_params("models:/small/1", tracking=uri)
    with pytest.raises(python.InputError, match="did you mean 'champion'"):
        python.best_params("models:/small@champoin", tracking=uri)
    with pytest.raises(python.InputError, match="has no model 'large'"):
        python.best_params("models:/large@champion", tracking=uri)
    with pytest.raises(python.InputError, match="names no version"):
        python.best_params("models:/small", tracking=uri)


def test_values_by_query_that_are_too_many_for_mlflow_are_those_of_the_best(tuner, tmp_path):
    from tuner.tracking.mlflow.kept_values import pack_values, unpack_values

    run_dir = ran(tuner)
    packed, again = tmp_path / "trials.zip", tmp_path / "again.zip"
    assert pack_values(run_dir, packed, most=1_000)
    assert pack_values(run_dir, again, most=1_000)
    assert packed.read_bytes() == again.read_bytes()
    folder = tmp_path / "unpacked"
    folder.mkdir()
    unpack_values(packed, folder)
    kept = {int(path.stem) for path in (folder / "trials").glob("*.npz")}
    objectives = python.load_study(run_dir).frame()["objective"]
    assert 1 < len(kept) < len(objectives)
    assert 0 in kept  # the baseline
    assert objectives.idxmax() in kept
    left_out = objectives[[number for number in objectives.index if number not in kept]]
    assert np.nanmax(left_out) <= objectives[sorted(kept - {0})].min()
    packed.write_bytes(packed.read_bytes()[:-40])
    with pytest.raises(python.InputError, match="cannot be unpacked"):
        unpack_values(packed, folder)
