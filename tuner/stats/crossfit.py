"""A choice that is tested on parts which had no say in it: how much the parts depend on each other.

The queries are cut in parts; for each part one of many trials is chosen by the other parts, and
compared with a reference on this one. All differences together are one sample of paired
differences, but not an independent one: each part chooses for the others and is tested by them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.stats.pairs import VALUES_AT_ONCE, check_share
from tuner.stats.selection import Choose

PartOf = npt.NDArray[np.intp]
# In standard errors. With fewer, of two opposite directions the one that looks worse by chance
# would be left out, and with it what the parts' agreement by chance is measured by.
CLEARLY_WORSE = 3.0
# A spread that is rounding: sums of squares of values around 1.
_NO_SPREAD = 1e-18


def widened_by(
    gains: FloatArray,
    part_of: PartOf,
    *,
    choose: Choose,
    seed: int,
    tested: Sequence[FloatArray] = (),
    confidence: float = 0.95,
    resamples: int = 2_000,
) -> tuple[float, ...]:
    """Return by how much the dependence of the parts widens an interval: factors of 1 or more.

    ``gains`` has shape (trials, queries): what ``choose`` chooses by, less the reference's, whose
    row is 0 throughout. ``part_of`` has shape (queries,): the number of each query's part, from 0.
    ``tested`` are further values of the same shape, less the reference's, that the same choice is
    tested in, such as the gain without a price; there is one factor for ``gains``, and one for each
    of these.

    A bootstrap of the whole way of choosing where nothing is better: each trial's mean is taken off
    its gains, so that all are worth the reference; but one that is clearly worse, by more than
    three standard errors, stays so, as in Hansen's test (2005): nobody would choose it. Queries are
    drawn with replacement within each part's size, each part's choice is made by the others and
    tested on it, and t = mean / (sd / sqrt(n)) is taken over all. Its upper quantile, in units of
    Student's, is the factor. For independent tests it is 1. Two parts that would choose between
    opposite directions agree by chance in one of two cases, and their gains, or losses, add up: it
    is 1.14 there (``experiments/statistics/crossfit.md``).

    Raises:
        InputError: a shape is wrong, or there are fewer than two parts or queries with values.
    """
    check_share("confidence", confidence)
    means, errors, nominal = _under_no_gain(
        [gains, *tested], part_of, choose=choose, seed=seed, resamples=resamples, level=confidence
    )
    found = _ratio(means, errors)
    level = 0.5 + confidence / 2.0
    return tuple(max(1.0, float(q) / nominal) for q in np.quantile(found, level, axis=1))


def widened_by_both_ways(
    gains: FloatArray,
    tested: FloatArray,
    part_of: PartOf,
    *,
    choose: Choose,
    margin: float,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 2_000,
) -> float:
    """Return one factor for both intervals where a claim may be made in two ways.

    One way: ``tested`` is clearly better. The other: ``gains``, what is chosen by, are clearly
    better and more than ``tested``, which is clearly not worse by ``margin``. Each way has its
    chance where nothing is better, and both together up to twice that. So of each resample of
    ``widened_by`` the largest factor is kept at which either way would claim something; their upper
    quantile, and that of ``tested`` alone, is the factor.

    Raises:
        InputError: as for ``widened_by``.
    """
    check_share("confidence", confidence)
    means, errors, nominal = _under_no_gain(
        [gains, tested], part_of, choose=choose, seed=seed, resamples=resamples, level=confidence
    )
    own, other = _ratio(means, errors)
    # Without any spread it is not worse for certain.
    is_spread = errors[1] > 0.0
    not_worse = np.where(is_spread, (means[1] + margin) / np.where(is_spread, errors[1], 1.0), own)
    second = np.where(means[0] > means[1], np.minimum(own, not_worse), -np.inf)
    level = 0.5 + confidence / 2.0
    found = np.quantile([other, np.maximum(other, second)], level, axis=1)
    return max(1.0, float(found.max()) / nominal)


def _ratio(means: FloatArray, errors: FloatArray) -> FloatArray:
    """Return t, 0 where nothing varies."""
    is_spread = errors > 0.0
    return np.where(is_spread, means / np.where(is_spread, errors, 1.0), 0.0)


def _under_no_gain(
    values: Sequence[FloatArray],
    part_of: PartOf,
    *,
    choose: Choose,
    seed: int,
    resamples: int,
    level: float,
) -> tuple[FloatArray, FloatArray, float]:
    """Return means and their errors where nothing is better, and Student's quantile for these.

    Means and errors have the shape (kinds of values, resamples).
    """
    shapes = {np.shape(one) for one in values}
    if len(shapes) > 1 or np.ndim(values[0]) != 2 or np.shape(values[0])[1:] != np.shape(part_of):
        raise InputError("gains, what is tested and the parts are not of the same queries")
    stacked = np.stack([np.asarray(one, dtype=np.float64) for one in values])
    is_known = ~np.isnan(stacked).any(axis=(0, 1))
    stacked, parts = stacked[:, :, is_known], np.asarray(part_of)[is_known]
    sizes = np.unique(parts, return_counts=True)[1]
    if sizes.size < 2:
        raise InputError(f"{sizes.size} part with values; a choice is tested on at least 2")
    error = stacked[0].std(axis=1, ddof=1) / np.sqrt(parts.size)
    is_worse = stacked[0].mean(axis=1) < -CLEARLY_WORSE * error
    centred = stacked - stacked.mean(axis=2, keepdims=True)
    centred[0, is_worse] = stacked[0, is_worse]
    from scipy import stats

    means, errors = _resampled(centred, sizes, choose, resamples=resamples, seed=seed)
    return means, errors, float(stats.t.ppf(0.5 + level / 2.0, int(sizes.sum()) - 1))


def _resampled(
    centred: FloatArray, sizes: npt.NDArray[np.intp], choose: Choose, *, resamples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error of each kind of values in each resample."""
    kinds, trials, queries = centred.shape
    random = np.random.default_rng(seed)
    uniform = np.full(queries, 1.0 / queries)
    means: list[FloatArray] = []
    errors: list[FloatArray] = []
    done, total = 0, int(sizes.sum())
    while done < resamples:
        count = min(resamples - done, max(1, VALUES_AT_ONCE // max(trials, queries)))
        drawn = [random.multinomial(size, uniform, size=count).astype(np.float64) for size in sizes]
        everything = np.sum(drawn, axis=0)
        sums = np.zeros((2, kinds, count))
        for part in drawn:
            chosen = choose(centred[0], everything - part)
            values = centred[:, chosen]
            sums[0] += (part * values).sum(axis=2)
            sums[1] += (part * values**2).sum(axis=2)
        mean = sums[0] / total
        variance = (sums[1] / total - mean**2) * total / (total - 1)
        means.append(mean)
        errors.append(np.sqrt(np.where(variance > _NO_SPREAD, variance, 0.0) / total))
        done += count
    return np.concatenate(means, axis=1), np.concatenate(errors, axis=1)
