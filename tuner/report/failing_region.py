"""Where in the space trials fail: bounds of one or two parameters that tell them from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import hypergeom

from tuner.core.rankings import BoolArray
from tuner.core.shown import counted
from tuner.core.trial import Scalar, Trial, TrialState
from tuner.report.parts import shown_param

# So many bounds of a parameter are tried; of more, evenly spread ones.
_BOUNDS = 16
# A trial inside that did not fail counts against so many that did: the region is where it fails.
_AGAINST = 3
# How likely chance may draw so clear a region somewhere, of all that are tried.
_CHANCE = 0.01


@dataclass(frozen=True)
class Condition:
    """A bound of a parameter, or one of its choices; ``sign`` is ``>=``, ``<=`` or ``is``."""

    name: str
    sign: str
    value: Scalar

    @property
    def sentence(self) -> str:
        """Return it in words, such as ``top_k >= 30``."""
        return f"{self.name} {self.sign} {shown_param(self.value)}"

    def holds(self, params: Mapping[str, Scalar]) -> bool:
        """Say whether a trial keeps it; not where the parameter is not active."""
        if self.name not in params:
            return False
        value = params[self.name]
        if self.sign == "is":
            return value == self.value
        if not _is_number(value) or not _is_number(self.value):
            return False
        assert isinstance(value, int | float)
        assert isinstance(self.value, int | float)
        return value >= self.value if self.sign == ">=" else value <= self.value


@dataclass(frozen=True)
class Region:
    """Trials that keep one or two conditions: how many there are, and how many of them failed."""

    conditions: tuple[Condition, ...]
    failed: int
    trials: int
    failed_elsewhere: int
    trials_elsewhere: int

    @property
    def sentence(self) -> str:
        """Say where trials fail, and how many fail elsewhere."""
        where = " and ".join(one.sentence for one in self.conditions)
        is_all = self.failed == self.trials
        many = f"All {self.trials}" if is_all else f"{self.failed} of the {self.trials}"
        rest = f"{self.failed_elsewhere or 'none'} of the {counted(self.trials_elsewhere, 'other')}"
        return f"{many} trials with {where} failed, and {rest}."

    def holds(self, params: Mapping[str, Scalar]) -> bool:
        """Say whether a configuration lies in it."""
        return all(one.holds(params) for one in self.conditions)


def failing_region(trials: Sequence[Trial]) -> Region | None:
    """Return where most of the failed trials lie; None where they are few, or lie anywhere.

    Of all regions that one or two parameters bound, it is the one with the most failed trials,
    each other trial inside counting against three of them. It has to hold half of the failed ones,
    and to be one that chance hardly draws: by the hypergeometric distribution, times the number of
    regions that were tried.
    """
    told = [trial for trial in trials if trial.state is TrialState.FAILED or trial.is_scored]
    is_failed = np.array([trial.state is TrialState.FAILED for trial in told], dtype=bool)
    conditions = _conditions([t.params for t in told if t.state is TrialState.FAILED])
    if not conditions or is_failed.all():
        return None
    holds = np.array([[one.holds(trial.params) for trial in told] for one in conditions])
    counts = holds.astype(np.float64)
    failed_in = (counts * is_failed) @ counts.T  # a region for each pair; alone on the diagonal
    all_in = counts @ counts.T
    worth = failed_in - _AGAINST * (all_in - failed_in)
    names = np.array([one.name for one in conditions])
    worth[(names[:, None] == names) & ~np.eye(len(names), dtype=bool)] = -np.inf
    np.fill_diagonal(worth, worth.diagonal() + 0.5)  # one parameter, where it tells as much
    first, second = map(int, np.unravel_index(np.argmax(worth), worth.shape))
    return _region(conditions, {first, second}, holds, is_failed)


def _region(
    conditions: Sequence[Condition], chosen: set[int], holds: BoolArray, is_failed: BoolArray
) -> Region | None:
    """Return a region where it is one, and not chance."""
    is_in = holds[sorted(chosen)].all(axis=0)
    inside, failed_inside = int(is_in.sum()), int(is_failed[is_in].sum())
    trials, failed = len(is_failed), int(is_failed.sum())
    tried = len(conditions) * (len(conditions) + 1) / 2
    chance = tried * float(hypergeom.sf(failed_inside - 1, trials, failed, inside))
    if 2 * failed_inside < failed or chance > _CHANCE or inside == trials:
        return None
    return Region(
        tuple(conditions[at] for at in sorted(chosen)),
        failed_inside,
        inside,
        failed - failed_inside,
        trials - inside,
    )


def _conditions(failed: Sequence[Mapping[str, Scalar]]) -> list[Condition]:
    """Return what could bound the failed trials: their own values."""
    found = []
    for name in dict.fromkeys(name for params in failed for name in params):
        values = list(dict.fromkeys(params[name] for params in failed if name in params))
        if all(map(_is_number, values)):
            ordered = sorted(values, key=lambda value: float(value or 0.0))
            places = np.linspace(0, len(values) - 1, min(len(values), _BOUNDS)).round().astype(int)
            for at in dict.fromkeys(places.tolist()):
                found += [Condition(name, ">=", ordered[at]), Condition(name, "<=", ordered[at])]
        else:
            found += [Condition(name, "is", value) for value in values]
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
