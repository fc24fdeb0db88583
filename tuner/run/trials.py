"""The evaluate function of a study's trials: racing or not, with free parameters or without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tuner.core.calls import TRIALS
from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.evaluation.accounted import Accounted
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.free.raced import FreeRacing
from tuner.evaluation.racing import Racing
from tuner.retrieval.base import Measures, telling_legs
from tuner.retrieval.free import FreeKnobs
from tuner.run.assembly import Assembly


def trial_evaluator(assembly: Assembly, free: FreeKnobs, *, purpose: str = TRIALS) -> Accounted:
    """Make the evaluate function of the trials, over the tune queries.

    ``free`` says which parameters they are not asked with, ``purpose`` what queries count for.

    Raises:
        InputError: a race over the queries of a system that measures itself.
    """
    section, dataset = assembly.config.racing, assembly.config.dataset
    is_own = purpose == TRIALS
    queries = assembly.tune_queries
    counting = assembly.counting(purpose)
    retriever = counting.retriever
    if isinstance(retriever, Measures):
        if section is None:
            return Accounted(counting.evaluator(queries))
        message = "the retriever measures itself, so there are no queries to race over"
        raise InputError(f"{message}; leave it out", key=("racing",))
    if free.mixing is not None:
        retriever = telling_legs(retriever)

    def make(queries: Sequence[Query]) -> Evaluator:
        return replace(counting.evaluator_over(retriever, queries), tells_ranks=True)

    objective = assembly.plan.objective
    freely = FreeEvaluator(make(queries), objective, assembly.plan.space, free)
    if section is None or dataset is None:
        return Accounted(freely if free.names else freely.whole, is_own)
    racing = Racing.build(
        make,
        queries,
        objective,
        shares=section.rungs,
        stop_below=section.stop_below,
        stratify_by=dataset.split.stratify_by,
        seed=assembly.config.study.seed,
    )
    return Accounted(FreeRacing.build(freely, racing, make) if free.names else racing, is_own)
