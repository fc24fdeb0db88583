"""An evaluator that asks without the free parameters, and chooses them from the answer."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tuner.core.policy import POLICY
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

    @property
    def profiler(self) -> Profiler:
        """Return what chooses from an answer."""
        return Profiler(self.whole, self.objective, self.space, self.free)

    def __call__(self, params: Params) -> Outcome:
        """Evaluate what was asked with the best that its answer tells of.

        Raises:
            TunerError: as the evaluator does.
        """
        if POLICY in params or all(name in params for name in self.free.names):
            return self.whole(params)
        index = self.whole.ready(params)
        begin = time.perf_counter()
        asked = {**self.whole.fixed, **params, **self.profiler.to_ask()}
        rankings = self.whole.retriever.retrieve(self.whole.queries, asked)
        answered = time.perf_counter()
        chosen, profile = self.profiler.profile(rankings, params)
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
