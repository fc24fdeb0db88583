"""Score finished runs against judgements, and compare them with the first one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from tuner.core.errors import MetricError, Problem, refuse
from tuner.core.rankings import BoolArray, FloatArray
from tuner.core.shown import figure
from tuner.evaluation.system_metrics import is_better_lower, largest_difference
from tuner.metrics import Metric, Qrels, at_grades, mean_defined, parse
from tuner.metrics.ordering import Answer, top_documents
from tuner.scoring.by_people import PeoplesGrades
from tuner.scoring.inputs import Scorer, ScoringInputs, Told, answering_metric
from tuner.stats import Labels, PairedComparison, correct_holm, mean_with_judge, queries_needed
from tuner.stats.power import MOST_TIMES
from tuner.verdict.by_judge import compared
from tuner.verdict.caveats import by_judge
from tuner.verdict.ruling import in_queries

Grades = Mapping[str, Mapping[str, float]]

UNJUDGED_DEPTH = 10
# As trec_eval, and as ir-measures call them.
_OTHER_NAMES = (
    (r"P[_@](\d+)", r"precision@\1"),
    (r"(?:R@|recall_)(\d+)", r"recall@\1"),
    (r"(?:Success@|success_)(\d+)", r"success@\1"),
    (r"(?:nDCG@|ndcg_cut_)(\d+)", r"ndcg@\1"),
    (r"RR@(\d+)", r"mrr@\1"),
    (r"RR|recip_rank", "mrr"),
    (r"AP|MAP", "map"),
    (r"nDCG", "ndcg"),
)

ALPHA = 0.05
SEED = 0


@dataclass(frozen=True, eq=False)
class JudgedValues:
    """A run's values by a judge's grades alone, beside those of queries that people graded.

    Attributes:
        is_people: shape (queries,), which queries people graded.
        values: metric -> one value a query; only of metrics that grades decide.
    """

    is_people: BoolArray
    values: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class RunScore:
    """One run's values and what is to be known about them.

    Attributes:
        name: what the run is called in tables.
        values: metric -> one value a judged query, shape (queries,), NaN where undefined: mostly
            where nothing is relevant, but recall_level2 also where no document has grade 2.
        missing: the judged queries that the run lacks; they count as 0.
        without_judgements: how many queries of the run were left out for lack of judgements.
        unjudged_share: share of the documents in the top 10 that nobody judged, over the judged
            queries; they count as irrelevant. None where nothing was retrieved.
        retrieved: judged query -> number of documents.
        judged: the values by a judge's grades, where people graded some queries; ``values`` are by
            people's grades there.
    """

    name: str
    values: Mapping[str, FloatArray]
    missing: tuple[str, ...]
    without_judgements: int
    unjudged_share: float | None
    retrieved: Mapping[str, int]
    judged: JudgedValues | None = None

    def mean(self, metric: str) -> float:
        """Return the mean over the queries where the metric is defined, NaN if there is none.

        Where there are people's and a judge's grades it is the estimate by both.
        """
        values = self.values[metric]
        if self.judged is None or metric not in self.judged.values:
            return mean_defined(values)[0]
        is_people = self.judged.is_people
        found = mean_with_judge(values, self.judged.values[metric], is_people)
        return mean_defined(values[is_people])[0] if found is None else found[0]

    def count(self, metric: str) -> int:
        """Return for how many queries the metric is defined."""
        return mean_defined(self.values[metric])[1]


@dataclass(frozen=True, eq=False)
class Scores:
    """Several runs on the same judged queries.

    ``defined`` counts the queries that means stand on, unless a metric is defined for fewer.
    """

    query_ids: tuple[str, ...]
    metrics: tuple[str, ...]
    defined: int
    without_relevant: int
    runs: tuple[RunScore, ...]


@dataclass(frozen=True)
class RunComparison:
    """One later run against the first, on one metric.

    ``adjusted_p`` is the t-test's p-value after Holm's correction for all runs and metrics that
    were compared; None where no test was possible.
    """

    run: str
    against: str
    metric: str
    comparison: PairedComparison
    adjusted_p: float | None

    @property
    def is_significant(self) -> bool:
        """Return whether the difference stands at 5 % after the correction."""
        return self.adjusted_p is not None and self.adjusted_p < ALPHA


def score_runs(
    qrels: Grades,
    runs: Mapping[str, Mapping[str, Answer]],
    metrics: Sequence[str],
    *,
    undefined: Literal["skip", "zero"] = "zero",
    inputs: ScoringInputs = ScoringInputs(),  # noqa: B008  # frozen, and empty
) -> Scores:
    """Score every run on all judged queries, as ``trec_eval -c`` does.

    A judged query that a run lacks is 0, whatever the metric. A query without a relevant document
    counts as 0 too, as in trec_eval and ``evaluate_run``; with ``undefined="skip"``, and where
    lower is better, it is left out of the means. ``inputs`` holds what metrics of texts and of the
    graph read. A metric for all grades, such as share_grades@10, is one for each.

    >>> run = {"q1": {"d1": 0.9, "d2": 0.1}}
    >>> scores = score_runs({"q1": {"d2": 1}, "q2": {"d3": 1}}, {"mine": run}, ["mrr@10"])
    >>> scores.runs[0].mean("mrr@10"), scores.runs[0].missing  # (1/2 + 0) / 2
    (0.25, ('q2',))

    Raises:
        InputError: an unknown metric, one that lacks what it reads, or a run that shares no query
            with the judgements.
    """
    query_ids = tuple(qrels)
    named = (one for name in metrics for one in at_grades(name, qrels.values()))
    metrics = list(dict.fromkeys(named))
    told = {name: inputs.told.get(name, Told()) for name in runs}
    inputs = replace(inputs, told=told)
    parsed = _parsed(metrics, query_ids, inputs)
    _check_overlap(qrels, runs)
    judgements = Qrels.build(qrels, scale=inputs.scale)
    scorer = Scorer.build(judgements, parsed, inputs, runs)
    scored = []
    for name, run in runs.items():
        values = scorer(run, told[name])
        if undefined == "zero":
            is_relevant = judgements.relevant_count > 0
            values = {
                metric: row
                if is_better_lower(metric)
                else np.where(np.isnan(row) & ~is_relevant, 0.0, row)
                for metric, row in values.items()
            }
        scored.append(
            RunScore(
                name=name,
                values=values,
                missing=tuple(query for query in query_ids if query not in run),
                without_judgements=len(run.keys() - qrels.keys()),
                unjudged_share=_unjudged_share(qrels, run),
                retrieved={query: len(run.get(query, ())) for query in query_ids},
            )
        )
    has_relevant = int((judgements.relevant_count > 0).sum())
    return Scores(
        query_ids=query_ids,
        metrics=tuple(metrics),
        defined=has_relevant if undefined == "skip" else len(query_ids),
        without_relevant=len(query_ids) - has_relevant,
        runs=tuple(scored),
    )


def score_by_both(
    people: PeoplesGrades,
    runs: Mapping[str, Mapping[str, Answer]],
    metrics: Sequence[str],
    *,
    undefined: Literal["skip", "zero"] = "zero",
    inputs: ScoringInputs = ScoringInputs(),  # noqa: B008  # frozen, and empty
) -> Scores:
    """Score every run by people's grades and a judge's, as ``score_runs`` does by one kind.

    Means and comparisons are then estimates by both (``tuner.stats.with_judge``): right whatever
    the judge is like, and the sharper the better it is.

    Raises:
        InputError: as ``score_runs``.
    """
    scores = score_runs(people.grades, runs, metrics, undefined=undefined, inputs=inputs)
    if people.why_not:
        return scores
    by_grades = [name for name in scores.metrics if _is_by_grades(name)]
    if not by_grades:
        return scores
    judged = score_runs(people.judged, runs, by_grades, undefined=undefined, inputs=inputs)
    both = zip(scores.runs, judged.runs, strict=True)
    found = [
        replace(run, judged=JudgedValues(people.is_people, other.values)) for run, other in both
    ]
    return replace(scores, runs=tuple(found))


def _is_by_grades(name: str) -> bool:
    return answering_metric(name) is None and parse(name).kind != "graph"


def compare_with_first(scores: Scores) -> tuple[RunComparison, ...]:
    """Compare each later run with the first, query by query, on every metric.

    The p-values of the paired t-tests are corrected together by Holm's method.
    """
    first, *others = scores.runs
    pairs = [(run, metric) for run in others for metric in scores.metrics]
    comparisons = [
        compared(
            run.values[metric],
            first.values[metric],
            _labels(run, first, metric),
            most=largest_difference([metric]),
            seed=SEED,
            resamples=0,
        )
        for run, metric in pairs
    ]
    adjusted = correct_holm([comparison.p_value for comparison in comparisons])
    return tuple(
        RunComparison(
            run=run.name,
            against=first.name,
            metric=metric,
            comparison=comparison.of_a_cost() if is_better_lower(metric) else comparison,
            adjusted_p=None if np.isnan(p_value) else float(p_value),
        )
        for (run, metric), comparison, p_value in zip(pairs, comparisons, adjusted, strict=True)
    )


def _labels(run: RunScore, first: RunScore, metric: str) -> Labels | None:
    """Return whose grades the values of a metric are by; None where there is one kind only."""
    both = run.judged, first.judged
    if both[0] is None or both[1] is None or metric not in both[0].values:
        return None
    return Labels(both[0].is_people, both[0].values[metric], both[1].values[metric])


def _parsed(
    names: Sequence[str], query_ids: Sequence[str], inputs: ScoringInputs
) -> dict[str, Metric]:
    problems: list[Problem] = []
    parsed = {}
    for name in names:
        try:
            parsed[name] = answering_metric(name) or parse(name)
        except MetricError as error:
            ours = _our_name(name)
            message = f"unknown metric {name!r}; did you mean {ours!r}?"
            problems += [Problem(message)] if ours else error.problems
            continue
        problems += inputs.problems(parsed[name], query_ids)
    if problems:
        raise MetricError(problems=problems)
    return parsed


def _our_name(name: str) -> str:
    """Return our name of a metric of trec_eval or ir-measures, or an empty string."""
    for pattern, ours in _OTHER_NAMES:
        found = re.fullmatch(pattern, name)
        if found:
            return found.expand(ours)
    return ""


def _check_overlap(qrels: Grades, runs: Mapping[str, Mapping[str, Answer]]) -> None:
    problems = [
        Problem(
            f"the run {name!r} shares no query with the judgements, so there is nothing to score: "
            f"its queries are {_some(run)}; the judgements' are {_some(qrels)}"
        )
        for name, run in runs.items()
        if not qrels.keys() & run.keys()
    ]
    refuse(problems)


def _some(ids: Mapping[str, object]) -> str:
    shown = ", ".join(repr(id_) for id_, _ in zip(ids, range(3), strict=False))
    return f"{shown}, …" if len(ids) > 3 else shown


def _unjudged_share(qrels: Grades, run: Mapping[str, Answer]) -> float | None:
    query_ids = [query for query in qrels if query in run]
    tops = top_documents(query_ids, [run[query] for query in query_ids], depth=UNJUDGED_DEPTH)
    retrieved = sum(len(top) for top in tops)
    unjudged = sum(
        document not in qrels[query]
        for query, top in zip(query_ids, tops, strict=True)
        for document in top
    )
    return unjudged / retrieved if retrieved else None


def remarks_of(scores: Scores) -> list[str]:
    """Return what a reader must know before believing the means."""
    remarks = []
    for run in scores.runs:
        if run.unjudged_share == 1.0:
            remarks.append(
                f"{run.name}: no document in any top 10 is judged; are the document ids of the "
                "same kind in both files?"
            )
        elif run.unjudged_share is None:
            remarks.append(f"{run.name}: nothing was retrieved for any judged query")
    for metric in scores.metrics:
        counts = sorted({run.count(metric) for run in scores.runs})
        if counts != [scores.defined]:
            only = " only" if counts[0] < scores.defined else ""
            remarks.append(f"{metric} is defined for {' or '.join(map(str, counts))} queries{only}")
    costs = [metric for metric in scores.metrics if is_better_lower(metric)]
    remarks += [
        f"{run.name}: {len(run.missing)} missing queries cost nothing, which makes "
        f"{', '.join(costs)} look good"
        for run in scores.runs
        if costs and run.missing
    ]
    return remarks


def sentence(comparisons: Sequence[RunComparison]) -> str:
    """Say in words what the comparisons of one run show; the first metric comes first."""
    primary, *others = comparisons
    result = primary.comparison
    pair = f"{primary.run} against {primary.against}"
    if result.interval is None or result.mean_difference is None or primary.adjusted_p is None:
        return f"{pair}: {result.remark or 'no test was possible'}."
    low, high = result.interval
    corrected = (
        f"p = {_shown_p(primary.adjusted_p)} after Holm's correction"
        if primary.adjusted_p != result.p_value
        else f"p = {_shown_p(primary.adjusted_p)}"
    )
    figures = (
        f"{result.mean_difference:+.4f}, 95 % interval {low:+.4f} to {high:+.4f}, d_z "
        f"{figure(result.effect_size, '+.2f')}, {corrected}; "
        f"better on {in_queries(result.wins)}, equal on {result.ties}, worse on {result.losses}"
    )
    if primary.is_significant:
        verdict = "higher" if result.mean_difference > 0 else "lower"
        words = f"{primary.run} is {verdict} than {primary.against} on {primary.metric} ({figures})"
    else:
        words = f"{pair}: no difference shown on {primary.metric} ({figures}){_needed(result)}"
    if result.remark:
        words += f"; {result.remark}"
    told = [f"{words}."]
    if result.judge is not None:
        told.append(by_judge(asdict(result.judge)))
    return " ".join([*told, _others(others)]).rstrip()


def _needed(result: PairedComparison) -> str:
    difference, deviation = result.mean_difference, result.standard_deviation
    if not difference or not deviation:
        return ""
    needed = queries_needed(difference, deviation)
    if needed <= result.n:  # enough for one test; it was the correction that took it away
        return ""
    if needed > MOST_TIMES * result.n:
        return "; more queries will hardly show one"
    return f"; a true difference of that size would take about {needed:,} queries to show"


def _others(others: Sequence[RunComparison]) -> str:
    if not others:
        return ""
    higher = [o.metric for o in others if o.is_significant and _difference(o) > 0]
    lower = [o.metric for o in others if o.is_significant and _difference(o) < 0]
    same = [o.metric for o in others if not o.is_significant]
    parts = [
        f"{label}: {', '.join(names)}"
        for label, names in (("higher", higher), ("lower", lower), ("not shown to differ", same))
        if names
    ]
    return f"Other metrics: {'; '.join(parts)}."


def _difference(one: RunComparison) -> float:
    return one.comparison.mean_difference or 0.0


def _shown_p(p_value: float) -> str:
    return "under 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"
