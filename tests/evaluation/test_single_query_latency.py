"""One way to time a query: trials, the guard-rail and the load generator give the same figure."""

from __future__ import annotations

import pytest

from tuner.bench.load import closed_loop
from tuner.core.corpus import Query
from tuner.core.rankings import Rankings
from tuner.evaluation.system_metrics import PAIRED_REPEATS, paired_latency_ms, served_ms
from tuner.retrieval.base import serve_one

QUERIES = [Query(f"q{number}", f"question {number}") for number in range(4)]


class Clock:
    """Stands still but for what is answered."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


class Served:
    """Takes 7 ms to serve q0, 8 ms to serve q1, …; a batch would take no time."""

    knobs = ()
    fingerprint = "served"

    def __init__(self, clock, name=""):
        self.clock, self.name, self.asked = clock, name, []

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        raise AssertionError("a batch reuses prepared work, which live traffic has not")

    def serve(self, query, params):
        self.asked.append((query.id, params))
        self.clock.now_s += (7 + int(query.id[1:])) / 1000
        return Rankings.from_ids([query.id], [["d1"]], seconds={"graph": 0.25})


def test_trials_and_bench_time_the_same_call_on_the_same_clock():
    clock = Clock()
    retriever = Served(clock)
    alone_ms = [served_ms(retriever, query, {"top_k": 3}, clock=clock) for query in QUERIES]
    assert alone_ms == pytest.approx([7.0, 8.0, 9.0, 10.0])

    def ask(number):
        return serve_one(retriever, QUERIES[number % 4], {"top_k": 3}).seconds

    load = closed_loop(ask, workers=1, duration_s=0.030, clock=clock)
    summary = load.latencies.summary()
    # 7 + 8 + 9 are under 30 ms, so a fourth call begins, and with it they are 34 ms
    assert (summary.count, summary.errors) == (4, 0)
    assert summary.mean_ms == pytest.approx(sum(alone_ms) / 4)
    assert (summary.min_ms, summary.max_ms) == pytest.approx((7.0, 10.0))
    assert all(params == {"top_k": 3} for _, params in retriever.asked)


def test_the_guard_rail_serves_both_by_turns_so_that_load_hits_both_alike():
    order = []

    class Noted(Served):
        def serve(self, query, params):
            order.append(self.name)
            return super().serve(query, params)

    first, second = Noted(Clock(), "first"), Noted(Clock(), "second")
    times = paired_latency_ms(QUERIES, (first, {"top_k": 1}), (second, {"top_k": 2}))
    assert [one.shape for one in times] == [(4,), (4,)]
    # one each ahead of the clock, then each of the 4 queries by both in turn, three times
    assert order == ["first", "second"] * (1 + 4 * PAIRED_REPEATS)
    assert first.asked[1:] == [(query.id, {"top_k": 1}) for query in QUERIES] * PAIRED_REPEATS
    assert second.asked[1:] == [(query.id, {"top_k": 2}) for query in QUERIES] * PAIRED_REPEATS
