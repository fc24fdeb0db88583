"""The trial to beat: the best so far, by query, against which other trials race."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tuner.core.rankings import FloatArray
from tuner.core.trial import Trial, best_trial
from tuner.study.results import BASELINE_ARM

# From a trial's per-query values to what others race against, such as ``racing.standing``.
ByQuery = Callable[[Mapping[str, FloatArray]], FloatArray]


class Rival:
    """Knows the best trial so far and hands it to those that are sent out.

    It is the study's best, of whatever arm: being stopped by another arm's trial takes no arm
    anything away but queries on which it would have lost. So far is by number, not by time.
    """

    def __init__(self, by_query: ByQuery) -> None:
        self._by_query = by_query
        # By number, each better than all before it; with the values of each by its number.
        self._leaders: list[Trial] = []
        self._values: dict[int, FloatArray] = {}

    def offer(self, trial: Trial, per_query: Mapping[str, FloatArray]) -> None:
        """Take a told trial where it is feasible, has per-query values, and is one to beat."""
        if not per_query or not trial.is_feasible:
            return
        self._leaders = leaders([*self._leaders, trial])
        values = {**self._values, trial.number: self._by_query(per_query)}
        self._values = {leader.number: values[leader.number] for leader in self._leaders}

    def sent_against(self, trial: Trial, seen: int) -> Trial:
        """Return the trial with what it has to beat: the best with a number below ``seen``.

        The baseline has to beat nothing.
        """
        if trial.arm == BASELINE_ARM:
            return trial
        known = [leader.number for leader in self._leaders if leader.number < seen]
        return replace(trial, rival=self._values[known[-1]] if known else None)


def leaders(trials: Iterable[Trial], seen: int = 0) -> list[Trial]:
    """Return the feasible trials that are better than all with a lower number.

    Of those with a number below ``seen`` the last alone.
    """
    found: list[Trial] = []
    for trial in sorted(trials, key=lambda trial: trial.number):
        if trial.is_feasible and best_trial([*found[-1:], trial]) is trial:
            found = [*(found if trial.number >= seen else ()), trial]
    return found
