"""The profile of one answer: every setting of the free parameters looked at, and one chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner.core.profile import Curve, Profile
from tuner.core.rankings import FloatArray, Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Outcome, Params, Scalar
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.alternatives import alternatives_of, seeking
from tuner.evaluation.free.choice import Table, luck_of
from tuner.evaluation.free.curves import SHOWN, curve_of, table_curve
from tuner.evaluation.free.cut import cut_steps
from tuner.evaluation.free.mixture import lines_of, looks_to, worth_of
from tuner.evaluation.free.one_by_one import OneByOne
from tuner.evaluation.free.settings import (
    decided_by_answer,
    prefix_values,
    range_of,
    told_by,
)
from tuner.evaluation.free.sweep import Steps, Worth, sweep
from tuner.evaluation.objective import Objective
from tuner.retrieval.free import FreeKnobs, Mixing

# So many weights stand for all where the luck of a choice is estimated: neighbours share it.
LUCKY = 21
# Places among the steps of a cut-off that stand for all, in the same way.
EVENLY = np.linspace(0.0, 1.0, LUCKY)
# A narrower step, as a share of the range, is one of rounding.
LEAST_WIDTH = 1e-7
# Sums of changes that differ by less are equal.
ROUNDING = 1e-12
# Weights are improved one after the other, so often at most, and begun from so many places.
ROUNDS = 6
RESTARTS = 3


@dataclass(frozen=True, eq=False)
class Profiler:
    """Makes profiles of answers to the queries of an evaluator.

    Attributes:
        evaluator: over the queries that were answered.
        objective: tells what a setting is worth.
        space: that of all parameters, the free ones included.
        free: what is free; all of its names are in the space.
    """

    evaluator: Evaluator
    objective: Objective
    space: SearchSpace
    free: FreeKnobs

    def to_ask(self) -> Params:
        """Return the values of the free parameters that tell of all others."""
        return told_by(self.space, self.free)

    def profile(self, rankings: Rankings, params: Params) -> tuple[Params, Profile]:
        """Return all parameters, the free ones chosen from an answer, and how they were chosen."""
        return _One(self, rankings, params).profile()

    def with_alternatives(
        self, rankings: Rankings, params: Params
    ) -> tuple[Params, Profile, dict[str, FloatArray]]:
        """Return what ``profile`` does, with what else the answer tells of a front.

        And the goals of these alternatives by query, by the names under which they are kept.
        """
        seen: list[tuple[Params, Outcome]] = []
        own = _One(self, rankings, params, seen)
        chosen, profile = own.profile()
        settings, looked_at = list(own.settings()), profile.looked_at
        for objective in seeking(self.objective, self.evaluator):
            other = _One(replace(self, objective=objective), rankings, params, seen)
            looked_at += other.profile()[1].looked_at
            settings += other.settings()
        found = alternatives_of(own.one_by_one, self.objective, settings, chosen)
        return (
            chosen,
            replace(profile, looked_at=looked_at + len(settings), alternatives=found.alternatives),
            found.by_query,
        )


@dataclass(frozen=True, eq=False)
class _Found:
    """A setting and what led to it."""

    setting: Params
    objective: float
    looked_at: int


class _One:
    """The profile of one answer."""

    def __init__(
        self,
        profiler: Profiler,
        rankings: Rankings,
        params: Params,
        seen: list[tuple[Params, Outcome]] | None = None,
    ) -> None:
        self.evaluator, self.space, self.free = profiler.evaluator, profiler.space, profiler.free
        self.rankings = rankings
        self.params = params
        self.weights = profiler.free.weights
        self.objective = decided_by_answer(profiler.objective)
        self.start = {**params, **profiler.to_ask()}
        self.one_by_one = OneByOne(
            self.evaluator, self.objective, self.space, self.free, rankings, self.start, seen
        )
        # By weight and the values of the others: steps that were worked out already.
        self._known: dict[tuple[Scalar, ...], list[Steps]] = {}
        # By the values of all others: every value of a constant of ranks.
        self._tables: dict[tuple[Scalar, ...], tuple[list[Scalar], Table]] = {}

    def profile(self) -> tuple[Params, Profile]:
        mixing = self.free.mixing
        if mixing is None and not self.free.cutoffs:
            return self._of_prefix()
        worth = worth_of(self.evaluator, self.objective)
        if mixing is not None and worth is not None and not self.free.cutoffs:
            found = self._searched(mixing, worth)
            if found is not None:
                return found
        return self._of_grid(worth)

    def settings(self) -> Iterator[Params]:
        """Yield the best of each depth on each line that was searched, once there is a profile."""
        for key, steps in self._known.items():
            name = str(key[0])
            given = zip((w for w in self.weights if w != name), key[1:], strict=True)
            setting: Params = {**self.start, **dict(given)}
            for one in steps:
                _, weight, depth = self._best(name, [one])
                yield {**setting, name: weight, **self._prefixes(depth)}

    # Prefixes alone, or what no line tells: settings evaluated one by one; but for cut-offs.

    def _of_prefix(self) -> tuple[Params, Profile]:
        name = self.free.prefixes[0]
        values, table = self.one_by_one.each(name, self.start)
        at = table.best
        chosen = self.space.canonical({**self.start, name: values[at]})
        curve = table_curve(name, values, table, at)
        highest, luck = float(table.objective[at]), luck_of(table.by_query)
        return chosen, Profile(self.params, len(values), highest, (curve,), luck)

    def _of_grid(self, worth: Worth | None) -> tuple[Params, Profile]:
        """Look at one parameter after the other; at every step of a cut-off where those tell."""
        setting, looked_at, highest = dict(self.start), 0, -math.inf
        curves: dict[str, Curve] = {}
        luck: dict[str, float] = {}
        for name in (*self.weights, *self.free.cutoffs, *self.free.prefixes, *self.weights):
            steps = self._cut(name, setting, worth) if name in self.free.cutoffs else None
            if steps is not None:
                highest, value, depth = self._best(name, steps)
                setting |= {name: value, **self._prefixes(depth)}
                looked_at += sum(len(one.objective) for one in steps)
                middles = np.quantile(steps[0].edges, EVENLY)
                curves[name] = self._steps_curve(name, setting, steps, middles.tolist())
                luck[name] = luck_of(np.concatenate([one.by_query_at(middles) for one in steps]))
                continue
            values, table = self.one_by_one.each(name, setting)
            at = table.best
            setting[name] = values[at]
            looked_at += len(values)
            highest = float(table.objective[at])
            curves[name] = table_curve(name, values, table, at)
            luck[name] = luck_of(table.by_query)  # A weight's last choice takes the first's place.
        return self.space.canonical(setting), Profile(
            self.params, looked_at, highest, tuple(curves.values()), sum(luck.values())
        )

    def _cut(self, name: str, setting: Params, worth: Worth | None) -> list[Steps] | None:
        """Return all steps of a cut-off, for each depth; None where they do not tell."""
        if worth is None or self.rankings.by_count is not None:
            return None
        depths = self._depths(worth)
        answer = self.one_by_one.at(
            {**setting, **self._prefixes(depths[-1]), name: self.start[name]}
        )
        last = looks_to(worth) or depths[-1]
        bounds = range_of(self.space, name)
        return cut_steps(self.evaluator, answer, worth, depths, bounds, looks_to=last)

    # Along lines: every step of every weight.

    def _searched(self, mixing: Mixing, worth: Worth) -> tuple[Params, Profile] | None:
        """Search exactly along each weight, with every depth; None where no lines are to be had."""
        if not mixing.weights:
            return None
        best: _Found | None = None
        is_one = self._is_one_line(mixing) or mixing.rrf_k
        places = [0.5] if is_one else np.linspace(0.1, 0.9, RESTARTS).tolist()
        looked_at = 0
        for place in places:
            begin = {name: self.space.parameters[name].at(place) for name in self.weights}
            found = self._climbed({**self.start, **begin}, mixing, worth)
            if found is None:
                return None
            looked_at += found.looked_at
            if best is None or found.objective > best.objective:
                best = found
        assert best is not None  # there is a place to begin from
        best = self._with_ends(best)
        curves = [self._curve(name, best.setting, mixing, worth) for name in self.weights]
        curves += [
            self._depth_curve(name, best.setting, mixing, worth) for name in self.free.prefixes
        ]
        chosen = self.space.canonical(best.setting)
        luck = sum(self._luck(name, best.setting, mixing, worth) for name in self.weights)
        return chosen, Profile(self.params, looked_at, best.objective, tuple(curves), luck)

    def _luck(self, name: str, setting: Params, mixing: Mixing, worth: Worth) -> float:
        """Return the luck of a choice among some weights, spread over the range, and all depths."""
        if name == mixing.rrf_k:
            return luck_of(self._each(name, setting)[1].by_query)
        weights = np.linspace(*range_of(self.space, name), LUCKY)
        steps = self._steps(name, setting, mixing, worth) or []
        return luck_of(np.concatenate([one.by_query_at(weights) for one in steps]))

    def _is_one_line(self, mixing: Mixing) -> bool:
        """Say whether one look along each weight tells of all their values.

        Of two legs that have a weight each, from 0 on, the ratio alone counts: along the first it
        is looked at up to where that is at its highest, along the second from below there on.
        """
        if len(mixing.weights) == 1:
            return True
        ranges = [self.space.parameters[name].count for name in mixing.weights]
        from_0 = all(range_of(self.space, name)[0] == 0 for name in mixing.weights)
        return len(mixing.shares) == 2 and from_0 and set(ranges) == {None}

    def _climbed(self, start: Params, mixing: Mixing, worth: Worth) -> _Found | None:
        """Improve one weight after the other, until none does."""
        found = _Found(start, -math.inf, 0)
        for _ in range(1 if self._is_one_line(mixing) and not mixing.rrf_k else ROUNDS):
            before = found.objective
            for name in self.weights:
                if name == mixing.rrf_k:
                    found = self._with_each(name, found)
                    continue
                steps = self._steps(name, found.setting, mixing, worth)
                if steps is None:
                    return None
                objective, weight, depth = self._best(name, steps)
                setting = {**found.setting, name: weight, **self._prefixes(depth)}
                counted = found.looked_at + sum(len(one.objective) for one in steps)
                is_better = objective > found.objective
                found = _Found(
                    setting if is_better else found.setting,
                    max(objective, found.objective),
                    counted,
                )
            if found.objective <= before:
                break
        return found

    def _with_each(self, name: str, found: _Found) -> _Found:
        """Look at every value of what is in no line."""
        values, table = self._each(name, found.setting)
        counted = found.looked_at + len(values)
        if table.objective[table.best] <= found.objective:
            return _Found(found.setting, found.objective, counted)
        setting = {**found.setting, name: values[table.best]}
        return _Found(setting, float(table.objective[table.best]), counted)

    def _each(self, name: str, setting: Params) -> tuple[list[Scalar], Table]:
        key = tuple(
            setting[other] for other in (*self.weights, *self.free.prefixes) if other != name
        )
        if key not in self._tables:
            self._tables[key] = self.one_by_one.each(name, setting)
        return self._tables[key]

    def _steps(
        self, name: str, setting: Mapping[str, Scalar], mixing: Mixing, worth: Worth
    ) -> list[Steps] | None:
        key = (name, *(setting[other] for other in self.weights if other != name))
        if key in self._known:
            return self._known[key]
        low, high = range_of(self.space, name)
        lines = lines_of(
            self.evaluator,
            mixing,
            self.rankings,
            setting,
            name,
            (low, high),
            needs_tokens=worth.token_price > 0,
        )
        if lines is None:
            return None
        depths = self._depths(worth)
        self._known[key] = sweep(lines, worth, depths, looks_to(worth) or max(depths))
        return self._known[key]

    def _depths(self, worth: Worth) -> list[int]:
        """Return how many documents may be returned, but for what costs more and tells no more."""
        if not self.free.prefixes:
            return [self.rankings.depth]
        values = [int(v) for v in prefix_values(self.space, self.free.prefixes[0])]  # type: ignore[arg-type]
        last = looks_to(worth)
        if last is None:
            return values
        deep = [value for value in values if value >= last]
        return [*(value for value in values if value < last), *deep[:1]]

    def _prefixes(self, depth: int) -> Params:
        return dict.fromkeys(self.free.prefixes, depth)

    def _best(self, name: str, steps: Sequence[Steps]) -> tuple[float, float, int]:
        """Return the highest step: its objective, a weight in the middle of it, and its depth."""
        parameter = self.space.parameters[name]
        best = (-math.inf, 0.0, steps[0].depth)
        for one in steps:
            if parameter.count is None:
                span = one.edges[-1] - one.edges[0]
                is_wide = one.widths > LEAST_WIDTH * span
                worth = np.where(is_wide, one.objective, -np.inf)
                place = int((worth >= worth.max() - ROUNDING).argmax())  # the first of equals
                weight = float(one.edges[place] + one.widths[place] / 2)
            else:
                values = [float(v) for v in parameter.levels(parameter.count)]  # type: ignore[arg-type]
                values = [v for v in values if not self._is_left_out(name, v)] or values
                place = max(map(one.step_at, values), key=lambda step: one.objective[step])
                weight = next(v for v in values if one.step_at(v) == place)
            best = max(best, (float(one.objective[place]), weight, one.depth), key=lambda b: b[0])
        return best

    def _is_left_out(self, name: str, value: float) -> bool:
        """Say whether a leg is left out at a value, so that it is not worth what is near it."""
        mixing = self.free.mixing
        return mixing is not None and any(
            share.parameter == name and not share.of({name: value})
            for share in mixing.shares.values()
        )

    def _with_ends(self, found: _Found) -> _Found:
        """Look at the very ends of each weight too: there a leg is left out altogether.

        What was found is evaluated first: where values have a step, lines may cross right there.
        """
        found = _Found(found.setting, self.one_by_one.value_of(found.setting), found.looked_at)
        weights = () if self.free.mixing is None else self.free.mixing.weights
        settings = [
            {**found.setting, name: end} for name in weights for end in range_of(self.space, name)
        ]
        for setting in filter(self.one_by_one.is_allowed, settings):
            objective = self.one_by_one.value_of(setting)
            if objective > found.objective:
                found = _Found(setting, objective, found.looked_at)
        return found

    # What is shown of it.

    def _curve(self, name: str, setting: Params, mixing: Mixing, worth: Worth) -> Curve:
        if name == mixing.rrf_k:
            values, table = self._each(name, setting)
            return table_curve(name, values, table, values.index(setting[name]))
        return self._steps_curve(name, setting, self._steps(name, setting, mixing, worth) or [])

    def _steps_curve(
        self, name: str, setting: Params, steps: Sequence[Steps], more: Sequence[float] = ()
    ) -> Curve:
        depth = int(setting[self.free.prefixes[0]]) if self.free.prefixes else self.rankings.depth  # type: ignore[arg-type]
        one = next(step for step in steps if step.depth == depth)
        low, high = range_of(self.space, name)
        chosen = float(setting[name])  # type: ignore[arg-type]  # a number
        at = np.unique([*np.linspace(low, high, SHOWN), *more, chosen])
        places = [one.step_at(value) for value in at]
        errors = one.errors(one.by_query(chosen))[places]
        return curve_of(name, at.tolist(), one.objective[places], errors)

    def _depth_curve(self, name: str, setting: Params, mixing: Mixing, worth: Worth) -> Curve:
        weight = mixing.weights[0]
        at = float(setting[weight])  # type: ignore[arg-type]  # a number
        values = prefix_values(self.space, name)
        steps = self._steps(weight, setting, mixing, worth) or []
        is_inside = self.space.parameters[weight].count is None and at not in range_of(
            self.space, weight
        )
        if is_inside and [one.depth for one in steps] == values:
            # Every depth is in the steps already.
            by_query = np.concatenate([one.by_query_at(np.array([at])) for one in steps])
            objective = np.array([one.objective[one.step_at(at)] for one in steps])
            table = Table(objective, np.zeros(len(steps)), by_query)
        else:
            values, table = self.one_by_one.each(name, setting)
        return table_curve(name, values, table, values.index(setting[name]))
