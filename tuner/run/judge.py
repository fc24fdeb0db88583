"""Judge a finished search: the winner meets the baseline on queries that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tuner.core import calls
from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.journal import per_query_path, read_per_query
from tuner.core.json_text import digest_of
from tuner.core.policy import Policy
from tuner.core.rankings import FloatArray
from tuner.core.steps import Say
from tuner.core.trial import Outcome, Params, Trial
from tuner.datasets.together import together
from tuner.evaluation.objective import composite_values, paid_metric
from tuner.evaluation.system_metrics import (
    SYSTEM_METRICS,
    largest_difference,
    paired_latency_ms,
)
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.assembly import Assembly
from tuner.stats.pairs import ROUNDING
from tuner.verdict.as_one import as_one
from tuner.verdict.by_judge import ByJudge
from tuner.verdict.few_queries import FewQueriesVerdict, decide_without_holdout
from tuner.verdict.looks import EarlierLooks, count_look
from tuner.verdict.measured import Measured
from tuner.verdict.outcome import Rail
from tuner.verdict.ruling import HELD_OUT, THE_WINNER, Names
from tuner.verdict.verdict import INDEPENDENT, Guardrail, Verdict, Widened, decide

Choice = Params | Policy
# The level of a verdict on a winner and a baseline that have been measured, but not compared yet.
LevelOf = Callable[[Measured, Measured], float]
# Remembers a look at held-out queries, and returns the earlier ones that a verdict is to warn of.
LookAt = Callable[[], EarlierLooks | None]


def guardrails(assembly: Assembly) -> list[Guardrail]:
    """Return the configured guard-rails; times, tokens and counts are bounded by shares."""
    return [
        Guardrail(
            name,
            None if bound.max_increase is None else float(bound.max_increase),
            None if bound.max_decrease is None else float(bound.max_decrease),
            is_relative=name in SYSTEM_METRICS,
        )
        for name, bound in assembly.config.verdict.guardrails.items()
    ]


def utilities(
    assembly: Assembly, journal: Path, trials: Sequence[Trial], *, say: Say
) -> dict[int, FloatArray]:
    """Return each scored trial's objective on each tune query, by trial number.

    Prices of what is known by query (tokens) are paid by query; those of other metrics are the
    same for all queries and paid from the trial's mean. A trial whose file is damaged is left out,
    which is said: it counts by its means.
    """
    found: dict[int, FloatArray] = {}
    damaged: dict[int, InputError] = {}
    for trial in trials:
        if not trial.is_scored:
            continue
        try:
            per_query = read_per_query(journal, trial.evaluated_as)
            if per_query:
                found[trial.number] = _by_query(assembly, journal, trial, per_query)
        except InputError as error:
            damaged[trial.evaluated_as] = error
    for problem in damaged.values():
        say(str(problem))
    return found


def _by_query(
    assembly: Assembly, journal: Path, trial: Trial, per_query: Mapping[str, FloatArray]
) -> FloatArray:
    queries, objective = len(assembly.tune_queries), assembly.plan.objective
    lacking = [name for name in objective.weights if name not in per_query]
    if lacking or any(len(row) != queries for row in per_query.values()):
        what = f"lacks {lacking[0]!r}" if lacking else f"is not of {queries} queries"
        message = f"this file of values by query {what}; trial {trial.number} counts by its means"
        raise InputError(message, file=str(per_query_path(journal, trial.evaluated_as)))
    return objective.by_query(per_query, trial.metrics)


def judge(
    assembly: Assembly,
    winner: Choice,
    baseline: Choice,
    queries: Sequence[Query],
    *,
    look_at: LookAt | None = None,
    names: Names = THE_WINNER,
    level_of: LevelOf | None = None,
    both: tuple[Measured, Measured] | None = None,
    widened: Widened = INDEPENDENT,
) -> Verdict:
    """Compare two configurations on the same queries, and decide; see ``decide``.

    ``both`` are their values where they were measured already; then each is asked no more for them.

    ``look_at`` counts this look at the queries; without answers there is none.
    ``level_of`` takes the place of the configured alpha; ``widened`` is for values of ``both`` that
    depend on each other.
    """
    section = assembly.config.verdict
    if both is None:
        pair = measured_pair(assembly, winner, baseline, queries)
    else:
        pair = _timed(assembly, winner, baseline, queries, both)
    # Two that are the same do not differ, whatever the system does.
    is_moot = both is not None and winner == baseline
    looks = None if look_at is None else look_at()
    return decide(
        *pair,
        query_types=[query.query_type for query in queries],
        together=together(queries),
        guardrails=guardrails(assembly),
        alpha=float(section.alpha) if level_of is None else level_of(*pair),
        min_effect=float(section.min_effect),
        looks=looks,
        names=names,
        held_out_share=len(queries) / len(assembly.dataset.queries)
        # Of people's queries all are held out.
        if names.queries == HELD_OUT and pair[0].judge is None
        else None,
        largest=largest_difference(assembly.plan.objective.weights),
        run_shift=0.0 if is_moot else _run_shift(assembly, baseline, queries, pair[1]),
        widened=widened,
        seed=assembly.config.study.seed,
    )


def _run_shift(
    assembly: Assembly, choice: Choice, queries: Sequence[Query], before: Measured
) -> float:
    """Ask a configuration again, past what is remembered, and return how far its composite moved.

    0 for a system that answers the same every time. What differs query by query is in the paired
    differences already; this is what all queries share, and what more queries would not lessen.
    """
    if isinstance(assembly.retriever, Remembered):
        assembly = replace(assembly, retriever=assembly.retriever.asked_again())
    assembly = assembly.counting(calls.ASKED_TWICE)
    moved = measure(assembly, choice, queries).composite - before.composite
    defined = moved[~np.isnan(moved)]
    if not (np.abs(defined) > ROUNDING).any():
        return 0.0
    return abs(float(defined.mean()))


def judge_without_holdout(
    assembly: Assembly,
    winner: Trial,
    baseline: Trial,
    trials: Sequence[Trial],
    values: Mapping[int, FloatArray],
    journal: Path,
    *,
    level_of: LevelOf | None = None,
) -> FewQueriesVerdict | None:
    """Decide where no queries were held out; None where no values were kept.

    ``trials`` are those that the winner was chosen from, ``values`` their ``utilities``;
    ``level_of`` takes the place of the configured alpha.
    """
    if baseline.number not in values or winner.number not in values or len(values) < 2:
        return None
    section, objective = assembly.config.verdict, assembly.plan.objective

    def kept(trial: Trial) -> Measured:
        return Measured(
            trial.params,
            composite_values(read_per_query(journal, trial.evaluated_as), objective.weights),
            objective=values[trial.number] if any(objective.price.values()) else None,
        )

    both = kept(winner), kept(baseline)
    alpha = float(section.alpha) if level_of is None else level_of(*both)
    alike, tests = together(assembly.tune_queries), {}
    if section.guardrails and winner.params != baseline.params:
        pair = as_one(
            *measured_pair(assembly, winner.params, baseline.params, assembly.tune_queries), alike
        )
        tests = {
            guard.metric: Rail(
                guard.test(
                    pair[0].metrics[guard.metric],
                    pair[1].metrics[guard.metric],
                    alpha=alpha,
                    seed=assembly.config.study.seed,
                ),
                guard.is_relative,
            )
            for guard in guardrails(assembly)
        }
    scored = sorted((one for one in trials if one.number in values), key=lambda one: one.number)
    return decide_without_holdout(
        *both,
        np.stack([values[one.number] - values[baseline.number] for one in scored]),
        scored,
        guardrails=tests,
        query_types=[query.query_type for query in assembly.tune_queries],
        together=alike,
        alpha=alpha,
        min_effect=float(section.min_effect),
        largest=largest_difference(objective.weights),
        seed=assembly.config.study.seed,
    )


def measured_pair(
    assembly: Assembly, winner: Choice, baseline: Choice, queries: Sequence[Query]
) -> tuple[Measured, Measured]:
    """Measure two configurations on the same queries, by turns where a guard-rail is a latency."""
    both = measured_both(assembly, winner, baseline, queries)
    return _timed(assembly, winner, baseline, queries, both)


def measured_both(
    assembly: Assembly, winner: Choice, baseline: Choice, queries: Sequence[Query]
) -> tuple[Measured, Measured]:
    """Ask each side once; once in all where they are the same."""
    assembly = assembly.counting(calls.VERDICT)
    first = measure(assembly, winner, queries)
    return first, first if winner == baseline else measure(assembly, baseline, queries)


def _timed(
    assembly: Assembly,
    winner: Choice,
    baseline: Choice,
    queries: Sequence[Query],
    pair: tuple[Measured, Measured],
) -> tuple[Measured, Measured]:
    """Add to both what a latency's guard-rail compares, where there is one."""
    timed = [g.metric for g in guardrails(assembly) if g.metric.startswith("latency_")]
    if not timed:
        return pair
    assembly = assembly.counting(calls.LATENCY)
    latencies = paired_latency_ms(queries, assembly.answering(winner), assembly.answering(baseline))
    first, second = (
        replace(one, metrics={**one.metrics, **dict.fromkeys(timed, latency)})
        for one, latency in zip(pair, latencies, strict=True)
    )
    return first, second


def measure(assembly: Assembly, choice: Choice, queries: Sequence[Query]) -> Measured:
    """Evaluate parameters or a policy on queries, and keep every query's value."""
    # A latency is one number for all queries, which no paired test can judge: none is timed here.
    outcome, judged = assembly.timeless().evaluate_by_both(choice, queries)
    objective = assembly.plan.objective
    composite = composite_values(outcome.per_query, objective.weights)
    shown: Params = {"policy": choice.told} if isinstance(choice, Policy) else choice
    paid = [paid_metric(name)[0] for name, price in objective.price.items() if price]
    is_known = bool(paid) and all(name in outcome.per_query for name in paid)
    return Measured(
        shown,
        composite,
        outcome.per_query,
        objective.by_query(outcome.per_query) if is_known else None,
        {name: float(outcome.metrics[name]) for name in paid} if is_known else {},
        _by_judge(assembly, queries, outcome, judged, is_known=is_known) if judged else None,
    )


def _by_judge(
    assembly: Assembly,
    queries: Sequence[Query],
    outcome: Outcome,
    judged: Mapping[str, FloatArray],
    *,
    is_known: bool,
) -> ByJudge | None:
    """Return the same values by the judge's grades; None where people graded none of the queries.

    Then these are the judge's values already, and nothing corrects them.
    """
    people, objective = assembly.people, assembly.plan.objective
    if people is None:
        return None
    is_people = np.array([query.id in people.queries for query in queries], dtype=bool)
    if not is_people.any():
        return None
    values = {**outcome.per_query, **judged}
    return ByJudge(
        is_people,
        composite_values(values, objective.weights),
        objective.by_query(values) if is_known else None,
        judged,
    )


def look(
    runs_dir: Path,
    assembly: Assembly,
    configurations: Sequence[str],
    *,
    queries: Sequence[Query] | None = None,
) -> EarlierLooks:
    """Return what looks at the held-out queries there were before, and remember this one.

    Where the queries are cut in parts, all of them decide. ``configurations`` are the keys of what
    is measured on them, see ``key_of``; ``queries`` those that are asked, where they are not all.
    """
    return count_look(
        runs_dir,
        assembly.deciding_queries if queries is None else queries,
        study=assembly.config.study.name,
        dataset=assembly.dataset.name,
        fingerprint=assembly.dataset.fingerprint,
        configurations=configurations,
    )


def key_of(assembly: Assembly, choice: Choice) -> str:
    """Return a short name for a configuration on this data and index, by this objective."""
    hashes = assembly.fingerprints()
    shown = choice.to_record() if isinstance(choice, Policy) else assembly.params(choice)
    known = [shown, *(hashes[name] for name in ("dataset", "retriever", "objective"))]
    return digest_of(known)
