"""The contract of ranking metrics: values by query, undefined ones as NaN, within their range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuner.core.grades import RELEVANT_FROM, GradeScale
from tuner.core.rankings import FloatArray, Rankings
from tuner.metrics.base import Judged, MetricFamily
from tuner.metrics.qrels import Qrels
from tuner.testing.contract import Contract, check_all, checks_in, need

_DOCUMENTS = [f"d{number:02d}" for number in range(12)]
# Of the first, nothing relevant is known; the second retrieves nothing.
_UNDEFINED, _EMPTY = "q00", "q01"


def _at(cutoff: int | None) -> str:
    return "without a cut-off" if cutoff is None else f"@{cutoff}"


@dataclass(frozen=True)
class MetricCase:
    """One ranking metric to check.

    Attributes:
        family: its line of a table ``METRICS``.
        cutoffs: those to try; a metric of whole rankings (``cutoff="none"``) is tried without.
    """

    family: MetricFamily
    cutoffs: Sequence[int] = (1, 3, 10)

    @property
    def depths(self) -> list[int | None]:
        """Return the cut-offs that its names may carry, with None where there need be none."""
        if self.family.cutoff == "none":
            return [None]
        return [*self.cutoffs, *([None] if self.family.cutoff == "optional" else [])]

    @cached_property
    def qrels(self) -> dict[str, dict[str, float]]:
        """Return judgements of 12 queries: grades from -1 to 4, some of them fractions."""
        rng = np.random.default_rng(7)
        qrels = {
            f"q{number:02d}": {
                id_: float(rng.choice([-1, 0, 0.5, 1, 2, 3, 4]))
                for id_ in rng.choice(_DOCUMENTS, size=8, replace=False)
            }
            | {"d00": 4.0}
            for number in range(12)
        }
        qrels[_UNDEFINED] = {"d00": 0.0, "d01": -1.0}
        return qrels

    @cached_property
    def runs(self) -> dict[str, list[str]]:
        """Return a ranking for each of these queries."""
        rng = np.random.default_rng(8)
        runs = {query: list(rng.permutation(_DOCUMENTS)) for query in self.qrels}
        runs[_EMPTY] = []
        return runs

    def judged(
        self,
        runs: Mapping[str, Sequence[str]],
        *,
        renamed: Mapping[str, str] | None = None,
        relevant_from: float = RELEVANT_FROM,
        graded: Callable[[float], float] = float,
    ) -> Judged:
        """Return rankings with the grades of their documents, each put through ``graded``.

        Ids are ``renamed`` as given; documents are relevant from ``relevant_from`` on.
        """
        names = renamed or {}
        qrels = {
            query: {names.get(id_, id_): graded(grade) for id_, grade in self.qrels[query].items()}
            for query in runs
        }
        rows = [[names.get(id_, id_) for id_ in row] for row in runs.values()]
        scale = GradeScale(relevant_from)
        built = Qrels.build(qrels, query_ids=list(runs), scale=scale)
        return built.judge(Rankings.from_ids(list(runs), rows))

    def values(self, judged: Judged, cutoff: int | None) -> FloatArray:
        """Return the metric by query."""
        metric = self.family.function
        try:
            return metric(judged) if cutoff is None else metric(judged, cutoff)
        except IndexError as error:
            depth = judged.gains.shape[1]
            message = f"{_at(cutoff)}: the metric raised IndexError: {error}; `judged.hits` and "
            message += f"`judged.gains` had {depth} column{'s' * (depth != 1)} here"
            if depth == 0:
                message += ": an empty result has 0 columns, so look at `judged.hits.shape[1]`"
            raise AssertionError(message) from error


def check_description(case: MetricCase) -> None:
    """Check that it says in one line what it measures, and what it reads."""
    text = case.family.description
    need(bool(text) and "\n" not in text, "the description must be one line")
    need(case.family.kind == "ranking", f"this contract is of rankings, not {case.family.kind}")
    need(case.family.highest > 0, "`highest` must be the largest value, above 0")


def check_one_value_a_query(case: MetricCase) -> None:
    """Check that there is one number for each query, within the range, and NaN where undefined."""
    is_defined = np.array([query != _UNDEFINED for query in case.runs])
    for cutoff in case.depths:
        values = case.values(case.judged(case.runs), cutoff)
        wanted = (len(case.runs),)
        is_row = isinstance(values, np.ndarray) and values.shape == wanted
        need(is_row, f"{_at(cutoff)}: an array of shape {wanted} is needed, got {values!r:.80}")
        is_right = np.isnan(values).tolist() == (~is_defined).tolist()
        need(
            is_right, f"{_at(cutoff)}: NaN is for queries without a relevant document, and no other"
        )
        found = values[is_defined]
        is_within = bool(((found >= 0) & (found <= case.family.highest)).all())
        outside = found[~((found >= 0) & (found <= case.family.highest))]
        need(
            is_within,
            f"{_at(cutoff)}: values lie from 0 to `highest`, which is {case.family.highest:g}, got "
            f"{outside}; of a metric with larger values write MetricFamily(…, highest=…)",
        )


def check_nothing_found(case: MetricCase) -> None:
    """Check that a judged query with an empty result gets 0, not NaN and no error.

    A metric of waste may say otherwise.
    """
    if case.family.lower_is_better:
        return
    row = list(case.runs).index(_EMPTY)
    for cutoff in case.depths:
        value = float(case.values(case.judged(case.runs), cutoff)[row])
        others = "; of a metric where lower is better write MetricFamily(…, lower_is_better=True)"
        what = f"{_at(cutoff)}: an empty result of a judged query"
        need(value == 0.0, f"{what} is 0, got {value}{others}")
        value = float(case.values(case.judged({_EMPTY: []}), cutoff)[0])
        need(value == 0.0, f"{what}, alone in its batch, is 0, got {value}{others}")


def check_queries_stand_alone(case: MetricCase) -> None:
    """Check that a query has the same value whatever other queries are judged with it."""
    for cutoff in case.depths:
        together = case.values(case.judged(case.runs), cutoff)
        alone = [
            float(case.values(case.judged({query: row}), cutoff)[0])
            for query, row in case.runs.items()
        ]
        is_same = np.allclose(together, alone, rtol=1e-12, atol=0, equal_nan=True)
        need(is_same, f"{_at(cutoff)}: a query alone has another value than within a batch")


def check_names_decide_nothing(case: MetricCase) -> None:
    """Check that the ids of documents do not matter."""
    renamed = dict(zip(_DOCUMENTS, reversed(_DOCUMENTS), strict=True))
    for cutoff in case.depths:
        before = case.values(case.judged(case.runs), cutoff)
        after = case.values(case.judged(case.runs, renamed=renamed), cutoff)
        need(
            np.array_equal(before, after, equal_nan=True), f"{_at(cutoff)}: other ids, other values"
        )


def check_relevant_from(case: MetricCase) -> None:
    """Check that what is relevant is asked of the data set, and not fixed at a grade.

    A metric that reads the grades themselves, such as nDCG, may have them say what they say, and
    so may a metric of waste.
    """
    if case.family.lower_is_better:
        return

    def marked(lowest: float) -> Judged:
        """Return the judgements with 4 for what is relevant from a grade on, and 0 for the rest."""
        return case.judged(case.runs, graded=lambda grade: 4.0 * (grade >= lowest))

    plain = case.judged(case.runs)
    # At one cut-off alone the documents may happen to have no grade that tells.
    reads_grades = any(
        not _is_same(case.values(plain, cutoff), case.values(marked(RELEVANT_FROM), cutoff))
        for cutoff in case.depths
    )
    for cutoff in [] if reads_grades else case.depths:
        for lowest in (0.5, 3.0, 5.0):  # nothing has a grade of 5
            found = case.values(case.judged(case.runs, relevant_from=lowest), cutoff)
            is_same = _is_same(found, case.values(marked(lowest), cutoff))
            need(
                is_same,
                f"{_at(cutoff)}: with relevant_from={lowest:g} the values are not those of the "
                "documents that are relevant then; read `judged.hits`, `judged.relevant_count` and "
                "`judged.is_defined`, which know it",
            )


def _is_same(before: FloatArray, after: FloatArray) -> bool:
    return np.allclose(before, after, rtol=1e-12, atol=0, equal_nan=True)


def check_depth(case: MetricCase) -> None:
    """Check that what lies below the cut-off, and unjudged documents at the end, do not matter."""
    longer = {query: [*row, "new1", "new2"] for query, row in case.runs.items()}
    for cutoff in case.depths:
        before = case.values(case.judged(case.runs), cutoff)
        if cutoff is not None:
            cut = {query: row[:cutoff] for query, row in case.runs.items()}
            after = case.values(case.judged(cut), cutoff)
            is_same = np.allclose(before, after, rtol=1e-12, atol=0, equal_nan=True)
            need(is_same, f"{_at(cutoff)}: documents below the cut-off change the value")
        if not case.family.lower_is_better:
            after = case.values(case.judged(longer), cutoff)
            need(
                np.allclose(before, after, rtol=1e-12, atol=0, equal_nan=True),
                f"{_at(cutoff)}: unjudged documents at the end change the value",
            )


def check_arguments_are_left_alone(case: MetricCase) -> None:
    """Check that the arrays that it reads are not changed."""
    judged = case.judged(case.runs)
    arrays = (judged.gains, judged.relevant_count, judged.ideal)
    before = [array.copy() for array in arrays]
    for cutoff in case.depths:
        case.values(judged, cutoff)
    is_same = all(map(np.array_equal, before, arrays))
    need(is_same, "the metric changed the arrays that it was given")


CHECKS = checks_in(__name__)
"""Every check of a ranking metric."""


def check_metric(case: MetricCase) -> None:
    """Run every check of the contract of ranking metrics, as ``check_all`` does."""
    check_all(CHECKS, case)


class MetricContract(Contract):
    """The contract of ranking metrics as tests of pytest's; ``case`` is a ``MetricCase``."""

    checks = CHECKS
