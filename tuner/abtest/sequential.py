"""Look as often as you like: p-values and intervals that hold at every look at once.

A t-test that is looked at 20 times finds a difference that is not there in 24 % of experiments. The
mixture sequential probability ratio test does so in at most alpha of them, however often and
whenever one looks, and its intervals cover the truth at all looks together (confidence sequences).
They are for large samples (asymptotic: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024,
"Time-uniform central limit theory and asymptotic confidence sequences", Annals of Statistics 52(6);
the test is Robbins' 1970, used so by Johari, Koomen, Pekelis and Walsh 2022, Operations Research).

Each function takes an estimate, its standard error now, and ``information``: how much of the
planned sample is there, units now / units planned, fixed before the data and never by it. The
mixture is tuned to be narrowest at 1 and holds everywhere. ``degrees`` are those of the standard
error: z is then the normal value that is as far out as Student's t, so that no look is bolder than
a t-test of the same few units.
"""

from __future__ import annotations

import math

from tuner.core.errors import InputError
from tuner.stats.pairs import check_share


def always_valid_p(
    estimate: float,
    standard_error: float,
    *,
    information: float,
    alpha: float = 0.05,
    degrees: float = math.inf,
) -> float:
    """Return the two-sided p-value of a true value of 0 that may be looked at any number of times.

    With z = estimate / standard error and r = ``mixing(alpha) * information``, the likelihood ratio
    averaged over a normal distribution of effects is exp(z^2 r / (2 (1 + r))) / sqrt(1 + r), and
    p = 1 / that (Ville's inequality); at most 1. ``alpha`` only tunes the mixture.

    z = 3, r = 8: exp(9 * 8 / 18) / 3 = e^4 / 3 = 18.2, p = .055, where a single look has .0027.

    Raises:
        InputError: no positive standard error or information, or alpha outside 0 to 1.
    """
    ratio = _ratio(standard_error, information, alpha)
    z = _as_normal(estimate / standard_error, degrees)
    return min(1.0, math.exp(0.5 * math.log1p(ratio) - 0.5 * z * z * ratio / (1.0 + ratio)))


def confidence_sequence(
    estimate: float,
    standard_error: float,
    *,
    information: float,
    alpha: float = 0.05,
    degrees: float = math.inf,
) -> tuple[float, float]:
    """Return an interval that covers the true value at all looks together, at 1 - ``alpha``.

    estimate -+ standard error * sqrt((1 + 1/r) log((1 + r) / alpha^2)), equation (2) of the paper
    with t rho^2 = r. It leaves out 0 exactly when ``always_valid_p`` is under ``alpha``.

    r = 8: sqrt(1.125 * log(9 / .0025)) = 3.04 standard errors, where a single look has 1.96.

    Raises:
        InputError: as for ``always_valid_p``.
    """
    ratio = _ratio(standard_error, information, alpha)
    width = math.sqrt((1.0 + 1.0 / ratio) * (math.log1p(ratio) - 2.0 * math.log(alpha)))
    half = standard_error * _as_student(width, degrees)
    return estimate - half, estimate + half


def always_valid_upper_p(
    estimate: float,
    standard_error: float,
    *,
    information: float,
    alpha: float = 0.05,
    degrees: float = math.inf,
) -> float:
    """Return the one-sided p-value of a true value of 0 or more, valid at any number of looks.

    Effects of one sign only are averaged over (a half-normal distribution). With z = -estimate /
    standard error and x^2 = z^2 r / (1 + r) the likelihood ratio is
    2 normal_cdf(x) exp(x^2 / 2) / sqrt(1 + r), and that is at least (2 exp(x^2 / 2) - 1) /
    sqrt(1 + r); p = 1 / that, at most 1, and 1 where the estimate is not below 0.

    z = 3, r = 8: 3 / (2 e^4 - 1) = .0277.

    Raises:
        InputError: as for ``always_valid_p``.
    """
    ratio = _ratio(standard_error, information, alpha)
    z = -_as_normal(estimate / standard_error, degrees)
    if z <= 0.0:
        return 1.0
    shrunk = math.exp(-0.5 * z * z * ratio / (1.0 + ratio))
    return min(1.0, math.sqrt(1.0 + ratio) * shrunk / (2.0 - shrunk))


def upper_sequence(
    estimate: float,
    standard_error: float,
    *,
    information: float,
    alpha: float = 0.05,
    degrees: float = math.inf,
) -> float:
    """Return a bound that the true value stays below at all looks together, at 1 - ``alpha``.

    estimate + standard error * sqrt(2 (1 + 1/r) log((1 + sqrt(1 + r) / alpha) / 2)), where
    ``always_valid_upper_p`` of estimate less bound is ``alpha``.

    Raises:
        InputError: as for ``always_valid_p``.
    """
    ratio = _ratio(standard_error, information, alpha)
    width = math.sqrt(
        2.0 * (1.0 + 1.0 / ratio) * math.log((1.0 + math.sqrt(1.0 + ratio) / alpha) / 2.0)
    )
    return estimate + standard_error * _as_student(width, degrees)


def mixing(alpha: float) -> float:
    """Return r at the planned sample, which makes the interval about as narrow there as it can be.

    -2 log alpha + log(-2 log alpha) + 1, Waudby-Smith et al. 2024, appendix.

    >>> round(mixing(0.05), 2)  # 5.99 + 1.79 + 1
    8.78
    """
    check_share("alpha", alpha)
    doubled = -2.0 * math.log(alpha)
    return doubled + math.log(doubled) + 1.0


def _as_normal(t: float, degrees: float) -> float:
    """Return the normal value with the tail that ``t`` has with so many degrees of freedom."""
    if math.isinf(degrees):
        return t
    # scipy.special, as scipy.stats takes a hundred times as long for single numbers.
    from scipy import special

    # Beyond 37 the tail is 0 in float64.
    return math.copysign(
        min(-float(special.ndtri(float(special.stdtr(degrees, -abs(t))))), 37.0), t
    )


def _as_student(z: float, degrees: float) -> float:
    if math.isinf(degrees):
        return z
    from scipy import special

    return -float(special.stdtrit(degrees, float(special.ndtr(-z))))


def _ratio(standard_error: float, information: float, alpha: float) -> float:
    if not (math.isfinite(standard_error) and standard_error > 0.0):
        raise InputError(f"standard_error={standard_error!r} must be a finite number above 0")
    if not (math.isfinite(information) and information > 0.0):
        raise InputError(
            f"information={information!r} must be above 0: the units there are / the units planned"
        )
    return mixing(alpha) * information
