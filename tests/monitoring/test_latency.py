"""Latency: right percentiles, every call counted, exact first and sketched later."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.monitoring import LatencyTracker
from tuner.monitoring.distribution import RELATIVE_ERROR

TIMES = ("mean_ms", "min_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms")
SHARES = {"p50_ms": 0.5, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}

seconds = st.floats(min_value=0.0, max_value=1e5, allow_subnormal=False)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def tracker_of(values, *, exact_samples: int = 10_000) -> LatencyTracker:
    tracker = LatencyTracker(exact_samples=exact_samples)
    for value in values:
        tracker.record(value)
    return tracker


def test_percentiles_are_numpys_linear_of_type_7():
    summary = tracker_of(value / 1000 for value in range(1, 101)).summary()
    # place p * (n - 1): .5 * 99 = 49.5 -> 50.5; .9 * 99 = 89.1 -> 90.1; .95: 95.05; .99: 99.01
    assert summary.p50_ms == pytest.approx(50.5)
    assert summary.p90_ms == pytest.approx(90.1)
    assert summary.p95_ms == pytest.approx(95.05)
    assert summary.p99_ms == pytest.approx(99.01)
    assert summary.mean_ms == pytest.approx(50.5)
    assert (summary.count, summary.errors, summary.relative_error) == (100, 0, 0.0)


def test_minimum_and_maximum_are_not_the_first_and_last_sample():
    for exact_samples in (10, 2):
        summary = tracker_of([0.3, 0.1, 0.9, 0.2], exact_samples=exact_samples).summary()
        assert (summary.min_ms, summary.max_ms) == (100.0, 900.0)


def test_no_samples_are_nan_and_not_0_ms():
    tracker = LatencyTracker()
    summary = tracker.summary()
    assert (summary.count, summary.errors) == (0, 0)
    assert all(math.isnan(getattr(summary, name)) for name in TIMES)
    assert math.isnan(summary.error_rate)
    assert math.isnan(tracker.summary("a stage that nobody timed").p99_ms)
    record = json.loads(json.dumps(tracker.to_record(), allow_nan=False))
    assert record["total"]["p50_ms"] is None
    assert record["total"]["count"] == 0
    assert "–" in tracker.report()
    assert " 0.000" not in tracker.report()


def test_a_failed_call_counts_with_its_time_and_in_the_error_rate():
    clock = Clock()
    tracker = LatencyTracker(clock=clock)

    def fail() -> None:
        with tracker.time():
            clock.now += 2.0
            raise RuntimeError("no answer")

    with pytest.raises(RuntimeError):
        fail()
    with tracker.time():
        clock.now += 1.0
    with tracker.time() as timing:
        clock.now += 3.0
        timing.fail()
    summary = tracker.summary()
    assert (summary.count, summary.errors) == (3, 2)
    assert summary.error_rate == pytest.approx(2 / 3)
    assert (summary.min_ms, summary.p50_ms, summary.max_ms) == (1000.0, 2000.0, 3000.0)


def test_the_clock_is_monotonic():
    import time

    assert time.get_clock_info("perf_counter").monotonic
    assert LatencyTracker().clock is time.perf_counter


def test_stages_are_apart_and_the_total_comes_first():
    tracker = LatencyTracker()
    tracker.record(0.2, stage="graph")
    tracker.record(0.1, stage="vector", is_failed=True)
    tracker.record(0.5)
    assert tracker.stages == ("total", "graph", "vector")
    assert tracker.summary("graph").p50_ms == 200.0
    assert tracker.summary("vector").errors == 1
    assert tracker.summary().errors == 0
    lines = tracker.report().splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["stage", "total", "graph", "vector"]
    assert lines[3].split()[1:4] == ["1", "1", "100.000"]
    assert lines[-1].endswith("exact, linear")


@pytest.mark.parametrize("value", [-0.001, math.nan, math.inf, -math.inf])
def test_what_is_no_time_is_refused_and_not_counted(value):
    tracker = LatencyTracker()
    with pytest.raises(InputError, match="cannot take"):
        tracker.record(value)
    assert tracker.summary().count == 0


def test_a_tracker_needs_room_for_a_sample():
    with pytest.raises(InputError, match="exact_samples=0"):
        LatencyTracker(exact_samples=0)


def test_exact_up_to_the_stated_number_of_samples_and_bounded_beyond():
    values = np.random.default_rng(3).lognormal(-4.0, 1.5, 50_000)
    tracker = LatencyTracker(exact_samples=1_000)
    for value in values[:1_000]:
        tracker.record(float(value))
    assert tracker.summary().relative_error == 0.0
    for value in values[1_000:]:
        tracker.record(float(value))
    summary = tracker.summary()
    assert summary.relative_error == RELATIVE_ERROR
    assert (summary.count, summary.max_ms) == (50_000, values.max() * 1000)
    assert summary.mean_ms == pytest.approx(values.mean() * 1000)
    assert "within 0.5 %" in tracker.report()
    # 50,000 samples are 400 kB; the sketch has some thousand buckets, whatever their number
    assert len(pickle.dumps(tracker)) < 100_000


def test_a_report_is_as_exact_as_its_least_exact_stage():
    tracker = LatencyTracker(exact_samples=2)
    tracker.record(0.1, stage="few")
    assert "percentiles exact" in tracker.report()
    for _ in range(3):
        tracker.record(0.1, stage="many")
    assert "percentiles within 0.5 %" in tracker.report()


@given(st.lists(seconds, min_size=2, max_size=200))
def test_the_sketch_is_within_its_stated_relative_error_of_exact(values):
    summary = tracker_of(values, exact_samples=1).summary()
    assert summary.relative_error == RELATIVE_ERROR
    for name, share in SHARES.items():
        exact = float(np.quantile(values, share, method="linear")) * 1000
        assert getattr(summary, name) == pytest.approx(exact, rel=RELATIVE_ERROR * 1.001, abs=1e-9)
    assert summary.min_ms == min(values) * 1000
    assert summary.max_ms == max(values) * 1000


@given(
    st.lists(seconds, max_size=60),
    st.lists(seconds, max_size=60),
    st.sampled_from([1, 20, 50, 1_000]),
)
def test_a_merge_is_the_union(left, right, exact_samples):
    merged = tracker_of(left, exact_samples=exact_samples).merge(
        tracker_of(right, exact_samples=exact_samples)
    )
    union = tracker_of([*left, *right], exact_samples=exact_samples)
    found, expected = merged.summary(), union.summary()
    assert (found.count, found.relative_error) == (expected.count, expected.relative_error)
    for name in TIMES:
        assert getattr(found, name) == pytest.approx(
            getattr(expected, name), rel=1e-12, nan_ok=True
        )


def test_merging_adds_stages_and_errors_and_changes_neither():
    left, right = tracker_of([0.1]), tracker_of([0.3])
    right.record(0.2, stage="graph", is_failed=True)
    merged = left.merge(right)
    assert merged.stages == ("total", "graph")
    assert (merged.summary().count, merged.summary("graph").errors) == (2, 1)
    assert merged.summary().p50_ms == pytest.approx(200.0)
    assert (left.summary().count, left.stages) == (1, ("total",))
    merged.record(9.0)
    assert right.summary().max_ms == 300.0
    assert left.merge(left).summary().count == 2


def test_a_sketch_and_exact_samples_merge_both_ways():
    few, many = tracker_of([0.5] * 3), tracker_of([0.1] * 10, exact_samples=5)
    for merged in (few.merge(many), many.merge(few)):
        summary = merged.summary()
        assert (summary.count, summary.max_ms) == (13, 500.0)
        assert summary.p50_ms == pytest.approx(100.0, rel=RELATIVE_ERROR)


def test_worker_processes_can_send_theirs_home():
    tracker = tracker_of([0.1, 0.2, 0.4])
    copy = pickle.loads(pickle.dumps(tracker))
    copy.record(0.9)
    assert copy.summary().count == 4
    assert tracker.merge(copy).summary().count == 7


def test_threads_lose_no_call():
    tracker = LatencyTracker(exact_samples=500)

    def work(stage: str) -> None:
        for index in range(2_000):
            tracker.record(index / 1000, stage=stage, is_failed=index % 4 == 0)
            tracker.record(index / 1000)

    threads = [threading.Thread(target=work, args=[stage]) for stage in ("a", "b", "a", "b")]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert tracker.summary().errors == 0  # reading at the same time breaks nothing
    for thread in threads:
        thread.join()
    assert tracker.summary().count == 8_000
    for stage in ("a", "b"):
        assert (tracker.summary(stage).count, tracker.summary(stage).errors) == (4_000, 1_000)


def test_a_decorated_function_is_timed_at_every_call_and_stays_itself():
    clock = Clock()
    tracker = LatencyTracker(clock=clock)

    @tracker.time("graph")
    def search(query: str, *, depth: int = 1) -> str:
        """Search."""
        clock.now += depth
        if query == "deeper":
            return search("found", depth=2)
        if not query:
            raise ValueError("no query")
        return query

    assert search("deeper") == "found"
    with pytest.raises(ValueError, match="no query"):
        search("", depth=4)
    summary = tracker.summary("graph")
    # the inner call took 2 s, the outer one 1 + 2, the failed one 4
    assert (summary.count, summary.errors) == (3, 1)
    assert (summary.min_ms, summary.p50_ms, summary.max_ms) == (2000.0, 3000.0, 4000.0)
    assert (search.__name__, search.__doc__) == ("search", "Search.")


def test_a_coroutine_is_timed_until_it_is_done_and_not_until_it_is_made():
    clock = Clock()
    tracker = LatencyTracker(clock=clock)

    @tracker.time()
    async def answer(is_slow: bool) -> int:
        clock.now += 1.0
        await asyncio.sleep(0)
        clock.now += 5.0 if is_slow else 0.0
        return 7

    async def both() -> list[int]:
        async with tracker.time("block"):
            return [await answer(True), await answer(False)]

    assert asyncio.run(both()) == [7, 7]
    assert (tracker.summary().min_ms, tracker.summary().max_ms) == (1000.0, 6000.0)
    assert tracker.summary("block").p50_ms == 7000.0


def test_calls_of_one_coroutine_may_overlap():
    clock = Clock()
    tracker = LatencyTracker(clock=clock)

    @tracker.time()
    async def answer() -> None:
        await asyncio.sleep(0)
        clock.now += 1.0

    async def at_once() -> None:
        await asyncio.gather(*(answer() for _ in range(4)))

    asyncio.run(at_once())
    # all four begin before the first one ends: 1, 2, 3 and 4 s
    assert (tracker.summary().min_ms, tracker.summary().mean_ms) == (1000.0, 2500.0)


def test_a_cancelled_call_counts_as_failed():
    tracker = LatencyTracker()

    @tracker.time()
    async def never() -> None:
        await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.ensure_future(never())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert (tracker.summary().count, tracker.summary().errors) == (1, 1)


def test_a_generator_is_refused_since_calling_it_takes_no_time():
    tracker = LatencyTracker()

    def stream():
        yield 1

    async def astream():
        yield 1

    for function in (stream, astream):
        with pytest.raises(InputError, match="is a generator"):
            tracker.time()(function)
