"""tuner score by a judge's labels of all queries and people's of some."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from tuner.cli import main
from tuner.stats import Labels, compare_with_judge, mean_with_judge

QUERIES = [f"q{number:03}" for number in range(200)]
PEOPLE = QUERIES[::4]


def write_labels(path, queries, right):
    """Write that d or e is relevant; the runs below have one of them first, the other second."""
    lines = [
        f"{query} 0 {document} {int((document == 'd') == right(query))}\n"
        for query in queries
        for document in "de"
    ]
    path.write_text("".join(lines))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write two runs, b right on about 120 of 200 queries and a on 100, and labels of three."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    has = {query: draw.random() < 0.5 for query in QUERIES}
    b_right = {query: draw.random() < 0.6 for query in QUERIES}

    def ranked(first):
        return {query: ["d", "e"] if first(query) else ["e", "d"] for query in QUERIES}

    truth = {query: has[query] for query in QUERIES}
    (tmp_path / "a.json").write_text(json.dumps(ranked(lambda query: int(query[1:]) % 2 == 0)))
    better = ranked(lambda query: truth[query] == b_right[query])
    (tmp_path / "b.json").write_text(json.dumps(better))
    write_labels(tmp_path / "people.txt", PEOPLE, truth.get)
    errs = {query: draw.random() < 0.1 for query in QUERIES}
    write_labels(tmp_path / "judge.txt", QUERIES, lambda query: truth[query] != errs[query])
    # One that says that whatever b has first is right.
    write_labels(tmp_path / "kind.txt", QUERIES, lambda query: better[query][0] == "d")
    return tmp_path


@pytest.fixture
def score(files, capsys):
    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as left:
            main(["score", "--metrics", "mrr", *arguments])
        printed = capsys.readouterr()
        assert left.value.code == code, printed.err
        return printed.out, printed.err

    return run


def by_query(score, qrels):
    out, _ = score("--qrels", qrels, "--run", "a.json", "b.json", "--per-query", "--json")
    runs = json.loads(out)["runs"]
    return [
        {query: values["mrr"] for query, values in run["per_query"].items()} for run in runs
    ]  # fmt: skip


def test_means_and_comparisons_are_estimates_by_both(score):
    people, judge = by_query(score, "people.txt"), by_query(score, "judge.txt")
    both = ("--qrels", "judge.txt", "--people", "people.txt", "--run", "a.json", "b.json")
    record = json.loads(score(*both, "--compare", "--json")[0])
    is_people = np.array([query in PEOPLE for query in QUERIES])
    values = [
        np.array([p.get(q, j[q]) for q in QUERIES]) for p, j in zip(people, judge, strict=True)
    ]
    judged = [np.array([j[q] for q in QUERIES]) for j in judge]
    for run, mixed, by in zip(record["runs"], values, judged, strict=True):
        mean, _ = mean_with_judge(mixed, by, is_people)
        assert run["metrics"]["mrr"] == {"mean": pytest.approx(mean)}
    expected = compare_with_judge(values[1], values[0], Labels(is_people, judged[1], judged[0]))
    (one,) = record["comparisons"]
    assert one["difference"] == pytest.approx(expected.mean_difference)
    assert one["interval"] == pytest.approx(list(expected.interval))
    assert (one["queries"], one["judge"]["queries"]) == (50, 150)
    assert one["judge"]["worth"] == expected.judge.worth > 50
    assert record["labels"]["people"] == 50
    assert record["labels"]["counts"]
    out, err = score(*both, "--compare")
    assert "labels: 50 queries graded by people, 150 more by the judge alone" in err
    assert "people and judge: kappa 0." in err
    assert "people \\ judge" in err
    assert f"{record['runs'][1]['metrics']['mrr']['mean']:.4f}" in out
    assert "A judge graded 150 other queries, which count by 0." in out
    assert f"the interval is as wide as that of {expected.judge.worth} queries of people's" in out


def test_a_judge_that_agrees_too_little_counts_for_nothing(score):
    alone, _ = score("--qrels", "people.txt", "--run", "a.json", "b.json", "--compare")
    out, err = score(
        *("--qrels", "kind.txt", "--people", "people.txt", "--run", "a.json", "b.json"), "--compare"
    )
    assert out == alone
    assert "the judge counts for nothing: kappa is below 0.5" in err


def test_few_of_peoples_queries_count_alone(score, files):
    lines = (files / "people.txt").read_text().splitlines(keepends=True)
    (files / "few.txt").write_text("".join(lines[:38]))  # 19 queries of two documents
    out, err = score("--qrels", "judge.txt", "--people", "few.txt", "--run", "a.json")
    assert out.startswith("19 judged queries")
    assert "under 20 of people's queries nothing is known of its rare errors" in err


def test_what_does_not_go_with_two_kinds_of_labels_is_refused(score, files):
    both = ("--qrels", "judge.txt", "--people", "people.txt", "--run", "a.json")
    _, err = score(*both, "--aggregates", code=2)
    assert "leave out --aggregates or --people" in err
    people = files / "people.txt"
    people.write_text(people.read_text() + "q999 0 d 1\n")
    _, err = score(*both, code=2)
    assert "people graded 1 queries that the judge did not ('q999'): have it grade them too" in err
    assert "people.txt" in err
