"""Compare two configurations on the same queries: how much they differ, and how surely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tuner.core.rankings import FloatArray
from tuner.stats.pairs import (
    VALUES_AT_ONCE,
    Pairs,
    check_draws,
    check_share,
    defined_pairs,
    is_constant,
    largest,
)

Interval = tuple[float, float]


@dataclass(frozen=True)
class PairedComparison:
    """What per-query values say about treatment minus control; None where that is undefined.

    Attributes:
        n: queries with a value from both.
        undefined: queries left out because one of the two values is NaN.
        treatment_mean: mean over the ``n`` queries.
        control_mean: mean over the ``n`` queries.
        mean_difference: mean of treatment - control; positive where the treatment is higher.
        standard_deviation: of the differences, with ddof = 1.
        interval: where the true mean difference lies with probability ``confidence``.
        interval_kind: ``"t"``; ``"constant"`` where all differences are the same, so that its
            width of 0 promises nothing about other queries; ``"undefined"`` for n < 2.
        bca_interval: the same by a bias-corrected and accelerated bootstrap over queries.
        confidence: of both intervals, such as 0.95.
        p_value: of the paired t-test, two-sided; it is under 1 - ``confidence`` exactly when
            ``interval`` leaves out 0. Where the differences are constant it is ``permutation_p``.
        permutation_p: of the sign-flip permutation test, two-sided.
        effect_size: d_z = mean difference / standard deviation.
        wins: queries where the treatment is higher.
        ties: queries where they are equal, but for rounding.
        losses: queries where the treatment is lower.
        relative: mean difference / abs(control mean); None where the control mean is 0.
        remark: a sentence about input that a test cannot judge as usual, else None.
    """

    n: int
    undefined: int
    treatment_mean: float | None
    control_mean: float | None
    mean_difference: float | None
    standard_deviation: float | None
    interval: Interval | None
    interval_kind: Literal["t", "constant", "undefined"]
    bca_interval: Interval | None
    confidence: float
    p_value: float | None
    permutation_p: float | None
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    relative: float | None
    remark: str | None


def compare_paired(
    treatment: npt.ArrayLike,
    control: npt.ArrayLike,
    *,
    seed: int,
    confidence: float = 0.95,
    permutations: int = 9_999,
    resamples: int = 9_999,
) -> PairedComparison:
    """Compare two arrays of per-query values, shape (queries,), by their differences.

    With d = treatment - control: t = mean(d) / (sd(d) / sqrt(n)) with n - 1 degrees of freedom
    (Student 1908). The t-test and the sign-flip test are the two that keep their error rate on
    retrieval metrics (Smucker, Allan and Carterette 2007; Urbano, Lima and Hanjalic 2019);
    Wilcoxon's does not test the mean. The bootstrap is Efron's BCa (1987). ``permutations=0`` or
    ``resamples=0`` leaves that part out as None. The order of the queries changes nothing.

    d = 0, 1, 2, 3: mean 1.5, sd 1.291, t = 1.5 / (1.291 / 2) = 2.324, p = .103.

    >>> result = compare_paired([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0], seed=0)
    >>> round(result.p_value, 3), result.wins, result.ties, result.losses
    (0.103, 3, 1, 0)

    Raises:
        InputError: the arrays are not two matching lists of finite or undefined values.
    """
    check_share("confidence", confidence)
    check_draws("permutations", permutations)
    check_draws("resamples", resamples)
    pairs = defined_pairs(treatment, control)
    # Sorted, so that sums and random draws do not depend on the order of the queries.
    difference = np.sort(pairs.difference)
    n = pairs.n
    if n == 0:
        return _compared(pairs, confidence, remark=_nothing_to_compare(pairs))
    if n == 1:
        return _compared(
            pairs,
            confidence,
            remark="only one query has a value from both: a test needs at least two",
        )
    flipped_p = sign_flip_p(difference, seed=seed, permutations=permutations)
    if is_constant(difference, magnitude=largest(pairs.treatment, pairs.control)):
        return _constant(pairs, confidence, flipped_p)

    from scipy import stats

    test = stats.ttest_1samp(difference, 0.0)
    interval = test.confidence_interval(confidence_level=confidence)
    return _compared(
        pairs,
        confidence,
        interval=(float(interval.low), float(interval.high)),
        interval_kind="t",
        bca_interval=bca_interval(
            difference, seed=seed, confidence=confidence, resamples=resamples
        ),
        p_value=float(test.pvalue),
        permutation_p=flipped_p,
        effect_size=float(difference.mean() / difference.std(ddof=1)),
    )


def standard_error(values: npt.ArrayLike) -> float | None:
    """Return sd / sqrt(n) of the defined values with ddof = 1; None for fewer than two.

    >>> standard_error([1.0, 3.0, float("nan")])  # sd = sqrt(2), n = 2
    1.0
    """
    array = np.asarray(values, dtype=np.float64)
    defined = array[~np.isnan(array)]
    if defined.size < 2:
        return None
    return float(defined.std(ddof=1) / np.sqrt(defined.size))


def sign_flip_p(difference: FloatArray, *, seed: int, permutations: int = 9_999) -> float | None:
    """Return the two-sided p-value of the sign-flip permutation test of a mean of 0.

    If neither system is better, each difference could as well have had the other sign. Of all 2^m
    signs of the m differences other than 0 (the others do not change a sum), the p-value is twice
    the share whose sum is at least as extreme, on the more extreme side. All are tried where
    2^m <= ``permutations``; otherwise that many are drawn and the observed signs count as one more
    (Phipson and Smyth 2010). None where there is no difference to flip or ``permutations`` is 0.

    d = 1, 2, 3: of 8 sums only +6 reaches +6, so p = 2 * 1/8.

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0]), seed=0)
    0.25
    """
    if permutations == 0 or difference.size == 0:
        return None
    moved = difference[difference != 0.0]
    if moved.size < 2:
        return 1.0  # With one difference both of its signs are as extreme.
    from scipy import stats

    result = stats.permutation_test(
        (moved,),
        _mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=permutations,
        batch=_batch(moved.size),
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def bca_interval(
    values: FloatArray, *, seed: int, confidence: float = 0.95, resamples: int = 9_999
) -> Interval | None:
    """Return the BCa bootstrap interval of the mean of ``values``, shape (n,).

    Efron 1987, by scipy. None where ``resamples`` is 0, n < 2 or all values are the same: a
    resample of equal values shows no spread.
    """
    if resamples == 0 or values.size < 2 or is_constant(values, magnitude=largest(values)):
        return None
    from scipy import stats

    interval = stats.bootstrap(
        (values,),
        _mean,
        method="BCa",
        vectorized=True,
        n_resamples=resamples,
        confidence_level=confidence,
        batch=_batch(values.size),
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def _mean(values: FloatArray, axis: int) -> FloatArray:
    return np.asarray(values.mean(axis=axis))


def _batch(size: int) -> int:
    return max(1, VALUES_AT_ONCE // size)


def _nothing_to_compare(pairs: Pairs) -> str:
    if pairs.undefined == 0:
        return "there are no queries to compare"
    return f"none of the {pairs.undefined} queries has a value from both"


def _constant(pairs: Pairs, confidence: float, flipped_p: float | None) -> PairedComparison:
    """Answer where every query differs by the same amount, so that t has nothing to divide by."""
    mean = float(pairs.difference.mean())
    if mean == 0.0:
        p_value: float | None = 1.0
        remark = f"the two are identical on all {pairs.n} queries"
    else:
        p_value = flipped_p
        remark = (
            f"all {pairs.n} queries differ by the same amount, so the t-test is undefined and the "
            "sign-flip test answers alone; check that the two were measured independently"
        )
    return _compared(
        pairs,
        confidence,
        interval=(mean, mean),
        interval_kind="constant",
        p_value=p_value,
        permutation_p=flipped_p,
        remark=remark,
    )


def _compared(
    pairs: Pairs,
    confidence: float,
    *,
    interval: Interval | None = None,
    interval_kind: Literal["t", "constant", "undefined"] = "undefined",
    bca_interval: Interval | None = None,
    p_value: float | None = None,
    permutation_p: float | None = None,
    effect_size: float | None = None,
    remark: str | None = None,
) -> PairedComparison:
    difference = np.sort(pairs.difference)
    mean = float(difference.mean()) if pairs.n else None
    standard_deviation = float(difference.std(ddof=1)) if pairs.n > 1 else None
    if interval_kind == "constant":
        standard_deviation = 0.0  # and not the rounding of the mean
    control_mean = float(np.sort(pairs.control).mean()) if pairs.n else None
    return PairedComparison(
        n=pairs.n,
        undefined=pairs.undefined,
        treatment_mean=float(np.sort(pairs.treatment).mean()) if pairs.n else None,
        control_mean=control_mean,
        mean_difference=mean,
        standard_deviation=standard_deviation,
        interval=interval,
        interval_kind=interval_kind,
        bca_interval=bca_interval,
        confidence=confidence,
        p_value=p_value,
        permutation_p=permutation_p,
        effect_size=effect_size,
        wins=int(np.count_nonzero(difference > 0)),
        ties=int(np.count_nonzero(difference == 0)),
        losses=int(np.count_nonzero(difference < 0)),
        relative=mean / abs(control_mean) if mean is not None and control_mean else None,
        remark=remark,
    )
