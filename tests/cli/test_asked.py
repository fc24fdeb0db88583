"""What was asked of a system is told, to the query: by a function that counts its calls."""

from __future__ import annotations

import json
import re

import pytest

FUNCTION = """
import json
import pathlib

HERE = pathlib.Path(__file__).parent
DOCUMENTS = [json.loads(one) for one in (HERE / "data" / "corpus.jsonl").read_text().splitlines()]


def search(query, top_k=5, title_weight=1.0):
    with open(HERE / "asked.txt", "a") as asked:
        asked.write(query + "\\n")
    words = set(query.lower().strip("?").split())
    scored = sorted(
        (
            -len(words & set(d["text"].lower().split()))
            - title_weight * len(words & set(d["title"].lower().split())),
            d["_id"],
        )
        for d in DOCUMENTS
    )
    return [id_ for _, id_ in scored[:top_k]]
"""

CONFIG = """\
study: {name: counted, seed: 3}
dataset: {path: data, split: {holdout: 0.5}}
retriever: {kind: function, function: "counting:search"}
space:
  title_weight: {type: real, low: 0.0, high: 4.0}
metrics: [latency_p95_ms]
objective: {maximize: {mrr@10: 1.0}}
baseline: {title_weight: -3.0, top_k: 4}
backends: [{kind: random, trials: 4}]
execution: {kind: inline}
tracking: null
"""


@pytest.fixture
def counted(tuner_here):
    (tuner_here.folder / "counting.py").write_text(FUNCTION, encoding="utf-8")
    (tuner_here.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return tuner_here


def asked(tuner) -> int:
    """Return how many calls there were since the last time."""
    path = tuner.folder / "asked.txt"
    count = len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0
    path.unlink(missing_ok=True)
    return count


@pytest.mark.parametrize("racing", ["", "racing: {}\n"])
def test_the_queries_that_time_a_trial_are_counted_for_that(counted, racing):
    counted.edit("execution:", f"{racing}execution:")
    record = json.loads(counted("run", "config.yaml", "--json").stdout)
    told = record["queries_asked"]
    assert sum(told.values()) == asked(counted)
    # 5 trials of 10 queries each, of which 10 are timed after one that is not.
    assert (told["trials"], told["timed_in_trials"]) == (50, 55)
    assert told["timed"] == 22  # winner and baseline, as they are scored
    assert told["holdout"] == 20  # each once


def test_the_summary_page_and_note_say_what_timing_asked(counted, quick):
    done = counted("run", "config.yaml")
    assert "50 queries asked in trials, " in done.stdout
    assert " besides: 55 to time queries in trials, " in done.stdout
    assert ", 22 to time queries, " in done.stdout
    (run_dir,) = counted.runs()
    assert "55 to time queries in trials" in (run_dir / "report.html").read_text(encoding="utf-8")


def test_what_is_not_tuned_is_as_in_the_baseline_in_every_view(counted):
    done = counted("run", "config.yaml")
    rows = [line for line in done.stdout.splitlines() if "title_weight=" in line]
    assert len(rows) == 3  # the baseline, the arm and the winner
    assert all(" top_k=4" in row for row in rows)
    (run_dir,) = counted.runs()
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    (row,) = (part for part in page.split("<tr>") if re.match(r"<th[^>]*>top_k</th>", part))
    assert row.count(">4<") == 2
    assert "changed" not in row


def test_an_evaluation_says_what_it_asked(counted):
    record = json.loads(counted("evaluate", "config.yaml", "--json").stdout)
    assert record["queries_asked"] == {"evaluation": 10, "timed": 11}
    assert asked(counted) == 21
    done = counted("evaluate", "config.yaml")
    assert "21 queries asked: 10 to evaluate, 11 to time queries" in done.stderr


def test_a_comparison_asks_each_side_once_and_says_so(counted):
    b = '{"title_weight": 3.0, "top_k": 4}'
    record = json.loads(counted("compare", "config.yaml", "--b", b, "--json").stdout)
    assert record["queries_asked"] == {"verdict": 20, "asked_twice": 10}
    assert asked(counted) == 30
    done = counted("compare", "config.yaml", "--b", b)
    assert "30 queries asked: 20 for the verdict, 10 to see whether the same" in done.stderr
    asked(counted)
    same = '{"title_weight": -3.0, "top_k": 4}'
    record = json.loads(counted("compare", "config.yaml", "--b", same, "--json").stdout)
    assert record["queries_asked"] == {"verdict": 10}
    assert asked(counted) == 10


def slow(tuner, seconds=0.004):
    path = tuner.folder / "counting.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("    words =", f"    import time; time.sleep({seconds})\n    words ="),
        encoding="utf-8",
    )


def test_a_comparison_takes_what_a_run_has_asked_from_its_directory(counted):
    slow(counted)
    counted("run", "config.yaml")
    (run_dir,) = counted.runs()
    asked(counted)
    compare = ("compare", "config.yaml", "--b", str(run_dir), "--json")
    record = json.loads(counted(*compare).stdout)
    assert record["verdict"]["outcome"] == "deploy"
    assert (record["queries_asked"], asked(counted)) == ({}, 0)


@pytest.mark.slow
def test_a_run_that_ended_is_resumed_without_a_query_and_judged_anew_where_it_must_be(counted):
    slow(counted, 0.06)  # where a query by itself is timed
    counted.edit("execution: {kind: inline}", "execution: {kind: threads, workers: 2}")
    first = json.loads(counted("run", "config.yaml", "--json").stdout)
    (run_dir,) = counted.runs()
    assert first["queries_asked"]["query_time"] > 0
    asked(counted)
    again = json.loads(counted("resume", str(run_dir), "--json").stdout)
    assert asked(counted) == 0
    for name in ("verdict", "winner", "remarks", "queries_asked", "state"):
        assert again[name] == first[name]
    path = run_dir / "config.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("alpha: 0.05", "alpha: 0.01"), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != text
    judged = json.loads(counted("resume", str(run_dir), "--json").stdout)
    assert judged["verdict"] != first["verdict"]


def test_another_budget_alone_asks_nothing_of_a_run_that_has_ended(counted):
    slow(counted)
    first = json.loads(counted("run", "config.yaml", "--json").stdout)
    (run_dir,) = counted.runs()
    asked(counted)
    path = run_dir / "config.yaml"
    text = path.read_text(encoding="utf-8")
    smaller = text.replace("query_evaluations: null", "query_evaluations: 10")
    assert smaller != text
    path.write_text(smaller, encoding="utf-8")
    again = json.loads(counted("resume", str(run_dir), "--json").stdout)
    assert asked(counted) == 0
    assert again["verdict"] == first["verdict"]


def test_a_check_asks_nothing_and_says_so(counted):
    done = counted("check", "config.yaml")
    line = "the system was not asked: tuner evaluate config.yaml asks it once"
    assert done.stdout.splitlines()[-2:] == [line, "ok"]
    assert json.loads(counted("check", "config.yaml", "--json").stdout)["system"] == line
    assert asked(counted) == 0


def fails_above(tuner, limit):
    path = tuner.folder / "counting.py"
    text = path.read_text(encoding="utf-8")
    fail = f"    if title_weight > {limit}: raise ValueError('too much')\n    words ="
    path.write_text(text.replace("    words =", fail), encoding="utf-8")


def summary_of(run_dir):
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for line in lines if (event := json.loads(line)).get("kind") == "summary"][-1]


def test_a_run_that_failed_says_what_it_asked(counted, quick):
    fails_above(counted, -2.9)
    done = counted("run", "config.yaml", code=1)
    # Of 4 trials the first query failed. Besides the 11 that time the baseline, 10 tell why it
    # finds nothing.
    assert "14 queries asked in trials, 21 besides: 11 to time queries in trials" in done.stdout
    assert "not counted" not in done.stdout
    (run_dir,) = counted.runs()
    told = summary_of(run_dir)
    assert told["queries_asked"]["trials"] == 14
    parts = {part["name"]: part["queries"] for part in told["spent"]["parts"]}
    assert parts == {"baseline": 21, "search": 4, "probing": 10}
    assert sum(parts.values()) == asked(counted)
    record = json.loads(counted("run", "config.yaml", "--json", code=1).stdout)
    assert record["queries_asked"]["timed_in_trials"] == 11


AT_A_CALL = """
COUNT = [0]


def interrupted_at(number):
    COUNT[0] += 1
    if COUNT[0] == number and not (HERE / "once").exists():
        import signal
        (HERE / "once").touch()
        signal.raise_signal(signal.SIGINT)


"""


def interrupt(tuner, call):
    path = tuner.folder / "counting.py"
    text = path.read_text(encoding="utf-8").replace("def search", f"{AT_A_CALL}def search")
    text = text.replace("    words =", f"    interrupted_at({call})\n    words =")
    path.write_text(text, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("call", [50, 5 * 21 + 10 + 8], ids=["search", "verdict"])
def test_a_run_that_was_interrupted_says_what_it_asked(tuner, counted, call):
    interrupt(counted, call)
    done = tuner("run", "config.yaml", code=130)
    assert " queries asked in trials, " in done.stdout
    assert "not counted" not in done.stdout
    (run_dir,) = counted.runs()
    first = asked(counted)
    assert sum(summary_of(run_dir)["queries_asked"].values()) == first >= call
    best = (run_dir / "best.yaml").read_text(encoding="utf-8")
    assert best.startswith("# best so far, of an interrupted study: no verdict\nparams:")
    again = json.loads(tuner("resume", str(run_dir), "--json").stdout)
    assert again["state"] == "finished"
    assert sum(again["queries_asked"].values()) == first + asked(counted)
    assert not (run_dir / "best.yaml").read_text(encoding="utf-8").startswith("#")
