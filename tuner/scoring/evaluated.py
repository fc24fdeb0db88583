"""One configuration on a part of the queries: every figure, and for how many queries each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.calls import EVALUATION
from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.files import write_csv
from tuner.core.policy import Policy
from tuner.core.rankings import FloatArray
from tuner.core.trial import Outcome
from tuner.evaluation.evaluator import metric_problems
from tuner.evaluation.objective import Objective, composite_values
from tuner.evaluation.system_metrics import SYSTEM_METRICS
from tuner.metrics import at_grades, listed, mean_defined
from tuner.run.assembly import Assembly
from tuner.run.judge import Choice, key_of, look
from tuner.stats import mean_with_judge
from tuner.verdict.looks import EarlierLooks


@dataclass(frozen=True)
class Evaluated:
    """What one configuration is worth.

    Attributes:
        figures: objective, composite, violation, and every metric; NaN where one is undefined.
        defined: for how many queries each metric is defined, and all metrics of the composite.
        defined_queries: the same by metric, as the evaluator knows it beforehand.
        looks: of the held-out queries, where some took part, and ``remarks``, what to know of them.
        calls: how many queries were asked, by purpose.
    """

    choice: Choice
    queries: tuple[Query, ...]
    outcome: Outcome
    figures: Mapping[str, float]
    defined: Mapping[str, int]
    defined_queries: int
    looks: EarlierLooks | None
    remarks: Sequence[str]
    calls: Mapping[str, int]

    def to_record(self) -> dict[str, Any]:
        """Return it as a JSON-ready mapping."""
        return {
            "params": _plain(self.choice),
            "queries": len(self.queries),
            "defined_queries": self.defined_queries,
            "metrics": {n: None if value != value else value for n, value in self.figures.items()},
            "defined": dict(self.defined),
            "holdout_looks": None if self.looks is None else asdict(self.looks),
            "queries_asked": dict(self.calls),
        }

    def write_queries(self, path: Path) -> None:
        """Write a row for each query, an undefined value as an empty cell.

        Raises:
            InputError: the file cannot be written.
        """
        per_query = self.outcome.per_query
        rows: list[tuple[str, ...]] = [("query_id", "query_type", "difficulty", *per_query, "text")]
        for row, query in enumerate(self.queries):
            values = (metric[row] for metric in per_query.values())
            shown = ["" if value != value else f"{value:.6g}" for value in values]
            rows.append((query.id, query.query_type, query.difficulty, *shown, query.text))
        try:
            write_csv(path, rows)
        except OSError as error:
            raise InputError(f"--per-query {path}: cannot be written: {error.strerror}") from error


def with_metrics(assembly: Assembly, written: Sequence[str]) -> Assembly:
    """Let further metrics be measured; of several cut-offs and grades each by itself.

    Raises:
        InputError: one of them does not exist, or needs what the configuration does not say.
    """
    grades = assembly.dataset.qrels.values()
    further = [
        name for one in written for plural in listed(one) for name in at_grades(plural, grades)
    ]
    options = assembly.config.context.options
    problems = [
        problem
        for name in further
        for problem in metric_problems(name, ("--metric",), options=options)
    ]
    if problems:
        raise InputError(problems=problems)
    names = tuple(dict.fromkeys((*assembly.plan.metric_names, *further)))
    return replace(assembly, plan=replace(assembly.plan, metric_names=names))


def evaluate_choice(assembly: Assembly, choice: Choice, part: str) -> Evaluated:
    """Evaluate parameters or a policy on a part of the queries; held-out ones count as a look."""
    queries = assembly.part(part)
    evaluator = assembly.evaluator(queries)
    assembly = assembly.counting(EVALUATION)
    outcome, judged = assembly.evaluate_by_both(choice, queries)
    looks, remarks = None, list[str]()
    if part != "tune" and assembly.holdout_queries:
        runs_dir = Path(assembly.config.study.runs_dir)
        looks = look(runs_dir, assembly, [key_of(assembly, choice)])
        remarks = looks.remarks(runs_dir)
    objective = assembly.plan.objective
    score = objective.score(outcome.metrics)
    figures = {
        "objective": score.objective,
        "composite": score.composite,
        "violation": score.violation,
        **outcome.metrics,
    }
    if judged:
        corrected, told = _by_both(assembly, queries, outcome, judged)
        shift = corrected.get("composite", score.composite) - score.composite
        figures |= {**corrected, "objective": score.objective + shift}
        remarks = [*remarks, *told]
    return Evaluated(
        choice,
        queries,
        outcome,
        figures,
        _defined(outcome, objective),
        evaluator.defined_queries,
        looks,
        remarks,
        assembly.ledger.calls,
    )


def _by_both(
    assembly: Assembly,
    queries: Sequence[Query],
    outcome: Outcome,
    judged: Mapping[str, FloatArray],
) -> tuple[dict[str, float], list[str]]:
    """Return what both kinds of labels together say of each metric, and what to know of that."""
    ids = frozenset[str]() if assembly.people is None else assembly.people.queries
    is_people = np.array([query.id in ids for query in queries], dtype=bool)
    people, others = int(is_people.sum()), int((~is_people).sum())
    if not others:
        return {}, []
    weights = assembly.plan.objective.weights
    values = {**outcome.per_query, "composite": composite_values(outcome.per_query, weights)}
    by_judge = {**outcome.per_query, **judged}
    by_judge["composite"] = composite_values(by_judge, weights)
    found = {
        name: mean
        for name in (*judged, "composite")
        if (mean := mean_with_judge(values[name], by_judge[name], is_people)) is not None
    }
    if not found:
        few = "none" if not people else f"only {people}"
        return {}, [f"people graded {few} of these queries: these are the judge's figures"]
    low, high = found["composite"][1] if "composite" in found else (np.nan, np.nan)
    told = (
        f"people graded {people} of these queries, the judge {others} more: metrics of grades are "
        f"estimates by both (composite: 95 % interval {low:.3f} to {high:.3f})"
    )
    return {name: mean for name, (mean, _) in found.items()}, [told]


def _defined(outcome: Outcome, objective: Objective) -> dict[str, int]:
    values = dict(outcome.per_query)
    for name in outcome.metrics:
        source = SYSTEM_METRICS[name].source if name in SYSTEM_METRICS else name
        if source in values:
            values[name] = values[source]
    counts = {name: mean_defined(values[name])[1] for name in outcome.metrics if name in values}
    if not outcome.per_query:  # a system that measures itself tells means only
        return counts
    composite = composite_values(outcome.per_query, objective.weights)
    return {"composite": mean_defined(composite)[1], **counts}


def _plain(choice: Choice) -> dict[str, Any]:
    """Return parameters as plain data; of a policy those by type, without the rule."""
    if isinstance(choice, Policy):
        record = choice.to_record()
        return {"default": record["default"], "types": record["types"]}
    return dict(choice)
