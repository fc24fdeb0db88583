"""tuner init over every layout of a data set: what it writes passes the check, and runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.contract.test_formats import DATA, LAYOUTS, laid
from tuner.setup.data import find_data, near

MANY = [name for name in LAYOUTS if name != "qrels"]
FEW_TRIALS = "backends=[{kind: random, trials: 2}]"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.mark.parametrize("name", MANY)
def test_what_is_written_for_a_layout_passes_the_check_and_runs(name, tmp_path, run_here):
    place = laid(name, tmp_path / "set").relative_to(tmp_path)
    done = run_here(tmp_path, "init", "--yes", "--dataset", str(place))
    assert done.returncode == 0, done.stderr
    assert f"format {LAYOUTS[name].kind}" in done.stderr
    checked = run_here(tmp_path, "check", "tuner.yaml")
    assert checked.returncode == 0, checked.stderr
    settings = (FEW_TRIALS, "tracking=null", "execution.kind=inline")
    run = run_here(tmp_path, "run", "tuner.yaml", "-q", *(f"--set={one}" for one in settings))
    assert run.returncode == 0, run.stderr


def test_judgements_alone_are_tuned_with_run_files(tmp_path, run_here):
    place = laid("qrels", tmp_path / "set").relative_to(tmp_path)
    judged: dict[str, list[str]] = {}
    for line in (tmp_path / place).read_text(encoding="utf-8").splitlines():
        query, _, document, _ = line.split()
        judged.setdefault(query, []).append(document)
    for run, order in (("graph", 1), ("text", -1)):
        rows = [
            f"{query} Q0 {document} {rank} {100 - rank} {run}"
            for query, documents in judged.items()
            for rank, document in enumerate(documents[::order], start=1)
        ]
        (tmp_path / f"{run}.run").write_text("\n".join(rows) + "\n", encoding="utf-8")
    alone = run_here(tmp_path, "init", "--yes", "--dataset", str(place))
    assert alone.returncode == 2
    assert not (tmp_path / "tuner.yaml").exists()
    runs = ("--retriever", "graph.run", "--retriever", "text.run")
    done = run_here(tmp_path, "init", "--yes", "--dataset", str(place), *runs)
    assert done.returncode == 0, done.stderr
    config = yaml.safe_load((tmp_path / "tuner.yaml").read_text(encoding="utf-8"))
    assert config["dataset"]["format"] == "qrels"
    assert config["retriever"]["legs"] == {"graph": "graph.run", "text": "text.run"}
    assert "price" not in config["objective"]  # there are no texts to count
    checked = run_here(tmp_path, "check", "tuner.yaml")
    assert checked.returncode == 0, checked.stderr


def test_the_folder_itself_and_folders_in_it_are_looked_at(tmp_path):
    assert near(tmp_path) == []
    shutil.copytree(DATA / "musique", tmp_path / "data" / "mine")
    shutil.copytree(DATA / "samples", tmp_path / "other")
    assert near(tmp_path) == ["other", "data/mine"]
    assert near(tmp_path / "other") == ["."]


def test_the_only_data_set_is_taken_and_of_several_one_is_asked_for(tmp_path, run_here):
    none = run_here(tmp_path, "init", "--yes")
    assert none.returncode == 2
    assert "--dataset" in none.stderr
    shutil.copytree(DATA / "musique", tmp_path / "one")
    assert run_here(tmp_path, "init", "--yes").returncode == 0
    config = yaml.safe_load((tmp_path / "tuner.yaml").read_text(encoding="utf-8"))
    assert config["dataset"]["path"] == "one"
    shutil.copytree(DATA / "samples", tmp_path / "two")
    several = run_here(tmp_path, "init", "--yes", "--force")
    assert several.returncode == 2
    assert "one, two" in several.stderr
    assert "--dataset" in several.stderr


def test_few_queries_are_warned_of(tmp_path):
    data = find_data(str(DATA / "musique"))
    assert data.queries < 60
    assert any("fewer than" in warning for warning in data.warnings())
    whole = find_data("builtin:atlas")
    assert whole.is_split
    assert not list(whole.warnings())


def test_grades_below_1_are_relevant_from_half_of_the_highest(tmp_path, run_here):
    place = tmp_path / "set"
    shutil.copytree(DATA / "musique", place)
    qrels = place / "qrels" / "test.tsv"
    rows = [line.split("\t")[:2] for line in qrels.read_text(encoding="utf-8").splitlines()[1:]]
    qrels.write_text("".join(f"{q}\t{d}\t0.8\n" for q, d in rows), encoding="utf-8")
    assert find_data(str(place)).relevant_from == 0.4
    done = run_here(tmp_path, "init", "--yes", "--dataset", "set")
    assert done.returncode == 0, done.stderr
    assert "relevant_from: 0.4" in (tmp_path / "tuner.yaml").read_text(encoding="utf-8")


def test_names_alone_are_judged_by_the_metrics_of_the_graph(tmp_path, run_here):
    (tmp_path / "set").mkdir()
    corpus = [{"_id": f"d{n}", "title": f"Place {n}", "text": f"Place {n} is old."} for n in "123"]
    samples = [
        {"query": f"Which place is number {n}?", "relevant_entities": [f"Place {n}"]} for n in "123"
    ]
    for name, records in (("corpus", corpus), ("samples", samples)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / "set" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    done = run_here(tmp_path, "init", "--yes", "--dataset", "set")
    assert done.returncode == 0, done.stderr
    config = yaml.safe_load((tmp_path / "tuner.yaml").read_text(encoding="utf-8"))
    assert config["objective"]["maximize"] == {"entity_recall": 1.0}


def test_a_data_set_that_is_broken_is_told_with_its_lines_and_nothing_is_written(
    tmp_path, run_here
):
    shutil.copytree(DATA / "musique", tmp_path / "set")
    (tmp_path / "set" / "queries.jsonl").write_text('{"_id": "q1", "text": 7}\n', encoding="utf-8")
    done = run_here(tmp_path, "init", "--yes", "--dataset", "set")
    assert done.returncode == 2
    assert "queries.jsonl:1" in done.stderr
    assert not (tmp_path / "tuner.yaml").exists()
