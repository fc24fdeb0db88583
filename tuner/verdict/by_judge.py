"""Comparisons by both kinds of labels: those of people, and a judge's of further queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuner.core.rankings import BoolArray, FloatArray
from tuner.stats import Labels, PairedComparison, compare_paired, compare_with_judge


@dataclass(frozen=True, eq=False)
class ByJudge:
    """What a configuration is worth by a judge's grades, and which queries people graded as well.

    Attributes:
        is_people: shape (queries,); the values of the others are by the judge's grades anyway.
        composite, objective, metrics: as in ``Measured``, all by the judge's grades; ``metrics``
            only those that depend on grades.
    """

    is_people: BoolArray
    composite: FloatArray
    objective: FloatArray | None = None
    metrics: Mapping[str, FloatArray] = field(default_factory=dict)


Values = tuple[FloatArray | None, FloatArray | None]


def labels_of(winner: ByJudge | None, baseline: ByJudge | None, name: str) -> Labels | None:
    """Return whose labels the values of ``"composite"``, ``"objective"`` or a metric are by.

    None where people's alone count, or the values depend on no labels.
    """
    if winner is None or baseline is None:
        return None
    first, second = _values(winner, name), _values(baseline, name)
    if first is None or second is None:
        return None
    return Labels(winner.is_people, first, second)


def _values(side: ByJudge, name: str) -> FloatArray | None:
    if name in ("composite", "objective"):
        found: FloatArray | None = getattr(side, name)
        return found
    return side.metrics.get(name)


def compared(
    winner: FloatArray,
    baseline: FloatArray,
    labels: Labels | None,
    *,
    confidence: float = 0.95,
    further_error: float = 0.0,
    most: float | None = None,
    **drawn: Any,
) -> PairedComparison:
    """Compare per-query values by people's labels alone, or with a judge's.

    ``drawn`` is for ``compare_paired``: seed, permutations, resamples and ``widened``. ``most`` is
    by how much two values can differ at most, None where nobody knows.
    """
    if labels is None:
        found = compare_paired(
            winner, baseline, confidence=confidence, further_error=further_error, **drawn
        )
    else:
        found = compare_with_judge(
            winner,
            baseline,
            labels,
            confidence=confidence,
            further_error=further_error,
            most=1.0 if most is None else most,
        )
    return found.within(most)
