"""tuner score: one line from files to figures, and one line that says what is wrong."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tuner.cli import main

QUERIES = [f"q{number}" for number in range(12)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Twelve queries with one relevant document: at rank 3 in a.run, mostly at 1 in b.json."""
    monkeypatch.chdir(tmp_path)
    grades = "".join(f"{query} 0 d 1\n{query} 0 bad 0\n" for query in QUERIES)
    (tmp_path / "qrels.txt").write_text(grades)
    (tmp_path / "one_without.txt").write_text(grades + "q99 0 d 0\n")
    rows = [
        f"{query} Q0 {document} 1 {score} a\n"
        for query in QUERIES
        for document, score in (("x", 0.9), ("bad", 0.8), ("d", 0.7))
    ]
    (tmp_path / "a.run").write_text("".join(rows))
    better = {query: ["d", "x"] if query != "q3" else ["x", "y", "z", "d"] for query in QUERIES}
    (tmp_path / "b.json").write_text(json.dumps(better))
    return tmp_path


@pytest.fixture
def score(files, capsys):
    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as left:
            main(["score", *arguments])
        printed = capsys.readouterr()
        assert left.value.code == code, printed.err
        return printed.out, printed.err

    return run


def row(output: str, *starts: str) -> list[str]:
    found = [
        line.split() for line in output.splitlines() if line.split()[: len(starts)] == [*starts]
    ]
    assert len(found) == 1, output
    return found[0][len(starts) :]


def test_runs_side_by_side(score):
    out, err = score("--qrels", "qrels.txt", "--run", "a.run", "--run", "b.json")
    assert "12 judged queries; means over 12, a missing one counting 0 (trec_eval -c)" in out
    assert out.splitlines()[1].split() == ["a", "b"]
    # a: every first relevant at rank 3; b: eleven at rank 1 and one at rank 4
    assert row(out, "mrr@10") == ["0.3333", f"{(11 + 1 / 4) / 12:.4f}"]
    assert row(out, "recall@10") == ["1.0000", "1.0000"]
    assert row(out, "unjudged", "in", "top", "10") == ["33.3", "%", "53.8", "%"]  # 12/36, 14/26
    assert err == ""


def test_further_runs_may_follow_the_first(score):
    one, _ = score("--qrels", "qrels.txt", "--run", "a.run", "--run", "b.json")
    assert score("--qrels", "qrels.txt", "--run", "a.run", "b.json")[0] == one


def test_comparison_in_figures_and_in_words(score):
    out, _ = score(
        "--qrels", "qrels.txt", "--run", "a.run", "b.json", "--compare",
        "--metrics", "mrr,success@5",
    )  # fmt: skip
    # eleven queries +2/3, one 1/4 - 1/3
    against = out.split("b against a\n")[1]
    assert row(against, "mrr")[0] == f"{(11 * 2 / 3 + 1 / 4 - 1 / 3) / 12:+.4f}"
    assert row(against, "mrr")[-1] == "11/0/1"
    assert row(against, "success@5")[-1] == "0/12/0"
    assert "b is higher than a on mrr (+0.6042" in out
    assert "better on 11 queries, equal on 0, worse on 1" in out
    assert "Other metrics: not shown to differ: success@5." in out


def test_the_other_metrics_are_told_by_the_way_they_differ(score):
    metrics = ("--compare", "--metrics", "mrr,success@1,success@5")
    # a has nothing relevant at rank 1, b eleven times of twelve; both have it within 5 always
    out, _ = score("--qrels", "qrels.txt", "--run", "a.run", "b.json", *metrics)
    assert "Other metrics: higher: success@1; not shown to differ: success@5." in out
    out, _ = score("--qrels", "qrels.txt", "--run", "b.json", "a.run", *metrics)
    assert "Other metrics: lower: success@1; not shown to differ: success@5." in out


def test_no_difference_is_said_as_such(score, files):
    text = (files / "a.run").read_text()
    (files / "c.run").write_text(text.replace("q5 Q0 d 1 0.7", "q5 Q0 d 1 0.85"))
    out, _ = score(
        "--qrels", "qrels.txt", "--run", "a.run", "c.run", "--compare", "--metrics", "mrr"
    )
    assert "c against a: no difference shown on mrr" in out
    assert "queries to show" in out


def test_aggregates(score):
    out, _ = score("--qrels", "qrels.txt", "--run", "b.json", "--aggregates", "--metrics", "mrr")
    # 1 eleven times and .25: mean 11.25 / 12, sd .75 / sqrt(12)
    mean, deviation = 11.25 / 12, 0.75 / 12**0.5
    shown = [f"{value:.4f}" for value in (mean, deviation, 0.25, 1, 1, 1, 1)]
    assert row(out, "b", "mrr") == ["12", *shown]


def test_every_query_on_the_screen_and_in_a_file(score, files):
    arguments = (
        "--qrels", "one_without.txt", "--run", "a.run", "b.json", "--metrics", "mrr,recall@1",
        "--undefined", "skip",
    )  # fmt: skip
    out, _ = score(*arguments, "--per-query")
    assert row(out, "q3", "a") == ["0.3333", "0.0000"]
    assert row(out, "q3", "b") == ["0.2500", "0.0000"]
    assert row(out, "q99", "b") == ["–", "–"]
    _, err = score(*arguments, "--per-query", "all.csv")
    assert "all.csv" in err
    rows = list(csv.DictReader(io.StringIO((files / "all.csv").read_text())))
    assert len(rows) == 2 * 13
    by_run = {(row["query_id"], row["run"]): row for row in rows}
    assert float(by_run["q0", "a"]["mrr"]) == 1 / 3
    assert by_run["q0", "a"]["retrieved"] == "3"
    assert by_run["q99", "b"] == {
        "query_id": "q99", "run": "b", "retrieved": "0", "mrr": "", "recall@1": "",
    }  # fmt: skip


def test_json_holds_everything(score):
    out, _ = score(
        "--qrels", "one_without.txt", "--run", "a.run", "b.json", "--compare", "--per-query",
        "--json", "--metrics", "mrr", "--undefined", "skip",
    )  # fmt: skip
    record = json.loads(out)
    assert record["qrels"] == {"path": "one_without.txt", "format": "trec"}
    assert (record["queries"], record["defined_queries"]) == (13, 12)
    a, b = record["runs"]
    assert (a["format"], b["format"]) == ("trec", "json")
    assert a["metrics"]["mrr"]["mean"] == pytest.approx(1 / 3)
    assert b["per_query"]["q3"] == {"mrr": 0.25}
    assert b["per_query"]["q99"] == {"mrr": None}
    (one,) = record["comparisons"]
    assert (one["run"], one["against"], one["metric"]) == ("b", "a", "mrr")
    assert one["p_value_holm"] == one["p_value"] < 0.05
    assert (one["wins"], one["ties"], one["losses"]) == (11, 0, 1)


def test_means_by_type_and_difficulty(score, files):
    labels = [
        {"_id": query, "text": "?", "query_type": "hop" if query == "q3" else "plain"}
        for query in QUERIES
    ]
    (files / "queries.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    arguments = (
        "--qrels", "one_without.txt", "--run", "a.run", "b.json", "--metrics", "mrr",
        "--by-type", "queries.jsonl", "--undefined", "skip",
    )  # fmt: skip
    out, _ = score(*arguments)
    assert row(out, "hop") == ["1", "mrr", "0.3333", "0.2500"]
    assert row(out, "plain") == ["11", "mrr", "0.3333", "1.0000"]
    assert row(out, "unlabelled") == ["1", "mrr", "–", "–"]  # q99, where nothing is relevant
    record = json.loads(score(*arguments, "--json")[0])
    by_type = [run["by_query_type"] for run in record["runs"]]
    assert [run["hop"]["mrr"]["mean"] for run in by_type] == pytest.approx([1 / 3, 0.25])
    assert [run["plain"]["mrr"]["queries"] for run in by_type] == [11, 11]
    assert by_type[0]["unlabelled"]["mrr"]["mean"] is None
    assert "by_difficulty" not in record["runs"][0]  # all the same


def test_metrics_may_be_repeated(score):
    out, _ = score(
        "--qrels", "qrels.txt", "--run", "a.run", "--metrics", "recall@5", "--metrics", "mrr"
    )
    assert row(out, "recall@5") == ["1.0000"]
    assert row(out, "mrr") == ["0.3333"]


def test_several_cut_offs_of_one_metric(score):
    out, _ = score("--qrels", "qrels.txt", "--run", "a.run", "--metrics", "recall@1, 3,mrr")
    assert row(out, "recall@1") == ["0.0000"]
    assert row(out, "recall@3") == ["1.0000"]
    assert row(out, "mrr") == ["0.3333"]


def test_a_metric_that_is_undefined_more_often_is_remarked_on(score):
    out, err = score("--qrels", "qrels.txt", "--run", "a.run", "--metrics", "mrr,recall_level2@5")
    assert row(out, "recall_level2@5") == ["–"]
    assert "recall_level2@5 is defined for 0 queries only" in err


def test_a_query_without_a_relevant_document_counts_0_as_in_trec_eval_and_can_be_left_out(score):
    arguments = ("--qrels", "one_without.txt", "--run", "a.run")
    out, _ = score(*arguments)
    assert "13 judged queries, of which 1 has no relevant document and counts 0" in out
    assert "means over 13, a missing one counting 0 (trec_eval -c)\n" in out
    assert row(out, "mrr@10") == [f"{12 / 3 / 13:.4f}"]
    out, _ = score(*arguments, "--undefined", "skip")
    assert "of which 1 has no relevant document and is left out; means over 12" in out
    assert "(trec_eval -c counts all: --undefined zero)" in out
    assert row(out, "mrr@10") == [f"{1 / 3:.4f}"]


def test_waste_of_a_query_without_a_relevant_document_is_never_0(score):
    out, _ = score(
        "--qrels", "one_without.txt", "--run", "a.run", "--metrics", "share_grade0@3,recall@3"
    )
    assert row(out, "share_grade0@3") == ["0.6667"]  # 0 would be the best
    assert row(out, "recall@3") == [f"{12 / 13:.4f}"]


def test_documents_of_another_kind_are_remarked_on(score, files):
    (files / "far.json").write_text(json.dumps({query: ["doc-1"] for query in QUERIES}))
    _, err = score("--qrels", "qrels.txt", "--run", "far.json")
    assert "no document in any top 10 is judged" in err


def write_data_set(folder) -> None:
    """The twelve queries as a data set, with labels of the graph for the first one."""
    (folder / "data" / "qrels").mkdir(parents=True)
    documents = [
        {"_id": "d", "title": "Lima", "text": "a port of Peru"},  # 5 words
        {"_id": "bad", "title": "", "text": "a smart boat"},  # 3 words
        {"_id": "x", "title": "", "text": "Peru"},  # 1 word
    ]
    queries = [
        {"_id": query, "text": "port of Peru", "query_type": "hop" if query == "q3" else "plain"}
        for query in QUERIES
    ]
    evidences = [{"query_id": "q0", "entities": ["Lima", "Peru"], "paths": []}]
    for name, records in (("corpus", documents), ("queries", queries), ("evidences", evidences)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "data" / f"{name}.jsonl").write_text(text)
    rows = "".join(f"{query}\td\t1\n{query}\tbad\t0\n" for query in QUERIES)
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)


def test_metrics_of_texts_and_graph_with_a_data_set(score, files):
    write_data_set(files)
    lines = [
        {"query_id": query, "docs": ["d"], "entities": ["Peru", "Oslo"], "paths": []}
        for query in QUERIES[:-1]
    ]
    (files / "g.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = (
        "--dataset", "data", "--run", "g.jsonl", "--metrics",
        "recall@5,context_tokens,density,coverage,entity_recall,graphrag_recall",
    )  # fmt: skip
    out, err = score(*arguments)
    assert "12 judged queries; means over 12" in out  # the judgements are the data set's
    # eleven queries are answered by d alone, one is missing
    assert row(out, "recall@5") == [f"{11 / 12:.4f}"]
    assert row(out, "context_tokens") == [f"{11 * 5 / 12:.4f}"]
    assert row(out, "density") == [f"{11 / 12:.4f}"]
    assert row(out, "entity_recall") == ["0.5000"]
    # q0: (.4 * 1 + .3 * .5) / .7, ten others 1, the missing one 0
    assert row(out, "graphrag_recall") == [f"{((0.4 + 0.15) / 0.7 + 10) / 12:.4f}"]
    assert "entity_recall is defined for 1 queries only" in err
    assert "1 missing queries cost nothing, which makes context_tokens look good" in err
    # as the others do: by query, by type, compared
    out, _ = score(
        "--dataset", "data", "--run", "a.run", "g.jsonl", "--metrics", "density,context_tokens",
        "--compare", "--per-query", "--by-type",
    )  # fmt: skip
    assert row(out, "q3", "a") == [f"{5 / 9:.4f}", "9.0000"]  # x, bad, d
    assert row(out, "hop") == ["1", "density", f"{5 / 9:.4f}", "1.0000"]
    assert row(out.split("g against a\n")[1], "density")[-1] == "11/0/1"
    record = json.loads(score(*arguments, "--json")[0])
    assert record["qrels"] == {"path": "data", "format": "data set"}


def test_judgements_may_differ_from_those_of_the_data_set(score, files):
    write_data_set(files)
    (files / "few.txt").write_text("q1 0 bad 1\n")
    out, _ = score(
        "--qrels", "few.txt", "--dataset", "data", "--run", "a.run", "--metrics", "density",
        "--tokenizer", "builtins:list",
    )  # fmt: skip
    # letters: "Peru" 4, "a smart boat" 12, "Lima a port of Peru" 19
    assert row(out, "density") == [f"{12 / 35:.4f}"]


def test_every_grade_and_fitted_weights(score):
    out, _ = score(
        "--qrels", "qrels.txt", "--run", "a.run", "--discount", "1,.5,.5", "--metrics",
        "share_grades@3,recall_levels@3,discounted_precision_fitted@3",
    )  # fmt: skip
    assert row(out, "share_grade0@3") == ["0.6667"]
    assert row(out, "share_grade1@3") == ["0.3333"]
    assert row(out, "recall_level1@3") == ["1.0000"]
    assert row(out, "discounted_precision_fitted@3") == ["0.2500"]  # .5 / 2


def test_what_the_intervals_allow_for_is_said(score):
    arguments = ("--qrels", "qrels.txt", "--run", "a.run", "b.json", "--compare", "--metrics")
    out, _ = score(*arguments, "mrr,success@5")
    assert "corrected for all 2 comparisons" in out
    assert "each interval is 95 % for its own comparison alone" in out
    out, _ = score(*arguments, "mrr")
    assert "needs no correction" in out


BAD = {
    "no such file": (("--run", "c.run"), "c.run: no such file"),
    "a near name": (("--run", "b.jso"), "did you mean 'b.json'?"),
    "no run": ((), "give a run"),
    "a metric": (("--run", "a.run", "--metrics", "ndgc@10"), "did you mean 'ndcg@10'?"),
    "no metric": (("--run", "a.run", "--metrics", ","), "--metrics is empty"),
    "one run only": (("--run", "a.run", "--compare"), "at least two runs"),
    "judgements as run": (("--run", "other.txt"), "did you swap --qrels and --run?"),
    "the same run": (("--run", "a.run", "a.run"), "given twice"),
    "no common query": (("--run", "strange.run"), "shares no query with the judgements"),
    "NaN": (("--run", "nan.run"), "nan.run:2: invalid score 'nan'"),
    "twice": (("--run", "twice.run"), "twice.run:2: duplicate"),
    "no folder": (("--run", "a.run", "--per-query", "no/all.csv"), "cannot be written"),
    "strange queries": (("--run", "a.run", "--by-type", "far.jsonl"), "none of the judged queries"),
    "no types": (("--run", "a.run", "--by-type", "bare.jsonl"), "have the same query_type"),
    "broken queries": (("--run", "a.run", "--by-type", "bad.jsonl"), "bad.jsonl:2: duplicate"),
    "no texts": (("--run", "a.run", "--metrics", "coverage"), "give them by --dataset PATH"),
    "no labels": (("--run", "a.run", "--metrics", "entity_recall"), "by --dataset PATH"),
    "no weights": (
        ("--run", "a.run", "--metrics", "discounted_precision_fitted@3"),
        "write for example --discount 1,0.6,0.8",
    ),
    "no numbers": (("--run", "a.run", "--discount", "1,x"), "write numbers with commas between"),
    "no text to count": (("--run", "a.run", "--tokenizer", "m:f"), "give them by --dataset PATH"),
    "no types at hand": (("--run", "a.run", "--by-type"), "needs a file such as queries.jsonl"),
    "no data set": (("--run", "a.run", "--dataset", "nowhere"), "no such file or folder"),
    "a run to write to": (("--run", "a.run", "--per-query", "b.json"), "must end in .csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_leaves_with_2_and_one_explanation(score, files, case):
    (files / "other.txt").write_text("q1 0 d 1\n")
    (files / "strange.run").write_text("1 Q0 d 1 0.5 x\n")
    (files / "nan.run").write_text("q1 Q0 d 1 0.5 x\nq1 Q0 e 1 nan x\n")
    (files / "twice.run").write_text("q1 Q0 d 1 0.5 x\nq1 Q0 d 1 0.4 x\n")
    (files / "far.jsonl").write_text('{"_id": "z"}\n{"_id": "y"}\n')
    (files / "bare.jsonl").write_text("".join(f'{{"_id": "{q}"}}\n' for q in QUERIES))
    (files / "bad.jsonl").write_text('{"_id": "q1"}\n{"_id": "q1"}\n')
    arguments, expected = BAD[case]
    out, err = score("--qrels", "qrels.txt", *arguments, code=2)
    assert out == ""
    assert expected in err
    assert err.startswith("error: ")


def test_judgements_are_asked_for(score):
    _, err = score("--run", "a.run", code=2)
    assert "--qrels QRELS, or a data set by --dataset PATH" in err


def test_every_bad_file_is_named_at_once(score, files):
    (files / "nan.run").write_text("q1 Q0 d 1 nan x\n")
    _, err = score("--qrels", "a.run", "--run", "nan.run", "none.run", code=2)
    assert "a.run: is a run" in err
    assert "nan.run:1" in err
    assert "none.run: no such file" in err


def test_the_real_command_line_leaves_no_traceback(tuner):
    (tuner.folder / "r.json").write_text('{"q0-river": ["Lima-river"]}')
    done = tuner("score", "--qrels", "data/qrels/test.tsv", "--run", "r.json")
    assert "20 judged queries" in done.stdout
    assert "missing" in done.stdout
    tuner("score", "--qrels", "data", "--run", "r.json", code=2)


def test_fractions_are_relevant_from_the_grade_that_is_told(score, files):
    (files / "fractions.txt").write_text("q1 0 d 0.9\nq1 0 x 0.2\nq2 0 d 0.6\n")
    arguments = ("--qrels", "fractions.txt", "--run", "a.run", "--metrics")
    _, err = score(*arguments, "mrr", code=2)
    assert "no grade reaches 1, the highest is 0.9; set relevant_from" in err
    measured = "mrr,discounted_precision_uniform@3"
    found = {}
    for grade in ("query", "dataset", "1"):
        out, err = score(*arguments, measured, "--relevant-from", "0.5", "--max-grade", grade)
        assert err == ""
        assert row(out, "mrr") == ["0.3333"]  # x, bad, d
        found[grade] = row(out, "discounted_precision_uniform@3")
    assert found["query"] == [f"{(0.2 / 0.9 + 1 + 1) / 6:.4f}"]
    assert found["dataset"] == [f"{(0.2 / 0.9 + 1 + 0.6 / 0.9) / 6:.4f}"]
    assert found["1"] == [f"{(0.2 + 0.9 + 0.6) / 6:.4f}"]
    _, err = score(*arguments, "mrr", "--max-grade", "much", code=2)
    assert "--max-grade much: write query, dataset or a number" in err
