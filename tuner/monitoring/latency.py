"""How long calls take, and how many there are a second.

Percentiles by stage are exact for a while, then from a mergeable sketch.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import wraps
from threading import Lock
from typing import Any, TypeVar, cast

from tuner.core.errors import InputError
from tuner.core.shown import as_percent
from tuner.monitoring.distribution import EXACT_SAMPLES, Distribution

TOTAL = "total"
"""The stage of a whole call."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class LatencySummary:
    """The calls of one stage. Without a call every time is NaN, never 0 ms.

    Percentiles are numpy's ``linear`` (type 7 of Hyndman and Fan): of 1, 2, …, 100 ms p50 is
    50.5 ms and p99 99.01 ms. A failed call counts with its time.

    Attributes:
        count: calls, failed ones included.
        errors: calls that failed.
        relative_error: how far percentiles may be off, as a share: 0 while they are exact.
    """

    count: int
    errors: int
    mean_ms: float
    min_ms: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    relative_error: float

    @property
    def error_rate(self) -> float:
        """Return the share of calls that failed, 0 to 1; NaN without a call."""
        return self.errors / self.count if self.count else math.nan

    def to_record(self) -> dict[str, float | int | None]:
        """Return a JSON-ready mapping; what is undefined is None, since JSON has no NaN."""
        record = {**asdict(self), "error_rate": self.error_rate}
        return {name: None if value != value else value for name, value in record.items()}


class LatencyTracker:
    """Times calls, in total and by stages of any name. Safe to share between threads.

    >>> tracker = LatencyTracker()
    >>> for milliseconds in range(1, 101):
    ...     tracker.record(milliseconds / 1000)
    >>> round(tracker.summary().p95_ms, 3)
    95.05

    ``with tracker.time("graph"):``, ``async with`` and ``@tracker.time()`` record by themselves, on
    a monotonic clock; an exception, a cancellation too, makes the call a failed one.

    Each stage keeps ``exact_samples`` times (8 bytes each) and is exact until then. Beyond, it is a
    DDSketch (Masson, Rim, Lee, VLDB 2019) of some kilobytes: percentiles within 0.5 % of the exact
    ones; counts, mean, minimum and maximum stay exact. A tracker can be pickled, so worker
    processes can send theirs home to be merged.
    """

    def __init__(
        self,
        *,
        exact_samples: int = EXACT_SAMPLES,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if exact_samples < 1:
            raise InputError(f"exact_samples={exact_samples}: must be at least 1")
        self._exact_samples = exact_samples
        self.clock = clock
        self._stages: dict[str, Distribution] = {}
        self._lock = Lock()

    def record(self, seconds: float, *, stage: str = TOTAL, is_failed: bool = False) -> None:
        """Count one call that took ``seconds`` (finite, at least 0).

        Raises:
            InputError: no such time; nothing is counted then.
        """
        if not 0.0 <= seconds < math.inf:
            raise InputError(f"a call cannot take {seconds!r} s; give seconds from 0 up")
        with self._lock:
            distribution = self._stages.get(stage)
            if distribution is None:
                distribution = self._stages[stage] = Distribution(self._exact_samples)
            distribution.add(seconds, is_failed)

    def time(self, stage: str = TOTAL) -> Timing:
        """Return what times one ``with`` or ``async with`` block, or every call of a function."""
        return Timing(self, stage)

    @property
    def stages(self) -> tuple[str, ...]:
        """Return the stages that have a call, the total first."""
        with self._lock:
            return tuple(sorted(self._stages, key=lambda name: name != TOTAL))

    def summary(self, stage: str = TOTAL) -> LatencySummary:
        """Summarise one stage; one that has no call has a count of 0 and NaN elsewhere."""
        distribution = self._copies().get(stage) or Distribution(self._exact_samples)
        p50, p90, p95, p99 = (share * 1000.0 for share in distribution.quantiles(_SHARES))
        return LatencySummary(
            count=distribution.count,
            errors=distribution.errors,
            mean_ms=distribution.mean * 1000.0,
            min_ms=distribution.min * 1000.0,
            p50_ms=p50,
            p90_ms=p90,
            p95_ms=p95,
            p99_ms=p99,
            max_ms=distribution.max * 1000.0,
            relative_error=distribution.relative_error,
        )

    def merge(self, other: LatencyTracker) -> LatencyTracker:
        """Return a tracker of the calls of both, as if one had seen them all; neither changes."""
        merged = LatencyTracker(exact_samples=self._exact_samples, clock=self.clock)
        merged._stages = self._copies()
        for stage, distribution in other._copies().items():
            own = merged._stages.setdefault(stage, Distribution(self._exact_samples))
            own.absorb(distribution)
        return merged

    def to_record(self) -> dict[str, dict[str, float | int | None]]:
        """Return a JSON-ready mapping: stage -> count, errors, error_rate and times in ms."""
        return {stage: self.summary(stage).to_record() for stage in self.stages or (TOTAL,)}

    def report(self) -> str:
        """Return a table for people, one line a stage, times in milliseconds."""
        rows = {stage: self.summary(stage) for stage in self.stages or (TOTAL,)}
        width = max(len(stage) for stage in ("stage", *rows))
        head = "".join(f"{name:>10}" for name in ("count", "errors", *_SHOWN))
        lines = [f"{'stage':<{width}}{head}"]
        for stage, row in rows.items():
            times = "".join(f"{_shown_ms(getattr(row, f'{name}_ms')):>10}" for name in _SHOWN)
            lines.append(f"{stage:<{width}}{row.count:>10}{row.errors:>10}{times}")
        lines.append(_footnote(rows))
        return "\n".join(lines)

    def _copies(self) -> dict[str, Distribution]:
        with self._lock:
            return {stage: own.copy() for stage, own in self._stages.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_stages": self._copies(), "_lock": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update({**state, "_lock": Lock()})


class Timing:
    """Times one block at a time, or, as a decorator, each call by itself; made by ``time``."""

    __slots__ = ("_begin", "_is_failed", "_stage", "_tracker")

    def __init__(self, tracker: LatencyTracker, stage: str) -> None:
        self._tracker = tracker
        self._stage = stage
        self._begin = 0.0
        self._is_failed = False

    def fail(self) -> None:
        """Count the running call as failed although it raises nothing, as for a status 500."""
        self._is_failed = True

    def __enter__(self) -> Timing:
        self._is_failed = False
        self._begin = self._tracker.clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        tracker = self._tracker
        seconds = tracker.clock() - self._begin
        is_failed = self._is_failed or kind is not None
        tracker.record(seconds, stage=self._stage, is_failed=is_failed)

    async def __aenter__(self) -> Timing:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.__exit__(kind)

    def __call__(self, function: Function) -> Function:
        """Return the function with each of its calls timed; a coroutine until it is done.

        Raises:
            InputError: a generator, whose call only makes it: time its body instead.
        """
        tracker, stage = self._tracker, self._stage
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            name = getattr(function, "__qualname__", repr(function))
            raise InputError(
                f"{name} is a generator: calling it takes no time; write `with tracker.time():` "
                "around what is to be timed"
            )
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def timed_coroutine(*args: Any, **kwargs: Any) -> Any:
                with Timing(tracker, stage):
                    return await function(*args, **kwargs)

            return cast(Function, timed_coroutine)

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with Timing(tracker, stage):
                return function(*args, **kwargs)

        return cast(Function, timed)


_SHARES = (0.5, 0.9, 0.95, 0.99)
_SHOWN = ("mean", "min", "p50", "p90", "p95", "p99", "max")


def _shown_ms(value: float) -> str:
    return "–" if value != value else f"{value:.3f}" if value < 10_000 else f"{value:.0f}"


def _footnote(rows: Mapping[str, LatencySummary]) -> str:
    worst = max(row.relative_error for row in rows.values())
    exactness = f"within {as_percent(worst, '.1%')}" if worst else "exact"
    return f"milliseconds; percentiles {exactness}, linear"


# The window moves on by a hundredth of its length at a time.
_BUCKETS = 100


class ThroughputTracker:
    """Counts calls a second (QPS). Safe to share between threads; memory does not grow.

    Time begins with the tracker, so make it when the service starts. In the first seconds the rate
    is over the time that has passed and not over the whole window: 5 calls in the first half
    second are 10 QPS. Later it is over the last ``window_s`` seconds, less at most a hundredth.
    """

    def __init__(
        self, window_s: float = 60.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not 0.0 < window_s < math.inf:
            raise InputError(f"window_s={window_s}: must be seconds above 0")
        self._bucket_s = window_s / _BUCKETS
        self._clock = clock
        self._begin = clock()
        self._counts = [0] * _BUCKETS
        self._newest = 0  # number of the bucket that holds now, from 0 at the beginning
        self._count = 0
        self._lock = Lock()

    def record(self, calls: int = 1) -> None:
        """Count calls that end now, failed ones too if they are traffic to you.

        Raises:
            InputError: a negative number.
        """
        if calls < 0:
            raise InputError(f"calls={calls}: must be at least 0")
        with self._lock:
            self._advance()
            self._counts[self._newest % _BUCKETS] += calls
            self._count += calls

    @property
    def count(self) -> int:
        """Return the number of calls since the beginning."""
        return self._count

    def qps(self) -> float:
        """Return calls a second over the elapsed part of the window; NaN before any time passed."""
        with self._lock:
            elapsed_s = self._advance()
            oldest_s = max(0, self._newest - _BUCKETS + 1) * self._bucket_s
            covered_s = elapsed_s - oldest_s
            return sum(self._counts) / covered_s if covered_s > 0.0 else math.nan

    def _advance(self) -> float:
        """Empty the buckets that the window has left, and return the seconds since the start."""
        elapsed_s = self._clock() - self._begin
        newest = int(elapsed_s / self._bucket_s)
        for number in range(max(self._newest, newest - _BUCKETS) + 1, newest + 1):
            self._counts[number % _BUCKETS] = 0
        self._newest = max(newest, self._newest)
        return elapsed_s
