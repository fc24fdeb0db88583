"""Load on a system, and what it makes of it: closed loops of workers, open loops of arrivals."""

from __future__ import annotations

import math
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import InputError, one_line
from tuner.core.shown import shortened
from tuner.monitoring.latency import TOTAL, LatencyTracker

Ask = Callable[[int], Mapping[str, float]]
"""Makes call number n, counted from 0, and returns its seconds by stage; raises where it failed."""

WAITING = "waiting"
"""The stage from an arrival to the start of its call."""

NOT_STARTED = "not started: the system does not keep up with the rate"

# The part of a load that counts as its start, and by how much a call there stands out.
_START_SHARE = 0.2
_SLOW_START_MS = 50.0
# Threads of an open loop. Where more calls than that are under way, arrivals wait, and that counts.
MOST_AT_ONCE = 256
# Arrivals that wait this much longer than the schedule lasts are given up.
_GIVE_UP_AFTER_S = 1.0
# More arrivals than that need gigabytes for their times alone.
_MOST_ARRIVALS = 10_000_000
_MOST_REASONS = 20
# Names and numbers in a reason, which differ from call to call: query 'q7', after 3.2 s.
_PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+(?:\.\d+)?")
_LONGEST_REASON = 200


@dataclass(frozen=True, eq=False)
class Load:
    """What came of one load.

    Attributes:
        seconds: from the first call's start to the last one's end.
        qps: calls a second that were answered; failed ones are none.
        latencies: of all calls, failed ones too: in total and by stage.
        failures: reason -> how often, the most frequent first; reasons that differ only in quoted
            names and in numbers count under the first of them.
        not_started: arrivals of an open loop that were given up; they count as failed, with the
            time that they had waited, so percentiles are then too low.
        start_max_ms, later_max_ms: the slowest call of those that were due in the first fifth of
            the load, and of the others; NaN where there is none.
    """

    seconds: float
    qps: float
    latencies: LatencyTracker
    failures: Mapping[str, int]
    not_started: int = 0
    start_max_ms: float = math.nan
    later_max_ms: float = math.nan

    @property
    def has_slow_start(self) -> bool:
        """Say whether the slowest calls came at the start: a system that was still waking up."""
        beyond_ms = self.start_max_ms - self.later_max_ms
        return beyond_ms > _SLOW_START_MS and self.start_max_ms > 3.0 * self.later_max_ms


def closed_loop(
    ask: Ask,
    *,
    workers: int,
    duration_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Load:
    """Let ``workers`` threads call one after the other, each as soon as it has its answer.

    A call that has begun by the end of ``duration_s`` is waited for and counts, since leaving it
    out would leave out the slow ones. The rate adds up the workers' own: answered calls by the time
    until that worker's last answer. Worker i of n makes the calls i, i + n, i + 2n, ….

    Raises:
        InputError: no worker.
    """
    if workers < 1:
        raise InputError(f"workers={workers}: must be at least 1")
    book = _Book(ask, clock)
    go = threading.Event()
    rates = [0.0] * workers
    ends = [0.0] * workers

    def work(worker: int) -> None:
        go.wait()
        begin = now = clock()
        answered, number = 0, worker
        while number == worker or now - begin < duration_s:  # one call at least
            answered += book.call(number, now)
            number += workers
            now = clock()
        ends[worker] = now
        rates[worker] = answered / (now - begin) if now > begin else 0.0

    threads = [_started(work, worker) for worker in range(workers)]
    begin = clock()
    book.start_until(begin + _START_SHARE * duration_s)
    go.set()
    for thread in threads:
        thread.join()
    return book.load(max(ends) - begin, sum(rates))


def arrivals(rate_qps: float, duration_s: float, *, seed: int) -> list[float]:
    """Return random arrival times in seconds, ascending: a Poisson process of that rate.

    Independent users arrive like that: sometimes several at once, which is what makes queues. Given
    their number (rate times duration, at least 1) the times are uniform, so the rate is exact.

    Raises:
        InputError: a rate that is not above 0, or more than ten million arrivals.
    """
    check_arrivals(rate_qps, duration_s)
    count = max(1, round(rate_qps * duration_s))
    times = np.random.default_rng(seed).uniform(0.0, duration_s, count)
    return [float(due) for due in np.sort(times)]


def check_arrivals(rate_qps: float, duration_s: float) -> None:
    """Check, ahead of the measuring, that ``arrivals`` can be drawn.

    Raises:
        InputError: a rate that is not above 0, or more than ten million arrivals.
    """
    if not 0.0 < rate_qps < math.inf:
        raise InputError(f"rate={rate_qps:g}: must be queries a second, above 0")
    if rate_qps * duration_s > _MOST_ARRIVALS:
        raise InputError(
            f"{rate_qps:g} queries a second for {duration_s:g} s are more than {_MOST_ARRIVALS:,} "
            "arrivals: give a lower rate or a shorter time"
        )


def open_loop(
    ask: Ask,
    schedule: Sequence[float],
    *,
    most_at_once: int = MOST_AT_ONCE,
    give_up_after_s: float = _GIVE_UP_AFTER_S,
    clock: Callable[[], float] = time.perf_counter,
) -> Load:
    """Make each call when it is due, whether or not earlier ones are answered.

    Latency counts from the scheduled time and not from when the call could be sent: a system that
    stalls for a second is charged with all queries that arrived in that second, not only with the
    one that it was answering (no coordinated omission).

    Arrivals that have not started ``give_up_after_s`` after the last of the schedule are given up.
    """
    book = _Book(ask, clock)
    inbox: queue.SimpleQueue[tuple[int, float] | None] = queue.SimpleQueue()
    idle = threading.Semaphore(0)
    threads: list[threading.Thread] = []
    begin = clock()
    book.start_until(begin + _START_SHARE * max(schedule, default=0.0))
    give_up_at = begin + max(schedule, default=0.0) + give_up_after_s

    def work(_: int) -> None:
        while (arrival := inbox.get()) is not None:
            number, due = arrival
            now = clock()
            if now > give_up_at:
                book.give_up(now - due)
            else:
                book.call(number, due, waited_s=now - due)
            idle.release()

    for number, offset in enumerate(schedule):
        due = begin + offset
        if (wait_s := due - clock()) > 0.0:
            time.sleep(wait_s)
        inbox.put((number, due))
        if not idle.acquire(blocking=False) and len(threads) < most_at_once:
            threads.append(_started(work, len(threads)))
    for _ in threads:
        inbox.put(None)
    for thread in threads:
        thread.join()
    seconds = clock() - begin
    return book.load(seconds, book.answered / seconds if seconds > 0.0 else 0.0)


class _Book:
    """Makes calls and keeps account of them, for all threads of a load."""

    def __init__(self, ask: Ask, clock: Callable[[], float]) -> None:
        self.answered = 0
        self._ask = ask
        self._clock = clock
        self._latencies = LatencyTracker(clock=clock)
        self._failures: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._not_started = 0
        self._start_until = -math.inf
        self._longest_s = {True: math.nan, False: math.nan}
        self._lock = threading.Lock()

    def start_until(self, moment: float) -> None:
        """Say up to when calls are of the start."""
        self._start_until = moment

    def call(self, number: int, since: float, *, waited_s: float | None = None) -> bool:
        """Make one call whose time counts from ``since``, and say whether it was answered."""
        stages: Mapping[str, float] = {}
        reason = None
        try:
            stages = self._ask(number)
        except BaseException as error:  # a thread has nobody to tell: even an exit is a failure
            reason = _reason(error)
        took = self._clock() - since
        self._latencies.record(took, is_failed=reason is not None)
        if waited_s is not None:
            self._latencies.record(max(waited_s, 0.0), stage=WAITING)
        for stage, seconds in stages.items():
            if stage != TOTAL:
                self._latencies.record(seconds, stage=stage)
        with self._lock:
            is_start = since <= self._start_until
            # fmax: the first of each is compared with NaN.
            self._longest_s[is_start] = float(np.fmax(self._longest_s[is_start], took))
            self.answered += reason is None
            if reason is not None:
                self._note(reason)
        return reason is None

    def give_up(self, waited_s: float) -> None:
        """Count an arrival that was never sent as failed, with the time that it has waited."""
        self._latencies.record(waited_s, is_failed=True)
        self._latencies.record(waited_s, stage=WAITING)
        with self._lock:
            self._not_started += 1
            self._note(NOT_STARTED)

    def load(self, seconds: float, qps: float) -> Load:
        """Return what came of it."""
        failures = dict(self._failures.most_common())
        start, later = (1000.0 * self._longest_s[is_start] for is_start in (True, False))
        return Load(seconds, qps, self._latencies, failures, self._not_started, start, later)

    def _note(self, reason: str) -> None:
        kind = _PARTICULARS.sub("…", reason)
        if kind not in self._first and len(self._first) < _MOST_REASONS:
            self._first[kind] = reason
        self._failures[self._first.get(kind, "other reasons")] += 1


def _reason(error: BaseException) -> str:
    return shortened(one_line(error), _LONGEST_REASON)


def _started(work: Callable[[int], None], number: int) -> threading.Thread:
    # Daemons: a call that never ends must not keep the process after Ctrl-C.
    thread = threading.Thread(target=work, args=[number], name=f"load-{number}", daemon=True)
    thread.start()
    return thread
