"""What a run says that it spent is what a paid service counted, to the query, whatever happened."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.paid import PaidService

TOKENS = 500.0
SENDERS = 4  # two trials at a time, each with two queries under way
CONFIG = """\
study: {name: paid, seed: 3}
dataset: {path: data, split: {holdout: 0.5}}
retriever:
  kind: http
  url: URL
  request: {query: query, params: params}
  response: "@"
  concurrency: 2
  retry_wait_s: 0.01
space:
  title_weight: {type: real, low: 0.0, high: 4.0}
objective: {maximize: {mrr@10: 1.0}}
baseline: {title_weight: 3.0, top_k: 4}
backends: [{kind: random, trials: 8}]
execution: {kind: threads, workers: 2}
tracking: null
"""


def answer(query: str, params: Mapping[str, Any]) -> tuple[Mapping[str, Any], float]:
    words = query.removesuffix("?").split()
    part, city = words[4], words[6]
    found = [f"{city}-{part}", f"{city}-{'market' if part == 'river' else 'river'}"]
    worse = params["title_weight"] > 2
    return {"results": found[::-1] if worse else found, "context_tokens": TOKENS}, TOKENS


@pytest.fixture
def service() -> Iterator[PaidService]:
    service = PaidService(answer)
    yield service
    service.close()


def configure(folder: Path, service: PaidService, *lines: str) -> None:
    text = CONFIG.replace("URL", service.url) + "".join(f"{line}\n" for line in lines)
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def parts(record: dict[str, Any]) -> dict[str, int]:
    return {part["name"]: part["queries"] for part in record["spent"]["parts"]}


@pytest.mark.slow
def test_tries_that_failed_are_counted(tuner_here, service: PaidService) -> None:
    configure(tuner_here.folder, service)
    service.fails_at = {3, 50}
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["failed_trials"] == 0
    # 9 trials of 10 queries, two of which were tried twice.
    assert record["queries_asked"]["trials"] == 92
    assert sum(parts(record).values()) == sum(record["queries_asked"].values()) == service.asked
    assert parts(record)["baseline"] in (11, 10)  # the third is perhaps the first trial's
    # The verdict, and on a slow machine the look for parameters without effect, read again what
    # was asked before: nothing was saved by that. And of the two trials that were asked again, up
    # to nine answers each had been kept.
    assert 0 <= record["spent"]["kept"] <= 18


@pytest.mark.slow
def test_what_a_killed_run_asked_is_counted_when_it_goes_on(tuner, service: PaidService) -> None:
    configure(tuner.folder, service)
    started = subprocess.Popen(
        tuner.command("run", "config.yaml", "--quiet"), cwd=tuner.folder, env=tuner.environment
    )
    service.at = {47: lambda: started.send_signal(signal.SIGKILL)}
    assert started.wait(900) == -signal.SIGKILL
    before = service.asked
    assert 47 <= before < 90
    (run_dir,) = tuner.runs()
    record = json.loads(tuner("resume", str(run_dir), "--json").stdout)
    assert record["state"] == "finished"
    assert service.asked > before
    told = sum(record["queries_asked"].values())
    assert told == sum(parts(record).values())
    # A query is told just before it is sent: what was killed in between is told and not asked.
    assert 0 <= told - service.asked <= SENDERS


@pytest.mark.parametrize("racing", [(), ("racing: {}",)], ids=["whole", "racing"])
def test_a_budget_of_queries_is_never_passed_and_leaves_a_verdict(
    tuner_here, service: PaidService, racing: tuple[str, ...]
) -> None:
    # The baseline asks 10, and 30 are kept for the verdict, so there is room for 3 trials of 10.
    configure(tuner_here.folder, service, "budget: {query_evaluations: 75}", *racing)
    done = tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    assert service.asked <= 75
    assert "budget: 75 query evaluations; what the verdict needs is kept aside: up to 30" in (
        done.stderr
    )
    assert "the budget of 75 query evaluations is used up" in done.stderr
    asked = service.asked
    record = json.loads(tuner_here("resume", str(run_dir), "--json").stdout)
    assert service.asked == asked  # nothing more is spent without a word
    assert record["state"] == "finished"
    assert record["ended_by"].startswith("the budget of 75 query evaluations is used up")
    assert record["verdict"]["outcome"] == "deploy"
    assert record["finished_trials"] + record["raced_out_trials"] >= 4
    assert racing or record["finished_trials"] == 4  # 10 + 3 * 10 + 30 = 70, and 80 > 75
    assert sum(parts(record).values()) == asked


@pytest.mark.slow
def test_a_budget_of_money_counts_queries_and_tokens(tuner_here, service: PaidService) -> None:
    # A query costs 0.01 and 500 tokens at 0.02 a thousand: 0.02 in all. The baseline 0.20, the
    # verdict 0.60 at most, and so 3 trials of 0.20 fit into 1.50.
    lines = (
        "budget: {money: 1.5, minutes: 60}",
        "cost: {per_query: 0.01, per_1000_tokens: 0.02}",
    )
    configure(tuner_here.folder, service, *lines)
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["finished_trials"] == 4
    assert record["spent"]["money"] == pytest.approx(0.02 * service.asked)
    assert record["spent"]["money"] <= 1.5
    tokens = sum(part["tokens"] for part in record["spent"]["parts"])
    assert tokens == TOKENS * service.asked
    assert record["ended_by"].startswith("the budget of money 1.50 is used up")


@pytest.mark.slow
def test_a_run_killed_within_its_budget_ends_as_one_that_was_not(
    tuner, service: PaidService
) -> None:
    configure(tuner.folder, service, "budget: {query_evaluations: 75}")
    whole = json.loads(tuner("run", "config.yaml", "--json").stdout)
    begun = service.asked
    started = subprocess.Popen(
        tuner.command("run", "config.yaml", "--quiet", "--name", "killed"),
        cwd=tuner.folder,
        env=tuner.environment,
    )
    service.at = {begun + 23: lambda: started.send_signal(signal.SIGKILL)}
    assert started.wait(900) == -signal.SIGKILL
    (run_dir,) = [path for path in tuner.runs() if path.name.startswith("killed")]
    record = json.loads(tuner("resume", str(run_dir), "--json").stdout)
    assert record["winner"]["params"] == whole["winner"]["params"]
    assert 0 <= sum(record["queries_asked"].values()) - (service.asked - begun) <= SENDERS
    # What was under way was lost, at most two calls of two queries each, and may be missing now.
    assert whole["finished_trials"] - record["finished_trials"] in (0, 1)
    assert service.asked - begun <= 75


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("budget: {money: 5}",), "budget.money: nobody knows what the system costs: add `cost:"),
        (
            ("budget: {query_evaluations: 40}",),
            "budget.query_evaluations: too few: the baseline, one trial and the verdict ask 50",
        ),
        (
            ("budget: {money: 0.4}", "cost: {per_query: 0.01}"),
            "budget.money: too little: the baseline, one trial and the verdict cost 0.50",
        ),
        (("nightly: {budget: {trials: 3}}",), "write `budget:` at the top of the file"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(
    tuner_here, service: PaidService, lines: tuple[str, ...], said: str
) -> None:
    configure(tuner_here.folder, service, *lines)
    for command in ("run", "check"):
        assert said in tuner_here(command, "config.yaml", code=2).stderr
    assert service.asked == 0


@pytest.mark.slow
def test_the_trials_of_a_budget_are_shared_out(tuner_here, service: PaidService) -> None:
    configure(tuner_here.folder, service, "budget: {trials: 5}")
    tuner_here.edit(
        "[{kind: random, trials: 8}]", "[{kind: random, trials: 6}, {kind: grid, trials: 4}]"
    )
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    (run_dir,) = tuner_here.runs()
    header = json.loads((run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert [arm["budget"] for arm in header["arms"]] == [3, 2]
    assert record["finished_trials"] + record["shared_trials"] == 6


@pytest.mark.slow
def test_minutes_end_a_search_with_a_verdict(tuner_here, service: PaidService) -> None:
    service.answer_s = 0.05
    configure(tuner_here.folder, service, "budget: {minutes: 1.0e-6}")
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert (record["state"], record["finished_trials"]) == ("finished", 1)
    assert record["ended_by"] == "the budget of 0.0 s is used up"
    assert record["verdict"]["outcome"]


def test_a_check_says_what_will_be_asked_and_a_probe_asks_five_queries(
    tuner_here, service: PaidService
) -> None:
    lines = ("cost: {per_query: 0.01, per_1000_tokens: 0.02}", "inspection: off")
    configure(tuner_here.folder, service, *lines)
    check = ("check", "config.yaml", "--json")
    facts = json.loads(tuner_here(*check).stdout)
    piped = tuner_here("check", "config.yaml").stdout
    assert not any(line.endswith(" ") for line in piped.splitlines())
    # What the contexts cost is not known before one was seen.
    asked = "9 trials of 10 queries, and up to 30 for the verdict: 120 at most"
    assert (facts["queries_to_ask"], service.asked) == (asked, 0)
    record = json.loads(tuner_here(*check, "--probe").stdout)["system"]
    assert (record["asked"], record["queries"], service.asked) == (5, 10, 5)
    assert record["queries_at_most"] == 9 * 10 + 30
    assert record["tokens_at_most"] == 120 * TOKENS
    assert record["money_at_most"] == pytest.approx(120 * 0.02)
    # Two at once: 3 rounds for 5 queries, 5 for all; 9 trials, 2 at a time.
    expected = 5 * record["asked_seconds"] * 5 / 3
    assert record["study_seconds"] == pytest.approx(expected)
    budget = ("--set", "budget={query_evaluations: 75}", "--probe", "3")
    shown = tuner_here("check", "config.yaml", *budget).stdout
    assert "3 queries took " in shown
    assert ", so one evaluation of 10 queries takes about " in shown
    assert f"it asks {asked}; money 2.40, with 60,000 tokens of contexts" in shown
    assert "budget.query_evaluations ends it after about 4 of 9 trials" in shown
    assert service.asked == 8


ENGINE = """\
retriever: {kind: hybrid}
space: {graph_weight: {type: real, low: 0.0, high: 1.0}}
objective: {maximize: {mrr@10: 1.0}}
baseline: {graph_weight: 0.5, top_k: 4}
"""
QUICK = """\
retriever: {kind: "word_overlap:WordOverlap"}
space: {title_weight: {type: real, low: 0.0, high: 4.0}}
objective: {maximize: {mrr@10: 1.0}}
baseline: {title_weight: 1.0, top_k: 4}
"""
PREFIX = """\
    def free_knobs(self, fixed, searched):
        from tuner.retrieval.free import FreeKnobs
        return FreeKnobs(("top_k",))

    def prepare(self, queries):
"""
FREE = """\
retriever: {kind: "word_overlap:WordOverlap"}
space:
  title_weight: {type: real, low: 0.0, high: 4.0}
  top_k: {type: integer, low: 1, high: 12}
objective: {maximize: {mrr@10: 1.0}}
baseline: {title_weight: 1.0, top_k: 4}
free: on
"""


@pytest.mark.parametrize("system", [ENGINE, QUICK, FREE], ids=["engine", "quick", "free"])
@pytest.mark.parametrize("name", ["query_evaluations", "money"])
def test_the_least_that_a_budget_is_asked_for_is_enough_for_a_trial(
    tuner_here, system: str, name: str
) -> None:
    path = tuner_here.folder / "word_overlap.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("    def prepare(self, queries):\n", PREFIX), encoding="utf-8")
    head = "study: {name: least, seed: 3}\ndataset: {path: data, split: {holdout: 0.5}}\n"
    tail = "backends: [{kind: random, trials: 8}]\nexecution: {kind: inline}\ntracking: null\n"
    cost = "cost: {per_query: 0.27}\n" if name == "money" else ""

    def write(limit: str) -> None:
        lines = f"{head}{system}{tail}{cost}budget: {{{name}: {limit}}}\n"
        (tuner_here.folder / "config.yaml").write_text(lines, encoding="utf-8")

    write("1")
    refused = tuner_here("run", "config.yaml", code=2).stderr
    line = 1 + (tuner_here.folder / "config.yaml").read_text().splitlines().index(
        f"budget: {{{name}: 1}}"
    )
    assert f"config.yaml:{line}: budget.{name}: too " in refused
    least = refused.split(" ask " if not cost else " cost ")[1].split(" ")[0].strip(",")
    write(least)
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["finished_trials"] >= 2
    assert record["verdict"]["outcome"]
    spent = record["spent"]["money"] if cost else sum(record["queries_asked"].values())
    assert spent <= float(least) * (1 + 1e-9)
    step = 0.01 if cost else 1
    write(f"{float(least) - step:g}")
    tuner_here("check", "config.yaml", code=2)
