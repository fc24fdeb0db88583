"""From a query log to a judged data set and its metrics, by the commands alone."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from tuner.cli.dataset.build import build
from tuner.core.errors import InputError
from tuner.core.policy import Policy, WordRule
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.datasets import open_dataset
from tuner.evalset.pool import MOST_CORNERS, corners, pool_settings, space_of
from tuner.retrieval.base import Knob

CORPUS = [
    ("00123", "Marie Curie", "Marie Curie was born in Warsaw and worked in Paris."),
    ("405e34", "Warsaw", "Warsaw lies on the river Vistula."),
    ("d3", "Paris", "Paris lies on the river Seine."),
    ("d4", "Isaac Newton", "Isaac Newton was born in Woolsthorpe."),
    ("d5", "居里夫人", "居里夫人出生于华沙。"),
    ("d6", "华沙", "华沙位于维斯瓦河畔。"),
    ("d7", "", "=cmd is no formula but a passage about Vistula and Seine."),
]
LOG = """\
Timestamp,User ID,Search Query,clicked_ids
2026-01-02T10:00:00,u1,Where was Marie Curie born?,00123
2026-01-02T10:05:00,u2,where was  marie curie born,d4;gone
2026-01-03,u2,On which river does the birthplace of Marie Curie lie?,
2026-01-03,u3,居里夫人在哪里出生？,d5
2026-01-04,u4,"Who was born first, Newton or Curie?",
2026-01-04,u4,,
"""
# What the two annotators of these tests think; everything else is irrelevant.
RELEVANT = {
    ("Where was", "00123"): 3, ("On which", "00123"): 2, ("On which", "405e34"): 3,
    ("居里夫人在哪里", "d5"): 3, ("Who was", "d4"): 2, ("Who was", "00123"): 2,
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    code: int
    output: str
    errors: str


class Build:
    """Runs the commands of `tuner dataset build` in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, code: int = 0) -> Answer:
        result = CliRunner().invoke(build, arguments)
        answer = Answer(result.exit_code, result.stdout, result.stderr)
        if isinstance(result.exception, InputError):
            error = result.exception
            answer = Answer(error.exit_code, result.stdout, f"{result.stderr}{error}")
        elif result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert answer.code == code, answer
        return answer


@pytest.fixture
def build_set(tmp_path, monkeypatch) -> Build:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    lines = [json.dumps(dict(zip(("_id", "title", "text"), d, strict=True))) for d in CORPUS]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "log.csv").write_text(LOG, encoding="utf-8")
    return Build(tmp_path)


def fill_in(source: str, target: str, **other: int) -> list[dict[str, str]]:
    """Grade a sheet as a spreadsheet would save it; ``other`` grades by document, differently."""
    text = Path(source).read_text(encoding="utf-8-sig")
    table = list(csv.DictReader(text.splitlines()))
    for row in table:
        id_ = row["document_id"].removeprefix("'")
        known = (grade for (start, d), grade in RELEVANT.items()
                 if d == id_ and row["query"].startswith(start))  # fmt: skip
        row["grade"] = str(other.get(id_, next(known, 0)))
    with Path(target).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(table)
    return table


def test_from_a_log_to_metrics(build_set, tuner):
    done = build_set("sample", "log.csv", "--size", "10", "--out", "queries.jsonl")
    assert done.output == "4 queries: queries.jsonl\n"
    assert "5 entries (1 more were blank), 4 distinct queries" in done.errors
    assert "only 4 queries are there, 10 were asked for" in done.errors

    done = build_set("pool", "queries.jsonl", "--corpus", ".", "--depth", "3", "--out", "sheet.csv")
    assert "passages to grade for 4 queries: sheet.csv" in done.output
    assert "clicked documents that are not in the corpus: 1" in done.errors
    first = fill_in("sheet.csv", "anna.csv")
    found = {(row["query"][:9], row["document_id"]) for row in first}
    # Ids and passages are written so that a spreadsheet keeps them.
    assert ("Where was", "'00123") in found
    # What was clicked is in the pool, whether a setting found it or not.
    assert ("Where was", "d4") in found
    assert not {"system", "score", "rank"} & set(first[0])

    fill_in("sheet.csv", "ben.csv", d6=1)
    done = build_set("agree", "anna.csv", "ben.csv", "--out", "settle.csv")
    assert "at least 0.8" in done.output
    assert "d6" in done.output
    done = build_set(
        "judge", "settle.csv", "--queries", "queries.jsonl", "--corpus", ".", "--out", "judged",
        code=2,
    )  # fmt: skip
    assert "settle.csv:2: " in done.errors
    assert "adjudicated is missing" in done.errors
    assert not Path("judged").exists()

    text = Path("settle.csv").read_text(encoding="utf-8-sig")
    Path("settled.csv").write_text(text.replace(",0,1,,", ",0,1,0,"), encoding="utf-8")
    done = build_set(
        "judge", "settled.csv", "--queries", "queries.jsonl", "--corpus", ".", "--out", "judged"
    )
    assert "4 queries" in done.output
    assert f"{len(RELEVANT)} of them relevant: judged" in done.output

    made = open_dataset("judged")
    assert {query.query_type for query in made.queries} >= {"place", "comparison"}
    judged = {d for grades in made.qrels.values() for d, grade in grades.items() if grade}
    assert judged == {"00123", "405e34", "d4", "d5"}

    (build_set.folder / "hybrid.yaml").write_text(
        "dataset: {path: judged, split: {holdout: 0}}\n"
        "space: {graph_weight: {type: real, low: 0.0, high: 1.0}}\n"
        "baseline: {graph_weight: 0.5}\n"
        "backends: [{kind: random, trials: 1}]\n"
        "tracking: null\n"
    )
    tuner.folder = build_set.folder
    record = json.loads(tuner("evaluate", "hybrid.yaml", "--json").stdout)
    assert record["queries"] == 4
    # Seven passages, ten places: what is relevant is found for all but perhaps a query that
    # shares no word and no name with its passages.
    assert record["metrics"]["recall@10"] >= 0.75


def test_below_the_gate_the_disagreements_are_listed_and_nothing_is_written(build_set, tuner):
    build_set("sample", "log.csv", "--out", "queries.jsonl")
    build_set("pool", "queries.jsonl", "--corpus", ".", "--out", "sheet.csv")
    fill_in("sheet.csv", "anna.csv")
    rows = fill_in("sheet.csv", "ben.csv", **{"00123": 0, "d4": 3, "d5": 0})
    done = build_set("agree", "anna.csv", "ben.csv", "--out", "settle.csv", code=1)
    assert "below 0.8; settle what the grades mean, then grade again" in done.output
    listed = [line for line in done.output.splitlines() if line.startswith("q") and "  " in line]
    assert len(listed) > 3
    assert not Path("settle.csv").exists()

    done = build_set("agree", "anna.csv", "ben.csv", "--json", "--weights", "none", code=1)
    record = json.loads(done.output)
    assert record["passed"] is False
    assert record["pairs"] == len(rows)
    assert len(record["disagreements"]) == len(listed) - 1  # the header begins with q as well
    assert record["kappa"] < 0.8

    # The process leaves with that code as well.
    done = tuner("dataset", "build", "agree", "anna.csv", "ben.csv", code=1)
    assert "below 0.8" in done.stdout

    build_set("agree", "anna.csv", "ben.csv", "--gate", "0", "--out", "settle.csv")
    assert Path("settle.csv").exists()


def test_disagreements_show_their_ids_whole_however_long_the_query(build_set):
    long = "Where was she born, " * 20
    ids = ("3hop1__404363_705261_126049", "0123456789abcdef0123456789abcdef")
    for name, grade in (("anna.csv", 0), ("ben.csv", 3)):
        Path(name).write_text(
            "query_id,query,document_id,title,passage,grade,comment\n"
            f'{ids[0]},"{long}",{ids[1]},Ada,She was,{grade},\n'
            f'{ids[0]},"{long}",d2,Ada,She was,1,\n',
            encoding="utf-8",
        )
    done = build_set("agree", "anna.csv", "ben.csv", code=1)
    assert all(id_ in done.output for id_ in ids)


def test_an_undefined_kappa_is_said_in_words_and_stops(build_set):
    build_set("sample", "log.csv", "--out", "queries.jsonl")
    build_set("pool", "queries.jsonl", "--corpus", ".", "--out", "sheet.csv")
    every = {id_: 1 for id_, _, _ in CORPUS}
    fill_in("sheet.csv", "anna.csv", **every)
    fill_in("sheet.csv", "ben.csv", **every)
    done = build_set("agree", "anna.csv", "ben.csv", code=1)
    assert "kappa is undefined: the first annotator gave grade 1 to all" in done.output
    assert "(100 % are the same)" in done.output


def test_a_sheet_of_one_annotator_is_judged_with_a_note(build_set):
    build_set("sample", "log.csv", "--out", "queries.jsonl")
    build_set("pool", "queries.jsonl", "--corpus", ".", "--out", "sheet.csv")
    fill_in("sheet.csv", "anna.csv")
    arguments = ("judge", "anna.csv", "--queries", "queries.jsonl", "--out", "judged")
    assert "give --corpus" in build_set(*arguments, code=2).errors
    done = build_set(*arguments, "--corpus", "corpus.jsonl")
    assert "one annotator's grades" in done.errors
    assert "is there already" in build_set(*arguments, "--corpus", ".", code=2).errors


def test_a_configuration_says_what_to_pool_and_runs_of_other_systems_are_added(build_set):
    build_set("sample", "log.csv", "--out", "queries.jsonl")
    ids = [json.loads(line)["_id"] for line in Path("queries.jsonl").read_text().splitlines()]
    Path("config.yaml").write_text(
        "dataset: {path: corpus.jsonl}\n"
        "space:\n"
        "  graph_weight: {type: real, low: 0.0, high: 1.0}\n"
        "  top_k: {type: integer, low: 1, high: 3}\n"
        "backends: [{kind: random, trials: 1}]\n"
    )
    done = build_set("pool", "queries.jsonl", "--config", "config.yaml", "--out", "a.csv")
    assert "pooled: 3 settings, 0 runs, depth 10" in done.errors  # default, text, graph

    Path("other.run").write_text("".join(f"{id_} Q0 d7 1 0.5 other\n" for id_ in ids))
    done = build_set(
        "pool", "queries.jsonl", "--config", "config.yaml", "--params", '{"graph_weight": 0.0}',
        "--depth", "1", "--run", "other.run", "--out", "b.csv",
    )  # fmt: skip
    assert "pooled: 1 settings, 1 runs, depth 1" in done.errors
    rows = list(csv.DictReader(Path("b.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert sum(row["document_id"] == "d7" for row in rows) == len(ids)
    assert all(row["passage"].startswith("'=cmd") for row in rows if row["document_id"] == "d7")

    Path("strange.run").write_text("x Q0 d7 1 0.5 other\n")
    arguments = ("pool", "queries.jsonl", "--config", "config.yaml")
    done = build_set(*arguments, "--run", "strange.run", "--out", "c.csv", code=2)
    assert "answers none of the queries" in done.errors
    done = build_set(*arguments, "--params", '{"graph_wait": 1}', "--out", "c.csv", code=2)
    assert "did you mean 'graph_weight'" in done.errors
    assert "may hold grades" in build_set(*arguments, "--out", "a.csv", code=2).errors
    assert "give --corpus" in build_set("pool", "queries.jsonl", "--out", "c.csv", code=2).errors


def test_sample_options(build_set, monkeypatch):
    def texts(*options: str) -> list[str]:
        for file in ("out.jsonl", "dropped.csv"):
            Path(file).unlink(missing_ok=True)
        build_set("sample", "log.csv", "--out", "out.jsonl", *options)
        return [json.loads(line)["text"] for line in Path("out.jsonl").read_text().splitlines()]

    assert len(texts("--size", "2")) == 2
    assert texts("--min-users", "2") == ["Where was Marie Curie born?"]
    assert texts("--since", "2026-01-04") == ["Who was born first, Newton or Curie?"]
    assert texts("--by", "traffic", "--size", "1") == texts("--by", "traffic", "--size", "1")
    assert set(texts("--column", "query=User ID")) == {"u1", "u2", "u3", "u4"}
    texts("--dropped", "dropped.csv", "--threshold", "0.4")
    assert len(Path("dropped.csv").read_text().splitlines()) > 1

    Path("own_types.py").write_text("def one(text):\n    return 'all', 'same'\n")
    monkeypatch.syspath_prepend(build_set.folder)
    texts("--classify", "own_types:one")
    records = map(json.loads, Path("out.jsonl").read_text().splitlines())
    assert {(record["query_type"], record["difficulty"]) for record in records} == {("all", "same")}


def test_a_sample_overwrites_nothing(build_set):
    for name in ("out.jsonl", "dropped.csv"):
        Path(name).write_text("kept")
        done = build_set(
            "sample", "log.csv", "--out", "out.jsonl", "--dropped", "dropped.csv", code=2
        )
        assert f"{name}: is there already" in done.errors
        assert Path(name).read_text() == "kept"
        Path(name).unlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--column", "query"), "write ROLE=NAME"),
        (("--column", "querry=a"), "did you mean 'query'"),
        (("--since", "2027-01-01"), "no query is left"),
        (("--classify", "rules"), "module:function"),
        (("--size", "0"), "Invalid value for '--size': 0"),
    ],
)
def test_what_sample_does_not_understand(build_set, arguments, message):
    done = build_set("sample", "log.csv", "--out", "out.jsonl", *arguments, code=2)
    assert message in done.errors
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize("grades", ["", "1", "0,x", "1,1", "0,-1"])
def test_grades_are_whole_numbers(build_set, grades):
    done = build_set("agree", "a.csv", "b.csv", "--grades", grades, code=2)
    assert "at least two whole numbers" in done.errors


def test_corners_are_ends_and_choices_without_the_depth():
    space = SearchSpace(
        {"w": Real(0.0, 1.0), "hops": Integer(1, 4), "top_k": Integer(3, 30),
         "mode": Categorical(("a", "b")), "one": Integer(5, 5)},
    )  # fmt: skip
    found = corners(space)
    assert len(found) == 8
    assert {(p["w"], p["hops"], p["mode"]) for p in found} == {
        (w, hops, mode) for w in (0.0, 1.0) for hops in (1, 4) for mode in "ab"
    }
    assert len({p["top_k"] for p in found}) == 1
    many = SearchSpace({f"p{i}": Real(0.0, 1.0) for i in range(6)})
    picked = corners(many)
    assert len(picked) == MOST_CORNERS
    assert set(picked[0].values()) == {0.0}
    assert set(picked[-1].values()) == {1.0}


def test_settings_are_complete_deep_enough_and_there_once():
    knobs = (
        Knob("w", "real", 0.5, 0.0, 1.0),
        Knob("top_k", "integer", 10, 1, 50),
        Knob("chunk", "integer", 200, 100, 400, stage="index"),
    )
    assert pool_settings([], None, knobs, depth=20) == [
        {"w": w, "top_k": 20, "chunk": 200} for w in (0.5, 0.0, 1.0)
    ]
    assert pool_settings([{"top_k": 3}, {"w": 1}, {"w": 1.0}], None, knobs, depth=80) == [
        {"w": 0.5, "top_k": 3, "chunk": 200}, {"w": 1.0, "top_k": 50, "chunk": 200},
    ]  # fmt: skip
    space = SearchSpace({"w": Real(0.2, 0.8)})
    found = pool_settings([], space, knobs, depth=5, baseline={"w": 0.3})
    assert [params["w"] for params in found] == [0.5, 0.3, 0.2, 0.8]
    assert space_of(knobs).names == ("w",)


def test_a_policy_stands_for_the_settings_of_all_its_types():
    policy = Policy(
        {"w": 0.5}, {"place": {"w": 0.9}, "time": {"w": 0.5}}, WordRule({"time": 0}, {})
    )
    knobs = (Knob("w", "real", 0.5, 0.0, 1.0),)
    record = policy.to_record()
    assert pool_settings([record], None, knobs, depth=5) == [{"w": 0.5}, {"w": 0.9}]
    found = pool_settings([], SearchSpace({"w": Real(0.0, 1.0)}), knobs, depth=5, baseline=record)
    assert [params["w"] for params in found] == [0.5, 0.9, 0.0, 1.0]
