"""How many calls a second: over a sliding window, of which only the elapsed part counts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock

from tuner.core.errors import InputError

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
