"""Whether a study can find anything: by its data, and within its budget."""

from __future__ import annotations

from tuner.core.errors import InputError, Problem, refuse
from tuner.core.ledger import Asked
from tuner.core.money import is_passed, total
from tuner.core.spent import least_amount
from tuner.evaluation.evaluator import undefined_metrics
from tuner.retrieval.indexes import indexed_in
from tuner.run.assembly import Assembly
from tuner.run.free import most_checked
from tuner.run.needs import may_keep, needed
from tuner.verdict.few_queries import FEWEST_TO_SPLIT


def check_can_tune(assembly: Assembly) -> None:
    """Refuse to search by what can tell no configuration from another, or with too little to spend.

    Raises:
        InputError: the data set has one query, a metric is undefined for every query of it, or the
            budget does not reach to the verdict of one trial.
    """
    if assembly.config.dataset is None:
        return
    _check_budget(assembly)
    if len(assembly.dataset.queries) < 2:
        raise InputError(
            "the data set has 1 query, by which no configuration can be told from another: at "
            f"least 2 are needed to tune, 10 for a verdict, better {FEWEST_TO_SPLIT} and more",
            file=assembly.dataset.path,
        )
    data, plan = assembly.dataset, assembly.plan
    scored = plan.objective.metric_names
    others = [name for name in plan.metric_names if name not in scored]
    # What is only reported may be undefined for the part of the queries that is tuned on.
    problems = [
        Problem(
            f"metric {name!r} is undefined for all {len(queries)} queries{of_which}: nothing that "
            "it looks for is labelled in the data set; leave the metric out"
        )
        for names, queries, of_which in (
            (scored, assembly.tune_queries, " to tune on"),
            (others, data.queries, ""),
        )
        for name in undefined_metrics(
            names,
            queries,
            data.qrels,
            data.evidences,
            options=assembly.config.context.options,
            scale=data.scale,
        )
    ]
    refuse(problems)


def _check_budget(assembly: Assembly) -> None:
    budget, section = assembly.config.budget, assembly.config.cost
    need = needed(assembly, keeps=may_keep(assembly))
    has_baseline, searches = assembly.baseline is not None, budget.trials != 0
    first = 2 if has_baseline and searches else 1
    # A system that makes itself ready may have been asked already.
    before = assembly.ledger.total.sent + (most_checked(assembly) if searches else 0)
    queries = before + first * need.trial + need.verdict
    parts = [
        *(["what is asked before the search"] if before else []),
        *(["the baseline"] if has_baseline else []),
        *(["one trial"] if first == 2 or not has_baseline else []),
    ]
    what = ", ".join(parts)
    problems = []
    if budget.query_evaluations is not None and budget.query_evaluations < queries:
        message = f"too few: {what} and the verdict ask {queries:,} of this data set"
        problems.append(Problem(message, key=("budget", "query_evaluations")))
    if budget.money is not None and section is not None:
        # What the contexts cost is known when there are some.
        parts_of_it = [section.cost.of(Asked(sent=queries)), need.per_index if searches else 0.0]
        if (indexed := indexed_in(assembly.retriever)) and indexed.new_first is not None:
            parts_of_it.append(float(section.per_index))
        money = total(parts_of_it)
        if is_passed(budget.money, by=money):
            least = least_amount(money)
            message = f"too little: {what} and the verdict cost {least}, contexts not counted"
            problems.append(Problem(message, key=("budget", "money")))
    if problems:
        raise assembly.located(InputError(problems=problems))
