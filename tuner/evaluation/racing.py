"""Racing: ask some of the queries first, and stop where the best trial is clearly out of reach.

After each rung the trial's *paired* differences to the best trial so far are looked at. Means of
different queries are never compared: an easy sample of them would flatter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from tuner.core.corpus import Query
from tuner.core.rankings import FloatArray, IntArray
from tuner.core.trial import Outcome, Params, Race
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective
from tuner.evaluation.rungs import RUNGS, check_racing, divide
from tuner.evaluation.system_metrics import needs_latency

STOP_BELOW = -1.5
# While fewer of the queries differ in relevance, their spread says little about those to come.
FEWEST_DIFFERENT = 5
CONFIDENCE = 0.95


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
        """Evaluate rung by rung against ``rival``, the objective of the best trial by query.

        Without a rival everything is evaluated.

        Raises:
            TunerError: as the evaluator does.
        """
        if rival is None or len(self.rungs) == 1:
            return self.whole(params)
        values: dict[str, FloatArray] = {}
        seconds: dict[str, float] = {}
        for number, (evaluator, rows) in enumerate(self.rungs):
            part = evaluator(params)
            for name, found in part.per_query.items():
                values.setdefault(name, np.full(len(rival), np.nan))[rows] = found
            for stage, spent in part.seconds.items():
                seconds[stage] = seconds.get(stage, 0.0) + spent
            if number + 1 == len(self.rungs):
                break
            asked = np.concatenate([rows for _, rows in self.rungs[: number + 1]])
            race = self._behind(values, rival, asked)
            if race is not None:
                metrics = self.whole.means({name: array[asked] for name, array in values.items()})
                return Outcome(metrics, values, seconds, race=race)
        metrics = self.whole.means(values)
        if needs_latency(self.whole.system_metrics):
            begin = time.perf_counter()
            metrics |= self.whole.latency(params)
            seconds["latency_pass"] = time.perf_counter() - begin
            seconds["total"] += seconds["latency_pass"]
        return Outcome(metrics, values, seconds)

    def _behind(
        self, values: Mapping[str, FloatArray], rival: FloatArray, asked: IntArray
    ) -> Race | None:
        """Return how far behind the trial is, or None where it goes on."""
        # A price that is no matter of single queries, such as latency's, is left out of both.
        mine = self.objective.by_query({name: array[asked] for name, array in values.items()})
        difference = mine - rival[asked]
        difference = difference[~np.isnan(difference)]
        z, mean, error = paired_z(difference)
        if z >= self.stop_below:
            return None
        margin = float(student.ppf((1 + CONFIDENCE) / 2, len(difference) - 1)) * error
        estimate = float(np.nanmean(rival)) + mean
        return Race(len(asked), estimate, estimate - margin, estimate + margin)


def paired_z(difference: FloatArray) -> tuple[float, float, float]:
    """Return the mean of paired differences over its standard error, the mean, and that error.

    Fewer than two differences, or differences that are all 0, tell nothing: z is 0. Equal
    differences other than 0 have no error: z is infinite.

    >>> paired_z(np.array([-0.2, 0.0, -0.1, -0.1]))[0].__round__(3)
    -2.449
    """
    if difference.size < 2:
        return 0.0, 0.0, 0.0
    mean = float(difference.mean())
    error = float(difference.std(ddof=1)) / math.sqrt(difference.size)
    if error <= 1e-12 * max(abs(mean), 1e-12):
        return (math.copysign(math.inf, mean) if abs(mean) > 1e-12 else 0.0), mean, 0.0
    return mean / error, mean, error
