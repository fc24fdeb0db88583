"""How a metric goes with a quality over the same configurations and queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import InputError
from tuner.core.rankings import BoolArray, FloatArray, IntArray
from tuner.stats.pairs import VALUES_AT_ONCE, check_share, is_constant, without_rounding
from tuner.stats.resampling import Interval

RESAMPLES = 2_000
# Products of two sums of squares that are rounding, of values around 1.
_NO_SPREAD = 1e-24
# How often each query was drawn -> one figure a draw; shape (draws, queries) -> (draws,).
Statistic = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class RankCorrelation:
    """How a metric ranks configurations as a quality does; None where that is undefined.

    Attributes:
        within: the mean over queries of Kendall's tau-b over configurations.
        within_interval: by resampling queries; None too where all queries have the same tau.
        queries: how many have a tau: both vary.
        constant_quality: queries whose quality is the same for all configurations.
        constant_metric: queries whose metric is, although the quality varies.
        undefined: queries that lack a value of either.
        between: tau-b over configurations of the means over queries that lack no value.
        between_interval: see ``_interval_between``.
        explained: the share of the variance of quality within queries that a straight line in the
            metric explains, in [0, 1]; 0 where they go against each other.
        explained_interval: by resampling queries.
    """

    within: float | None
    within_interval: Interval | None
    queries: int
    constant_quality: int
    constant_metric: int
    undefined: int
    between: float | None
    between_interval: Interval | None
    explained: float | None
    explained_interval: Interval | None


def tau_b(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return Kendall's tau-b along the first axis: shape (configurations, …) -> (…).

    tau_b = (concordant - discordant) / sqrt(pairs not tied in one * pairs not tied in the other)
    (Kendall 1945). NaN where one of the two does not vary, or has an undefined value.

    Of the 3 pairs of 1, 2, 3 against 1, 1, 2 two agree and one is tied: 2 / sqrt(3 * 2) = .816.

    >>> round(float(tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]))), 3)
    0.816
    """
    left, right = np.triu_indices(len(first), 1)
    one, other = (
        np.sign(without_rounding(values[left] - values[right], values[left], values[right]))
        for values in (first, second)
    )
    norm = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    nothing = np.full(norm.shape, math.nan)
    agreed = (one * other).sum(axis=0)
    return np.asarray(np.divide(agreed, norm, out=nothing, where=norm > 0))


def correlate_ranks(
    metric: FloatArray,
    quality: FloatArray,
    *,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> RankCorrelation:
    """Compare two arrays of shape (configurations, queries), NaN where a value is undefined.

    ``clusters`` has a label for each query: those of one label are drawn together. The intervals
    are about other queries; of other configurations they say nothing.

    Raises:
        InputError: the shapes differ, or there are fewer than two configurations.
    """
    check_share("confidence", confidence)
    metric, quality = (np.asarray(one, dtype=np.float64) for one in (metric, quality))
    if metric.ndim != 2 or metric.shape != quality.shape:
        raise InputError(
            f"metric and quality must have one shape (configurations, queries); got {metric.shape} "
            f"and {quality.shape}"
        )
    if len(metric) < 2:
        raise InputError(f"{len(metric)} configuration: a correlation needs at least 2")
    is_whole = ~np.isnan(metric + quality).any(axis=0)
    labels = _labels(clusters, metric.shape[1])[is_whole]
    metric, quality = metric[:, is_whole], quality[:, is_whole]
    undefined = int((~is_whole).sum())
    if not labels.size:
        return RankCorrelation(None, None, 0, 0, 0, undefined, None, None, None, None)
    varies = ~constant_over_configurations(quality)
    moves = ~constant_over_configurations(metric)
    taus = tau_b(metric, quality)
    has_tau = ~np.isnan(taus)

    def interval(statistic: Statistic, rows: IntArray) -> Interval | None:
        return resampled_interval(
            statistic, rows, seed=seed, confidence=confidence, resamples=resamples
        )

    within = None if not has_tau.any() else float(taus[has_tau].mean())
    known = taus[has_tau]
    within_interval = (
        None
        if known.size < 2 or is_constant(known, magnitude=1.0)
        else interval(mean_statistic(known), labels[has_tau])
    )
    between = float(tau_b(metric.mean(axis=1), quality.mean(axis=1)))

    shares = centred_sums(metric, quality)
    explained = explained_share(shares.sum(axis=1))
    return RankCorrelation(
        within=within,
        within_interval=within_interval,
        queries=int(has_tau.sum()),
        constant_quality=int((~varies).sum()),
        constant_metric=int((varies & ~moves).sum()),
        undefined=undefined,
        between=None if math.isnan(between) else between,
        between_interval=None
        if math.isnan(between)
        else _interval_between(
            metric, quality, labels, seed=seed, confidence=confidence, resamples=resamples
        ),
        explained=None if np.isnan(explained) else float(explained),
        explained_interval=None
        if np.isnan(explained)
        else interval(lambda counts: explained_share(shares @ counts.T), labels),
    )


def _interval_between(
    metric: FloatArray,
    quality: FloatArray,
    labels: IntArray,
    *,
    seed: int,
    confidence: float,
    resamples: int,
) -> Interval | None:
    """Return where tau-b of the true means lies, for these configurations; None for one cluster.

    A rank correlation of means over few queries is nearer to 0 than that of the true means, and a
    resample's nearer still, so that percentiles miss the truth in most cases. Here the sign of a
    difference between two configurations, in the metric or in the quality, is taken for known where
    0 is outside an interval that holds for all of them together: by the largest studentised mean
    of a bootstrap. A pair with an unknown sign may agree or disagree, and the ends are where all of
    these do. So it holds the truth at least as often as ``confidence`` says.
    """
    if np.unique(labels).size < 2:
        return None
    left, right = np.triu_indices(len(metric), 1)
    sides = [values[left] - values[right] for values in (metric, quality)]
    differences = np.concatenate(
        [
            without_rounding(change, values[left], values[right])
            for change, values in zip(sides, (metric, quality), strict=True)
        ]
    )
    means = differences.mean(axis=1)
    moved = np.concatenate(
        [
            (counts @ differences.T) / counts.sum(axis=1, keepdims=True) - means
            for counts in draws(labels, seed=seed, resamples=resamples)
        ]
    )
    error = moved.std(axis=0)
    varies = error > 0.0
    furthest = np.abs(moved[:, varies] / error[varies]).max(axis=1, initial=0.0)
    critical = float(np.quantile(furthest, confidence))
    signs = np.where(np.abs(means) > critical * error, np.sign(means), math.nan)
    signs[~varies & (means == 0.0)] = 0.0  # the same for each query
    one, other = np.split(signs, 2)
    norm = math.sqrt(float(np.sum(one != 0.0)) * float(np.sum(other != 0.0)))
    if not norm:
        return None
    is_tied = (one == 0.0) | (other == 0.0)
    agreed = np.where(is_tied, 0.0, one * other)
    known, unknown = float(np.nansum(agreed)), float(np.isnan(agreed).sum())
    return max((known - unknown) / norm, -1.0), min((known + unknown) / norm, 1.0)


@dataclass(frozen=True)
class ExplainedGain:
    """How much more of a quality one metric explains than another; None where undefined.

    Attributes:
        first, second: the share of the variance within queries that each explains.
        relative: first / second - 1.
        interval: of ``relative``, by resampling queries; None where there is none, or the second
            may explain nothing at all.
    """

    first: float | None
    second: float | None
    relative: float | None
    interval: Interval | None


def explained_gain(
    first: FloatArray,
    second: FloatArray,
    quality: FloatArray,
    *,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> ExplainedGain:
    """Compare what two metrics explain of a quality, each of shape (configurations, queries)."""
    is_whole = ~np.isnan(first + second + quality).any(axis=0)
    labels = _labels(clusters, quality.shape[1])[is_whole]
    if not labels.size:
        return ExplainedGain(None, None, None, None)
    sums = [centred_sums(metric[:, is_whole], quality[:, is_whole]) for metric in (first, second)]
    found = [float(explained_share(one.sum(axis=1))) for one in sums]
    if any(map(math.isnan, found)) or found[1] <= 0.0:
        known = [None if math.isnan(one) else one for one in found]
        return ExplainedGain(known[0], known[1], None, None)

    def relative(counts: FloatArray) -> FloatArray:
        one, other = (explained_share(part @ counts.T) for part in sums)
        none = np.full(one.shape, math.nan)
        return np.asarray(np.divide(one, other, out=none, where=other > 0.0) - 1.0)

    interval = resampled_interval(
        relative, labels, seed=seed, confidence=confidence, resamples=resamples
    )
    return ExplainedGain(found[0], found[1], found[0] / found[1] - 1.0, interval)


def constant_over_configurations(values: FloatArray) -> BoolArray:
    """Say of each query whether all configurations have the same value, but for rounding."""
    highest, lowest = values.max(axis=0), values.min(axis=0)
    return np.asarray(without_rounding(highest - lowest, highest, lowest) == 0.0)


def centred_sums(metric: FloatArray, quality: FloatArray) -> FloatArray:
    """Return the sums of squares and products of each query around its own means: (3, queries)."""
    one, other = (values - values.mean(axis=0) for values in (metric, quality))
    return np.stack([(one**2).sum(axis=0), (other**2).sum(axis=0), (one * other).sum(axis=0)])


def explained_share(sums: FloatArray) -> FloatArray:
    """Return the squared correlation from ``centred_sums`` that were added up, shape (3, …).

    0 where the two go against each other; NaN where one does not vary.
    """
    norm = sums[0] * sums[1]
    nothing = np.full(np.shape(norm), math.nan)
    square = np.maximum(sums[2], 0.0) ** 2
    return np.asarray(np.divide(square, norm, out=nothing, where=norm > _NO_SPREAD))


def mean_statistic(values: FloatArray) -> Statistic:
    """Return the mean of values, shape (queries,), of which each draw has some."""
    return lambda counts: (counts @ values) / counts.sum(axis=1)


def resampled_interval(
    statistic: Statistic,
    labels: IntArray,
    *,
    seed: int,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """Return the expanded percentile interval of a statistic by a bootstrap of clusters.

    ``labels`` has shape (queries,): those of one label are drawn together. The percentiles are
    those at which an interval of a mean would have the width of Student's with n - 1 degrees of
    freedom, where n is the number of clusters (Hesterberg 2015). Draws for which the statistic is
    undefined do not count; None where that is more than 1 in 20, or n < 2.
    """
    from scipy import stats

    n = np.unique(labels).size
    if n < 2:
        return None
    values = np.concatenate([*map(statistic, draws(labels, seed=seed, resamples=resamples))])
    values = values[~np.isnan(values)]
    if values.size < 0.95 * resamples:
        return None
    student = stats.t.ppf(0.5 - confidence / 2.0, n - 1)
    tail = float(stats.norm.cdf(math.sqrt(n / (n - 1)) * student))
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def draws(labels: IntArray, *, seed: int, resamples: int) -> Iterator[FloatArray]:
    """Yield how often each query is drawn, shape (draws, queries), some draws at once.

    As many clusters are drawn as there are, with replacement.
    """
    number, place = np.unique(labels, return_inverse=True)
    random = np.random.default_rng(seed)
    uniform = np.full(number.size, 1.0 / number.size)
    at_once = max(1, VALUES_AT_ONCE // labels.size)
    for begin in range(0, resamples, at_once):
        drawn = random.multinomial(number.size, uniform, size=min(at_once, resamples - begin))
        yield drawn[:, place].astype(np.float64)


def _labels(clusters: Sequence[Hashable] | None, queries: int) -> IntArray:
    """Return a number for the cluster of each query; by default each is one by itself."""
    if clusters is None:
        return np.arange(queries)
    if len(clusters) != queries:
        raise InputError(f"{len(clusters)} clusters for {queries} queries")
    numbers: dict[Hashable, int] = {}
    found = [numbers.setdefault(label, len(numbers)) for label in clusters]
    return np.array(found, dtype=np.int64)


def by_cluster(values: FloatArray, clusters: Sequence[Hashable]) -> FloatArray:
    """Return the mean of each cluster's defined values, NaN where it has none.

    >>> by_cluster(np.array([1.0, 3.0, 5.0]), ["a", "a", "b"]).tolist()
    [2.0, 5.0]
    """
    labels = _labels(clusters, values.size)
    is_known = ~np.isnan(values)
    size = int(labels.max(initial=-1)) + 1
    count = np.bincount(labels[is_known], minlength=size).astype(np.float64)
    total = np.bincount(labels[is_known], weights=values[is_known], minlength=size)
    nothing = np.full(size, math.nan)
    return np.asarray(np.divide(total, count, out=nothing, where=count > 0))
