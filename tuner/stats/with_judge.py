"""Estimates from a few queries that people graded and many that only a judge graded.

A judge may be a language model or a cross-encoder. That it is right is never assumed: what it says
of many queries is corrected by how far it is from people where both graded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import BoolArray, FloatArray
from tuner.stats.guardrail import NonInferiority, check_margin, non_inferiority
from tuner.stats.paired import JudgeUse, PairedComparison, compare_paired
from tuner.stats.pairs import ROUNDING, without_rounding
from tuner.stats.resampling import Interval

# With fewer queries of people's nothing is known of a judge's rare errors: it counts for nothing.
FEWEST_PEOPLE = 20
# From so many queries on which judge and people differ, their spread tells of the judge's errors.
ENOUGH_ERRORS = 20


@dataclass(frozen=True, eq=False)
class Shares:
    """What each query adds to a ratio of two means: to the one above the line and the one below.

    Both arrays have the shape (…, queries). A query for which a metric is undefined adds 0 to both;
    a mean is the ratio with 1 below for every other query.
    """

    above: FloatArray
    below: FloatArray

    @classmethod
    def of_mean(cls, values: FloatArray) -> Shares:
        """Return the ratio that is the mean of the defined values."""
        return cls.of_ratio(values, np.ones(values.shape))

    @classmethod
    def of_ratio(cls, above: FloatArray, below: FloatArray) -> Shares:
        """Return the ratio of two means, over the queries where both are defined."""
        is_defined = ~(np.isnan(above) | np.isnan(below))
        return cls(np.where(is_defined, above, 0.0), np.where(is_defined, below, 0.0))

    def beyond(self, ratio: FloatArray) -> FloatArray:
        """Return how far each query lies above what the ratio makes of it, shape (…, queries)."""
        return self.above - ratio[..., None] * self.below


@dataclass(frozen=True, eq=False)
class Estimate:
    """A ratio from both kinds of labels; each array has the shape (…), that of the inputs' front.

    Attributes:
        value: the ratio; NaN where the mean below the line is not positive.
        error: its standard error.
        degrees: of freedom, at least 1, for Student's t.
        weight: lambda, how much the judge counts: 0 (nothing) to n_judge / (n_judge + n_people).
        people_error: the standard error of people's queries alone.
    """

    value: FloatArray
    error: FloatArray
    degrees: FloatArray
    weight: FloatArray
    people_error: FloatArray


def calibrated_ratio(
    people: Shares, judge: Shares, judge_alone: Shares, *, rare_error: float = 0.5
) -> Estimate:
    """Estimate a ratio of means over all queries, as people would grade them.

    ``people`` and ``judge`` are of the same n queries, by the two kinds of labels; ``judge_alone``
    of N others. People's queries must be drawn at random from all. This is power-tuned
    prediction-powered inference (Angelopoulos et al. 2023; PPI++: Angelopoulos, Duchi and Zrnic
    2023): for a mean, with values y of people and f of the judge,

        mean(y) + lambda (mean(f of the others) - mean(f)),
        lambda = slope N / (n + N), slope = cov(y, f) / var(f) within [0, 1].

    It is right on average whatever the judge is like, and lambda goes to 0 with a bad one. A ratio
    is where the same holds of y = above - ratio * below. For small n, the spread of the n
    residuals y - lambda f is that of a fit which has not seen them (each is divided by 1 less its
    leverage, as in HC3: MacKinnon and White 1985), and the degrees of freedom are those that the
    residuals' and the judge's kurtosis leave (``degrees_of_freedom``), n - 2 at most.

    A judge that is wrong rarely, but then much, may be right on all n: one query more with an
    error of ``rare_error`` is added to the spread, less where 1, 2, … 19 queries show errors, and
    nothing from 20 on.

    y = 1, 2, 3 with f = 1, 3, 2; the others' f = 4, 4, 4. slope = .5 / 1, lambda = .5 * 3/6 = .25,
    the mean is 2 + .25 (4 - 2) = 2.5.

    >>> mean = lambda *values: Shares.of_mean(np.array(values, dtype=float))
    >>> found = calibrated_ratio(mean(1, 2, 3), mean(1, 3, 2), mean(4, 4, 4))
    >>> float(found.value), float(found.weight)
    (2.5, 0.25)
    """
    n, others = people.above.shape[-1], judge_alone.above.shape[-1]
    alone = _divided(people.above.mean(-1), people.below.mean(-1))
    y, f = people.beyond(alone), judge.beyond(alone)
    slope, is_free = _slope(y, f)
    share = others / (n + others)
    weight = slope * share

    def mean(of_people: FloatArray, of_judge: FloatArray, of_others: FloatArray) -> FloatArray:
        """Return a mean by both kinds of labels."""
        shift = of_others.mean(-1) - of_judge.mean(-1)
        return np.asarray(of_people.mean(-1) + weight * shift)

    unit = mean(people.below, judge.below, judge_alone.below)
    value = _divided(mean(people.above, judge.above, judge_alone.above), unit)
    y, f, g = people.beyond(value), judge.beyond(value), judge_alone.beyond(value)
    leverage = _leverage(f) * np.where(is_free, share, 0.0)[..., None]
    residuals = (_centred(y) - weight[..., None] * _centred(f)) / (1.0 - leverage)
    differ = (np.abs(y - f) > ROUNDING * np.maximum(np.abs(y), 1.0)).sum(-1)
    unseen = np.clip(1.0 - differ / ENOUGH_ERRORS, 0.0, None) * (weight * rare_error / n) ** 2
    of_people = (residuals**2).sum(-1) / (n - 1) / n + unseen
    of_judge = weight**2 * g.var(-1, ddof=1) / others
    variance = of_people + of_judge
    # Satterthwaite (1946), of a sum of two variances.
    below = of_people**2 / _degrees(residuals, n - 2) + of_judge**2 / _degrees(g, others - 1)
    is_spread = below > 0.0
    degrees = np.where(is_spread, variance**2 / np.where(is_spread, below, 1.0), n - 2.0)
    return Estimate(
        value=value,
        error=_divided(np.sqrt(variance), unit),
        degrees=np.maximum(degrees, 1.0),
        weight=weight,
        people_error=_divided(
            people.beyond(alone).std(-1, ddof=1) / math.sqrt(n), people.below.mean(-1)
        ),
    )


def compare_with_judge(
    treatment: npt.ArrayLike,
    control: npt.ArrayLike,
    labels: Labels,
    *,
    confidence: float = 0.95,
    further_error: float = 0.0,
    most: float = 1.0,
) -> PairedComparison:
    """Compare two arrays of per-query values, shape (queries,), by both kinds of labels.

    Means, interval and p-value are those of ``calibrated_ratio``. ``n``, wins, ties, losses and
    what is undefined are of people's queries; ``standard_deviation`` is what so many queries would
    need to have for this interval; ``judge`` says what the judge added. Where it cannot add
    anything (fewer than 20 of people's queries or 2 others, or nothing differs on people's)
    people's queries answer alone, by ``compare_paired``. ``most`` is by how much two values can
    differ at most.

    Raises:
        InputError: arrays of different lengths, or an infinite value.
    """
    sides = labels.sides(treatment, control)
    people = compare_paired(
        sides.people[0],
        sides.people[1],
        seed=0,
        confidence=confidence,
        further_error=further_error,
        permutations=0,
        resamples=0,
    )
    others = sides.alone[0].size
    if people.n < FEWEST_PEOPLE or others < 2 or not people.standard_deviation:
        return people
    from scipy import stats

    found = calibrated_ratio(*sides.differences(), rare_error=most / 2.0)
    value, degrees = float(found.value), float(found.degrees)
    error = math.hypot(float(found.error), further_error)
    if not (math.isfinite(value) and 0.0 < error < math.inf):
        return people
    low, high = stats.t.interval(confidence, degrees, loc=value, scale=error)
    deviation = float(found.error) * math.sqrt(people.n)
    base = sides.control_mean(float(found.weight))
    return replace(
        people,
        treatment_mean=base + value,
        control_mean=base,
        mean_difference=value,
        standard_deviation=deviation,
        interval=(float(low), float(high)),
        degrees_of_freedom=degrees,
        p_value=float(2.0 * stats.t.sf(abs(value) / error, degrees)),
        effect_size=value / deviation,
        relative=value / abs(base) if base else None,
        judge=JudgeUse(others, float(found.weight), _worth(found, people.n)),
    )


def mean_with_judge(
    values: npt.ArrayLike, judged: FloatArray, is_people: BoolArray, *, confidence: float = 0.95
) -> tuple[float, Interval] | None:
    """Return the mean of per-query values by both kinds of labels, and its interval.

    ``values`` are by people's grades where ``is_people``, ``judged`` by the judge's everywhere.
    None where fewer than 20 of people's queries have a value, or under 2 others are there.

    Raises:
        InputError: arrays of different lengths.
    """
    from scipy import stats

    labels = Labels(is_people, judged, np.zeros(judged.shape))
    sides = labels.sides(values, np.zeros(judged.shape))
    people, judge, alone = sides.differences()
    if people.below.sum() < FEWEST_PEOPLE or alone.below.size < 2:
        return None
    found = calibrated_ratio(people, judge, alone)
    value, error, degrees = (float(x) for x in (found.value, found.error, found.degrees))
    if not math.isfinite(error):
        return None
    half = float(stats.t.ppf(0.5 + confidence / 2.0, degrees)) * error
    return value, (value - half, value + half)


def non_inferiority_with_judge(
    treatment: npt.ArrayLike,
    control: npt.ArrayLike,
    labels: Labels,
    *,
    margin: float,
    higher_is_better: bool,
    alpha: float = 0.05,
) -> NonInferiority:
    """Test that the mean is worse by less than ``margin``, by both kinds of labels.

    As ``non_inferiority`` with an absolute margin, which answers alone where the judge cannot add
    anything; see ``compare_with_judge``.

    Raises:
        InputError: arrays of different lengths, or a negative margin.
    """
    check_margin(margin, alpha)
    sides = labels.sides(treatment, control)
    alone = non_inferiority(
        *sides.people, margin=margin, higher_is_better=higher_is_better, alpha=alpha
    )
    found = compare_with_judge(treatment, control, labels)
    if found.judge is None or found.mean_difference is None:
        return alone
    from scipy import stats

    error = (found.standard_deviation or 0.0) / math.sqrt(found.n)
    degrees = found.degrees_of_freedom or 1.0
    loss = -found.mean_difference if higher_is_better else found.mean_difference
    p_value = float(stats.t.cdf((loss - margin) / error, degrees))
    return replace(
        alone,
        treatment=found.treatment_mean,
        control=found.control_mean,
        loss=loss,
        loss_bound=loss + error * float(stats.t.isf(alpha, degrees)),
        p_value=p_value,
        is_non_inferior=p_value <= alpha,
        remark=None,
    )


@dataclass(frozen=True, eq=False)
class Labels:
    """Whose grades each query's values are by.

    Attributes:
        is_people: shape (queries,), which queries people graded. The values of others are by the
            judge's grades.
        judged_treatment: shape (queries,), the treatment's values by the judge's grades.
        judged_control: shape (queries,), the control's.
    """

    is_people: BoolArray
    judged_treatment: FloatArray
    judged_control: FloatArray

    def sides(self, treatment: npt.ArrayLike, control: npt.ArrayLike) -> Sides:
        """Return the values of people's queries by both kinds of labels, and those of the rest.

        Raises:
            InputError: values and labels are not of the same queries.
        """
        y1, y0 = (np.asarray(values, dtype=np.float64) for values in (treatment, control))
        shapes = {array.shape for array in (y1, y0, self.judged_treatment, self.judged_control)}
        if shapes != {self.is_people.shape}:
            raise InputError("give values and labels of the same queries in the same order")
        judged = (self.judged_treatment, self.judged_control)
        rows = self.is_people
        return Sides(
            (y1[rows], y0[rows]),
            (judged[0][rows], judged[1][rows]),
            (judged[0][~rows], judged[1][~rows]),
        )


Pair = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Sides:
    """Treatment and control: people's grades, the judge's of the same, the judge's of others."""

    people: Pair
    judge: Pair
    alone: Pair

    def differences(self) -> tuple[Shares, Shares, Shares]:
        """Return treatment less control, as means of the defined differences."""
        people, judge, alone = (
            Shares.of_mean(without_rounding(one - other, one, other))
            for one, other in (self.people, self.judge, self.alone)
        )
        return people, judge, alone

    def control_mean(self, weight: float) -> float:
        """Return the control's mean where both sides have a value, with a given weight."""
        people, judge, alone = (
            Shares.of_mean(np.where(np.isnan(one), np.nan, other))
            for one, other in (self.people, self.judge, self.alone)
        )

        def mean(name: str) -> float:
            p, j, a = (float(getattr(one, name).mean()) for one in (people, judge, alone))
            return p + weight * (a - j)

        return mean("above") / mean("below")


def _worth(found: Estimate, n: int) -> int | None:
    """Return how many of people's queries alone would give as narrow an interval."""
    if not float(found.error) > 0.0:
        return None
    return round(n * float(found.people_error / found.error) ** 2)


def _slope(y: FloatArray, f: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the slope of y on f within [0, 1], shape (…), and whether it is free to move there."""
    f_c = _centred(f)
    below = (f_c**2).sum(-1)
    above = (f_c * _centred(y)).sum(-1)
    is_spread = below > ROUNDING
    slope = np.where(is_spread, above / np.where(is_spread, below, 1.0), 0.0)
    is_free = np.asarray((slope > 0.0) & (slope < 1.0))
    return np.asarray(np.clip(slope, 0.0, 1.0)), is_free


def _leverage(f: FloatArray) -> FloatArray:
    """Return how much each query alone moves the slope, at most .9, shape (…, queries)."""
    squares = _centred(f) ** 2
    return np.asarray(
        np.minimum(squares / np.maximum(squares.sum(-1, keepdims=True), ROUNDING), 0.9)
    )


def _centred(values: FloatArray) -> FloatArray:
    return np.asarray(values - values.mean(-1, keepdims=True))


def _divided(above: FloatArray, below: FloatArray) -> FloatArray:
    is_positive = below > 0.0
    return np.asarray(np.where(is_positive, above / np.where(is_positive, below, 1.0), np.nan))


def _degrees(values: FloatArray, at_most: int) -> FloatArray:
    """Return ``degrees_of_freedom`` along the last axis, at most so many and at least 1."""
    n = values.shape[-1]
    squares = _centred(values) ** 2
    second = squares.mean(-1)
    is_flat = second < ROUNDING**2
    kurtosis = (squares**2).mean(-1) / np.where(is_flat, 1.0, second) ** 2
    degrees = 2.0 / (np.maximum(kurtosis - 1.0, 0.0) / n + 2.0 / (n * (n - 1)))
    return np.clip(np.where(is_flat, at_most, degrees), 1.0, max(at_most, 1))
