"""tuner dataset: what a user types and sees."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tuner.cli.dataset import command
from tuner.cli.dataset.build import build
from tuner.cli.score import command as score
from tuner.datasets import open_dataset

PACKAGE = Path(__file__).resolve().parents[2] / "tuner"
SHARED_DATA = Path(__file__).resolve().parents[2] / "../shared/data"

TRIPLES = [
    ("Lima-river", "Lima", "lies on", "Rimac"),
    ("Oslo-river", "Lima", "sister city", "Oslo"),
    ("Oslo-market", "Oslo", "located in", "Norway"),
    ("Cairo-river", "Cairo", "located in", "Egypt"),
]


def write_triples(folder: Path) -> None:
    keys = ("doc_id", "subject", "relation", "object")
    lines = (json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in TRIPLES)
    (folder / "triples.jsonl").write_text("".join(lines), encoding="utf-8")


def append(file: Path, **values: object) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(values) + "\n")


def test_help_lists_all_sub_commands(tuner_here):
    shown = tuner_here("dataset", "--help").stdout
    for name in "stats check convert split build".split():
        assert f"\n  {name} " in shown
    shown = tuner_here("dataset", "build", "--help").stdout
    for name in "sample pool agree judge from-graph".split():
        assert f"\n  {name} " in shown


def test_the_help_of_build_gives_the_order_of_its_steps(tuner_here):
    shown = tuner_here("dataset", "build", "--help").stdout
    order = [shown.index(step) for step in ("1. sample", "2. pool", "3. agree", "4. judge")]
    assert order == sorted(order)
    assert "or from-graph" in shown


def test_every_option_that_a_message_names_is_there() -> None:
    options = {
        option
        for group in (command, build)
        for each in group.commands.values()
        for parameter in each.params
        for option in parameter.opts
    } | {option for parameter in score.params for option in parameter.opts}
    for file in [*(PACKAGE / "datasets").rglob("*.py"), *(PACKAGE / "cli").glob("_dataset*.py")]:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", file.read_text(encoding="utf-8")))
        assert named <= options, file


def test_judgements_are_chosen_by_the_option_that_the_message_names(tuner_here):
    folder = tuner_here.folder / "data/qrels"
    content = (folder / "test.tsv").read_text(encoding="utf-8")
    (folder / "test.tsv").rename(folder / "dev.tsv")
    (folder / "train.tsv").write_text(content, encoding="utf-8")
    done = tuner_here("dataset", "stats", "data", code=2)
    assert "several files of judgements: dev, train; choose one with --qrels" in done.stderr
    done = tuner_here("dataset", "stats", "data", "--qrels", "dve", code=2)
    assert "named 'dve', as asked for by --qrels; did you mean 'dev'?" in done.stderr
    assert "fingerprint" in tuner_here("dataset", "stats", "data", "--qrels", "dev").stdout


def test_stats_as_a_table_and_as_json(tuner_here):
    shown = tuner_here("dataset", "stats", "data").stdout
    assert "relevant per query" in shown
    assert "1 to 1, median 1, mean 1.00" in shown
    record = json.loads(tuner_here("dataset", "stats", "data", "--json").stdout)
    assert record["counts"]["queries"] == 20
    assert record["query_types"] == {"market": 10, "river": 10}
    assert record["reach"]["in_corpus"] == record["reach"]["by_words"] == 1.0
    assert list(record["reach"]["by_either"]) == ["1", "2", "3", "4", "5", "6"]
    assert record["fingerprint"] == open_dataset(tuner_here.folder / "data").fingerprint


def test_stats_counts_unjudged_queries(tuner_here):
    append(tuner_here.folder / "data/queries.jsonl", _id="extra", text="never judged")
    done = tuner_here("dataset", "stats", "data", "--json")
    assert json.loads(done.stdout)["unjudged"] == ["extra"]
    assert "warning: 1 of 21 queries" in tuner_here("dataset", "check", "data").stderr


def test_check_says_ok(tuner_here):
    done = tuner_here("dataset", "check", "data")
    assert done.stdout.startswith("ok: 20 documents, 20 queries, 20 judgements, fingerprint ")


def test_check_reports_every_broken_line_at_once(tuner_here):
    with (tuner_here.folder / "data/qrels/test.tsv").open("a", encoding="utf-8") as file:
        file.write("q0-river\tgone\t1\nq0-river\tLima-market\thigh\n")
    append(tuner_here.folder / "data/corpus.jsonl", _id="Lima-river", text="again")
    done = tuner_here("dataset", "check", "data", code=2)
    assert "test.tsv:22: unknown document 'gone'" in done.stderr
    assert "test.tsv:23: invalid grade 'high'" in done.stderr
    assert "corpus.jsonl:21: duplicate" in done.stderr


def test_check_finds_what_makes_scores_wrong(tuner_here):
    data = tuner_here.folder / "data"
    append(data / "queries.jsonl", _id="twin", text="How old is the RIVER of Lima?")
    with (data / "qrels/test.tsv").open("a", encoding="utf-8") as file:
        file.write("twin\tLima-river\t1\n")
    done = tuner_here("dataset", "check", "data", code=2)
    assert "error: data: queries 'q0-river', 'twin' have the same text" in done.stderr


def test_many_queries_with_the_same_text_are_told_in_few_lines(tuner_here):
    data = tuner_here.folder / "data"
    queries = open_dataset(data).queries[:6]
    for query in queries:
        append(data / "queries.jsonl", _id=f"{query.id}-2", text=query.text)
        with (data / "qrels/test.tsv").open("a", encoding="utf-8") as file:
            file.write(f"{query.id}-2\tLima-river\t1\n")
    told = tuner_here("dataset", "check", "data", code=2).stderr.splitlines()
    errors = [line for line in told if "like this" in line or "same text" in line]
    assert len(errors) == 4
    for query in queries:
        assert sum(f"{query.id!r}, '{query.id}-2'" in line for line in errors) == 1
    assert errors[3].startswith("error: data: and 3 more like this: queries ")
    assert errors[3].endswith("(6 in all)")


def test_near_duplicates_are_counted_warned_of_and_told_when_torn(tuner_here):
    data = tuner_here.folder / "data"
    append(data / "queries.jsonl", _id="near", text="How old is the river of of Lima?")
    with (data / "qrels/test.tsv").open("a", encoding="utf-8") as file:
        file.write("near\tLima-river\t1\n")
    record = json.loads(tuner_here("dataset", "stats", "data", "--json").stdout)
    ((first, second, similarity),) = record["near_duplicate_queries"]
    assert (first, second) == ("q0-river", "near")
    assert 0.9 <= similarity < 1.0
    assert (
        "1 pairs of queries are worded nearly alike: "
        in tuner_here("dataset", "check", "data").stderr
    )
    alone = str(min(1.0, similarity + 0.01))
    record = json.loads(
        tuner_here("dataset", "stats", "data", "--threshold", alone, "--json").stdout
    )
    assert record["near_duplicate_queries"] == []


def test_check_takes_warnings_as_errors_only_when_told_to(tuner_here):
    text = "the river of Lima is old"
    append(tuner_here.folder / "data/corpus.jsonl", _id="copy", title="Lima", text=text)
    done = tuner_here("dataset", "check", "data")
    assert "warning: 1 copies of relevant documents are not judged" in done.stderr
    done = tuner_here("dataset", "check", "data", "--strict", code=2)
    assert "error: data: 1 copies of relevant documents are not judged" in done.stderr


@pytest.mark.parametrize("layout", ["beir", "samples"])
def test_convert_keeps_the_fingerprint(tuner_here, layout):
    write_triples(tuner_here.folder / "data")
    done = tuner_here("dataset", "convert", "data", "copy", "--to", layout)
    source, copy = (open_dataset(tuner_here.folder / name) for name in ("data", "copy"))
    assert copy.fingerprint == source.fingerprint
    assert f"copy: 20 queries, fingerprint {copy.fingerprint[:12]}" in done.stdout
    done = tuner_here("dataset", "convert", "data", "copy", code=2)
    assert "'copy' is there already" in done.stderr


def test_split_writes_two_stratified_parts(tuner_here):
    tuner_here("dataset", "split", "data", "parts", "--holdout", "0.3", "--seed", "4")
    whole, tune, held = (
        open_dataset(tuner_here.folder / name) for name in ("data", "parts/tune", "parts/holdout")
    )
    assert tune.summary().query_types == {"market": 7, "river": 7}
    assert held.summary().query_types == {"market": 3, "river": 3}
    ids = [query.id for part in (tune, held) for query in part.queries]
    assert sorted(ids) == sorted(query.id for query in whole.queries)
    assert tune.corpus.fingerprint == held.corpus.fingerprint == whole.corpus.fingerprint
    tuner_here("dataset", "split", "data", "again", "--holdout", "0.3", "--seed", "4")
    assert open_dataset(tuner_here.folder / "again/tune").fingerprint == tune.fingerprint


def test_split_tells_of_queries_that_are_torn_apart(tuner_here):
    data = tuner_here.folder / "data"
    lines = ["query-id\tcorpus-id\tscore"]
    (data / "queries.jsonl").write_text("", encoding="utf-8")
    for number in range(2):
        # With the same text they would stay together.
        text = f"How old is the bridge over the river of Lima, in year{'s' * number}?"
        append(data / "queries.jsonl", _id=f"q{number}", text=text)
        lines.append(f"q{number}\tLima-river\t1")
    (data / "qrels/test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = tuner_here("dataset", "split", "data", "parts")
    assert "warning: 1 pairs of queries are worded alike" in done.stderr
    assert "'q0' and 'q1'" in done.stderr


def test_questions_from_a_graph_without_any_judgements(tuner_here):
    data = tuner_here.folder / "data"
    write_triples(data)
    (data / "queries.jsonl").unlink()
    (data / "qrels/test.tsv").unlink()
    (data / "qrels").rmdir()
    done = tuner_here(
        "dataset", "build", "from-graph", "data", "made", "--kind", "1hop", "--kind", "2hop"
    )
    assert "made: 5 questions (4 1hop, 1 2hop)" in done.stdout
    assert "favour retrievers that use this graph" in done.stderr
    made = open_dataset(tuner_here.folder / "made")
    texts = {query.text: query.id for query in made.queries}
    two_hops = texts["The sister city of Lima was located in what?"]
    assert made.answers[two_hops] == ("Norway",)
    assert set(made.qrels[two_hops]) == {"Oslo-river", "Oslo-market"}
    assert "favour" in (tuner_here.folder / "made/README.md").read_text(encoding="utf-8")
    assert tuner_here("dataset", "check", "made").stdout.startswith("ok: ")


def test_relations_can_be_worded_by_hand(tuner_here):
    write_triples(tuner_here.folder / "data")
    (tuner_here.folder / "words.yaml").write_text(
        'lies on: {phrase: "the river of {subject}"}\n', encoding="utf-8"
    )
    tuner_here(
        "dataset",
        "build",
        "from-graph",
        "data",
        "made",
        "--kind",
        "1hop",
        "--relations",
        "words.yaml",
    )
    texts = [query.text for query in open_dataset(tuner_here.folder / "made").queries]
    assert "What is the river of Lima?" in texts


def test_a_set_without_triples_makes_no_questions(tuner_here):
    done = tuner_here("dataset", "build", "from-graph", "data", "made", code=2)
    assert "there are no triples" in done.stderr
    assert not (tuner_here.folder / "made").exists()


def test_a_published_graph_makes_questions(tuner_here):
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data sets are not beside this checkout (../shared/data)")
    source = str((SHARED_DATA / "musique").resolve())
    done = tuner_here(
        "dataset", "build", "from-graph", source, "made", "--count", "25", "--seed", "3"
    )
    assert (
        "made: 25 questions (5 1hop, 5 2hop, 5 3hop, 5 comparison, 5 intersection)" in done.stdout
    )


def test_gold_that_is_not_in_the_corpus_is_counted_and_fails_the_check(tuner_here):
    with (tuner_here.folder / "data/qrels/test.tsv").open("a", encoding="utf-8") as file:
        file.write("q0-river\tgone\t1\nq0-river\tnever\t0\n")
    record = json.loads(tuner_here("dataset", "stats", "data", "--json").stdout)
    assert record["unknown_gold"] == [["q0-river", "gone"]]
    assert record["unknown_judged"] == [["q0-river", "never"]]
    # Of 20 queries with one relevant document each, one has half of its two: 19.5 / 20.
    assert record["reach"]["in_corpus"] == pytest.approx(0.975)
    done = tuner_here("dataset", "stats", "data")
    assert re.search(r"gold not in the corpus +1 \(q0-river, gone\)", done.stdout)
    done = tuner_here("dataset", "check", "data", code=2)
    assert "test.tsv:22: unknown document 'gone': not in the corpus" in done.stderr
    assert "test.tsv:23: unknown document 'never'" in done.stderr
    assert "unknown document 'gone'" in tuner_here("dataset", "split", "data", "out", code=2).stderr


def test_judgements_alone_leave_open_what_a_corpus_would_tell(tuner_here):
    (tuner_here.folder / "q.txt").write_text("q1 0 d1 2\nq1 0 d2 0\nQ1 0 d3 1\n", encoding="utf-8")
    done = tuner_here("dataset", "check", "q.txt", "--format", "qrels")
    assert done.stdout.startswith("ok: 0 documents, 2 queries, 3 judgements")
    shown = tuner_here("dataset", "stats", "q.txt", "--format", "qrels").stdout
    assert re.search(r"gold not in the corpus +not known: no corpus", shown)
    assert re.search(r"reach +not known: no corpus", shown)
    record = json.loads(
        tuner_here("dataset", "stats", "q.txt", "--format", "qrels", "--json").stdout
    )
    assert (record["unknown_gold"], record["reach"]) == (None, None)


def test_queries_that_differ_in_case_and_final_marks_are_the_same(tuner_here):
    data = tuner_here.folder / "data"
    for name, text in (("war", "Who wrote War and Peace?"), ("peace", "who wrote war and peace")):
        append(data / "queries.jsonl", _id=name, text=text)
        with (data / "qrels/test.tsv").open("a", encoding="utf-8") as file:
            file.write(f"{name}\tLima-river\t1\n")
    done = tuner_here("dataset", "check", "data", code=2)
    assert "queries 'war', 'peace' have the same text" in done.stderr


def test_a_threshold_that_is_no_number_is_refused(tuner_here):
    for name in ("stats", "check"):
        done = tuner_here("dataset", name, "data", "--threshold", "nan", code=2)
        assert "'nan' is not a finite number" in done.stderr
    assert "is not a finite number" in tuner_here("policy", "x", "--prior", "nan", code=2).stderr
    assert "is not a finite number" in tuner_here("policy", "x", "--prior", "inf", code=2).stderr
    assert "is not a finite number" in tuner_here("drift", "x", "--alpha", "nan", code=2).stderr
