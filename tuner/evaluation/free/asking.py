"""An evaluator that asks without the free parameters, and chooses them from the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from tuner.core.policy import POLICY
from tuner.core.profile import Curve, Profile
from tuner.core.rankings import FloatArray, Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import IndexUse, Outcome, Params, Scalar
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.choice import Table, choose, paired_errors
from tuner.evaluation.free.settings import decided_by_answer, prefix_values
from tuner.evaluation.objective import Objective
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.retrieval.computed import answer_at
from tuner.retrieval.free import FreeKnobs


@dataclass(frozen=True, eq=False)
class FreeEvaluator:
    """Asks once with the largest value of each prefix; the outcome is that of the chosen setting.

    What has all parameters, such as a baseline, is evaluated with them, as ``whole`` does.

    Attributes:
        whole: evaluates complete parameters.
        objective: tells what a setting is worth.
        space: that of all parameters, the free ones included.
        free: what is free; all of its names are in the space.
    """

    whole: Evaluator
    objective: Objective
    space: SearchSpace
    free: FreeKnobs

    def __call__(self, params: Params) -> Outcome:
        """Evaluate what was asked with the best that its answer tells of.

        Raises:
            TunerError: as the evaluator does.
        """
        if POLICY in params or all(name in params for name in self.free.names):
            return self.whole(params)
        index = self.whole.ready(params)
        begin = time.perf_counter()
        asked = {**self.whole.fixed, **params, **self.largest()}
        rankings = self.whole.retriever.retrieve(self.whole.queries, asked)
        answered = time.perf_counter()
        chosen, profile = self.profile(rankings, params)
        computed = time.perf_counter()
        at_it = answer_at(self.free, rankings, {**asked, **chosen})
        # What was computed is not the system's time: the rest is timed as if it had been answered.
        outcome = self.whole.outcome(at_it, chosen, index, begin=begin + computed - answered)
        seconds = {**outcome.seconds, "profile": computed - answered}
        seconds["total"] += computed - answered
        return Outcome(
            metrics=outcome.metrics,
            per_query=outcome.per_query,
            seconds=seconds,
            index=index,
            params=chosen,
            profile=profile,
        )

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Have the index that the parameters describe built and kept, as the evaluator does."""
        return self.whole.holding(params)

    def largest(self) -> Params:
        """Return the values of the free parameters that tell of all others."""
        return {name: levels[-1] for name, levels in self._levels().items()}

    def profile(self, rankings: Rankings, params: Params) -> tuple[Params, Profile]:
        """Return all parameters, the free ones chosen from an answer, and how they were chosen."""
        largest = self.largest()
        levels = self._levels()
        name = self.free.prefixes[0]
        values = levels[name]
        table = self._table(rankings, [{**params, **largest, name: value} for value in values])
        at = choose(table)
        chosen = self.space.canonical({**params, **largest, name: values[at]})
        highest = np.where(table.is_allowed, table.objective, -np.inf).max()
        return chosen, Profile(
            params, len(values), float(highest), (_curve(name, values, table, at),)
        )

    def _levels(self) -> dict[str, list[Scalar]]:
        """Return the values of each prefix, ascending."""
        return {name: prefix_values(self.space, name) for name in self.free.prefixes}

    def _table(self, rankings: Rankings, settings: Sequence[Params]) -> Table:
        """Evaluate settings one by one, each as if the system had answered it."""
        rows = [self._row(rankings, setting) for setting in settings]
        return Table(
            np.array([row[0] for row in rows]),
            np.array([row[1] for row in rows]),
            np.array([row[2] for row in rows]),
            np.stack([row[3] for row in rows]),
        )

    def _row(self, rankings: Rankings, setting: Params) -> tuple[float, float, float, FloatArray]:
        complete = {**self.whole.fixed, **setting}
        measured = self.whole.measure(answer_at(self.free, rankings, complete))
        objective = decided_by_answer(self.objective)
        score = objective.score(measured.metrics)
        by_query = objective.by_query(measured.per_query, measured.metrics)
        tokens = measured.per_query.get(CONTEXT_TOKENS)
        return (
            score.objective,
            score.violation,
            0.0 if tokens is None else float(np.mean(tokens)),
            by_query,
        )


def _curve(name: str, values: Sequence[Scalar], table: Table, at: int) -> Curve:
    errors = paired_errors(table.by_query, table.by_query[at])
    return Curve(
        name,
        tuple(float(value) for value in values),  # type: ignore[arg-type]  # numbers
        tuple(table.objective.tolist()),
        tuple(None if np.isnan(error) else error for error in errors.tolist()),
    )
