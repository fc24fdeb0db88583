"""Look as often as you like: p-values and intervals that hold at every look at once.

A t-test that is looked at 20 times finds a difference that is not there in 24 % of experiments. The
mixture sequential probability ratio test does so in at most alpha of them, however often and
whenever one looks, and its intervals cover the truth at all looks together (confidence sequences).
They are for large samples (asymptotic: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024,
"Time-uniform central limit theory and asymptotic confidence sequences", Annals of Statistics 52(6);
the test is Robbins' 1970, used so by Johari, Koomen, Pekelis and Walsh 2022, Operations Research).

Each estimate comes with its standard error now, and with ``information``: how much of the planned
sample is there, units now / units planned, fixed before the data and never by it. The mixture is
tuned to be narrowest at 1 and holds everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tuner.core.errors import InputError
from tuner.stats.pairs import check_share


@dataclass(frozen=True)
class Look:
    """One look at an experiment, of any number of looks.

    Attributes:
        information: units now / units planned.
        alpha: of the intervals; of p-values it only tunes the mixture.
        degrees: those of the standard errors: z is then the normal value that is as far out as
            Student's t, so that no look is bolder than a t-test of the same few units.

    Raises:
        InputError: no positive information or, later, standard error; or alpha outside 0 to 1.
    """

    information: float
    alpha: float = 0.05
    degrees: float = math.inf

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha)
        if not (math.isfinite(self.information) and self.information > 0.0):
            raise InputError(
                f"information={self.information!r} must be above 0: the units there are / the "
                "units planned"
            )

    @property
    def _ratio(self) -> float:
        return mixing(self.alpha) * self.information

    def p_value(self, estimate: float, standard_error: float) -> float:
        """Return the two-sided p-value of a true value of 0.

        With z = estimate / standard error and r = ``mixing(alpha) * information``, the likelihood
        ratio averaged over a normal distribution of effects is exp(z^2 r / (2 (1 + r))) /
        sqrt(1 + r), and p = 1 / that (Ville's inequality); at most 1.

        z = 3, r = 8: exp(9 * 8 / 18) / 3 = e^4 / 3 = 18.2, p = .055, where a single look has .0027.
        """
        ratio, z = self._ratio, self._z(estimate, standard_error)
        return min(1.0, math.exp(0.5 * math.log1p(ratio) - 0.5 * z * z * ratio / (1.0 + ratio)))

    def interval(self, estimate: float, standard_error: float) -> tuple[float, float]:
        """Return an interval that covers the true value at all looks together, at 1 - ``alpha``.

        estimate -+ standard error * sqrt((1 + 1/r) log((1 + r) / alpha^2)), equation (2) of the
        paper with t rho^2 = r. It leaves out 0 exactly when ``p_value`` is under ``alpha``.

        r = 8: sqrt(1.125 * log(9 / .0025)) = 3.04 standard errors, where a single look has 1.96.
        """
        ratio = self._ratio
        width = math.sqrt((1.0 + 1.0 / ratio) * (math.log1p(ratio) - 2.0 * math.log(self.alpha)))
        half = self._student(width, standard_error)
        return estimate - half, estimate + half

    def upper_p(self, estimate: float, standard_error: float) -> float:
        """Return the one-sided p-value of a true value of 0 or more.

        Effects of one sign only are averaged over (a half-normal distribution). With z = -estimate
        / standard error and x^2 = z^2 r / (1 + r) the likelihood ratio is
        2 normal_cdf(x) exp(x^2 / 2) / sqrt(1 + r), and that is at least (2 exp(x^2 / 2) - 1) /
        sqrt(1 + r); p = 1 / that, at most 1, and 1 where the estimate is not below 0.

        z = 3, r = 8: 3 / (2 e^4 - 1) = .0277.
        """
        ratio, z = self._ratio, -self._z(estimate, standard_error)
        if z <= 0.0:
            return 1.0
        shrunk = math.exp(-0.5 * z * z * ratio / (1.0 + ratio))
        return min(1.0, math.sqrt(1.0 + ratio) * shrunk / (2.0 - shrunk))

    def upper_bound(self, estimate: float, standard_error: float) -> float:
        """Return a bound that the true value stays below at all looks together, at 1 - ``alpha``.

        estimate + standard error * sqrt(2 (1 + 1/r) log((1 + sqrt(1 + r) / alpha) / 2)), where
        ``upper_p`` of estimate less bound is ``alpha``.
        """
        ratio = self._ratio
        odds = (1.0 + math.sqrt(1.0 + ratio) / self.alpha) / 2.0
        width = math.sqrt(2.0 * (1.0 + 1.0 / ratio) * math.log(odds))
        return estimate + self._student(width, standard_error)

    def _z(self, estimate: float, standard_error: float) -> float:
        """Return the normal value with the tail that the estimate's t has."""
        t = estimate / _checked(standard_error)
        if math.isinf(self.degrees):
            return t
        # scipy.special, as scipy.stats takes a hundred times as long for single numbers.
        from scipy import special

        tail = float(special.stdtr(self.degrees, -abs(t)))
        # Beyond 37 the tail is 0 in float64.
        return math.copysign(min(-float(special.ndtri(tail)), 37.0), t)

    def _student(self, z: float, standard_error: float) -> float:
        """Return the distance of ``z`` standard errors, further for few degrees of freedom."""
        error = _checked(standard_error)
        if math.isinf(self.degrees):
            return error * z
        from scipy import special

        return -error * float(special.stdtrit(self.degrees, float(special.ndtr(-z))))


def mixing(alpha: float) -> float:
    """Return r at the planned sample, which makes the interval about as narrow there as it can be.

    -2 log alpha + log(-2 log alpha) + 1, Waudby-Smith et al. 2024, appendix.

    >>> round(mixing(0.05), 2)  # 5.99 + 1.79 + 1
    8.78
    """
    check_share("alpha", alpha)
    doubled = -2.0 * math.log(alpha)
    return doubled + math.log(doubled) + 1.0


def _checked(standard_error: float) -> float:
    if not (math.isfinite(standard_error) and standard_error > 0.0):
        raise InputError(f"standard_error={standard_error!r} must be a finite number above 0")
    return standard_error
