"""Whether the data of a study can tell one configuration from another."""

from __future__ import annotations

from tuner.core.errors import InputError, Problem, refuse
from tuner.evaluation.evaluator import undefined_metrics
from tuner.run.assembly import Assembly
from tuner.verdict.few_queries import FEWEST_TO_SPLIT


def check_can_tune(assembly: Assembly) -> None:
    """Refuse to search by what can tell no configuration from another.

    Raises:
        InputError: the data set has one query, or a metric is undefined for every query of it.
    """
    if assembly.config.dataset is None:
        return
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
