"""How many queries a comparison needs, and what difference a given number can show.

Exact power of the two-sided t-test from the noncentral t distribution (Cohen 1988), not the normal
approximation, which for two samples of d = .5 says 62 a group where 64 are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tuner.core.errors import InputError
from tuner.stats.pairs import check_share

# Nobody labels more than so many times the queries for one decision: to name that number is no
# advice.
MOST_TIMES = 10


def power_paired(effect_size: float, n: int, *, alpha: float = 0.05) -> float:
    """Return the probability that a paired t-test on ``n`` queries finds d_z = ``effect_size``.

    P(abs(T) > t_crit) for T noncentral t with n - 1 degrees of freedom and noncentrality
    d_z * sqrt(n).

    >>> round(power_paired(0.5, 34), 3)
    0.808
    """
    _check_n(n)
    return _power(effect_size * math.sqrt(n), n - 1, alpha)


def power_unpaired(effect_size: float, n: int, *, alpha: float = 0.05) -> float:
    """Return the power of a two-sample t-test with ``n`` in each arm for Cohen's d.

    2n - 2 degrees of freedom, noncentrality d * sqrt(n / 2).

    >>> round(power_unpaired(0.5, 64), 3)
    0.801
    """
    _check_n(n)
    return _power(effect_size * math.sqrt(n / 2), 2 * n - 2, alpha)


def sample_size_paired(effect_size: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return the fewest queries with which a paired t-test shows d_z = ``effect_size``.

    >>> [sample_size_paired(d) for d in (0.2, 0.5, 0.8)]
    [199, 34, 15]

    Raises:
        InputError: the effect is 0 or not finite: no number of queries shows it.
    """
    return _fewest(lambda n: power_paired(effect_size, n, alpha=alpha), effect_size, power)


def sample_size_unpaired(effect_size: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return the fewest per arm with which a two-sample t-test shows Cohen's d.

    >>> [sample_size_unpaired(d) for d in (0.2, 0.5, 0.8)]
    [394, 64, 26]

    Raises:
        InputError: the effect is 0 or not finite: no sample shows it.
    """
    return _fewest(lambda n: power_unpaired(effect_size, n, alpha=alpha), effect_size, power)


def minimum_detectable_effect(n: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest d_z that a paired t-test on ``n`` queries finds with ``power``.

    >>> round(minimum_detectable_effect(100), 3)
    0.283
    """
    _check_n(n)
    _check_rates(alpha, power)
    from scipy import optimize

    def shortfall(effect_size: float) -> float:
        return power_paired(effect_size, n, alpha=alpha) - power

    high = 1.0
    while shortfall(high) < 0.0:
        high *= 2.0
    return float(optimize.brentq(shortfall, 0.0, high, xtol=1e-10))


def minimum_detectable_difference(
    n: int, standard_deviation: float, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return the smallest mean difference that ``n`` queries show: detectable d_z * sd.

    ``standard_deviation`` is that of the per-query differences, so this is in the metric's unit.

    >>> round(minimum_detectable_difference(100, 0.2), 4)  # .2829 * .2
    0.0566
    """
    _check_standard_deviation(standard_deviation)
    return minimum_detectable_effect(n, alpha=alpha, power=power) * standard_deviation


def queries_needed(
    mean_difference: float, standard_deviation: float, *, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return how many queries, in all, would show a true difference of ``mean_difference``.

    The paired sample size for d_z = abs(mean difference) / sd of the per-query differences. An
    observed difference is itself uncertain: a difference that would matter is the better question.

    .02 with sd .1 is d_z = .2:

    >>> queries_needed(0.02, 0.1)
    199

    Raises:
        InputError: the difference is 0, or a number is not finite, or the sd is negative.
    """
    _check_standard_deviation(standard_deviation)
    if mean_difference == 0.0 or not math.isfinite(mean_difference):
        raise InputError(
            f"mean_difference={mean_difference!r}: no number of queries shows it; give the "
            "smallest difference that would matter, such as 0.01"
        )
    if standard_deviation == 0.0:
        return 2  # The least that a spread can be seen with.
    return sample_size_paired(abs(mean_difference) / standard_deviation, alpha=alpha, power=power)


def _power(noncentrality: float, degrees: int, alpha: float) -> float:
    check_share("alpha", alpha)
    from scipy import stats

    critical = float(stats.t.isf(alpha / 2, degrees))
    # The lower tail, a significant result with the wrong sign, by symmetry as an upper one.
    upper = stats.nct.sf(critical, degrees, abs(noncentrality))
    lower = stats.nct.sf(critical, degrees, -abs(noncentrality))
    return float(min(upper + lower, 1.0))


def _fewest(power_of: Callable[[int], float], effect_size: float, power: float) -> int:
    if effect_size == 0.0 or not math.isfinite(effect_size):
        raise InputError(
            f"effect_size={effect_size!r}: no sample shows it; give a finite effect other than 0"
        )
    check_share("power", power)
    high = 2
    while power_of(high) < power:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(middle) < power:
            low = middle
        else:
            high = middle
    return high


def _check_n(n: int) -> None:
    if n < 2:
        raise InputError(f"n={n}: a t-test needs at least 2")


def _check_rates(alpha: float, power: float) -> None:
    check_share("alpha", alpha)
    check_share("power", power)
    if power <= alpha:
        raise InputError(f"power={power} must be above alpha={alpha}: chance alone gives that much")


def _check_standard_deviation(standard_deviation: float) -> None:
    if not (math.isfinite(standard_deviation) and standard_deviation >= 0.0):
        raise InputError(
            f"standard_deviation={standard_deviation!r} must be a finite number of at least 0"
        )
