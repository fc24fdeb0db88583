"""The verdict where no queries were held out: the gain less the search's luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.trial import Trial
from tuner.stats import (
    CorrectedEstimate,
    GroupComparison,
    NonInferiority,
    PairedComparison,
    bootstrap_corrected,
    compare_paired,
    per_group,
)
from tuner.study.more_queries import (
    FEWEST_TO_PLAN,
    POWER_SHOWN,
    confidence,
    in_queries,
    needed,
)
from tuner.study.outcome import Outcome
from tuner.study.price import is_as_good
from tuner.study.verdict import ALPHA, MIN_EFFECT, Measured
from tuner.study.winner import winner_rule

# Among equal configurations 5 % of the searches on 3 queries were deployed, from 10 on at most 1 %
# (experiments/statistics/README.md). Below 10 nobody can tell how far off it may be elsewhere.
FEWEST_QUERIES = FEWEST_TO_PLAN
# Half of fewer queries tells two configurations apart only if they differ grossly, so none are held
# out unless the configuration asks for it.
FEWEST_TO_SPLIT = 60


@dataclass(frozen=True)
class FewQueriesVerdict:
    """What to do where no queries were held out; see ``decide_without_holdout``.

    Attributes:
        outcome: ``"deploy"``, ``"keep the baseline"`` or ``"not enough queries"``.
        sentence: the same for people, with the gain and its interval.
        corrected: the gain over the baseline, less the search's luck; None under 10 queries.
        guardrails: each guard-rail's test by metric, on the queries that chose the winner.
        by_type: winner against baseline in the composite within each query type, on the queries
            that chose the winner, which flatters it.
        more_queries: how many held-out queries would show ``difference_to_show`` with 80 % power.
    """

    outcome: Outcome
    sentence: str
    corrected: CorrectedEstimate | None = None
    guardrails: Mapping[str, NonInferiority] = field(default_factory=dict)
    by_type: tuple[GroupComparison, ...] = ()
    more_queries: int | None = None
    difference_to_show: float | None = None

    def to_record(self) -> dict[str, Any]:
        """Return the verdict as a JSON-ready mapping."""
        return asdict(self)


def decide_without_holdout(
    winner: Measured,
    baseline: Measured,
    gains: FloatArray,
    trials: Sequence[Trial],
    *,
    guardrails: Mapping[str, NonInferiority] | None = None,
    query_types: Sequence[str] = (),
    alpha: float = ALPHA,
    min_effect: float = MIN_EFFECT,
    largest: float | None = None,
    seed: int = 0,
    permutations: int = 9_999,
    resamples: int = 9_999,
) -> FewQueriesVerdict:
    """Decide by the gain over the baseline that the search would have on new queries.

    ``gains`` has shape (trials, queries): each trial's objective less the baseline's. The winner's
    is corrected for having been chosen (BBC-CV, Tsamardinos, Greasidou and Borboudakis 2018) by the
    rule that did choose it (``choose_winner``), applied to each resample. With a price
    (``objective`` is given), a deployment also needs a composite that is not worse by
    ``min_effect`` or more. That, the guard-rails and the query types are judged on the queries that
    were tuned on, which flatters the winner.
    Under 10 queries there are never enough, and an interval without any width is no certainty.
    """
    tests = dict(guardrails or {})
    queries = _complete(gains)
    is_baseline = winner.params == baseline.params
    if queries < FEWEST_QUERIES:
        return FewQueriesVerdict("not enough queries", _too_few(queries, is_baseline), None, tests)
    if is_baseline:
        return FewQueriesVerdict(
            "keep the baseline", "Keep the baseline: no configuration did better than it."
        )
    rows = np.flatnonzero(~np.isnan(gains).all(axis=1))
    known = [trials[row] for row in rows.tolist()]
    corrected = bootstrap_corrected(
        gains[rows],
        seed=seed,
        choose=winner_rule(known),
        winner=next(row for row, trial in enumerate(known) if trial.params == winner.params),
        confidence=1.0 - alpha,
    )
    draws = {"seed": seed, "permutations": permutations, "resamples": resamples}
    composite = compare_paired(
        winner.composite, baseline.composite, confidence=1.0 - alpha, **draws
    ).within(largest)
    seen = _seen(corrected, alpha, winner.objective is not None)
    outcome, reason = _outcome(
        corrected,
        [name for name, test in tests.items() if not test.is_non_inferior],
        None if winner.objective is None else composite,
        min_effect,
    )
    plan, total, to_show = "", None, None
    if outcome == "not enough queries":
        to_show, deviation = _open(winner, baseline, corrected, composite, min_effect)
        total = needed(to_show, deviation, alpha=alpha) if min(deviation, to_show) > 0.0 else None
        is_loss_open = winner.objective is not None and corrected.interval[0] > 0.0
        shown = "rule that out" if is_loss_open else f"show a difference of {to_show:.3f}"
        plan = "" if total is None else _plan(total, shown, queries)
        to_show = None if total is None else to_show
    return FewQueriesVerdict(
        outcome,
        f"{outcome.capitalize()}: {seen}{reason}{plan}.",
        corrected,
        tests,
        per_group(winner.composite, baseline.composite, query_types, largest=largest, **draws)
        if len(set(query_types)) > 1
        else (),
        total,
        to_show,
    )


def _outcome(
    corrected: CorrectedEstimate,
    doubtful: Sequence[str],
    composite: PairedComparison | None,
    min_effect: float,
) -> tuple[Outcome, str]:
    low, high = corrected.interval
    if doubtful:
        reason = f", but {' and '.join(doubtful)} could not be shown to stay within the guard-rail"
        return "keep the baseline", reason
    if low == high:
        return "not enough queries", ", but so few queries without any difference are no certainty"
    if high < min_effect:
        return "keep the baseline", f", less than the {min_effect:g} that would matter"
    if low <= 0.0:
        return "not enough queries", ", which may be chance"
    if composite is None or is_as_good(composite, min_effect):
        return "deploy", ""
    return "not enough queries", _may_lose(composite, min_effect)


def _may_lose(composite: PairedComparison, min_effect: float) -> str:
    if composite.mean_difference is None or composite.interval is None:
        return f", but whether the composite loses cannot be said: {composite.remark}"
    low, high = composite.interval
    if low > -min_effect:
        differ = composite.wins + composite.losses
        return f", but where the composite of only {differ} differs, rare losses may be absent"
    return (
        f", but the composite differs by {composite.mean_difference:+.3f} (interval {low:+.3f} to "
        f"{high:+.3f}), so that it may be worse by {min_effect:g} or more"
    )


def _seen(corrected: CorrectedEstimate, alpha: float, is_priced: bool) -> str:
    low, high = corrected.interval
    return (
        f"{_opening(corrected.queries)}; corrected for the search's luck the gain over the "
        f"baseline{' in the objective, with its price,' if is_priced else ''} is "
        f"{corrected.estimate:+.3f} ({confidence(alpha)} interval {low:+.3f} to {high:+.3f}; "
        f"uncorrected {corrected.naive:+.3f})"
    )


def _opening(queries: int) -> str:
    if queries < FEWEST_TO_SPLIT:
        return f"with only {in_queries(queries)} none was held out"
    return f"none of the {queries} queries was held out, as dataset.split.holdout asks"


def _too_few(queries: int, is_baseline: bool) -> str:
    also = "; no configuration did better than the baseline on them" if is_baseline else ""
    return (
        f"Not enough queries: {_opening(queries)}, and under {FEWEST_QUERIES} a gain cannot be "
        f"told from the search's luck{also}. Label {FEWEST_TO_SPLIT} or more, of which half are "
        "held out."
    )


def _plan(total: int, shown: str, queries: int) -> str:
    """Say how many to hold out, and how many to label so that half of all are so many."""
    label = max(2 * total, FEWEST_TO_SPLIT) - queries
    how = (
        f"label about {in_queries(label, 'more queries')} and hold half of all out"
        if label > 0
        else "hold half of these out (dataset.split.holdout: 0.5)"
    )
    return (
        f"; about {in_queries(total, 'held-out queries')} would {shown} with {POWER_SHOWN} power: "
        f"{how}"
    )


def _open(
    winner: Measured,
    baseline: Measured,
    corrected: CorrectedEstimate,
    composite: PairedComparison,
    min_effect: float,
) -> tuple[float, float]:
    """Return what is to be shown, and the spread of the differences that it is shown by.

    The gain in what was tuned for; or, where that is clear, that the composite does not lose.
    """
    if winner.objective is None or baseline.objective is None:
        return max(corrected.estimate, min_effect), composite.standard_deviation or 0.0
    if corrected.interval[0] > 0.0:
        difference = composite.mean_difference or 0.0
        return difference + min_effect, composite.standard_deviation or 0.0
    spread = float(np.nanstd(winner.objective - baseline.objective, ddof=1))
    return max(corrected.estimate, min_effect), spread


def _complete(gains: FloatArray) -> int:
    """Return how many queries have a value from every trial that has any."""
    known = gains[~np.isnan(gains).all(axis=1)]
    return int((~np.isnan(known).any(axis=0)).sum()) if known.size else 0
