"""The evaluate function of a study's trials, with what each asks told apart in the ledger."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from tuner.core.ledger import evaluating
from tuner.core.rankings import FloatArray
from tuner.core.trial import IndexUse, Outcome, Params
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.free.raced import FreeRacing
from tuner.evaluation.racing import Racing
from tuner.evaluation.self_measured import SelfMeasured


@dataclass(frozen=True, eq=False)
class Accounted:
    """Evaluates as ``evaluate`` does; what that asks is counted for the parameters of the trial.

    Unless it is of another search than the study's own (``is_own``), which may ask the same ones.
    """

    evaluate: Evaluator | SelfMeasured | Racing | FreeEvaluator | FreeRacing
    is_own: bool = True

    def __call__(self, params: Params, *, rival: FloatArray | None = None) -> Outcome:
        """Evaluate one set of parameters, against a rival where trials race.

        Raises:
            TunerError: as the evaluation does.
        """
        with evaluating(params) if self.is_own else nullcontext():
            if isinstance(self.evaluate, Racing | FreeRacing):
                return self.evaluate(params, rival=rival)
            return self.evaluate(params)

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Have the index that the parameters describe built and kept, as the evaluation does."""
        if isinstance(self.evaluate, SelfMeasured):
            return nullcontext()
        return self.evaluate.holding(params)
