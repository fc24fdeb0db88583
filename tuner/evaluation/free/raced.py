"""Racing with free parameters: each trial is as good as its answers so far can make it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np

from tuner.core.corpus import Query
from tuner.core.rankings import FloatArray, IntArray, Rankings
from tuner.core.stacked import stacked
from tuner.core.trial import IndexUse, Outcome, Params
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.racing import Racing
from tuner.evaluation.system_metrics import index_metrics
from tuner.retrieval.computed import answer_at


@dataclass(frozen=True, eq=False)
class FreeRacing:
    """Asks rung by rung; after each the free parameters are chosen anew, from all answers so far.

    A trial is stopped where even with the best of them it is behind. Its estimate is that of this
    choice, and so a little too good, as that of what was chosen by the queries it is measured on.
    Make it with ``build``.

    Attributes:
        free: evaluates over all queries.
        racing: the rungs, and what evaluates complete parameters.
        so_far: an evaluator over the queries of each rung and those before it.
    """

    free: FreeEvaluator
    racing: Racing
    so_far: tuple[Evaluator, ...]

    @classmethod
    def build(
        cls,
        free: FreeEvaluator,
        racing: Racing,
        make: Callable[[Sequence[Query]], Evaluator],
    ) -> FreeRacing:
        """Prepare an evaluator for each rung; ``make`` makes one over given queries."""
        asked: list[Query] = []
        so_far = []
        for evaluator, _ in racing.rungs:
            asked += evaluator.queries
            part = make(asked)
            so_far.append(replace(part, system_metrics=evaluator.system_metrics))
        return cls(free, racing, tuple(so_far))

    def __call__(self, params: Params, *, rival: FloatArray | None = None) -> Outcome:
        """Evaluate rung by rung against ``rival``, the best trial's ``standing``.

        Raises:
            TunerError: as the evaluator does.
        """
        if self.free.is_complete(params):
            return self.racing(params, rival=rival)
        if rival is None or len(self.racing.rungs) == 1:
            return self.free(params)
        index = self.free.whole.ready(params)
        begin = time.perf_counter()
        asking = self.free.asked(params)
        answers: list[Rankings] = []
        rows: list[IntArray] = []
        for number, (evaluator, of_it) in enumerate(self.racing.rungs):
            answers.append(evaluator.retriever.retrieve(evaluator.queries, asking))
            rows.append(of_it)
            if number + 1 < len(self.racing.rungs):
                stopped = self._stopped(number, answers, np.concatenate(rows), params, rival)
                if stopped is not None:
                    seconds = {"total": time.perf_counter() - begin}
                    metrics = dict(stopped.metrics)
                    metrics |= index_metrics(evaluator.system_metrics, index)
                    return replace(stopped, metrics=metrics, seconds=seconds, index=index)
        # Row i of all queries is the one that stands in place rows[i] among those asked.
        whole = stacked(answers, np.argsort(np.concatenate(rows)))
        return self.free.outcome(whole, params, index, begin=begin)

    def _stopped(
        self,
        number: int,
        answers: Sequence[Rankings],
        rows: IntArray,
        params: Params,
        rival: FloatArray,
    ) -> Outcome | None:
        """Return the outcome of a trial that is behind after a rung; None where it goes on."""
        evaluator = self.so_far[number]
        rankings = stacked(answers, np.arange(len(rows)))
        chosen, profile = self.free.profiler_over(evaluator, params).profile(rankings, params)
        complete = {**self.free.asked(params), **chosen}
        at_it = answer_at(self.free.free.at(params), rankings, complete)
        part = evaluator.measure(at_it)
        values = {name: np.full(rival.shape[1], np.nan) for name in part.per_query}
        for name, found in part.per_query.items():
            values[name][rows] = found
        race = self.racing.behind(values, rival, rows)
        if race is None:
            return None
        return Outcome(part.metrics, values, race=race, params=chosen, profile=profile)

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Have the index that the parameters describe built and kept, as the evaluator does."""
        return self.free.holding(params)
