"""A new configuration becomes a version of a registered model; aliases say which is used."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tuner.core.errors import InputError, TunerError
from tuner.tracking.mlflow.tracker import Mlflow
from tuner.tracking.registry import CHALLENGER, CHAMPION, Registry, model_name

NAME = "graphrag-atlas"


def ended(study, uri, **options):
    """Show a study that has ended, and return what sync says of it."""
    tracker = Mlflow(uri, "atlas", in_thread=True, **options)
    return tracker.sync(study.header, study.trials, study.summary, study.run_dir)


def with_winner(study, number):
    """Return the study with another of its trials as the winner, in best.yaml too."""
    trial = study.trials[number]
    winner = replace(study.summary.best, trial=number, params=trial.params)
    (study.run_dir / "best.yaml").write_text(json.dumps({"params": trial.params}))
    return replace(study, summary=replace(study.summary, winner=winner))


def test_a_finished_study_makes_one_version_and_it_is_the_challenger(study, store_uri):
    verdict = {"outcome": "deploy", "sentence": "Deploy: it is better."}
    study = replace(study, summary=replace(study.summary, verdict=verdict))
    status = ended(study, store_uri)
    assert status.error is None
    registry = Registry(store_uri, NAME)
    (version,) = registry.versions()
    assert (version.name, version.version, version.aliases) == (NAME, 1, (CHALLENGER,))
    assert version.params == {"max_hops": 2}
    assert version.study_id == study.header.study_id
    assert version.tags["tuner.outcome"] == "deploy"
    assert version.tags["tuner.params"] == '{"max_hops": 2}'
    assert version.run_id is not None
    assert registry.get(CHALLENGER) == registry.get(1) == registry.get("1") == version
    assert registry.get(CHAMPION) is None
    assert registry.get(2) is None

    again = ended(study, store_uri)
    assert (again.added, again.repaired, again.error) == (0, 0, None)
    assert registry.versions() == [version]


def test_the_live_writer_makes_it_too(study, store_uri):
    said: list[str] = []
    tracker = Mlflow(store_uri, "atlas", warn=said.append)
    tracker.start(study.header, study.run_dir)
    tracker.finish(study.summary)
    (version,) = Registry(store_uri, NAME).versions()
    assert version.run_id == tracker.run_id
    assert version.tags["tuner.outcome"] == "no verdict"
    assert said == []


@pytest.mark.slow
def test_another_winner_after_a_resume_makes_a_new_version_and_the_old_one_stays(study, store_uri):
    ended(with_winner(study, 0), store_uri)
    ended(with_winner(study, 5), store_uri)
    registry = Registry(store_uri, NAME)
    newest, oldest = registry.versions()
    assert [newest.version, oldest.version] == [2, 1]
    assert [newest.aliases, oldest.aliases] == [(CHALLENGER,), ()]
    assert [newest.params, oldest.params] == [study.trials[5].params, study.trials[0].params]
    files = MlflowClient(store_uri).list_artifacts(newest.run_id, "model")
    assert [file.path for file in files] == ["model/trial-0", "model/trial-5"]

    ended(with_winner(study, 0), store_uri)  # and back: no new configuration, so no new version
    assert [version.params["max_hops"] for version in registry.versions()] == [2, 0]
    assert [version.aliases for version in registry.versions()] == [(), (CHALLENGER,)]


def begun_later(study, **changes):
    header = replace(study.header, study_id="later", created_at=study.header.created_at + 60.0)
    return replace(study, header=replace(header, **changes))


def test_an_older_study_that_is_synced_does_not_take_the_challenger_back(study, store_uri):
    ended(with_winner(study, 0), store_uri)
    ended(with_winner(begun_later(study), 5), store_uri)
    ended(with_winner(study, 0), store_uri)
    challenger = Registry(store_uri, NAME).get(CHALLENGER)
    assert challenger is not None
    assert (challenger.version, challenger.study_id) == (2, "later")


def test_a_study_that_is_synced_late_does_not_take_the_challenger(study, store_uri):
    ended(with_winner(begun_later(study), 5), store_uri)
    ended(with_winner(study, 0), store_uri)
    newest, oldest = Registry(store_uri, NAME).versions()
    assert [newest.params, oldest.params] == [study.trials[0].params, study.trials[5].params]
    assert [newest.aliases, oldest.aliases] == [(), (CHALLENGER,)]


def test_a_configuration_that_is_found_again_has_one_version_with_what_was_said_last(
    study, store_uri
):
    registry = Registry(store_uri, NAME)
    few = {"outcome": "not enough queries", "sentence": "Not enough queries: it may be chance."}
    deploy = {"outcome": "deploy", "sentence": "Deploy: it is better."}
    later = begun_later(study)
    for one, verdict in ((study, few), (later, deploy), (study, few)):
        ended(replace(one, summary=replace(one.summary, verdict=verdict)), store_uri)
    (version,) = registry.versions()
    assert (version.study_id, version.outcome) == ("later", "deploy")
    assert version.description == deploy["sentence"]
    assert version.aliases == (CHALLENGER,)
    for study_id in (study.header.study_id, "later"):
        assert registry.of_study(study_id, {"max_hops": 2}) == version
    assert registry.of_study(study.header.study_id, {"max_hops": 3}) is None

    ended(begun_later(study, config={"retriever": {"kind": "other"}}), store_uri)
    assert [one.params for one in registry.versions()] == 2 * [{"max_hops": 2}]


def test_a_study_that_keeps_its_baseline_makes_none(study, store_uri):
    ended(with_winner(study, 0), store_uri)
    kept = with_winner(begun_later(study), 5)
    as_baseline = replace(kept, summary=replace(kept.summary, baseline=kept.summary.winner))
    assert ended(as_baseline, store_uri).error is None
    # The baseline is whole, the trial has what the space has: with what is fixed they are equal.
    whole = {**kept.summary.winner.params, "top_k": 10}
    (kept.run_dir / "best.yaml").write_text(json.dumps({"params": whole}))
    as_baseline = replace(kept, header=replace(kept.header, baseline=whole))
    assert ended(as_baseline, store_uri).error is None
    (version,) = Registry(store_uri, NAME).versions()
    assert (version.params, version.aliases) == (study.trials[0].params, (CHALLENGER,))
    runs = MlflowClient(store_uri).search_runs(["1"], "tags.`tuner.study_id` = 'later'")
    kinds = {run.data.tags["tuner.role"]: run.info.run_id for run in runs}
    assert MlflowClient(store_uri).list_artifacts(kinds["study"], "model") == []


@pytest.mark.parametrize("state", ["interrupted", "failed"])
def test_a_study_that_has_not_ended_well_makes_none(study, store_uri, summarize, state):
    ended(replace(study, summary=summarize(study.trials, state)), store_uri)
    assert Registry(store_uri, NAME).versions() == []


def test_a_study_without_a_best_makes_none(study, store_uri, summarize):
    failed = [study.trials[2]]
    (study.run_dir / "best.yaml").unlink()
    ended(replace(study, trials=failed, summary=summarize(failed)), store_uri)
    assert Registry(store_uri, NAME).versions() == []


def test_a_version_lost_between_its_making_and_its_alias_is_repaired(study, store_uri):
    ended(study, store_uri)
    MlflowClient(store_uri).delete_registered_model_alias(NAME, CHALLENGER)
    assert ended(study, store_uri).added == 0
    (version,) = Registry(store_uri, NAME).versions()
    assert version.aliases == (CHALLENGER,)


def test_a_registry_that_refuses_stops_nothing_else(study, store_uri, read_view):
    MlflowClient(store_uri).register_prompt("taken", "Answer {{ question }}.")
    study = replace(study, header=replace(study.header, config={"tracking": {"model": "taken"}}))
    said: list[str] = []
    tracker = Mlflow(store_uri, "atlas", in_thread=True, warn=said.append)
    tracker.start(study.header, study.run_dir)
    for trial in study.trials:
        tracker.record(trial)
    tracker.finish(study.summary)
    view = read_view(store_uri, study.header.study_id)
    assert len(view) == 9
    assert {run.status for run in view.values()} == {"FINISHED", "FAILED"}
    assert tracker.status.is_complete
    assert said[0].startswith("MLflow lacks files (registered model: ")


def test_aliases_move_and_tags_are_kept(study, store_uri):
    ended(with_winner(study, 0), store_uri)
    ended(with_winner(study, 5), store_uri)
    registry = Registry(store_uri, NAME)
    registry.set_alias(CHAMPION, 1)
    registry.tag(1, {"tuner.promoted": "by hand"})
    champion = registry.get(CHAMPION)
    assert champion is not None
    assert (champion.version, champion.tags["tuner.promoted"]) == (1, "by hand")
    registry.set_alias(CHAMPION, 2)
    newest, oldest = registry.versions()
    assert newest.aliases == (CHALLENGER, CHAMPION)
    assert oldest.aliases == ()


def test_what_cannot_be_done_is_said(study, store_uri, unused_port, tmp_path):
    ended(study, store_uri)
    registry = Registry(store_uri, NAME)
    with pytest.raises(InputError, match="has no version 7; the newest is 1"):
        registry.set_alias(CHAMPION, 7)
    with pytest.raises(InputError, match="reserved"):
        registry.set_alias("latest", 1)
    with pytest.raises(InputError, match="'other' has no version 1; it has none yet"):
        Registry(store_uri, "other").tag(1, {"a": "b"})
    with pytest.raises(TunerError, match="cannot read MLflow's registry at http://me:\\*\\*\\*@"):
        Registry(f"http://me:secret-word@127.0.0.1:{unused_port}", NAME).versions()
    assert Registry(f"sqlite:///{tmp_path}/none.db", NAME).versions() == []
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("study_name", "config", "expected"),
    [
        ("graphrag-atlas", {}, "graphrag-atlas"),
        ("graphrag-atlas", {"tracking": None}, "graphrag-atlas"),
        ("graphrag-atlas", {"tracking": {"model": "search"}}, "search"),
        ("my/own: 'study'", {}, "my_own_ _study_"),
        ("..", {}, "study"),
    ],
)
def test_the_models_name(study, study_name, config, expected):
    assert model_name(replace(study.header, name=study_name, config=config)) == expected


@pytest.mark.parametrize("name", ["", "a/b", "a:b", "it's", " a", "a" * 101])
def test_a_name_that_mlflow_would_refuse_is_refused_in_the_configuration(name):
    from pydantic import ValidationError

    from tuner.config.model import TrackingSection

    with pytest.raises(ValidationError, match="model"):
        TrackingSection(model=name)
    assert TrackingSection(model="my search v2.1").model == "my search v2.1"


def test_the_models_files_hold_no_password(study, store_uri):
    uri = "postgresql://me:secret-word@host/mlflow"
    config = {"tracking": {"uri": uri}}
    study = replace(study, header=replace(study.header, config=config))
    (study.run_dir / "config.yaml").write_text(json.dumps(config))
    ended(study, store_uri)
    (version,) = Registry(store_uri, NAME).versions()
    folder = Path(MlflowClient(store_uri).download_artifacts(version.run_id, "model/trial-5"))
    texts = [file.read_text() for file in folder.rglob("*") if file.is_file()]
    assert any("me:***@host" in text for text in texts)
    assert not any("secret-word" in text for text in texts)


SERVED = """
dataset: {path: "builtin:atlas"}
retriever: {kind: hybrid}
space: {max_hops: {type: integer, low: 1, high: 4}}
backends: [{kind: tpe, trials: 4}]
"""


@pytest.mark.parametrize("kind", ["database", pytest.param("server", marks=pytest.mark.slow)])
def test_mlflow_loads_the_champion_and_it_answers(
    study, store_uri, request, tmp_path, monkeypatch, kind
):
    import mlflow

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, of its type hints
        import mlflow.pyfunc

    uri = store_uri if kind == "database" else request.getfixturevalue("server").uri
    study = replace(study, header=replace(study.header, name=f"served-by-{kind}"))
    (study.run_dir / "config.yaml").write_text(SERVED)
    (study.run_dir / "best.yaml").write_text("params: {max_hops: 2, top_k: 3}\n")
    assert ended(study, uri).error is None
    registry = Registry(uri, f"served-by-{kind}")
    registry.set_alias(CHAMPION, 1)

    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    model = mlflow.pyfunc.load_model(f"models:/served-by-{kind}@champion", dst_path=str(tmp_path))
    answer, other = model.predict(["Who wrote the charter of Lisfen?", "Where is Lisfen?"])
    assert answer["query"] == "Who wrote the charter of Lisfen?"
    assert len(answer["ids"]) == len(other["ids"]) == 3
    assert answer["params"]["max_hops"] == 2
