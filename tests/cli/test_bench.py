"""tuner bench: any retriever under load, failures and stages included."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FAST = ("--duration", "100ms", "--warmup", "20ms")


def test_closed_and_open_loops_as_one_object(tuner_here):
    done = tuner_here(
        "bench", "config.yaml", *FAST, "--concurrency", "1,3", "--rate", "40,80",
        "--params", '{"top_k": 2}', "--json",
    )  # fmt: skip
    record = json.loads(done.stdout)
    assert record["params"]["top_k"] == 2
    assert (record["duration_s"], record["warmup_s"]) == (0.1, 0.02)
    levels = record["levels"]
    assert [(level["loop"], level.get("workers"), level.get("rate_qps")) for level in levels] == [
        ("closed", 1, None),
        ("closed", 3, None),
        ("open", None, 40.0),
        ("open", None, 80.0),
    ]
    for level in levels:
        total = level["latency"]["total"]
        assert total["min_ms"] <= total["p50_ms"] <= total["p99_ms"] <= total["max_ms"]
    for level in levels[:2]:
        assert level["latency"]["total"]["errors"] == 0
        assert level["qps"] > 0
    # a rate of 40 for a tenth of a second is 4 arrivals
    assert [level["latency"]["total"]["count"] for level in levels[2:]] == [4, 8]
    assert "4 loads of 0.1 s" in done.stderr
    assert "rests on the slowest hundredth of few queries" in done.stderr
    assert "rate 40/s 4" in done.stderr


@pytest.mark.slow
def test_a_table_with_stages_and_a_picture(tuner):
    text = (tuner.folder / "word_overlap.py").read_text()
    told = "context_tokens=tokens, seconds={'graph': 0.5, 'vector': 0.25}"
    (tuner.folder / "word_overlap.py").write_text(text.replace("context_tokens=tokens", told))
    done = tuner("bench", "config.yaml", *FAST, "--concurrency", "1,2", "--plot", "curve.png")
    rows = {line.split("  ")[0].strip(): line.split() for line in done.stdout.splitlines()}
    assert done.stdout.splitlines()[0] == "title_weight=1 top_k=10 mode=plain"
    assert "QPS" in done.stdout
    assert int(rows["1 worker"][2]) > 0
    assert rows["2 workers"][3] == "0"
    assert "500" in rows["graph"]
    assert "250" in rows["vector"]
    assert (tuner.folder / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_queries_that_were_asked_again_are_told(tuner_here):
    text = (tuner_here.folder / "word_overlap.py").read_text()
    told = "context_tokens=tokens, seconds={'call': 0.75, 'retries': 0.5}"
    (tuner_here.folder / "word_overlap.py").write_text(text.replace("context_tokens=tokens", told))
    done = tuner_here("bench", "config.yaml", *FAST, "--concurrency", "1")
    assert "queries were asked again after an error or a busy answer, which took 500 ms" in (
        " ".join(done.stderr.split())
    )
    assert any(line.split()[:1] == ["retries"] for line in done.stdout.splitlines())


def test_failures_are_counted_and_said_and_all_of_them_end_it(tuner_here):
    text = (tuner_here.folder / "word_overlap.py").read_text()
    every_second = text.replace(
        "class WordOverlap", "import itertools\nCALLS = itertools.count()\n\nclass WordOverlap"
    ).replace(
        "        weight, depth",
        "        if next(CALLS) % 2:\n"
        "            raise RuntimeError('the river is\\ndry')\n"
        "        weight, depth",
    )
    (tuner_here.folder / "word_overlap.py").write_text(every_second)
    done = tuner_here("bench", "config.yaml", *FAST, "--concurrency", "2", "--json")
    (level,) = json.loads(done.stdout)["levels"]
    total = level["latency"]["total"]
    assert 0.0 < total["error_rate"] < 1.0
    assert level["failures"] == {"RuntimeError: the river is dry": total["errors"]}
    assert f"{total['errors']} of {total['count']} failed, such as: RuntimeError" in done.stderr

    done = tuner_here("bench", "config.yaml", *FAST, "--params", '{"mode": "crash"}', code=1)
    assert "error: no query is answered: RuntimeError: the" in done.stderr


@pytest.mark.slow
def test_a_load_that_does_not_end_is_told_and_ctrl_c_shows_those_that_did(tuner):
    text = (tuner.folder / "word_overlap.py").read_text()
    # One call to warm up and one that counts at the first rate; the third is never answered.
    hangs = text.replace(
        "class WordOverlap",
        "import itertools, threading\nCALLS = itertools.count()\n\nclass WordOverlap",
    ).replace(
        "        weight, depth",
        "        if next(CALLS) >= 2:\n            threading.Event().wait()\n        weight, depth",
    )
    (tuner.folder / "word_overlap.py").write_text(hangs)
    process = subprocess.Popen(
        tuner.command("bench", "config.yaml", *FAST, "--rate", "10,20", "--json"),
        cwd=tuner.folder,
        env=tuner.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told = []
        for line in process.stderr:
            told.append(line.strip())
            if "calls have not ended 5 s after their load" in line:
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=900)
    finally:
        process.kill()
    assert told[-2:] == [
        "rate 10/s: 1 query",
        "calls have not ended 5 s after their load; they are waited for, as they count (Ctrl-C "
        "ends it)",
    ]
    assert process.returncode == 130
    assert errors.strip() == "interrupted"
    record = json.loads(output)  # one object, as promised, with what was measured so far
    assert [level["rate_qps"] for level in record["levels"]] == [10.0]
    assert record["is_interrupted"] is True


def test_without_a_baseline_or_a_default_it_is_said_what_was_asked_with(tuner_here):
    (tuner_here.folder / "finds.py").write_text(
        "def search(query, top_k, mode='plain'):\n    return ['Lima-river'][:top_k]\n"
    )
    (tuner_here.folder / "function.yaml").write_text(
        "dataset: {path: data}\n"
        "retriever: {kind: function, function: 'finds:search'}\n"
        "space:\n"
        "  top_k: {type: integer, low: 1, high: 21}\n"
        "  mode: {type: categorical, choices: [other, plain]}\n"
    )
    bench = ("bench", "function.yaml", *FAST, "--concurrency", "1")
    done = tuner_here(*bench, "--json")
    assert json.loads(done.stdout)["params"] == {"top_k": 11, "mode": "plain"}
    note = "no default says what top_k is today: asked with the middle of the space; give --params"
    assert note in done.stderr
    assert note not in tuner_here(*bench, "--params", '{"top_k": 3}').stderr
    assert note not in tuner_here(*bench, "--set", 'baseline={"top_k": 3}').stderr


def test_bad_input_ends_with_code_2_before_anything_is_measured(tuner_here):
    for arguments, message in (
        (("--duration", "soon"), "'soon' is no duration; write 30s, 500ms or 2m"),
        (("--duration", "0s"), "must be above 0"),
        # Were it taken, the next would be named, and nothing measured for a day.
        (("--duration", "86400.5s", "--params", '{"top_j": 3}'), "at most a day"),
        (("--concurrency", "1,x"), "'x' is no whole number"),
        (("--concurrency", "0"), "0 must be above 0"),
        (("--concurrency", "5000"), "at most 1024"),
        (("--rate", "fast"), "'fast' is no number"),
        (("--rate", "nan"), "nan must be above 0"),
        (("--rate", "1e6", "--duration", "1h"), "more than 10,000,000 arrivals"),
        (("--params", '{"top_j": 3}'), "did you mean 'top_k'?"),
        (("--plot", "curve.txt"), "a file that ends in .pdf, .png, .svg"),
        (("--plot", "nowhere/curve.png"), "no folder nowhere"),
    ):
        done = tuner_here("bench", "config.yaml", *FAST, *arguments, code=2)
        assert message in done.stderr, done.stderr
        assert done.stdout == ""


def test_a_system_that_measures_itself_answers_nothing(tuner_here):
    (tuner_here.folder / "own.py").write_text("def measure(top_k):\n    return {'score': 1.0}\n")
    (tuner_here.folder / "own.yaml").write_text(
        "retriever: {kind: function, function: 'own:measure'}\n"
        "space: {top_k: {type: integer, low: 1, high: 3}}\n"
        "objective: {maximize: {score: 1.0}}\n"
        "backends: [{kind: random, trials: 2}]\n"
        "tracking: null\n"
    )
    done = tuner_here("bench", "own.yaml", *FAST, code=2)
    assert "measures itself" in done.stderr


COMMAND = """\
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    city = asked["query"].rstrip("?").split()[-1]
    found = [f"{city}-river", f"{city}-market"][: asked["params"]["top_k"]]
    print(json.dumps({"id": asked["id"], "results": found}), flush=True)
"""
GRAPHRAG = Path(__file__).resolve().parents[1] / "retrieval" / "data" / "ms_graphrag"


def _command(folder):
    (folder / "my_command.py").write_text(COMMAND, encoding="utf-8")
    command = json.dumps([sys.executable, "my_command.py"])
    return f"{{kind: command, command: {command}}}", "{path: data}", "top_k", "call"


def _runs(folder):
    written = (folder / "data" / "queries.jsonl").read_text(encoding="utf-8")
    queries = [json.loads(line) for line in written.splitlines()]
    for leg, part in (("graph", "river"), ("text", "market")):
        lines = [
            f"{query['_id']} Q0 {city}-{part} 1 0.5 {leg}\n"
            for query in queries
            for city in query["text"].rstrip("?").split()[-1:]
        ]
        (folder / f"{leg}.run").write_text("".join(lines), encoding="utf-8")
    legs = "{kind: runs, legs: {graph: graph.run, text: text.run}}"
    return legs, "{path: data}", "rrf_k", "fuse"


def _ms_graphrag(folder):
    shutil.copytree(GRAPHRAG, folder / "project")
    return "{kind: ms_graphrag, path: project/output}", "{path: project/data}", "top_k", "graph"


@pytest.mark.parametrize("kind", [_command, _runs, _ms_graphrag])
def test_every_kind_of_retriever_can_be_measured(tuner_here, kind):
    retriever, dataset, knob, stage = kind(tuner_here.folder)
    (tuner_here.folder / "other.yaml").write_text(
        f"dataset: {dataset}\nretriever: {retriever}\n"
        f"space: {{{knob}: {{type: integer, low: 1, high: 9}}}}\n"
        f"baseline: {{{knob}: 2}}\n"
        "backends: [{kind: random, trials: 2}]\ntracking: null\n",
        encoding="utf-8",
    )
    done = tuner_here("bench", "other.yaml", *FAST, "--concurrency", "2", "--rate", "50", "--json")
    for level in json.loads(done.stdout)["levels"]:
        total = level["latency"]["total"]
        assert (level["failures"], total["errors"]) == ({}, 0)
        assert level["latency"][stage]["count"] == total["count"] > 0
        assert 0.0 <= level["latency"][stage]["max_ms"] <= total["max_ms"]
