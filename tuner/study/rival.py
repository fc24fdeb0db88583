"""The trial to beat: the best so far, by query, against which other trials race."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tuner.core.rankings import FloatArray
from tuner.core.trial import Trial, best_trial
from tuner.study.results import BASELINE_ARM

# From a trial's per-query values to what others race against, such as ``racing.standing``.
ByQuery = Callable[[Mapping[str, FloatArray]], FloatArray]


class Rival:
    """Knows the best trial so far and hands it to those that are sent out.

    It is the study's best, of whatever arm: being stopped by another arm's trial takes no arm
    anything away but queries on which it would have lost.
    """

    def __init__(self, by_query: ByQuery) -> None:
        self._by_query = by_query
        self._best: Trial | None = None
        self._values: FloatArray | None = None

    def offer(self, trial: Trial, per_query: Mapping[str, FloatArray]) -> None:
        """Take a told trial where it is feasible, has per-query values, and is the best."""
        if not per_query or not trial.is_feasible:
            return
        if self._best is None or best_trial([self._best, trial]) is trial:
            self._best, self._values = trial, self._by_query(per_query)

    def sent_against(self, trial: Trial) -> Trial:
        """Return the trial with what it has to beat; the baseline has to beat nothing."""
        return trial if trial.arm == BASELINE_ARM else replace(trial, rival=self._values)
