"""A paid service, tuned as a new user would: its own count is what every command says it spent."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.paid import PaidService
from tuner.core.words import count_tokens

CITIES = ["Lima", "Oslo", "Cairo", "Quito", "Paris", "Rome", "Delhi", "Hanoi", "Accra", "Dakar"]
PARTS = ("river", "market")
TEXTS = {
    f"{city}-{part}": f"{city} the {part} of {city} is old" for city in CITIES for part in PARTS
}
PER_QUERY, PER_1000_TOKENS = 0.01, 0.05
CONFIG = f"""\
study: {{name: paid, seed: 3}}
dataset: {{path: data, split: {{holdout: 0.5}}}}
retriever: {{kind: http, url: URL, response: "@", concurrency: 2, retry_wait_s: 0.01}}
space:
  graph_weight: {{type: real, low: 0.0, high: 1.0}}
  max_hops: {{type: integer, low: 0, high: 4}}
  top_k: {{type: integer, low: 1, high: 12}}
  temperature: {{type: real, low: 0.01, high: 1.0, scale: log}}
objective: {{maximize: {{mrr@10: 0.5, recall@10: 0.5}}, price: {{context_tokens_per_1000: 2.0}}}}
baseline: {{graph_weight: 0.5, max_hops: 2, top_k: 10, temperature: 0.1}}
backends: [{{kind: tpe, trials: 12}}]
budget: {{money: 20}}
cost: {{per_query: {PER_QUERY}, per_1000_tokens: {PER_1000_TOKENS}}}
free:
  top_k: prefix
  graph_weight: {{mixes: {{graph: value, text: rest}}}}
execution: {{kind: threads, workers: 1}}
tracking: null
"""


def answer(query: str, params: Mapping[str, Any]) -> tuple[Mapping[str, Any], float]:
    """Rank by what a text shares with a query, and by how near its city is to the one named."""
    words = query.removesuffix("?").split()
    part, home = words[4], CITIES.index(words[6])
    text, graph = {}, {}
    for id_ in TEXTS:
        city, of_it = id_.split("-")
        chance = zlib.crc32(f"{query}{id_}".encode()) / 2**32
        text[id_] = chance + 0.4 * (of_it == part)
        hops = abs(CITIES.index(city) - home)
        if hops <= params["max_hops"]:
            spread = math.exp(-hops / (10.0 * params["temperature"]))
            graph[id_] = spread * (0.5 + zlib.crc32(f"{id_}{query}".encode()) / 2**32)
    weight = params["graph_weight"]
    mixed = {id_: weight * graph.get(id_, 0.0) + (1.0 - weight) * text[id_] for id_ in TEXTS}
    found = best_first(mixed)[: params["top_k"]]
    tokens = sum(count_tokens(TEXTS[id_]) for id_, _ in found)
    return {
        "results": found,
        "legs": {"graph": best_first(graph), "text": best_first(text)},
    }, tokens


def best_first(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


@pytest.fixture
def service() -> Iterator[PaidService]:
    service = PaidService(answer)
    yield service
    service.close()


def configure(folder: Path, service: PaidService, changed: Mapping[str, str]) -> None:
    """Write the configuration, and eighty queries: half of them are enough to be raced."""
    text = CONFIG.replace("URL", service.url)
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    queries, judged = [], ["query-id\tcorpus-id\tscore"]
    for id_ in TEXTS:
        city, part = id_.split("-")
        for word in ("old", "big", "far", "near"):
            query = f"{id_}-{word}"
            queries.append({"_id": query, "text": f"how {word} is the {part} of {city}?"})
            judged.append(f"{query}\t{id_}\t1")
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    (folder / "data" / "queries.jsonl").write_text(lines, encoding="utf-8")
    (folder / "data" / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n")


def check_books(
    record: Mapping[str, Any],
    service: PaidService,
    *,
    unsent: int = 0,
    lost_tokens: float = 0.0,
) -> None:
    """Check that what a run says it spent in all is what the service counted, and charged.

    Of a process that was killed, up to ``unsent`` queries were told and not yet sent, and up to
    ``lost_tokens`` were on their way back.
    """
    spent = record["spent"]
    told = sum(record["queries_asked"].values())
    assert 0 <= told - service.asked <= unsent
    assert sum(part["queries"] for part in spent["parts"]) == told
    lost = service.tokens - sum(part["tokens"] for part in spent["parts"])
    assert -1e-6 <= lost <= lost_tokens
    bill = service.bill(PER_QUERY, PER_1000_TOKENS) - PER_1000_TOKENS * lost / 1000.0
    bill += PER_QUERY * (told - service.asked)
    assert spent["money"] == pytest.approx(bill)


def test_what_a_study_may_cost_is_told_by_what_a_trial_asks_for(
    tuner_here, service: PaidService
) -> None:
    configure(tuner_here.folder, service, {})
    checked = json.loads(tuner_here("check", "config.yaml", "--json", "--probe").stdout)
    told = checked["system"]
    # The baseline's top_k is 10, but a trial asks for 12.
    assert told["tokens_of_a_query"] == 12 * 7
    bill = PER_QUERY + PER_1000_TOKENS * 12 * 7 / 1000.0
    assert told["money_at_most"] == pytest.approx(told["queries_at_most"] * bill)


@pytest.mark.slow
@pytest.mark.parametrize("free", [True, False], ids=["some free", "none free"])
def test_money_that_tokens_use_up_ends_before_a_verdict_on_nothing(
    tuner_here, service: PaidService, free: bool
) -> None:
    # By queries alone the money reaches far; it does not reach to a trial with its tokens.
    dear = {"per_query: 0.01, per_1000_tokens: 0.05": "per_query: 0.001, per_1000_tokens: 1.0"}
    none = {} if free else {"free:\n  top_k: prefix\n": "free: off\n", **MIXES}
    configure(tuner_here.folder, service, {"{money: 20}": "{money: 4}", **dear, **none})
    done = tuner_here("run", "config.yaml", code=130)
    assert "budget.money: used up: with one more trial and its verdict it would come to" in (
        done.stderr
    )
    asked = service.asked
    assert asked == (25 if free else 40)  # the check of what is free, or the baseline
    (run_dir,) = tuner_here.runs()
    tuner_here("resume", str(run_dir), code=130)
    assert service.asked == asked
    record = json.loads(tuner_here("resume", str(run_dir), "--money", "+40", "--json").stdout)
    assert record["state"] == "finished"
    assert record["finished_trials"] > 1
    assert record["spent"]["money"] == pytest.approx(service.bill(0.001, 1.0))
    assert record["spent"]["money"] <= 44


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_four_knobs_are_tuned_interrupted_extended_and_compared(
    tuner, service: PaidService
) -> None:
    configure(tuner.folder, service, {})
    checked = json.loads(tuner("check", "config.yaml", "--json", "--probe").stdout)
    # Five queries; and these with what tells of all values, with another top_k, and three weights.
    assert checked["system"]["queries_asked"] == {"evaluation": 5, "checked": 25}
    assert service.asked == 5 + 25
    service.begin_anew()

    started = subprocess.Popen(
        tuner.command("run", "config.yaml", "--quiet"), cwd=tuner.folder, env=tuner.environment
    )
    service.at = {190: lambda: started.send_signal(signal.SIGKILL)}
    assert started.wait(900) == -signal.SIGKILL
    assert 190 <= service.asked <= 192
    (run_dir,) = tuner.runs()
    resumed = json.loads(tuner("resume", str(run_dir), "--json").stdout)
    assert resumed["state"] == "finished"
    # Two requests were under way, of twelve passages of seven tokens at most.
    check_books(resumed, service, unsent=1, lost_tokens=2 * 12 * 7)
    # Of four parameters two are free: baseline and trials asked each of forty queries once, but
    # for the one that was killed, and the other of two under way. What had been answered was kept.
    assert 13 * 40 + 1 <= resumed["queries_asked"]["trials"] <= 13 * 40 + 2
    assert set(resumed["winner"]["params"]) == {"graph_weight", "max_hops", "top_k", "temperature"}

    before = service.asked
    extended = json.loads(tuner("resume", str(run_dir), "--trials", "tpe=+20", "--json").stdout)
    assert service.asked > before
    check_books(extended, service, unsent=1, lost_tokens=2 * 12 * 7)
    assert resumed["queries_asked"]["trials"] < extended["queries_asked"]["trials"] <= 33 * 40 + 2
    assert resumed["spent"]["money"] < extended["spent"]["money"] <= 20

    before = service.asked
    compared = json.loads(
        tuner("compare", "config.yaml", "--b", str(run_dir), "--queries", "all", "--json").stdout
    )
    assert sum(compared["queries_asked"].values()) == service.asked - before > 0


MIXES = {"  graph_weight: {mixes: {graph: value, text: rest}}\n": ""}
RACING = {"tracking: null": "racing: {}\ntracking: null"}
WORKERS = {"workers: 1": "workers: 2"}
PROCESSES = {"{kind: threads, workers: 1}": "{kind: processes, workers: 2}"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [{}, WORKERS, {**RACING, **WORKERS}, PROCESSES],
    ids=["one worker", "two workers", "racing by two", "two processes"],
)
def test_tries_that_failed_and_trials_side_by_side_are_on_the_bill(
    tuner_here, service: PaidService, how: Mapping[str, str]
) -> None:
    configure(tuner_here.folder, service, how)
    service.fails_at = {3, 140, 141, 260}
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["failed_trials"] == 0
    check_books(record, service)
