"""The verdict: is the winner really better than what runs today? One sentence to act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from tuner.core.rankings import FloatArray
from tuner.core.trial import Params
from tuner.stats import (
    GroupComparison,
    NonInferiority,
    PairedComparison,
    compare_paired,
    non_inferior_quantile,
    non_inferiority,
    per_group,
    queries_needed,
)
from tuner.study.looks import EarlierLooks

Outcome = Literal["deploy", "keep the baseline", "not enough queries"]

ALPHA = 0.05
# A difference below this is not worth a deployment, unless the configuration says otherwise.
MIN_EFFECT = 0.01
# With fewer queries, or where fewer differ, 95 % intervals were found to cover less than 94 % for a
# good part of the pairs (experiments/statistics/README.md).
FEWEST_QUERIES = 50
FEWEST_THAT_DIFFER = 20

WINNER = "the winner"
HELD_OUT = "held-out queries"


@dataclass(frozen=True)
class Guardrail:
    """A metric that the winner must not make much worse.

    Exactly one of the bounds is given. Metrics in [0, 1] are bounded by an absolute change; times
    and tokens (``is_relative``) by a share of the baseline's value. A name that ends in ``p95_ms``
    compares that quantile, any other the mean.
    """

    metric: str
    max_increase: float | None = None
    max_decrease: float | None = None
    is_relative: bool = False

    def test(
        self, winner: FloatArray, baseline: FloatArray, *, alpha: float, seed: int
    ) -> NonInferiority:
        """Test that the winner is worse by less than the margin, on the same queries."""
        higher_is_better = self.max_increase is None
        margin = self.max_decrease if self.max_increase is None else self.max_increase
        quantile = _quantile_of(self.metric)
        if quantile is None:
            return non_inferiority(
                winner,
                baseline,
                margin=margin or 0.0,
                higher_is_better=higher_is_better,
                is_relative=self.is_relative,
                alpha=alpha,
            )
        return non_inferior_quantile(
            winner,
            baseline,
            quantile=quantile,
            margin=margin or 0.0,
            higher_is_better=higher_is_better,
            seed=seed,
            is_relative=self.is_relative,
            alpha=alpha,
        )


@dataclass(frozen=True)
class Verdict:
    """What to do, and why.

    Attributes:
        outcome: ``"deploy"``, ``"keep the baseline"`` or ``"not enough queries"``.
        sentence: the same for people, with the difference and its interval.
        comparison: winner against baseline in the composite, on the held-out queries.
        guardrails: each guard-rail's test by metric.
        by_type: the comparison within each query type, where there are several.
        more_queries: how many more would show ``difference_to_show``; None where that is moot.
        looks: how often these queries, or a tenth of them and more, had decided before.
        seen_before: how many of these queries any earlier verdict was given on.
    """

    outcome: Outcome
    sentence: str
    winner: Params
    baseline: Params
    comparison: PairedComparison
    guardrails: Mapping[str, NonInferiority] = field(default_factory=dict)
    by_type: tuple[GroupComparison, ...] = ()
    more_queries: int | None = None
    difference_to_show: float | None = None
    looks: int = 0
    seen_before: int = 0
    run_shift: float = 0.0

    def to_record(self) -> dict[str, Any]:
        """Return the verdict as a JSON-ready mapping."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Measured:
    """One configuration on the held-out queries: values by metric, each of shape (queries,)."""

    params: Params
    composite: FloatArray
    metrics: Mapping[str, FloatArray] = field(default_factory=dict)


def composite_values(
    per_query: Mapping[str, FloatArray], weights: Mapping[str, float]
) -> FloatArray:
    """Return each query's weighted mean of metrics, NaN where one of them is undefined.

    Its mean over queries is the composite of the objective, before any price.
    """
    total = sum(weights.values())
    values = [weight * np.asarray(per_query[name]) for name, weight in weights.items() if weight]
    result: FloatArray = np.sum(values, axis=0) / total
    return result


def decide(
    winner: Measured,
    baseline: Measured,
    *,
    query_types: Sequence[str] = (),
    guardrails: Sequence[Guardrail] = (),
    alpha: float = ALPHA,
    min_effect: float = MIN_EFFECT,
    looks: EarlierLooks | None = None,
    called: str = WINNER,
    where: str = HELD_OUT,
    run_shift: float = 0.0,
    seed: int = 0,
    permutations: int = 9_999,
    resamples: int = 9_999,
) -> Verdict:
    """Decide between two configurations measured on the same held-out queries.

    *Deploy*: the winner is better (two-sided paired t-test under ``alpha``) and no guard-rail is in
    doubt. *Keep the baseline*: it is the better one, or a guard-rail is in doubt, or the winner
    cannot be better by ``min_effect`` or more. Otherwise there are *not enough queries*, and it
    says how many more would show the difference that was seen (at least ``min_effect``).
    A guard-rail whose bound the winner exceeds on these queries keeps the baseline in any case.
    ``called`` names the winner in the sentence, ``where`` the queries. ``run_shift`` is by how much
    the composite of one configuration moved when it was asked twice: two configurations that are
    asked once each differ by that much at random, so it is a standard error of their difference,
    added to that of the queries. ``permutations`` and
    ``resamples`` go to ``compare_paired``; 0 saves most of the time and alters no outcome.
    """
    comparison = compare_paired(
        winner.composite,
        baseline.composite,
        seed=seed,
        confidence=1.0 - alpha,
        further_error=run_shift,
        permutations=permutations,
        resamples=resamples,
    )
    tests = {
        guard.metric: guard.test(
            winner.metrics[guard.metric], baseline.metrics[guard.metric], alpha=alpha, seed=seed
        )
        for guard in guardrails
    }
    doubtful = [name for name, test in tests.items() if not test.is_non_inferior]
    exceeded = [name for name, test in tests.items() if (test.loss or 0.0) > test.margin]
    groups = (
        per_group(
            winner.composite,
            baseline.composite,
            query_types,
            seed=seed,
            permutations=permutations,
            resamples=resamples,
        )
        if len(set(query_types)) > 1
        else ()
    )
    outcome, reason, more, to_show = _outcome(
        comparison,
        doubtful,
        exceeded,
        winner.params == baseline.params,
        alpha=alpha,
        min_effect=min_effect,
    )
    return Verdict(
        outcome=outcome,
        sentence=(
            f"{outcome.capitalize()}: "
            f"{reason.replace(WINNER, called).replace(HELD_OUT, where)}"
            f"{_left_out(comparison, len(winner.composite))}"
            f"{_few_queries(comparison)}{_moving(run_shift)}{_second_look(looks)}"
        ),
        winner=winner.params,
        baseline=baseline.params,
        comparison=comparison,
        guardrails=tests,
        by_type=groups,
        more_queries=more,
        difference_to_show=to_show,
        looks=0 if looks is None else looks.count,
        seen_before=0 if looks is None else looks.seen,
        run_shift=run_shift,
    )


def _outcome(
    comparison: PairedComparison,
    doubtful: Sequence[str],
    exceeded: Sequence[str],
    is_same: bool,
    *,
    alpha: float,
    min_effect: float,
) -> tuple[Outcome, str, int | None, float | None]:
    difference, interval = comparison.mean_difference, comparison.interval
    if is_same:
        return "keep the baseline", "no configuration did better than it.", None, None
    if comparison.interval_kind == "constant" and difference == 0.0:
        return "keep the baseline", f"{comparison.remark}.", None, None
    if difference is None or interval is None or comparison.p_value is None:
        why = comparison.remark or "too few queries have a value from both"
        return "not enough queries", f"{why}.", None, None
    seen = (
        f"{difference:+.3f} in the composite on {comparison.n} {HELD_OUT} "
        f"({100 * (1 - alpha):g} % interval {interval[0]:+.3f} to {interval[1]:+.3f})"
    )
    is_clear = comparison.p_value < alpha
    if exceeded and not (is_clear and difference < 0):
        reason = f"the winner differs by {seen}, but {' and '.join(exceeded)} broke the guard-rail."
        return "keep the baseline", reason, None, None
    if is_clear and difference > 0 and interval[1] < min_effect:
        reason = f"the winner is better by {seen}, less than the {min_effect:g} that would matter."
        return "keep the baseline", reason, None, None
    if is_clear and difference > 0 and not doubtful:
        check = f" ({comparison.remark})" if comparison.remark else ""
        return "deploy", f"the winner is better by {seen}{check}.", None, None
    if is_clear and difference > 0:
        reason = (
            f"the winner gains {seen}, but {' and '.join(doubtful)} could not be shown to stay "
            "within the guard-rail."
        )
        return "keep the baseline", reason, None, None
    if is_clear:
        return "keep the baseline", f"the winner is worse by {seen}.", None, None
    if interval[1] < min_effect:
        reason = f"the winner differs by {seen}, less than the {min_effect:g} that would matter."
        return "keep the baseline", reason, None, None
    to_show = max(difference, min_effect)
    deviation = comparison.standard_deviation or 0.0
    more = max(queries_needed(to_show, deviation, alpha=alpha) - comparison.n, 1)
    reason = (
        f"the winner differs by {seen}, which may be chance; about {more} more queries would show "
        f"a difference of {to_show:.3f}."
    )
    return "not enough queries", reason, more, to_show


def _left_out(comparison: PairedComparison, asked: int) -> str:
    """Say how many queries a mean of the composite does not stand on."""
    lacking = asked - comparison.n
    if not lacking:
        return ""
    return f" ({lacking} of the {asked} queries lack a metric of the composite and are left out.)"


def _few_queries(comparison: PairedComparison) -> str:
    """Warn of an interval that rests on a handful of queries: it covers less than it promises."""
    if comparison.interval_kind != "t":
        return ""
    differ = comparison.wins + comparison.losses
    if differ < FEWEST_THAT_DIFFER:
        few = f"Only {differ} of the queries differ"
    elif comparison.n < FEWEST_QUERIES:
        few = f"There are fewer than {FEWEST_QUERIES} queries"
    else:
        return ""
    return f" ({few}: the truth lies outside such an interval more often than it promises.)"


def _moving(run_shift: float) -> str:
    if run_shift == 0.0:
        return ""
    return (
        f" (Asked twice, the same configuration differed from itself by {run_shift:.4f}: "
        "the interval allows for that.)"
    )


def _second_look(looks: EarlierLooks | None) -> str:
    if looks is None or looks.seen == 0:
        return ""
    some = "All" if looks.seen == looks.queries else f"{looks.seen} of the"
    times = "once" if looks.count == 1 else f"{looks.count} times"
    counted = (
        f"These queries have decided {times} before: every further look makes a false winner more "
        "likely; hold out fresh queries for a decision that matters."
        if looks.count
        else "That is too few to count as a further look."
    )
    return (
        f" ({some} {looks.queries} held-out queries were already used for a verdict, last on "
        f"{looks.last_date} by the study {looks.last_study}. {counted})"
    )


def _quantile_of(metric: str) -> float | None:
    """Return the quantile that a metric's name speaks of: ``latency_p95_ms`` -> 0.95."""
    for part in metric.split("_"):
        if part.startswith("p") and part[1:].isdigit():
            return int(part[1:]) / 100.0
    return None
