"""An evaluator that asks without the free parameters, and chooses them from the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from tuner.core.policy import POLICY
from tuner.core.profile import Profile
from tuner.core.rankings import FloatArray, Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import IndexUse, Outcome, Params
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.profiling import Profiler
from tuner.evaluation.objective import Objective
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

    def profiler_over(self, evaluator: Evaluator, params: Params) -> Profiler:
        """Return what chooses from an answer, to the queries of an evaluator, to these params."""
        return Profiler(evaluator, self.objective, self.space, self.free.at(params))

    def is_complete(self, params: Params) -> bool:
        """Say whether nothing is left to choose."""
        return POLICY in params or all(name in params for name in self.free.at(params).names)

    def asked(self, params: Params) -> Params:
        """Return what the system is asked with: the values that tell of all others."""
        to_ask = self.profiler_over(self.whole, params).to_ask()
        return {**self.whole.fixed, **params, **to_ask}

    def __call__(self, params: Params) -> Outcome:
        """Evaluate what was asked with the best that its answer tells of.

        Raises:
            TunerError: as the evaluator does.
        """
        if self.is_complete(params):
            return self.whole(params)
        index = self.whole.ready(params)
        begin = time.perf_counter()
        rankings = self.whole.retriever.retrieve(self.whole.queries, self.asked(params))
        return self.outcome(rankings, params, index, begin=begin)

    def outcome(
        self, rankings: Rankings, params: Params, index: IndexUse | None, *, begin: float
    ) -> Outcome:
        """Return the outcome of the best that an answer to all queries tells of.

        ``begin`` is when it was asked for, by ``time.perf_counter``.

        Raises:
            TunerError: as a call does.
        """
        answered = time.perf_counter()
        chosen, profile, of_others = self.chosen(rankings, params)
        complete = {**self.asked(params), **chosen}
        at_it = answer_at(self.free.at(params), rankings, complete)
        computed = time.perf_counter() - answered
        # What was computed is not the system's time: the rest is timed as if it had been answered.
        outcome = self.whole.outcome(at_it, chosen, index, begin=begin + computed)
        seconds = {**outcome.seconds, "profile": computed}
        seconds["total"] += computed
        by_query = {**outcome.per_query, **of_others}
        return replace(outcome, per_query=by_query, seconds=seconds, params=chosen, profile=profile)

    def chosen(
        self, rankings: Rankings, params: Params
    ) -> tuple[Params, Profile, Mapping[str, FloatArray]]:
        """Return what an answer to all queries chooses, and what else it tells of a front."""
        profiler = self.profiler_over(self.whole, params)
        if self.objective.pareto:
            return profiler.with_alternatives(rankings, params)
        return (*profiler.profile(rankings, params), {})

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Have the index that the parameters describe built and kept, as the evaluator does."""
        return self.whole.holding(params)
