"""Guard-rails: show that a metric did not get worse by more than a margin.

"No significant difference" is no such evidence: too few queries show no difference either. So the
burden is turned round (non-inferiority test): the margin counts as broken until shown otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.stats.paired import degrees_of_freedom
from tuner.stats.pairs import (
    VALUES_AT_ONCE,
    Pairs,
    check_share,
    defined_pairs,
    is_constant,
    largest,
)


@dataclass(frozen=True)
class NonInferiority:
    """Whether the treatment is shown to be worse by less than ``margin``.

    Attributes:
        n: queries with a value from both.
        undefined: queries left out because one of the two values is NaN.
        treatment: mean, or quantile, over the ``n`` queries; None for no query.
        control: the same of the control.
        loss: how much worse the treatment is, positive is worse, in the unit of ``margin``: the
            metric's own, or a share of the control where the margin is relative.
        loss_bound: the one-sided upper confidence bound of ``loss`` at 1 - ``alpha``; None where
            the data set no bound.
        margin: the largest loss that is acceptable.
        alpha: the rate at which a loss of exactly ``margin`` would be let pass.
        p_value: one-sided, of the hypothesis that the loss is ``margin`` or more.
        is_non_inferior: ``p_value <= alpha``; False where nothing could be tested.
        remark: a sentence about input that a test cannot judge as usual, else None.
    """

    n: int
    undefined: int
    treatment: float | None
    control: float | None
    loss: float | None
    loss_bound: float | None
    margin: float
    alpha: float
    p_value: float | None
    is_non_inferior: bool
    remark: str | None


def non_inferiority(
    treatment: npt.ArrayLike,
    control: npt.ArrayLike,
    *,
    margin: float,
    higher_is_better: bool,
    is_relative: bool = False,
    alpha: float = 0.05,
) -> NonInferiority:
    """Test by a one-sided paired t-test that the mean is worse by less than ``margin``.

    With l = control - treatment where higher is better (else treatment - control) and e = l -
    margin: t = -mean(e) / (sd(e) / sqrt(n)), with the ``degrees_of_freedom`` of l. ``is_relative``
    takes ``margin`` as a share of the control's mean, .10 for 10 %: e = l - margin * control, and
    the bound is Fieller's (1954), which holds although the control's mean is itself an estimate.

    l = .00, .02, .00, .02 with margin .04: mean(e) = -.03, sd = .01155, t = .03 / .00577 = 5.20,
    p = .0069: the loss is under .04.

    >>> result = non_inferiority([1, .98, 1, .98], [1, 1, 1, 1], margin=.04, higher_is_better=True)
    >>> round(result.p_value, 4), result.is_non_inferior
    (0.0069, True)

    Raises:
        InputError: the arrays do not match, ``margin`` is negative, or it is relative to a control
            whose mean is not above 0.
    """
    check_margin(margin, alpha)
    pairs = defined_pairs(treatment, control)
    if pairs.n == 0:
        return _result(pairs, margin, alpha, remark="no query has a value from both")
    worse = -pairs.difference if higher_is_better else pairs.difference
    unit = pairs.control if is_relative else np.ones(pairs.n)
    if is_relative:
        check_unit(float(unit.mean()))
    loss = float(worse.mean() / unit.mean())
    means = (float(pairs.treatment.mean()), float(pairs.control.mean()))
    if pairs.n == 1:
        few = "only one query has a value from both: a test needs at least two"
        return _result(pairs, margin, alpha, *means, loss, remark=few)
    excess = worse - margin * unit
    remark: str | None = None
    if is_constant(excess, magnitude=largest(pairs.treatment, pairs.control)):
        # Without spread, the chance that all n signs fall this way: a one-sided sign-flip test.
        p_value = 0.5**pairs.n if loss < margin else 1.0
        bound: float | None = loss
        remark = (
            f"all {pairs.n} queries differ by the same amount, so the sign-flip test answers "
            "instead of the t-test"
        )
    else:
        p_value, bound = _one_sided(worse, unit, excess, alpha)
    return _result(pairs, margin, alpha, *means, loss, bound, p_value, remark)


def non_inferior_quantile(
    treatment: npt.ArrayLike,
    control: npt.ArrayLike,
    *,
    quantile: float,
    margin: float,
    higher_is_better: bool,
    seed: int,
    is_relative: bool = False,
    alpha: float = 0.05,
    resamples: int = 1_999,
) -> NonInferiority:
    """Test by a paired bootstrap that a quantile, such as the p95 latency, is not much worse.

    Queries are drawn with replacement, both systems' quantiles (numpy's ``linear``, type 7) taken
    on each draw, and p = (1 + draws with a loss of at least ``margin``) / (draws + 1) (Davison and
    Hinkley 1997, section 4.2). ``loss_bound`` is the 1 - ``alpha`` percentile of the losses. The
    tail of few queries is a guess: under 100 queries a p95 rests on the five slowest.

    Raises:
        InputError: as for ``non_inferiority``, or ``quantile`` is not between 0 and 1.
    """
    check_margin(margin, alpha)
    check_share("quantile", quantile)
    if resamples < 1:
        raise InputError(f"resamples={resamples}: at least 1 is needed, better 1000 or more")
    pairs = defined_pairs(treatment, control)
    if pairs.n < 2:
        few = "fewer than two queries have a value from both"
        return _result(pairs, margin, alpha, remark=few)
    sign = -1.0 if higher_is_better else 1.0

    def losses(treated: FloatArray, controlled: FloatArray) -> FloatArray:
        before = np.quantile(controlled, quantile, axis=-1)
        loss = sign * (np.quantile(treated, quantile, axis=-1) - before)
        if is_relative:
            check_unit(float(np.min(before)))
            loss = loss / before
        return np.asarray(loss, dtype=np.float64)

    random = np.random.default_rng(seed)
    parts: list[FloatArray] = []
    step = max(1, VALUES_AT_ONCE // pairs.n)
    for start in range(0, resamples, step):
        size = (min(step, resamples - start), pairs.n)
        drawn = random.integers(0, pairs.n, size=size)
        parts.append(losses(pairs.treatment[drawn], pairs.control[drawn]))
    every = np.concatenate(parts)
    p_value = (1.0 + int(np.count_nonzero(every >= margin))) / (resamples + 1.0)
    treated, base = (float(np.quantile(x, quantile)) for x in (pairs.treatment, pairs.control))
    loss = float(losses(pairs.treatment, pairs.control))
    bound = float(np.quantile(every, 1.0 - alpha))
    return _result(pairs, margin, alpha, treated, base, loss, bound, p_value)


def _one_sided(
    worse: FloatArray, unit: FloatArray, excess: FloatArray, alpha: float
) -> tuple[float, float | None]:
    """Return the one-sided p-value of mean(excess) >= 0, and the bound of mean(worse)/mean(unit).

    The bound is the margin m at which p would be alpha: the upper root of
    (mean(worse) - m mean(unit))^2 = t^2 var(worse - m unit) / n, none where the denominator could
    be 0 (Fieller). With unit = 1 it is mean(worse) + t * standard error.
    """
    from scipy import stats

    n = worse.size
    degrees = degrees_of_freedom(worse)
    critical = float(stats.t.isf(alpha, degrees))
    statistic = float(excess.mean() / (excess.std(ddof=1) / math.sqrt(n)))
    p_value = float(stats.t.cdf(statistic, degrees))
    covariance = np.cov(worse, unit) * (critical**2 / n)
    a = float(unit.mean() ** 2 - covariance[1, 1])
    b = float(worse.mean() * unit.mean() - covariance[0, 1])
    c = float(worse.mean() ** 2 - covariance[0, 0])
    if a <= 0.0:
        return p_value, None
    return p_value, (b + math.sqrt(max(b * b - a * c, 0.0))) / a


def _result(
    pairs: Pairs,
    margin: float,
    alpha: float,
    treatment: float | None = None,
    control: float | None = None,
    loss: float | None = None,
    bound: float | None = None,
    p_value: float | None = None,
    remark: str | None = None,
) -> NonInferiority:
    is_shown = p_value is not None and p_value <= alpha
    sides = (pairs.n, pairs.undefined, treatment, control)
    return NonInferiority(*sides, loss, bound, margin, alpha, p_value, is_shown, remark)


def check_margin(margin: float, alpha: float) -> None:
    """Refuse a margin that is negative or not finite.

    Raises:
        InputError: it is.
    """
    check_share("alpha", alpha)
    if not (math.isfinite(margin) and margin >= 0.0):
        raise InputError(
            f"margin={margin!r} must be a finite number of at least 0: the largest acceptable loss"
        )


def check_unit(control: float) -> None:
    """Refuse a control of which no share can be taken.

    Raises:
        InputError: it is not above 0.
    """
    if control <= 0.0:
        raise InputError(
            f"the control is {control:g}: a share of it is undefined; give an absolute margin"
        )
