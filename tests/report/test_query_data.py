"""All queries: an index in the page, and what opening one shows in files beside it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shlex
from dataclasses import replace

import pytest

from tuner.cli.ask import command as ask
from tuner.report import query_data as module
from tuner.report.query_data import query_data
from tuner.report.review import read_review
from tuner.report.writing import write_report
from tuner.run.side_by_side import read_side_by_side, write_side_by_side

ATTACK = "</script><script>alert(1)</script>'); alert(2); ('\\\u2028"


def index_of(page):
    text = page.read_text(encoding="utf-8")
    packed = re.search(r'id="query-index">([^<]*)<', text).group(1)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def content_of(path):
    """Return what a file hands over, as a browser reads it: a JSON text within a script's text."""
    script = path.read_text(encoding="utf-8")
    name, key, text = re.fullmatch(
        r"reportData\('([a-z]+-\d+)', '([0-9a-f]+)', '(.*)'\);\n", script, re.DOTALL
    ).groups()
    assert name == path.stem
    assert not re.search(r"(?<!\\)(\\\\)*'", text)  # no quote ends the text before its end
    return key, json.loads(re.sub(r"\\(.)", r"\1", text))


def test_the_page_has_every_query_and_the_files_beside_it_their_passages(study):
    run_dir = study()
    page = write_report(run_dir, with_plots=False)
    index = index_of(page)
    (block,) = index["blocks"]
    assert index["count"] == len(block["id"]) == 80
    assert sum(block["holdout"]) == 40
    assert block["relevant"] == [["d1"]] * 80
    winner, baseline = block["sides"]
    assert (winner["ranks"][0], baseline["ranks"][0]) == ([2], [9])
    changes = [a - b for a, b in zip(winner["composite"], baseline["composite"], strict=True)]
    assert [abs(change) for change in changes] == sorted(map(abs, changes), reverse=True)
    key, chunk = content_of(run_dir / "report-data" / "queries-0001.js")
    assert key == index["key"]
    assert len(chunk["queries"]) == 80
    assert len(chunk["passages"]) == 10  # each once
    first = chunk["queries"][0]["sides"][0][1]
    assert chunk["passages"][first[0]][:2] == ["d1", "Title 1"]
    assert first[1:] == [1, 0.9, [0.1, 0.5]]
    assert index["legs"] == ["graph", "text"]
    assert chunk["queries"][0]["why"].startswith("“Title 1” rose from rank 9 to 2. Before it with")


def test_every_trial_that_kept_its_values_has_its_ranks_beside_the_page(study):
    run_dir = study(failing=1, stopped=1)
    index = index_of(write_report(run_dir, with_plots=False))
    numbers = {number for number, _ in index["trials"]["file"]}
    assert numbers == {0, *range(2, 32)}  # trial 1 failed; the last was stopped, without values
    _, trials = content_of(run_dir / "report-data" / "trials-0001.js")
    found = {number: ranks for number, _, ranks in trials}
    assert found[3] == [2**10 + 2**1] * 40
    assert found[4] == [2**10 + 2**8] * 40


def test_hostile_texts_stay_within_the_text_of_a_file(study):
    run_dir = study(texts=ATTACK)
    write_report(run_dir, with_plots=False)
    _, chunk = content_of(run_dir / "report-data" / "queries-0001.js")
    assert chunk["queries"][0]["text"].endswith(ATTACK)
    assert {passage[1] for passage in chunk["passages"]} == {
        f"Title {n}{ATTACK}" for n in range(10)
    }


@pytest.mark.parametrize("texts", ["", ATTACK])
@pytest.mark.parametrize("begin", ["", "-"])
def test_a_query_has_the_line_that_asks_it_of_winner_and_baseline(study, texts, begin):
    run_dir = study(texts=texts)
    rows = read_side_by_side(run_dir)
    rows = [replace(row, query_id=f"{begin}{row.query_id}") for row in rows]
    write_side_by_side(run_dir, rows)
    run_dir = run_dir.rename(run_dir.with_name("my run's folder"))
    config, best = run_dir / "config.yaml", run_dir / "best.yaml"
    config.write_text("")
    best.write_text("")
    index = index_of(write_report(run_dir, with_plots=False))
    _, chunk = content_of(run_dir / "report-data" / "queries-0001.js")
    ids = index["blocks"][0]["id"]
    for id_, query in list(zip(ids, chunk["queries"], strict=True))[:3]:
        tuner, name, *words = shlex.split(query["ask"])
        assert (tuner, name) == ("tuner", "ask")
        # As the command itself reads it.
        given = ask.make_context("ask", words).params
        assert (given["config"], given["question"]) == (str(config), id_)
        assert (given["params"], given["compare"]) == (str(best), "baseline")


@pytest.mark.parametrize("missing", ["config.yaml", "best.yaml"])
def test_no_line_is_given_that_could_not_run(study, missing):
    run_dir = study()
    for name in ("config.yaml", "best.yaml"):
        (run_dir / name).write_text("")
    (run_dir / missing).unlink()
    write_report(run_dir, with_plots=False)
    _, chunk = content_of(run_dir / "report-data" / "queries-0001.js")
    assert {query["ask"] for query in chunk["queries"]} == {""}


def test_many_queries_leave_the_page_small(study, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 20)
    monkeypatch.setattr(module, "MOST_IN_PAGE", 2_500)
    monkeypatch.setattr(module, "FILE_CHARACTERS", 30_000)
    run_dir = study(queries=100)
    index = index_of(write_report(run_dir, with_plots=False))
    assert 0 < len(index["blocks"]) < 10
    files = sorted(path.name for path in (run_dir / "report-data").iterdir())
    beside = [name for name in files if name.startswith("index")]
    assert len(beside) == 10 - len(index["blocks"])
    ids = [id_ for block in index["blocks"] for id_ in block["id"]]
    for name in beside:
        ids += content_of(run_dir / "report-data" / name)[1]["id"]
    assert sorted(ids) == sorted([f"{part}{n}" for part in "qt" for n in range(100)])
    chunks = [name for name in files if name.startswith("queries")]
    assert len(chunks) == len(index["chunks"]) > 1
    counts = [len(content_of(run_dir / "report-data" / name)[1]["queries"]) for name in chunks]
    ends = [*index["chunks"][1:], 200]
    assert counts == [end - begin for begin, end in zip(index["chunks"], ends, strict=True)]


def test_texts_beyond_what_is_kept_are_left_out(study, monkeypatch):
    monkeypatch.setattr(module, "MOST_CHARACTERS", 2_000)
    run_dir = study()
    write_report(run_dir, with_plots=False)
    _, chunk = content_of(run_dir / "report-data" / "queries-0001.js")
    texts = [passage[2] for passage in chunk["passages"]]
    assert sum(text is not None for text in texts) == 3  # of 630 characters
    assert all(passage[1] for passage in chunk["passages"])


def test_a_page_elsewhere_has_its_own_folder_and_an_earlier_one_leaves_nothing(study, tmp_path):
    run_dir = study()
    write_report(run_dir, output=tmp_path / "mine.html")
    assert 'data-folder="mine-data"' in (tmp_path / "mine.html").read_text()
    assert (tmp_path / "mine-data" / "queries-0001.js").is_file()
    stale = tmp_path / "mine-data" / "queries-0099.js"
    stale.write_text("")
    other = tmp_path / "mine-data" / "my-own.js"
    other.write_text("")
    write_report(run_dir, output=tmp_path / "mine.html")
    assert not stale.exists()
    assert other.exists()


def test_answers_and_texts_that_were_not_kept_are_named_so(study):
    run_dir = study()
    (run_dir / "passages.jsonl").unlink()
    rows = read_side_by_side(run_dir, name="tune_queries.jsonl")
    records = [row.to_record() for row in rows]
    for record in records:
        record["winner"] |= {"retrieved": [], "found": {}, "is_kept": False}
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (run_dir / "tune_queries.jsonl").write_text(lines)
    index = index_of(write_report(run_dir, with_plots=False))
    (block,) = index["blocks"]
    place = block["id"].index("t3")
    assert block["sides"][0]["kept"][place] == 0
    assert block["sides"][0]["ranks"][place] in ([2], [9])  # as the winner's trial kept them
    _, chunk = content_of(run_dir / "report-data" / "queries-0001.js")
    assert {passage[2] for passage in chunk["passages"]} == {None}


@pytest.mark.parametrize(
    "options", [{"has_baseline": False}, {"has_dataset": False}, {"state": None}]
)
def test_a_study_without_two_answers_has_no_list(study, options):
    run_dir = study(**options)
    assert query_data(read_review(run_dir)) is None
    page = write_report(run_dir, with_plots=False)
    assert 'id="query-list"' not in page.read_text()
    assert not (run_dir / "report-data").exists()


def test_without_held_out_queries_the_list_has_those_of_the_search(study):
    run_dir = study(has_holdout=False)
    index = index_of(write_report(run_dir, with_plots=False))
    assert index["count"] == 40
    assert index["blocks"][0]["holdout"] == [0] * 40
    assert sorted(index["blocks"][0]["tune"]) == list(range(40))
    assert not (run_dir / "tune_queries.jsonl").exists()
