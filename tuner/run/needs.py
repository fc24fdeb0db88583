"""What a study may still have to ask: of one trial, and of all that comes after the search."""

from __future__ import annotations

from tuner.core.policy import POLICY
from tuner.core.trial import Params
from tuner.evaluation.system_metrics import (
    PAIRED_QUERIES,
    PAIRED_REPEATS,
    needs_latency,
    timed_queries,
)
from tuner.retrieval.base import Measures
from tuner.retrieval.wrapped.around import is_engine
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.assembly import Assembly
from tuner.run.budget import Need
from tuner.run.inspection import most_inspected


def keeps_answers(assembly: Assembly) -> bool:
    """Say whether answers are kept, as far as that is known: not those of what is very quick."""
    return isinstance(assembly.retriever, Remembered) and assembly.retriever.keeps


def may_keep(assembly: Assembly) -> bool:
    """Say, before a run, whether it may keep answers: any but the engine's, out of memory."""
    return not is_engine(assembly.retriever)


def needed(assembly: Assembly, *, keeps: bool, baseline: Params | None = None) -> Need:
    """Return what a trial, and what comes after the search, may ask at most.

    ``keeps``: what was answered once is not asked again for another purpose. ``baseline`` are the
    parameters of a baseline's trial: what a session before this one was answered to judge it, is
    not asked again. What a system that stops answering is probed with is not in it.
    """
    if isinstance(assembly.retriever, Measures):
        return Need(0, 0)
    names, cost = assembly.plan.metric_names, assembly.config.cost
    tuned, held_out = len(assembly.tune_queries), len(assembly.holdout_queries)
    is_timed = needs_latency(names)
    per_index = float(cost.per_index) if cost is not None and assembly.plan.space.index else 0.0
    verdict = _verdict(assembly, held_out or tuned, keeps=keeps, is_timed=is_timed)
    of_baseline = 0
    if keeps and held_out and assembly.baseline is not None:
        known = _known_of_baseline(assembly, baseline)
        of_baseline, verdict = 2 * held_out - known, verdict - known
    return Need(
        tuned + (timed_queries(tuned) if is_timed else 0),
        verdict + most_inspected(assembly),
        per_index,
        of_baseline,
    )


def _known_of_baseline(assembly: Assembly, baseline: Params | None) -> int:
    """Return how many held-out queries the baseline was answered already, each of two times."""
    retriever, queries = assembly.retriever, assembly.holdout_queries
    if baseline is None or POLICY in baseline or not isinstance(retriever, Remembered):
        return 0
    params = {**assembly.fixed, **baseline}
    return sum(retriever.kept(queries, params, again=again) for again in (False, True))


def _verdict(assembly: Assembly, judged: int, *, keeps: bool, is_timed: bool) -> int:
    """Return how many queries it takes to score and judge two configurations on so many."""
    has_baseline, is_split = assembly.baseline is not None, bool(assembly.holdout_queries)
    by_parts = bool(assembly.parts)
    sides = 2 if has_baseline else 1
    guardrails = assembly.config.verdict.guardrails
    times = any(name.startswith("latency_") for name in guardrails)
    asked = 0
    if is_split:
        asked += sides * (judged + (timed_queries(judged) if is_timed else 0))
    if not has_baseline:
        return asked
    if by_parts:
        asked += 2 * judged  # what was chosen without each part, and the baseline
    if is_split or by_parts:
        asked += judged  # the baseline once more, to see whether the same answer comes twice
    if not keeps and (is_split or guardrails):
        asked += 2 * judged
    if not keeps:
        asked += 2 * judged  # side by side
    if times:
        asked += 2 * (1 + PAIRED_REPEATS * min(judged, PAIRED_QUERIES))
    return asked
