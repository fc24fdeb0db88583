"""Choosing one of many trials: which are as good as the best, and how good the best really is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import BoolArray, FloatArray
from tuner.stats.pairs import ROUNDING, VALUES_AT_ONCE, check_share, without_rounding

Rows = npt.NDArray[np.intp]
# From values, shape (trials, queries), and how often each query was drawn, shape (draws, queries),
# to the row that is chosen in each draw, shape (draws,).
Choose = Callable[[FloatArray, FloatArray], Rows]


@dataclass(frozen=True)
class CorrectedEstimate:
    """How good the winner of a search is once the luck of having been chosen is taken off.

    Attributes:
        estimate: the bootstrap-corrected mean of the winner on new queries.
        interval: its percentile interval; wide rather than narrow with few queries.
        confidence: of the interval.
        naive: the winner's mean on the queries that chose it.
        optimism: ``naive - estimate``.
        winner: row of the trial that was chosen by all queries.
        queries: queries that were used.
        trials: trials that were used.
        undefined: queries left out because a trial has no value for them.
        left_out_trials: trials left out because they have no value at all.
    """

    estimate: float
    interval: tuple[float, float]
    confidence: float
    naive: float
    optimism: float
    winner: int
    queries: int
    trials: int
    undefined: int
    left_out_trials: int


def within_one_standard_error(per_trial_values: FloatArray, best: int) -> BoolArray:
    """Say of each trial whether it is as good as row ``best``, as far as the queries can tell.

    ``per_trial_values`` has shape (trials, queries). With d = trial - best over the queries that
    both have: mean(d) >= -sd(d) / sqrt(n). The standard error is that of the *paired* difference,
    which is far smaller than that of a mean (the rule of Breiman et al. 1984 uses the latter and
    would call nearly every trial equal). A trial that shares fewer than two queries is not within.

    d = -.2, 0, 0, .1 has mean -.025 and standard error .126 / 2 = .063, so it is within;
    d = -.1, -.1, -.1, -.2 has mean -.125 and standard error .05 / 2 = .025, so it is not.

    >>> values = np.array([[0.5, 0.5, 0.5, 0.5], [0.3, 0.5, 0.5, 0.6], [0.4, 0.4, 0.4, 0.3]])
    >>> within_one_standard_error(values, 0).tolist()
    [True, True, False]

    Raises:
        InputError: the shape is wrong, ``best`` is not a row, or that row has no value.
    """
    values = _matrix(per_trial_values)
    if not 0 <= best < values.shape[0]:
        raise InputError(f"best={best} is not one of the {values.shape[0]} trials (from 0)")
    is_shared = ~(np.isnan(values) | np.isnan(values[best]))
    if not is_shared[best].any():
        raise InputError(f"trial {best} has no value for any query, so it cannot be the best")
    trial = np.where(is_shared, values, 0.0)
    leader = np.where(is_shared, values[best], 0.0)
    difference = without_rounding(trial - leader, trial, leader)
    count = is_shared.sum(axis=1)
    mean = difference.sum(axis=1) / np.maximum(count, 1)
    deviation = np.where(is_shared, difference - mean[:, None], 0.0)
    variance = (deviation**2).sum(axis=1) / np.maximum(count - 1, 1)
    is_within: BoolArray = (count >= 2) & (mean >= -np.sqrt(variance / np.maximum(count, 1)))
    is_within[best] = True
    return is_within


def best_means(values: FloatArray, drawn: FloatArray) -> Rows:
    """Choose the trial with the highest mean in each draw, the first of equals."""
    return _first_best(drawn @ values.T / values.shape[1])


def bootstrap_corrected(
    values: FloatArray,
    *,
    seed: int,
    choose: Choose = best_means,
    winner: int | None = None,
    resamples: int = 2_000,
    confidence: float = 0.95,
) -> CorrectedEstimate:
    """Estimate how good the chosen one of many trials is on new queries, by those that chose it.

    ``values`` has shape (trials, queries), higher is better. BBC-CV (Tsamardinos, Greasidou and
    Borboudakis 2018, Algorithm 4): draw as many queries with replacement, choose a trial by them,
    and score it on the queries that were not drawn; the estimate is the mean over all draws and the
    interval its percentiles. For sets that are too small to be split. For the gain over a baseline
    in row b, pass ``values - values[b]``: the choices stay the same.

    ``choose`` is the rule that chooses, by which row ``winner`` was chosen; by default the one with
    the best mean is. Another rule than the one that was used corrects for another one's luck.

    Two trials that are each right on one of two queries: whichever query is drawn twice chooses the
    trial that fails the other one, so the naive .5 is corrected to 0.

    >>> result = bootstrap_corrected(np.array([[1.0, 0.0], [0.0, 1.0]]), seed=0)
    >>> result.naive, result.estimate
    (0.5, 0.0)

    Raises:
        InputError: the shape is wrong, fewer than two queries have a value from every trial, or
            ``winner`` is not a trial with values.
    """
    check_share("confidence", confidence)
    if resamples < 1:
        raise InputError(f"resamples={resamples}: at least 1 is needed, better 1000 or more")
    everything = _matrix(values)
    rows = np.flatnonzero(~np.isnan(everything).all(axis=1))
    columns = np.flatnonzero(~np.isnan(everything[rows]).any(axis=0))
    if rows.size == 0 or columns.size < 2:
        raise InputError(
            f"{columns.size if rows.size else 0} of {everything.shape[1]} queries have a value "
            "from every trial; at least 2 are needed"
        )
    used = everything[np.ix_(rows, columns)]
    if winner is not None and winner not in rows:
        raise InputError(f"winner={winner} is not one of the {rows.size} trials with values")
    scores = _out_of_bag_scores(used, choose, resamples=resamples, seed=seed)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(scores, [tail, 1.0 - tail])
    means = used.mean(axis=1)
    chosen = (
        int(choose(used, np.ones((1, columns.size)))[0])
        if winner is None
        else int(np.flatnonzero(rows == winner)[0])
    )
    naive, estimate = float(means[chosen]), float(scores.mean())
    return CorrectedEstimate(
        estimate=estimate,
        interval=(float(low), float(high)),
        confidence=confidence,
        naive=naive,
        optimism=naive - estimate,
        winner=int(rows[chosen]),
        queries=int(columns.size),
        trials=int(rows.size),
        undefined=int(everything.shape[1] - columns.size),
        left_out_trials=int(everything.shape[0] - rows.size),
    )


def _out_of_bag_scores(
    values: FloatArray, choose: Choose, *, resamples: int, seed: int
) -> FloatArray:
    """Return, for each draw with a query left over, the chosen trial's mean on the left-overs."""
    trial_count, query_count = values.shape
    random = np.random.default_rng(seed)
    uniform = np.full(query_count, 1.0 / query_count)
    parts: list[FloatArray] = []
    done = 0
    while done < resamples:
        size = min(resamples - done, max(1, VALUES_AT_ONCE // max(trial_count, query_count)))
        drawn = random.multinomial(query_count, uniform, size=size).astype(np.float64)
        chosen = choose(values, drawn)
        is_left = drawn == 0.0
        left_count = is_left.sum(axis=1)
        total = (values[chosen] * is_left).sum(axis=1)
        # A draw of every query once leaves none to score on; it says nothing.
        has_left = left_count > 0
        parts.append(total[has_left] / left_count[has_left])
        done += size
    scores = np.concatenate(parts)
    if scores.size == 0:
        raise InputError(f"resamples={resamples} left no query to score on; use 1000 or more")
    return scores


def _first_best(means: FloatArray) -> Rows:
    """Return for each row the first column whose mean is the highest, but for rounding."""
    highest = means.max(axis=1, keepdims=True)
    margin = ROUNDING * np.maximum(np.abs(highest), 1.0)
    return np.asarray(np.argmax(means >= highest - margin, axis=1))


def _matrix(values: FloatArray) -> FloatArray:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise InputError(
            f"values of shape {matrix.shape}; give one row a trial, one column a query"
        )
    if np.isinf(matrix).any():
        raise InputError("a value is infinite; write NaN where a value is undefined")
    return matrix
