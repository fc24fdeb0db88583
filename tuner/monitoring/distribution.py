"""The times of one stage: all of them up to a limit, beyond it a sketch of bounded size."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
from ddsketch import DDSketch
from ddsketch.mapping import LogarithmicMapping

from tuner.core.rankings import FloatArray

EXACT_SAMPLES = 10_000

# DDSketch was chosen because it states a relative error at every percentile and merges without
# loss (both sides have the same buckets); it is pure Python and small. t-digest bounds no relative
# error, and its merges lose; HdrHistogram's package pulls setuptools in and needs a range.
RELATIVE_ERROR = 0.005

# Samples go into the sketch so many at a time: by themselves they would cost 2 us each.
_BATCH = 1_000


class Distribution:
    """Times in seconds, at least 0. Not safe between threads: its owner locks."""

    __slots__ = ("_count", "_max", "_min", "_room", "_sketch", "_total", "errors", "kept")

    def __init__(self, limit: int) -> None:
        self.kept = array("d")
        self.errors = 0
        self._room = limit
        self._sketch: DDSketch | None = None
        self._count = 0
        self._total = 0.0
        self._min = math.inf
        self._max = -math.inf

    @property
    def count(self) -> int:
        """Return how many samples there are."""
        return self._count + len(self.kept)

    @property
    def mean(self) -> float:
        """Return the mean; NaN without a sample."""
        return (self._total + float(self._array.sum())) / self.count if self.count else math.nan

    @property
    def min(self) -> float:
        """Return the smallest sample; NaN without one."""
        return min(self._min, min(self.kept, default=math.inf)) if self.count else math.nan

    @property
    def max(self) -> float:
        """Return the largest sample; NaN without one."""
        return max(self._max, max(self.kept, default=-math.inf)) if self.count else math.nan

    @property
    def relative_error(self) -> float:
        """Return how far quantiles may be off: 0 as long as every sample is kept."""
        return 0.0 if self._sketch is None else RELATIVE_ERROR

    @property
    def _array(self) -> FloatArray:
        return np.array(self.kept, dtype=np.float64)

    def add(self, seconds: float, is_failed: bool) -> None:
        """Count one sample."""
        kept = self.kept
        kept.append(seconds)
        if is_failed:
            self.errors += 1
        if len(kept) > self._room:
            self._sketch_kept()

    def absorb(self, other: Distribution) -> None:
        """Count all samples of another, which is not changed."""
        self.errors += other.errors
        self.kept.extend(other.kept)
        if other._sketch is not None:
            self._sketch_kept().merge(other._sketch)
            self._count += other._count
            self._total += other._total
            self._min = min(self._min, other._min)
            self._max = max(self._max, other._max)
        elif len(self.kept) > self._room:
            self._sketch_kept()

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return numpy's ``linear`` quantiles (type 7), of shares from 0 to 1; NaN if empty."""
        if not self.count:
            return [math.nan] * len(shares)
        if self._sketch is None:
            return [float(value) for value in np.quantile(self._array, shares, method="linear")]
        self._sketch_kept()
        return [self._interpolated(share * (self.count - 1)) for share in shares]

    def copy(self) -> Distribution:
        """Return a distribution that goes its own way."""
        return deepcopy(self)

    def _interpolated(self, place: float) -> float:
        # Between the same two ranks as the exact quantile: each is within the relative error, so
        # what lies between them is as well.
        rank = math.floor(place)
        low, share = self._at(rank), place - rank
        return low if not share else low + share * (self._at(rank + 1) - low)

    def _at(self, rank: int) -> float:
        """Return the sample of a rank from 0, within the relative error."""
        if rank <= 0:
            return self._min
        if rank >= self._count - 1 or self._sketch is None:
            return self._max
        # Half a rank further: the sketch multiplies by count - 1 again, and a product that came
        # out just below the rank would be the sample before.
        found = self._sketch.get_quantile_value((rank + 0.5) / (self._count - 1))
        return self._max if found is None else min(max(found, self._min), self._max)

    def _sketch_kept(self) -> DDSketch:
        """Move the samples that are kept into the sketch, and return it."""
        if self._sketch is None:
            self._sketch = DDSketch(RELATIVE_ERROR)
        samples = self._array
        self.kept = array("d")
        self._room = _BATCH
        if samples.size:
            self._count += samples.size
            self._total += float(samples.sum())
            self._min = min(self._min, float(samples.min()))
            self._max = max(self._max, float(samples.max()))
            _add(self._sketch, samples)
        return self._sketch


def _add(sketch: DDSketch, samples: FloatArray) -> None:
    """Add samples to a sketch, bucket by bucket."""
    mapping = LogarithmicMapping(RELATIVE_ERROR)
    is_positive = samples > mapping.min_possible
    if zeros := int(np.count_nonzero(~is_positive)):
        sketch.add(0.0, zeros)
    # Bucket k holds gamma^(k - 1) < x <= gamma^k, with gamma = (1 + error) / (1 - error).
    keys = np.ceil(np.log(samples[is_positive]) / math.log(mapping.gamma)).astype(np.int64)
    for key, count in zip(*np.unique(keys, return_counts=True), strict=True):
        sketch.add(mapping.value(int(key)), int(count))
