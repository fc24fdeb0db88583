"""What measures itself, without queries, rankings or labels: an outcome of what it returns."""

from __future__ import annotations

import math
import reprlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.trial import Outcome, Params, Scalar
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


def as_outcome(answer: Any) -> Outcome:
    """Turn what an evaluate function returned into an outcome.

    A number becomes the metric ``objective``; a mapping of numbers becomes the metrics, of which
    None is an undefined one.

    Raises:
        TunerError: anything else, text of a number too.
    """
    if isinstance(answer, Outcome):
        return answer
    if isinstance(answer, Mapping):
        metrics = {}
        for name, value in answer.items():
            number = math.nan if value is None else _as_number(value)
            if number is None:
                what = "the string " if isinstance(value, str) else ""
                message = f"metric {str(name)!r} is {what}{reprlib.repr(value)}, not a number"
                raise TunerError(f"the evaluate function returned something else: {message}")
            metrics[str(name)] = number
        return Outcome(metrics=metrics)
    number = _as_number(answer)
    if number is None:
        raise TunerError(
            f"the evaluate function returned {type(answer).__name__}; return a number, or a "
            'mapping of metrics such as {"recall": 0.7, "mrr": 0.6, "ndcg": 0.5}'
        )
    return Outcome(metrics={"objective": number})


def _as_number(value: Any) -> float | None:
    """Return a number; None for what is none, or larger than any."""
    if isinstance(value, str | bytes):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
