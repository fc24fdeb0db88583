"""People's grades beside a judge's, from the configuration to the report, by the commands."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml

NAMES = [f"{first}{last}" for first in ("Al", "Be", "Co", "Du", "El") for last in "abcdefgh"]
PARTS = ("river", "market", "tower")
PEOPLE = 40


def write_labelled(folder: Path, *, keeps: float) -> None:
    """Write 120 queries; a judge that keeps so many of the true grades, and people's of 40."""
    draw = random.Random(0)
    (folder / "judged" / "qrels").mkdir(parents=True)
    documents, queries, truth = [], [], {}
    for index, name in enumerate(NAMES):
        for part in PARTS:
            # Some passages have the name in the title alone, so that its weight matters.
            where = f" of {name}" if draw.random() < 0.4 else ""
            id_ = f"{name}-{part}"
            text = f"the {part}{where} is old"
            documents.append({"_id": id_, "title": name, "text": text})
            queries.append({"_id": f"q{index}-{part}", "text": f"is the {part} of {name} old?"})
            pool = [f"{draw.choice(NAMES)}-{part}" for _ in range(4)]
            truth[f"q{index}-{part}"] = {**dict.fromkeys(pool, 0), id_: 1}
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "judged" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    judge = {
        query: {
            document: grade if draw.random() < keeps else int(draw.random() < 0.2)
            for document, grade in graded.items()
        }
        for query, graded in truth.items()
    }
    some = draw.sample(sorted(truth), PEOPLE)
    write_qrels(folder / "judged" / "qrels" / "test.tsv", judge)
    write_qrels(folder / "people.tsv", {query: truth[query] for query in some})


def write_qrels(path: Path, grades) -> None:
    lines = [
        f"{query}\t{document}\t{grade}\n"
        for query, graded in grades.items()
        for document, grade in graded.items()
    ]
    path.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")


@pytest.fixture
def labelled(tuner_here):
    def make(keeps=0.9):
        write_labelled(tuner_here.folder, keeps=keeps)
        tuner_here.edit("dataset: {path: data,", "dataset: {path: judged, people: people.tsv,")
        tuner_here.edit("title_weight: 1.0, top_k: 10", "title_weight: 0.0, top_k: 10")
        return tuner_here

    return make


def test_a_study_holds_out_peoples_queries_first_and_says_what_the_judge_is_worth(labelled):
    tuner = labelled()
    done = tuner("run", "config.yaml")
    said = done.stdout + done.stderr
    assert "labels: 40 queries graded by people, 80 more by the judge alone" in said
    assert "people and judge: kappa 0." in said
    assert "people \\ judge" in said
    assert "held-out queries that people graded" in done.stdout
    assert "(A judge graded 20 other queries" in done.stdout
    (run_dir,) = tuner.runs()
    header = json.loads((run_dir / "journal.jsonl").read_text().splitlines()[0])
    labels = header["dataset"]["labels"]
    assert (labels["people"], labels["counts"]) == (40, True)
    assert header["dataset"]["holdout_queries"] == 60
    page = (run_dir / "report.html").read_text()
    assert "40 queries graded by people" in page
    assert "A judge graded 20 other queries" in page


def test_below_the_gate_the_judge_counts_for_nothing(labelled):
    tuner = labelled(keeps=0.1)
    done = tuner("run", "config.yaml")
    said = done.stdout + done.stderr
    assert "the judge counts for nothing: that is below 0.5 (dataset.people_gate)" in said
    assert "A judge graded" not in said
    header = json.loads((tuner.runs()[0] / "journal.jsonl").read_text().splitlines()[0])
    assert header["dataset"]["queries"] == 40
    assert "counts for nothing" in header["dataset"]["labels"]["told"]


def test_two_configurations_are_compared_and_one_is_evaluated_by_both(labelled):
    tuner = labelled()
    found = json.loads(
        tuner("compare", "config.yaml", "--b", '{"title_weight": 2.0}', "--json").stdout
    )
    judge = found["verdict"]["comparison"]["judge"]
    assert judge["queries"] == 20
    assert found["metrics"]["recall@5"]["judge"]["queries"] == 20
    assert found["metrics"]["context_tokens"]["judge"] is None
    assert found["metrics"]["context_tokens"]["n"] == 60
    every = tuner("evaluate", "config.yaml", "--queries", "all")
    assert "people graded 40 of these queries, the judge 80 more" in every.stderr
    tune = tuner("evaluate", "config.yaml")
    assert "people graded none of these queries: these are the judge's figures" in tune.stderr


def test_people_and_what_does_not_go_with_it_are_refused_with_their_line(labelled):
    tuner = labelled()
    path = tuner.folder / "people.tsv"
    path.write_text(path.read_text() + "q999\tAla-river\t1\n", encoding="utf-8")
    done = tuner("check", "config.yaml", code=2)
    assert "people graded 1 queries that the judge did not ('q999')" in done.stderr
    path.write_text(path.read_text().replace("q999\tAla-river", "q0-river\tnowhere"))
    assert "not in the corpus: 'nowhere'" in tuner("check", "config.yaml", code=2).stderr
    tuner.edit("split: {holdout: 0.5,", "split: {parts: 2,")
    assert "leave out `parts` or `people`" in tuner("check", "config.yaml", code=2).stderr


def test_a_study_finds_peoples_labels_from_any_folder(labelled):
    tuner = labelled()
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    kept = yaml.safe_load((run_dir / "config.yaml").read_text(encoding="utf-8"))
    assert kept["dataset"]["people"] == str((tuner.folder / "people.tsv").resolve())


def test_where_peoples_queries_fill_the_holdout_the_run_says_so(labelled):
    tuner = labelled()
    tuner.edit("holdout: 0.5", "holdout: 0.2")
    assert "all 24 held-out queries are people's" in tuner("check", "config.yaml").stderr


def test_nights_have_peoples_labels_or_a_judges(labelled):
    done = labelled()("nightly", "config.yaml", code=2)
    assert "nights share one alpha" in done.stderr
    assert "config.yaml:" in done.stderr


def test_a_gate_without_people_is_refused(tuner_here):
    tuner_here.edit("{path: data, ", "{path: data, people_gate: 0.6, ")
    for command in ("check", "run"):
        done = tuner_here(command, "config.yaml", code=2)
        assert "dataset.people_gate: nobody's labels are compared with a judge's" in done.stderr
