"""The best values of free parameters for each type of query, from answers that trials had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tuner.core import calls
from tuner.core.rankings import FloatArray, IntArray
from tuner.core.trial import Params, Trial
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.free.choice import Table
from tuner.evaluation.free.one_by_one import OneByOne
from tuner.evaluation.free.settings import decided_by_answer
from tuner.retrieval.base import Measures, telling_legs
from tuner.retrieval.free import FreeKnobs
from tuner.run.assembly import Assembly
from tuner.verdict.winner import TypeChoice, shrunk_to_all


def of_their_own(
    assembly: Assembly,
    free: FreeKnobs,
    choices: Sequence[TypeChoice],
    winner: Trial,
    values: Mapping[int, FloatArray],
    *,
    prior_queries: float,
) -> list[tuple[Trial, FloatArray]]:
    """Return, for each type, trials with the free values that are best for its queries.

    They are computed from the answers to the winner and to the trial that was chosen for the type;
    such an answer is taken from the disk where it was kept, else asked for again. One parameter is
    chosen after the other, by what decides between trials too: the mean over the type's queries,
    shrunk towards that over all. Their numbers follow those in ``values``, which holds the
    objective of trials on each tune query; beside each is its own.
    """
    counting = assembly.counting(calls.EVALUATION)
    retriever = counting.retriever
    if isinstance(retriever, Measures):
        return []
    if free.mixing is not None:
        retriever = telling_legs(retriever)
    plan, queries = assembly.plan, assembly.tune_queries
    freely = FreeEvaluator(
        counting.evaluator_over(retriever, queries), plan.objective, plan.space, free
    )
    labels = np.array([query.query_type for query in queries])
    is_known = ~np.isnan(values[winner.number])
    found: list[tuple[Trial, FloatArray]] = []
    for trial, types in _answered(choices, winner):
        answer = _answer(freely, trial)
        own = answer.table([trial.params]).by_query[0]
        for name in types:
            rows = np.flatnonzero((labels == name) & is_known)
            setting = _best(answer, trial.params, rows, prior_queries)
            gained = answer.table([setting]).by_query[0] - own
            number = max(values) + len(found) + 1
            at_it = replace(
                trial,
                number=number,
                params=plan.space.canonical(setting),
                shared_from=trial.evaluated_as,
            )
            found.append((at_it, values[trial.number] + gained))
    return found


def _answered(choices: Sequence[TypeChoice], winner: Trial) -> Iterator[tuple[Trial, list[str]]]:
    """Yield the trials whose answers are looked at, and for which types."""
    trials = {trial.number: trial for trial in (winner, *(choice.trial for choice in choices))}
    for trial in trials.values():
        if trial.profile is not None:
            is_winner = trial.number == winner.number
            yield (
                trial,
                [c.query_type for c in choices if is_winner or c.trial.number == trial.number],
            )


def _answer(freely: FreeEvaluator, trial: Trial) -> OneByOne:
    """Return what one answer to a trial tells of other settings."""
    whole, objective = freely.whole, decided_by_answer(freely.objective)
    asked = freely.asked(trial.asked)
    whole.ready(trial.asked)
    rankings = whole.retriever.retrieve(whole.queries, asked)
    start = {**trial.asked, **freely.profiler_over(whole, trial.asked).to_ask()}
    free = freely.free.at(trial.asked)
    return OneByOne(whole, objective, freely.space, free, rankings, start)


def _best(answer: OneByOne, params: Params, rows: IntArray, prior_queries: float) -> Params:
    """Improve one free parameter after the other, for the queries of a type."""
    setting, free = dict(params), answer.free
    for name in (*free.weights, *free.cutoffs, *free.prefixes, *free.weights):
        values, table = answer.each(name, setting)
        setting[name] = values[_best_place(table, rows, prior_queries)]
    return setting


def _best_place(table: Table, rows: IntArray, prior_queries: float) -> int:
    of_type = table.by_query[:, rows].mean(axis=1)
    of_all = np.nanmean(table.by_query, axis=1)
    score = shrunk_to_all(of_type, of_all, len(rows), prior_queries)
    is_allowed = table.violation <= max(float(table.violation.min()), 0.0)
    return int(np.where(is_allowed, score, -np.inf).argmax())
