"""Settings of free parameters evaluated one by one, each as if the system had answered with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tuner.core.rankings import FloatArray, Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Outcome, Params, Scalar
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.choice import Table
from tuner.evaluation.free.settings import cutoff_values, prefix_values
from tuner.evaluation.objective import Objective
from tuner.retrieval.computed import answer_at
from tuner.retrieval.free import FreeKnobs

# Of a weight so many values are evaluated.
WEIGHTS = 101


@dataclass(frozen=True, eq=False)
class OneByOne:
    """Evaluates settings that one answer tells of.

    Attributes:
        evaluator: over the queries that were answered.
        objective: what an answer decides of what is sought.
        space: that of all parameters.
        free: what is free.
        rankings: the answer.
        start: the parameters that it was asked with.
        seen: every setting that was evaluated, with what it measured; None: they are not kept.
    """

    evaluator: Evaluator
    objective: Objective
    space: SearchSpace
    free: FreeKnobs
    rankings: Rankings
    start: Params
    seen: list[tuple[Params, Outcome]] | None = field(default=None, repr=False)

    def at(self, setting: Params) -> Rankings:
        """Return the answer at a setting."""
        return answer_at(self.free, self.rankings, {**self.evaluator.fixed, **setting})

    def is_allowed(self, setting: Params) -> bool:
        """Say whether a setting meets the constraints, and leaves no answer without a leg."""
        mixing = self.free.mixing
        is_empty = (
            mixing is not None
            and mixing.needs_share
            and not any(share.of(setting) for share in mixing.shares.values())
        )
        if is_empty:
            return False
        return not self.space.constraints or self.space.satisfies(self.space.canonical(setting))

    def each(self, name: str, setting: Params) -> tuple[list[Scalar], Table]:
        """Evaluate the values of a free parameter, the others as they are."""
        if name in self.free.prefixes:
            values = prefix_values(self.space, name)
            return values, self._beginnings(setting, values)
        values = self._values(name, setting)
        values = [v for v in values if self.is_allowed({**setting, name: v})] or values
        return values, self.table({**setting, name: value} for value in values)

    def table(self, settings: Iterable[Params]) -> Table:
        """Evaluate some settings."""
        return self._table((setting, self.at(setting)) for setting in settings)

    def value_of(self, setting: Params) -> float:
        """Return the objective at a setting."""
        return self._row(setting, self.at(setting))[0]

    def measured(self, setting: Params) -> Outcome:
        """Return what a setting measures."""
        return self.evaluator.measure(self.at(setting))

    def _values(self, name: str, setting: Params) -> list[Scalar]:
        if name in self.free.cutoffs:
            scores = self.at({**setting, name: self.start[name]}).scores
            return cutoff_values(self.space, name, np.asarray(scores))
        parameter = self.space.parameters[name]
        if parameter.count is None:
            return parameter.levels(WEIGHTS)
        is_whole = self.free.mixing is not None and self.free.mixing.rrf_k == name
        return parameter.levels(parameter.count if is_whole else min(parameter.count, WEIGHTS))

    def _beginnings(self, setting: Params, values: Sequence[Scalar]) -> Table:
        """Evaluate the beginnings of one answer."""
        whole = self.at({**setting, **dict.fromkeys(self.free.prefixes, values[-1])})
        return self._table(
            ({**setting, **dict.fromkeys(self.free.prefixes, value)}, whole.first(int(value)))  # type: ignore[arg-type]
            for value in values
        )

    def _table(self, answers: Iterable[tuple[Params, Rankings]]) -> Table:
        rows = [self._row(setting, answer) for setting, answer in answers]
        return Table(
            np.array([row[0] for row in rows]),
            np.array([row[1] for row in rows]),
            np.stack([row[2] for row in rows]),
        )

    def _row(self, setting: Params, answer: Rankings) -> tuple[float, float, FloatArray]:
        measured = self.evaluator.measure(answer)
        if self.seen is not None:
            self.seen.append((setting, measured))
        score = self.objective.score(measured.metrics)
        by_query = self.objective.by_query(measured.per_query, measured.metrics)
        return score.objective, score.violation, by_query
