"""When a search has done enough: the trials that are left would hardly gain anything more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tuner.backends.points import point_of, scored_trials
from tuner.core.rankings import FloatArray
from tuner.core.shown import counted
from tuner.core.trial import Trial
from tuner.study.limit import GO, Leave, Limit, no_limit
from tuner.study.study import Study

# Measured on recorded searches: experiments/search_quality/stopping.md.
# How far the best results lie apart is told from so many of them.
TOP = 10
# By how much what is left counts for more than what was, as a search that learns does not draw.
CAUTION = 20.0
# A search that gained enough in its last half goes on, and so does one that did in the last 60.
RECENT, LAST = 1 / 2, 60


@dataclass(frozen=True)
class Stop:
    """What is not worth searching on for.

    ``gain_below`` is a gain in the objective, above 0; ``within``, at least 1, is how many trials
    ahead it is looked: None: at all that are left.
    """

    gain_below: float
    within: int | None = None


def enough(study: Study, stop: Stop | None) -> Limit:
    """Return the limit of a study by what its trials still gain; None: there is none."""
    return no_limit if stop is None else _Enough(study, stop)


@dataclass(frozen=True, eq=False)
class _Enough:
    """Ends a study by the results that its next trial may be suggested from, and by nothing else.

    These are those of all trials but the last ``ahead``, and are waited for. So it ends at the same
    trial wherever trials are evaluated, and after a kill.
    """

    study: Study
    stop: Stop
    _known: dict[tuple[int, int], Leave] = field(default_factory=dict)

    def __call__(self) -> Leave:
        """Say whether another trial may be asked."""
        if self.study.upcoming is not None:  # It was asked for when it might be.
            return GO
        trials = self.study.trials
        number, left = len(trials), self.study.budget - len(trials)
        if (number, left) not in self._known:
            seen = trials[: max(number - self.study.header.ahead, 0)]
            if not all(trial.is_told for trial in seen):
                return Leave(waits=True)
            self._known[number, left] = self._leave(seen, left)
        return self._known[number, left]

    def _leave(self, seen: Sequence[Trial], left: int) -> Leave:
        ahead = left if self.stop.within is None else min(left, self.stop.within)
        if ahead < 1 or likely_gain(results(seen), ahead) >= self.stop.gain_below:
            return GO
        more = counted(ahead, "more trial")
        return Leave(over=f"{more} would hardly gain {self.stop.gain_below:g} (stop.gain_below)")


def results(trials: Sequence[Trial]) -> FloatArray:
    """Return what the trials that meet the constraints are worth, each point once, in order."""
    first: dict[object, float] = {}
    for trial in scored_trials(trials):
        if trial.violation <= 0.0:
            first.setdefault(point_of(trial.params), float(trial.worth or 0.0))
    return np.array(list(first.values()))


def likely_gain(values: FloatArray, ahead: int) -> float:
    """Return what so many further trials may gain on the best of these; infinite where few are.

    ``values`` are objectives in the order of asking. Of n draws whose upper tail is exponential,
    with the mean excess s over a high threshold, the best grows by about s log(1 + m / n) in m
    more (extreme value theory). s is told from the best 10 values; as a search that learns does not
    draw, m counts 20 times. And what it gained of late it may gain again.

    >>> values = np.arange(80)[::-1] / 1000  # The best 10 exceed the 11th by 0.0055 in the mean.
    >>> round(likely_gain(values, 80), 4)  # 0.0055 log(1 + 20)
    0.0167
    """
    number = len(values)
    ranked = np.unique(values)[::-1]  # What is equal tells nothing of distances.
    if number <= LAST or len(ranked) <= TOP:
        return math.inf
    excess = float((ranked[:TOP] - ranked[TOP]).mean())
    before = values[: min(math.ceil(number * (1 - RECENT)), number - LAST)].max()
    return max(excess * math.log1p(CAUTION * ahead / number), float(values.max() - before))
