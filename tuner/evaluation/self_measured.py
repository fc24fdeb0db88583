"""The evaluate function over a system that measures itself: no queries, no rankings, no labels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tuner.core.trial import Outcome, Params, Scalar
from tuner.evaluation.evaluator import as_outcome
from tuner.retrieval.base import Measures


@dataclass(frozen=True)
class SelfMeasured:
    """A function from parameters to an outcome; ``fixed`` are what every evaluation takes."""

    system: Measures
    fixed: Mapping[str, Scalar] = field(default_factory=dict)

    def __call__(self, params: Params) -> Outcome:
        """Evaluate one set of parameters.

        Raises:
            TunerError: the system returned something else than numbers.
        """
        begin = time.perf_counter()
        outcome = as_outcome(self.system.measure({**self.fixed, **params}))
        seconds = {**outcome.seconds, "total": time.perf_counter() - begin}
        return replace(outcome, seconds=seconds)

    @property
    def defined_queries(self) -> int:
        """Return 0: there are no queries."""
        return 0
