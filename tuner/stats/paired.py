"""Compare two configurations on the same queries: how much they differ, and how surely."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from tuner.core.rankings import FloatArray
from tuner.stats.pairs import (
    Pairs,
    check_draws,
    check_share,
    defined_pairs,
    is_constant,
    largest,
)
from tuner.stats.resampling import Interval, bca_interval, sign_flip_p


@dataclass(frozen=True)
class JudgeUse:
    """What a judge's labels added to those of people, see ``tuner.stats.with_judge``.

    Attributes:
        queries: how many queries only the judge graded.
        weight: how much it counts, from 0 (nothing) to ``queries`` / (``queries`` + people's).
        worth: how many of people's queries alone would give as narrow an interval.
    """

    queries: int
    weight: float
    worth: int | None


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
            width of 0 promises nothing about other queries; ``"undefined"`` where there is none:
            n < 2, or a constant difference on too few queries to rule out chance.
        bca_interval: the same by a bias-corrected and accelerated bootstrap over queries.
        confidence: of both intervals, such as 0.95.
        degrees_of_freedom: of the t-test and its interval, from 2 (1 for two queries) to n - 1.
        p_value: of the paired t-test, two-sided; it is under 1 - ``confidence`` exactly when
            ``interval`` leaves out 0. Where the differences are constant it is the sign-flip
            test's, which is then 2^(1 - n).
        permutation_p: of the sign-flip permutation test, two-sided.
        effect_size: Cohen's d of paired values, d_z = mean difference / standard deviation (Cohen
            1988; the name is Lakens's, 2013); None where the differences have no spread.
        wins: queries where the treatment is higher (of a cost: lower, see ``of_a_cost``).
        ties: queries where they are equal, but for rounding.
        losses: queries where it is the other way round.
        relative: mean difference / abs(control mean); None where the control mean is 0.
        remark: a sentence about input that a test cannot judge as usual, else None.
        judge: what a judge's labels added; None where only people's counted.
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
    degrees_of_freedom: float | None
    p_value: float | None
    permutation_p: float | None
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    relative: float | None
    remark: str | None
    judge: JudgeUse | None = None

    def of_a_cost(self) -> PairedComparison:
        """Return the comparison of something that is better when lower: wins and losses change."""
        return replace(self, wins=self.losses, losses=self.wins)

    def within(self, largest: float | None) -> PairedComparison:
        """Return the comparison with intervals that end where a difference can be no larger.

        Two means of values from 0 to 1 differ by at most 1; None where nobody knows the bound.
        """
        if largest is None:
            return self
        return replace(
            self,
            interval=_cut(self.interval, largest),
            bca_interval=_cut(self.bca_interval, largest),
        )


def compare_paired(
    treatment: npt.ArrayLike,
    control: npt.ArrayLike,
    *,
    seed: int,
    confidence: float = 0.95,
    further_error: float = 0.0,
    widened: float = 1.0,
    permutations: int = 9_999,
    resamples: int = 9_999,
) -> PairedComparison:
    """Compare two arrays of per-query values, shape (queries,), by their differences.

    With d = treatment - control: t = mean(d) / (sd(d) / sqrt(n)) (Student 1908), with the degrees
    of freedom of ``degrees_of_freedom``: n - 1 unless the differences have long tails. The t-test
    and the sign-flip test are the two that keep their error rate on retrieval metrics (Smucker,
    Allan and Carterette 2007; Urbano, Lima and Hanjalic 2019); Wilcoxon's does not test the mean.
    The bootstrap is Efron's BCa (1987). ``permutations=0`` or ``resamples=0`` leaves that part out
    as None. The order of the queries changes nothing. ``further_error`` is a standard error of the
    mean difference that other queries would not lessen, such as that of systems which answer
    differently when they are asked again; it is added in quadrature. ``widened`` multiplies the
    standard error where the differences are not independent, see ``widened_by``.

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
    is_equal = is_constant(difference, magnitude=largest(pairs.treatment, pairs.control))
    if is_equal and not further_error:
        return _constant(pairs, confidence)

    from scipy import stats

    mean = float(difference.mean())
    deviation = 0.0 if is_equal else float(difference.std(ddof=1))
    error = math.hypot(widened * deviation / math.sqrt(n), further_error)
    degrees = degrees_of_freedom(difference)
    low, high = stats.t.interval(confidence, degrees, loc=mean, scale=error)
    return _compared(
        pairs,
        confidence,
        interval=(float(low), float(high)),
        interval_kind="t",
        bca_interval=bca_interval(
            difference, seed=seed, confidence=confidence, resamples=resamples
        ),
        degrees=degrees,
        p_value=float(2.0 * stats.t.sf(abs(mean) / error, degrees)),
        permutation_p=sign_flip_p(difference, seed=seed, permutations=permutations),
        effect_size=None if is_equal else float(difference.mean() / difference.std(ddof=1)),
    )


def degrees_of_freedom(values: FloatArray) -> float:
    """Return how many degrees of freedom the variance of ``values``, shape (n,), is worth; n > 1.

    Satterthwaite 1946: df = 2 s^4 / var(s^2), with the sample's own kurtosis k in var(s^2) =
    s^4 ((k - 1) / n + 2 / (n (n - 1))). For k = 3, the normal distribution's, that is n - 1; the
    rarer and larger the values that make up the spread, the fewer; never more than n - 1, which
    also holds where all values are the same. Student's n - 1 makes intervals too narrow where most
    queries are tied and a few differ much (experiments/statistics/README.md).

    0 (nine times) and 1: k = (9 * .1^4 + .9^4) / .09^2 = 8.11, df = 2 / (.711 + .022) = 2.73.

    >>> round(degrees_of_freedom(np.array([0.0] * 9 + [1.0])), 2)
    2.73
    """
    from scipy import stats

    n = values.size
    if is_constant(values, magnitude=largest(values)):
        return float(n - 1)
    kurtosis = float(stats.kurtosis(values, fisher=False))
    return float(min(2.0 / ((kurtosis - 1.0) / n + 2.0 / (n * (n - 1))), n - 1))


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


def _cut(interval: Interval | None, largest: float) -> Interval | None:
    if interval is None:
        return None
    low, high = interval
    return max(low, -largest), min(high, largest)


def _nothing_to_compare(pairs: Pairs) -> str:
    if pairs.undefined == 0:
        return "there are no queries to compare"
    return f"none of the {pairs.undefined} queries has a value from both"


def _constant(pairs: Pairs, confidence: float) -> PairedComparison:
    """Answer where every query differs by the same amount, so that t has nothing to divide by."""
    mean = float(pairs.difference.mean())
    if mean == 0.0:
        return _compared(
            pairs,
            confidence,
            interval=(0.0, 0.0),
            interval_kind="constant",
            p_value=1.0,
            permutation_p=1.0,
            remark=f"the two are identical on all {pairs.n} queries",
        )
    # Of 2^n signs, two leave the sum as extreme: all of them, and none.
    p_value = 2.0 ** (1 - pairs.n)
    every = "both queries" if pairs.n == 2 else f"all {pairs.n} queries"
    remark = (
        f"{every} differ by the same amount ({abs(mean):.4g}), so there is no spread for a t-test "
        "and the sign-flip test answers alone"
    )
    if p_value < 1.0 - confidence:
        remark += "; check that the two were measured independently"
    else:
        least = 2 + math.floor(-math.log2(1.0 - confidence))
        remark += f": it needs at least {least} queries to rule out chance"
    return _compared(
        pairs,
        confidence,
        interval=(mean, mean) if p_value < 1.0 - confidence else None,
        interval_kind="constant" if p_value < 1.0 - confidence else "undefined",
        p_value=p_value,
        permutation_p=p_value,
        remark=remark,
    )


def _compared(
    pairs: Pairs,
    confidence: float,
    *,
    interval: Interval | None = None,
    interval_kind: Literal["t", "constant", "undefined"] = "undefined",
    bca_interval: Interval | None = None,
    degrees: float | None = None,
    p_value: float | None = None,
    permutation_p: float | None = None,
    effect_size: float | None = None,
    remark: str | None = None,
) -> PairedComparison:
    difference = np.sort(pairs.difference)
    mean = float(difference.mean()) if pairs.n else None
    standard_deviation = float(difference.std(ddof=1)) if pairs.n > 1 else None
    if pairs.n > 1 and is_constant(difference, magnitude=largest(pairs.treatment, pairs.control)):
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
        degrees_of_freedom=degrees,
        p_value=p_value,
        permutation_p=permutation_p,
        effect_size=effect_size,
        wins=int(np.count_nonzero(difference > 0)),
        ties=int(np.count_nonzero(difference == 0)),
        losses=int(np.count_nonzero(difference < 0)),
        relative=mean / abs(control_mean) if mean is not None and control_mean else None,
        remark=remark,
    )
