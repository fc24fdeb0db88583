"""Graded relevance: metrics of one level of grades, and scores from which grades can be made."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tuner.core.errors import MetricError
from tuner.core.rankings import FloatArray, IntArray
from tuner.metrics.base import Judged, MetricFamily
from tuner.metrics.judgements import top_gains, where_defined

USUAL_GRADES = (0, 1, 2, 3)
"""Grades whose metrics are listed by name; every other grade has them as well."""

SIGNAL_WEIGHTS: Mapping[str, float] = {"text": 0.5, "path": 0.3, "entity": 0.2}
HOP_PENALTY = 0.8


def level_recall(judged: Judged, cutoff: int, *, level: float) -> FloatArray:
    """Return the share of the documents judged ``level`` or higher among the first ``cutoff``.

    NaN for a query without such a document; trec_eval's ``-l``.
    """
    return _found(judged, cutoff, level) / _judged_count(judged, level)


def level_precision(judged: Judged, cutoff: int, *, level: float) -> FloatArray:
    """Return the share of ``cutoff`` ranks whose document was judged ``level`` or higher.

    NaN for a query without such a document.
    """
    is_defined = ~np.isnan(_judged_count(judged, level))
    return np.where(is_defined, _found(judged, cutoff, level) / cutoff, np.nan)


def grade_share(judged: Judged, cutoff: int, *, level: int) -> FloatArray:
    """Return the share of ``cutoff`` ranks whose grade is ``level``, fractions rounded down.

    Level 0 counts what is unjudged or not relevant, and ranks after the end of a short ranking, so
    the shares of all grades add up to 1. NaN for a query without a relevant document.
    """
    gains = top_gains(judged, cutoff)
    empty = cutoff - gains.shape[1] if level == 0 else 0
    count = (np.floor(gains) == level).sum(axis=1) + empty
    return where_defined(judged, count / cutoff)


def relevance_score(
    *,
    text: npt.ArrayLike = np.nan,
    path: npt.ArrayLike = np.nan,
    entity: npt.ArrayLike = np.nan,
    hops: npt.ArrayLike = 1,
    weights: Mapping[str, float] = SIGNAL_WEIGHTS,
    hop_penalty: float = HOP_PENALTY,
) -> FloatArray:
    """Return a relevance in [0, 1] from signals in [0, 1], for making judgements.

    ``sum(weight * signal * p) / sum(weight)`` over the signals that are not NaN, where p is
    ``hop_penalty ** (hops - 1)`` for path and entity, whose worth fades with the distance from the
    query (0 hops count as 1), and 1 for text. NaN where no signal is there. Arrays broadcast.

    The signals must come from elsewhere than the system that is judged: annotators, labelled
    evidence, another model. Judging a system by its own scores is circular; it then looks perfect
    whatever it retrieves.

    >>> round(float(relevance_score(text=0.8, path=0.5, entity=1.0, hops=2)), 3)
    0.68

    Raises:
        MetricError: a signal or the penalty outside [0, 1], hops below 0, or weights that are
            negative, of unknown signals, or sum to 0.
    """
    signals = {"text": text, "path": path, "entity": entity}
    if weights.keys() - signals.keys() or any(not w >= 0 for w in weights.values()):
        raise MetricError(f"weights are numbers from 0 up for {', '.join(signals)}; got {weights}")
    if not sum(weights.values()) > 0:
        raise MetricError("the weights sum to 0; at least one must be above 0")
    if not 0 <= hop_penalty <= 1:
        raise MetricError(f"hop_penalty={hop_penalty} is outside [0, 1]")
    distance = np.asarray(hops, dtype=np.float64)
    if not (distance >= 0).all():
        raise MetricError("hops are numbers from 0 up")
    fade = hop_penalty ** np.maximum(distance - 1.0, 0.0)
    earned, possible = np.zeros(()), np.zeros(())
    for name, signal in signals.items():
        values = np.asarray(signal, dtype=np.float64)
        if ((values < 0) | (values > 1)).any():
            raise MetricError(f"the signal {name!r} leaves [0, 1]; scale it first")
        is_there = ~np.isnan(values)
        weight = weights.get(name, 0.0)
        worth = values if name == "text" else values * fade
        earned = earned + np.where(is_there, weight * worth, 0.0)
        possible = possible + np.where(is_there, weight, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.minimum(earned / possible, 1.0))


def grades_of(
    scores: npt.ArrayLike, *, thresholds: Sequence[float] = (0.25, 0.5, 0.75)
) -> IntArray:
    """Return for each score how many of the ascending thresholds it reaches: grades from 0 up.

    >>> grades_of([0.1, 0.5, 0.9]).tolist()
    [0, 2, 3]

    Raises:
        MetricError: a score is NaN, or the thresholds do not ascend.
    """
    values = np.asarray(scores, dtype=np.float64)
    if np.isnan(values).any():
        raise MetricError("a score is NaN; leave the document unjudged instead")
    if not thresholds or any(b <= a for a, b in pairwise(thresholds)):
        raise MetricError(f"thresholds must ascend; got {list(thresholds)}")
    return np.searchsorted(np.asarray(thresholds), values, side="right").astype(np.int64)


def _found(judged: Judged, cutoff: int, level: float) -> FloatArray:
    if not level > 0:
        raise MetricError(f"level={level}; it must be above 0")
    return np.asarray((top_gains(judged, cutoff) >= level).sum(axis=1), dtype=np.float64)


def _judged_count(judged: Judged, level: float) -> FloatArray:
    count = (judged.ideal >= level).sum(axis=1)
    return np.where(count > 0, count, np.nan)


@dataclass(frozen=True)
class _OfGrade:
    """Metrics of which there is one for each grade from ``lowest`` up."""

    function: Callable[..., FloatArray]
    lowest: int
    description: str
    # Grades that are waste: the more of them, the worse.
    wasted: frozenset[int] = frozenset()


_OF_GRADE: Mapping[str, _OfGrade] = {
    "recall_level": _OfGrade(level_recall, 1, "recall of the documents of grade {} or higher"),
    "precision_level": _OfGrade(
        level_precision, 1, "share of the k ranks that hold a document of grade {} or higher"
    ),
    "share_grade": _OfGrade(
        grade_share, 0, "share of the k ranks that hold a document of grade {}", frozenset({0})
    ),
}
_NAME = re.compile(rf"({'|'.join(_OF_GRADE)})(0|[1-9][0-9]{{0,2}})")


def family_of(name: str) -> MetricFamily | None:
    """Return the metric of one grade, such as ``recall_level4``; None for any other name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    kind, level = _OF_GRADE[found.group(1)], int(found.group(2))
    if level < kind.lowest:
        return None
    function = partial(kind.function, level=level)
    return MetricFamily(
        function,
        "required",
        kind.description.format(level),
        lower_is_better=level in kind.wasted,
    )


def at_grades(name: str, judgements: Iterable[Mapping[str, float]]) -> list[str]:
    """Write out a name in the plural for each grade that was judged; others stay as they are.

    >>> at_grades("recall_levels@5", [{"d1": 1, "d2": 2}])
    ['recall_level1@5', 'recall_level2@5']
    >>> at_grades("share_grades@5", [{"d1": 0, "d2": 2}])
    ['share_grade0@5', 'share_grade2@5']
    """
    plural, at, cutoff = name.partition("@")
    kind = _OF_GRADE.get(plural.removesuffix("s"))
    if kind is None or not plural.endswith("s"):
        return [name]
    found = {max(math.floor(grade), 0) for judged in judgements for grade in judged.values()}
    levels = sorted(level for level in found | {kind.lowest} if level >= kind.lowest)
    return [f"{plural.removesuffix('s')}{level}{at}{cutoff}" for level in levels]


METRICS: Mapping[str, MetricFamily] = {
    name: family
    for kind in _OF_GRADE
    for grade in USUAL_GRADES
    # Level 1 is plain recall and precision; it has a name so that all levels can be listed.
    if not (kind.endswith("level") and grade == 1)
    and (family := family_of(name := f"{kind}{grade}")) is not None
}
