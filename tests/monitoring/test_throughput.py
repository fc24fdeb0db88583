"""Throughput: over the elapsed part of the window, in bounded memory."""

from __future__ import annotations

import math
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.monitoring import ThroughputTracker


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_the_rate_is_over_the_elapsed_part_of_the_window_and_not_the_full_window_at_start():
    clock = Clock()
    tracker = ThroughputTracker(60.0, clock=clock)
    assert math.isnan(tracker.qps())  # no time has passed: unknown, not 0
    tracker.record(5)
    clock.now += 0.5
    assert tracker.qps() == pytest.approx(10.0)  # 5 / .5, not 5 / 60
    clock.now += 0.5
    assert tracker.qps() == pytest.approx(5.0)


def test_no_calls_in_elapsed_time_are_zero():
    clock = Clock()
    tracker = ThroughputTracker(10.0, clock=clock)
    clock.now += 3.0
    assert tracker.qps() == 0.0


def test_what_has_left_the_window_no_longer_counts():
    clock = Clock()
    tracker = ThroughputTracker(10.0, clock=clock)
    tracker.record(100)
    clock.now += 9.95
    assert tracker.qps() == pytest.approx(100 / 9.95)
    clock.now += 0.10  # 10.05 s: the bucket from 0 to .1 s has left, 9.95 s are covered
    tracker.record(7)
    assert tracker.qps() == pytest.approx(7 / 9.95)
    clock.now += 1e6
    assert tracker.qps() == 0.0
    assert tracker.count == 107


def test_a_steady_stream_keeps_its_rate_for_ever():
    clock = Clock()
    tracker = ThroughputTracker(5.0, clock=clock)
    for _ in range(4_000):
        clock.now += 0.0625
        tracker.record()
    assert tracker.qps() == pytest.approx(16.0, rel=0.02)


def test_memory_does_not_grow():
    clock = Clock()
    tracker = ThroughputTracker(1.0, clock=clock)
    vars(tracker).pop("_lock")
    before = len(pickle.dumps(vars(tracker)))
    vars(tracker)["_lock"] = threading.Lock()
    for _ in range(20_000):
        clock.now += 0.0007
        tracker.record(1)
    vars(tracker).pop("_lock")
    assert len(pickle.dumps(vars(tracker))) < before + 500


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.integers(0, 9)), max_size=40))
def test_the_rate_is_that_of_a_plain_count(steps):
    clock = Clock()
    tracker = ThroughputTracker(10.0, clock=clock)
    seen = []
    for pause, calls in steps:
        clock.now += pause
        tracker.record(calls)
        seen.append((clock.now - 1_000.0, calls))
    elapsed = clock.now - 1_000.0
    qps = tracker.qps()
    if elapsed == 0.0:
        assert math.isnan(qps)
        return
    # the covered time begins at the start, or at a bucket border 9.9 to 10 s ago
    oldest = max(0, int(elapsed / 0.1) - 99) * 0.1
    slack = 1e-6
    most = sum(calls for at, calls in seen if at >= oldest - slack)
    least = sum(calls for at, calls in seen if at >= oldest + slack)
    covered = elapsed - oldest
    assert least / covered * (1 - 1e-9) - slack <= qps
    assert qps <= most / covered * (1 + 1e-9) + slack or covered < slack


def test_threads_lose_no_call():
    tracker = ThroughputTracker()

    def work() -> None:
        for _ in range(2_000):
            tracker.record()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tracker.count == 8_000
    assert tracker.qps() > 0.0


def test_what_makes_no_sense_is_refused():
    for window_s in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="window_s"):
            ThroughputTracker(window_s)
    with pytest.raises(InputError, match="calls=-1"):
        ThroughputTracker().record(-1)
