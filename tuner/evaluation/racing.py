"""Racing: ask some of the queries first, and stop where the best trial is clearly out of reach.

After each rung the trial's *paired* differences to the best trial so far are looked at. Means of
different queries are never compared: an easy sample of them would flatter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from tuner.core.corpus import Query
from tuner.core.rankings import FloatArray, IntArray
from tuner.core.trial import IndexUse, Outcome, Params, Race
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective, composite_values
from tuner.evaluation.rungs import RUNGS, check_racing, divide
from tuner.evaluation.system_metrics import LATENCY_PASS, index_metrics, needs_latency

# Measured on four sets in experiments/racing, as the rungs were.
STOP_BELOW = -1.0
CONFIDENCE = 0.95
# What adding up in another order leaves.
NEARLY_0 = 1e-12


@dataclass(frozen=True, eq=False)
class Racing:
    """An evaluator that asks its queries in rungs. Make it with ``build``.

    Attributes:
        whole: the evaluator over all queries.
        rungs: one evaluator for the queries that each rung adds, with their rows in ``whole``.
        objective: tells what a query is worth.
        stop_below: the z-value of the paired differences below which a trial stops.
    """

    whole: Evaluator
    rungs: tuple[tuple[Evaluator, IntArray], ...]
    objective: Objective
    stop_below: float

    @classmethod
    def build(
        cls,
        make: Callable[[Sequence[Query]], Evaluator],
        queries: Sequence[Query],
        objective: Objective,
        *,
        shares: Sequence[float] = RUNGS,
        stop_below: float = STOP_BELOW,
        stratify_by: Sequence[str] = (),
        seed: int = 0,
    ) -> Racing:
        """Divide the queries: ``shares`` of them, cumulative and stratified, then the rest.

        ``make`` makes the evaluator over given queries. A rung that would end with fewer than 10
        queries is left out.

        Raises:
            InputError: shares that do not rise between 0 and 1, or ``stop_below`` above 0.
        """
        check_racing(shares, stop_below)
        parts = []
        for ids in divide(queries, shares, stratify_by=stratify_by, seed=seed):
            rows = np.array([row for row, query in enumerate(queries) if query.id in ids])
            part = make([queries[row] for row in rows])
            # Latency is no matter of a rung: it is measured once, at the end.
            timeless = tuple(name for name in part.system_metrics if not needs_latency([name]))
            parts.append((replace(part, system_metrics=timeless), rows))
        return cls(make(queries), tuple(parts), objective, stop_below)

    def __call__(self, params: Params, *, rival: FloatArray | None = None) -> Outcome:
        """Evaluate rung by rung against ``rival``, the best trial's ``standing``.

        Without a rival everything is evaluated.

        Raises:
            TunerError: as the evaluator does.
        """
        if rival is None or len(self.rungs) == 1:
            return self.whole(params)
        values: dict[str, FloatArray] = {}
        seconds: dict[str, float] = {}
        index: IndexUse | None = None
        for number, (evaluator, rows) in enumerate(self.rungs):
            part = evaluator(params)
            index = part.index
            for name, found in part.per_query.items():
                values.setdefault(name, np.full(rival.shape[1], np.nan))[rows] = found
            for stage, spent in part.seconds.items():
                seconds[stage] = seconds.get(stage, 0.0) + spent
            if number + 1 == len(self.rungs):
                break
            asked = np.concatenate([rows for _, rows in self.rungs[: number + 1]])
            race = self.behind(values, rival, asked)
            if race is not None:
                metrics = self.whole.means({name: array[asked] for name, array in values.items()})
                return Outcome(metrics, values, seconds, race=race, index=index)
        metrics = self.whole.means(values)
        if needs_latency(self.whole.system_metrics):
            begin = time.perf_counter()
            metrics |= self.whole.latency(params)
            seconds[LATENCY_PASS] = time.perf_counter() - begin
            seconds["total"] += seconds[LATENCY_PASS]
        metrics |= index_metrics(self.whole.system_metrics, index)
        return Outcome(metrics, values, seconds, index=index)

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Have the index that the parameters describe built and kept, as the evaluator does."""
        return self.whole.holding(params)

    def behind(
        self, values: Mapping[str, FloatArray], rival: FloatArray, asked: IntArray
    ) -> Race | None:
        """Return how far behind the trial is, or None where it goes on."""
        mine = standing(self.objective, {name: array[asked] for name, array in values.items()})
        difference, relevance = mine - rival[:, asked]
        is_known = ~np.isnan(difference)
        z, mean, error = paired_z(difference[is_known], relevance[is_known])
        if z >= self.stop_below:
            return None
        margin = float(student.ppf((1 + CONFIDENCE) / 2, is_known.sum() - 1)) * error
        estimate = float(np.nanmean(rival[0])) + mean
        return Race(len(asked), estimate, estimate - margin, estimate + margin)


def standing(objective: Objective, per_query: Mapping[str, FloatArray]) -> FloatArray:
    """Return what a race compares, shape (2, queries): the objective, and it without its prices.

    A price that is no matter of single queries, such as latency's, is left out of both.
    """
    relevance = composite_values(per_query, objective.weights)
    return np.stack([objective.by_query(per_query), relevance])


def paired_z(difference: FloatArray, relevance: FloatArray) -> tuple[float, float, float]:
    """Return the mean of paired differences over its standard error, the mean, and that error.

    ``relevance`` holds the same differences without prices, from -1 to 1. Where most of those are 0
    the spread says little: all the difference may be a price, nearly the same for each query, and
    the queries that tell the two apart may not have been asked yet. So the error counts one more
    query, whose relevance differs by the size of those that were seen to differ and of one that
    differs in full::

        size² = (1 + sum(relevance²)) / (1 + number of relevance != 0)
        error² = (sum((difference - mean)²) + size²) / (n (n - 1))

    Fewer than two differences tell nothing: z is 0.

    >>> ten_tie_and_cost_more = np.full(10, -0.01), np.zeros(10)
    >>> paired_z(*ten_tie_and_cost_more)[0].__round__(3)  # -.01 / sqrt(1 / 90)
    -0.095
    """
    n = difference.size
    if n < 2:
        return 0.0, 0.0, 0.0
    mean = float(difference.mean())
    differing = int(np.count_nonzero(np.abs(relevance) > NEARLY_0))
    size_squared = (1.0 + float(np.square(relevance).sum())) / (1.0 + differing)
    squares = float(np.square(difference - mean).sum()) + size_squared
    error = math.sqrt(squares / (n * (n - 1)))
    return mean / error, mean, error
