"""Load: closed and open loops, failures counted, and no coordinated omission."""

from __future__ import annotations

import re
import threading
import time

import numpy as np
import pytest

from tuner.bench.load import (
    NOT_STARTED,
    WAITING,
    arrivals,
    closed_loop,
    open_loop,
)
from tuner.core.errors import InputError


def test_every_worker_makes_its_own_calls_and_all_are_counted():
    asked: list[int] = []

    def ask(number: int) -> dict[str, float]:
        asked.append(number)
        return {"graph": 0.25, "total": 9.0}

    load = closed_loop(ask, workers=3, duration_s=0.05)
    summary = load.latencies.summary()
    assert summary.count == len(asked) >= 3
    assert len(set(asked)) == len(asked)
    assert {number % 3 for number in asked} == {0, 1, 2}
    assert load.latencies.summary("graph").p50_ms == 250.0
    assert load.latencies.summary("graph").count == summary.count
    assert load.qps > 0.0
    assert load.failures == {}


def test_workers_call_at_the_same_time():
    together = threading.Barrier(4)

    def ask(number: int) -> dict[str, float]:
        if number < 4:
            together.wait(900)  # passes only when all four are in a call
        return {}

    load = closed_loop(ask, workers=4, duration_s=0.01)
    assert load.failures == {}


def test_a_call_longer_than_the_duration_is_waited_for_and_counts():
    def ask(number: int) -> dict[str, float]:
        time.sleep(0.05)
        return {}

    load = closed_loop(ask, workers=2, duration_s=0.001)
    assert load.latencies.summary().count == 2
    assert load.latencies.summary().min_ms >= 50.0
    assert load.seconds >= 0.05
    assert 0.0 < load.qps <= 2 / 0.05


def test_the_rate_of_a_closed_loop_by_hand():
    now = iter([0.0, 0.0, 2.0, 2.0, 6.0, 6.0])  # begin of the load, of the worker; two calls
    load = closed_loop(lambda number: {}, workers=1, duration_s=5.0, clock=clock_of(now))
    # calls from 0 to 2 and from 2 to 6 s: 2 calls in 6 s
    assert load.latencies.summary().max_ms == pytest.approx(4000.0)
    assert load.qps == pytest.approx(2 / 6)


def clock_of(times):
    lock = threading.Lock()

    def clock() -> float:
        with lock:
            return next(times)

    return clock


def test_a_failed_call_counts_with_its_time_and_gives_no_throughput():
    def ask(number: int) -> dict[str, float]:
        if number == 0:
            time.sleep(0.02)
            raise ConnectionError("refused")
        if number == 1:
            raise SystemExit  # not even that ends a worker
        return {}

    load = closed_loop(ask, workers=2, duration_s=0.05)
    summary = load.latencies.summary()
    assert load.failures == {"ConnectionError: refused": 1, "SystemExit": 1}
    assert summary.errors == 2
    assert summary.count >= 2
    assert summary.max_ms >= 20.0


def test_nothing_answered_is_a_rate_of_zero():
    def ask(number: int) -> dict[str, float]:
        raise RuntimeError(f"query {number}")

    load = closed_loop(ask, workers=2, duration_s=0.05)
    assert load.qps == 0.0
    assert load.latencies.summary().error_rate == 1.0
    assert len(load.failures) <= 21  # reasons that name each query do not fill the memory


def test_latency_counts_from_the_schedule_without_coordinated_omission():
    stall_s = 0.2

    def ask(number: int) -> dict[str, float]:
        if number == 0:
            time.sleep(stall_s)
        return {}

    schedule = [index * 0.005 for index in range(20)]  # all due while the first one stalls
    load = open_loop(ask, schedule, most_at_once=1, give_up_after_s=120.0)
    summary = load.latencies.summary()
    assert summary.count == 20
    # The last is due at .095 s and can be answered at .2 s at the earliest. Timed from when they
    # were sent, nineteen of twenty would have taken no time at all.
    assert summary.min_ms >= (stall_s - 0.095) * 1000
    assert summary.max_ms >= stall_s * 1000
    # place .5 * 19 = 9.5: between those due at .045 and .05 s, so at least .2 - .0475
    assert summary.p50_ms >= 152.5
    assert load.latencies.summary(WAITING).count == 20


def test_arrivals_do_not_wait_for_answers():
    together = threading.Barrier(8)

    def ask(number: int) -> dict[str, float]:
        together.wait(900)  # passes only when all eight are in a call
        return {}

    load = open_loop(ask, [0.0] * 8)
    assert load.failures == {}


def test_what_the_system_cannot_take_is_counted_as_failed_with_the_time_it_waited():
    def ask(number: int) -> dict[str, float]:
        time.sleep(0.3)
        return {}

    load = open_loop(ask, [0.0] * 30, most_at_once=1, give_up_after_s=0.1)
    summary = load.latencies.summary()
    assert summary.count == 30
    assert load.not_started == load.failures[NOT_STARTED] == summary.errors >= 29
    assert summary.p50_ms >= 100.0  # none is left out, each with at least that time
    assert load.qps <= 1 / 0.1


def test_arrivals_are_a_poisson_process_of_exactly_that_rate():
    times = arrivals(50.0, 40.0, seed=3)
    assert len(times) == 2_000
    assert times == sorted(times)
    assert times[0] >= 0.0
    assert times[-1] < 40.0
    assert times == arrivals(50.0, 40.0, seed=3)
    assert times != arrivals(50.0, 40.0, seed=4)
    gaps = np.diff(times)
    # exponential gaps: standard deviation equals the mean, and 1 - 1/e of them are below it
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.1)
    assert (gaps < gaps.mean()).mean() == pytest.approx(0.632, abs=0.05)
    assert len(arrivals(0.01, 1.0, seed=0)) == 1


def test_failures_that_differ_in_names_and_numbers_only_are_one_reason():
    def ask(number: int) -> dict[str, float]:
        if number % 3 == 0:
            raise RuntimeError(f"query 'q{number}': no answer within {number / 4} s")
        if number % 3 == 1:
            raise RuntimeError(f"down on port {9000 + number}")
        raise KeyError("top_k")

    load = open_loop(ask, [0.0] * 90)
    assert sorted(load.failures.values()) == [30, 30, 30]
    assert load.failures["KeyError: 'top_k'"] == 30
    assert any(re.fullmatch(r"RuntimeError: query 'q\d+': no .*", one) for one in load.failures)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="workers=0"):
        closed_loop(lambda number: {}, workers=0, duration_s=1.0)
    for rate in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="rate="):
            arrivals(rate, 1.0, seed=0)


class Clock:
    """Time that passes only while somebody is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def ask(self, seconds):
        def one(number: int) -> dict[str, float]:
            self.now += seconds(number)
            return {}

        return one


@pytest.mark.parametrize(
    ("seconds", "is_slow"),
    [
        (lambda number: 1.5 if number == 0 else 0.02, True),
        (lambda number: 1.5 if number == 150 else 0.02, False),  # not at the start
        (lambda number: 0.04 if number == 0 else 0.02, False),  # nothing to speak of
        (lambda number: 0.02, False),
    ],
)
def test_a_slow_start_inside_a_load_is_seen(seconds, is_slow):
    clock = Clock()
    load = closed_loop(clock.ask(seconds), workers=1, duration_s=10.0, clock=clock)
    assert load.has_slow_start is is_slow
    if is_slow:
        assert load.start_max_ms == pytest.approx(1500.0)
        assert load.later_max_ms == pytest.approx(20.0)


def test_a_load_of_one_call_has_no_start_to_speak_of():
    clock = Clock()
    load = closed_loop(clock.ask(lambda number: 60.0), workers=1, duration_s=10.0, clock=clock)
    assert not load.has_slow_start
