"""A paid service that fails now and then, budgets that are raised, and what is asked afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.paid import PaidService

TOKENS = 50.0  # of each passage
CONFIG = """\
study: {name: paid, seed: 3}
dataset: {path: data, split: {holdout: 0.5}}
retriever: {kind: http, url: URL, response: "@", concurrency: 1, retries: 0}
space:
  title_weight: {type: real, low: 0.0, high: 4.0}
  top_k: {type: integer, low: 1, high: 8}
objective: {maximize: {mrr@10: 1.0}}
baseline: {title_weight: 3.0, top_k: 4}
backends: [{kind: random, trials: 4}]
free: {top_k: prefix}
cost: {per_query: 0.01, per_1000_tokens: 0.02}
budget: {money: 80}
execution: {kind: threads, workers: 1}
tracking: null
"""
CITIES = ["Lima", "Oslo", "Cairo", "Quito", "Paris", "Rome", "Delhi", "Hanoi", "Accra", "Dakar"]


def answer(query: str, params: Mapping[str, Any]) -> tuple[Mapping[str, Any], float]:
    words = query.removesuffix("?").split()
    part, city = words[4], words[6]
    other = "market" if part == "river" else "river"
    ids = [f"{place}-{other}" for place in CITIES]
    ids.insert(3 if params["title_weight"] > 2 else 0, f"{city}-{part}")
    found = ids[: params["top_k"]]
    return {"results": [{"id": id_, "tokens": TOKENS} for id_ in found]}, TOKENS * len(found)


@pytest.fixture
def service() -> Iterator[PaidService]:
    service = PaidService(answer)
    yield service
    service.close()


def configure(folder: Path, service: PaidService, changed: Mapping[str, str] = {}) -> None:
    text = CONFIG.replace("URL", service.url)
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def check_books(record: Mapping[str, Any], service: PaidService) -> None:
    assert sum(record["queries_asked"].values()) == service.asked
    assert record["spent"]["money"] == pytest.approx(service.bill(0.01, 0.02))


# Of the check of what is free: its first answer, and one at another value; and of the baseline.
@pytest.mark.slow
@pytest.mark.parametrize("at", [{2}, {7}, {13}, {2, 7, 13}], ids=str)
def test_one_query_without_an_answer_ends_no_run(
    tuner_here, service: PaidService, at: set[int]
) -> None:
    configure(tuner_here.folder, service)
    service.fails_at = at
    done = tuner_here("run", "config.yaml", "--json")
    assert "free: top_k: every value is computed from one answer" in done.stderr
    record = json.loads(done.stdout)
    assert (record["state"], record["failed_trials"]) == ("finished", 0)
    assert record["queries_asked"]["checked"] + record["queries_asked"]["trials"] >= 10 + 50
    check_books(record, service)


@pytest.mark.slow
def test_a_value_that_is_never_answered_tells_against_its_parameter_alone(
    tuner_here, service: PaidService
) -> None:
    configure(tuner_here.folder, service)
    service.refuses = lambda params: params["top_k"] == 5  # which a check asks beside 8
    done = tuner_here("run", "config.yaml", "--json")
    assert "not free: top_k: it could not be checked: query " in done.stderr
    record = json.loads(done.stdout)
    assert record["state"] == "finished"
    check_books(record, service)


@pytest.mark.slow
def test_a_service_that_answers_nothing_at_the_start_is_asked_five_times(
    tuner_here, service: PaidService
) -> None:
    configure(tuner_here.folder, service)
    service.refuses = lambda params: True
    done = tuner_here("run", "config.yaml", code=130)
    assert "stopped        the system does not answer: " in done.stdout
    assert "(5 times in a row)" in done.stdout
    service.refuses = lambda params: False
    (run_dir,) = tuner_here.runs()
    done = tuner_here("resume", str(run_dir), "--json")
    assert "free: top_k: every value is computed from one answer" in done.stderr
    check_books(json.loads(done.stdout), service)


@pytest.mark.slow
def test_a_limit_that_is_raised_after_the_end_is_shown_from_then_on(
    tuner_here, service: PaidService
) -> None:
    configure(tuner_here.folder, service)
    tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    asked = service.asked
    for number, option in enumerate([("--money", "+5"), (), ("--money", "+0.1")]):
        done = tuner_here("resume", str(run_dir), *option)
        now = ["85.00", "85.00", "85.10"][number]
        assert f" of {now}" in done.stdout
        assert "of 80.00" not in done.stdout
        assert f" of {now}" in (run_dir / "report.html").read_text(encoding="utf-8")
    record = json.loads(tuner_here("resume", str(run_dir), "--json").stdout)
    assert record["spent"]["limits"] == {"money": 85.1}
    assert service.asked == asked
    assert yaml.safe_load((run_dir / "config.yaml").read_text())["budget"]["money"] == 85.1


@pytest.mark.slow
def test_what_is_left_of_the_money_is_explained_and_no_answer_is_set_aside_twice(
    tuner_here, service: PaidService
) -> None:
    changed = {"{money: 80}": "{money: 2}", "trials: 4": "trials: 20"}
    configure(tuner_here.folder, service, changed)
    done = tuner_here("run", "config.yaml")
    assert "what the verdict needs is kept aside: up to 30 queries" in done.stderr
    (run_dir,) = tuner_here.runs()
    spent = service.bill(0.01, 0.02)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("unspent")]
    # A winner's query may have eight passages, 0.018; the baseline's four and a tenth, 0.0144.
    assert float(line.split()[2].rstrip(":")) == pytest.approx(2 - spent, abs=0.006)
    told = ": of 0.47 set aside for the verdict it took "
    assert told in line
    assert line.endswith(", and a trial may take 0.18")
    assert 0 < 2 - spent < 0.18 + 10 * 0.018 + 20 * 0.0004 + 1e-9
    assert told in " ".join((run_dir / "report.html").read_text(encoding="utf-8").split())
    # What the baseline was answered, once and once more, need not be paid for again.
    done = tuner_here("resume", str(run_dir), "--money", "+0.5", "--json")
    assert "what the verdict needs is kept aside: up to 10 queries" in done.stderr
    record = json.loads(done.stdout)
    assert record["spent"]["aside"]["money"]["verdict"] == pytest.approx(0.18)
    check_books(record, service)
    assert record["spent"]["money"] <= 2.5


@pytest.mark.slow
def test_a_baseline_that_got_no_answer_at_first_is_asked_again_also_where_money_ends(
    tuner_here, service: PaidService
) -> None:
    # There is room for the baseline and one trial: 0.17 + 0.14 + 0.18 + 0.47, and 0.18 more.
    changed = {"{money: 80}": "{money: 1}", "trials: 4": "trials: 20"}
    configure(tuner_here.folder, service, changed)
    service.fails_at = {13}
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["ended_by"].startswith("the budget of money 1.00 is used up")
    assert record["baseline"] is not None
    assert record["verdict"]["outcome"]
    check_books(record, service)
    assert record["spent"]["money"] <= 1.0


@pytest.mark.slow
def test_a_policy_says_what_it_asked_and_asks_nothing_twice(
    tuner_here, service: PaidService
) -> None:
    configure(tuner_here.folder, service)
    tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    before, spent = service.asked, service.bill(0.01, 0.02)
    done = tuner_here("policy", str(run_dir), "--json")
    first = json.loads(done.stdout)
    asked = service.asked - before
    assert sum(first["queries_asked"].values()) == asked > 0
    assert first["money"] == pytest.approx(service.bill(0.01, 0.02) - spent)
    assert "remembered as a look at the 10 held-out queries" in done.stderr
    recorded = yaml.safe_load((run_dir / "policy.yaml").read_text())["queries_asked"]
    assert recorded == first["queries_asked"]
    # The winner's held-out answers were kept by the run.
    assert first["kept_answers"] >= 10
    done = tuner_here("policy", str(run_dir))
    assert service.asked == before + asked
    assert "no query was asked, money 0.00; " in done.stderr
    assert "not asked again, as their answers were kept" in done.stderr
    assert "no further look at the 10 held-out queries" in done.stderr
    recorded = yaml.safe_load((run_dir / "policy.yaml").read_text())["queries_asked"]
    assert recorded == first["queries_asked"]
    tuner_here("evaluate", "config.yaml", "--params", str(run_dir / "policy.yaml"))
