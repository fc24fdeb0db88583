"""The verdict: is the winner really better than what runs today? One sentence to act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist
from typing import Any

from tuner.core.rankings import FloatArray
from tuner.core.study_record import is_clear
from tuner.core.trial import Params
from tuner.stats import (
    GroupComparison,
    Labels,
    NonInferiority,
    PairedComparison,
    non_inferior_quantile,
    non_inferiority,
    non_inferiority_with_judge,
)
from tuner.verdict.as_one import Together, as_one, by_type, caveat_of
from tuner.verdict.by_judge import compared, labels_of
from tuner.verdict.caveats import caveat_of_rare_losses, caveats
from tuner.verdict.looks import EarlierLooks
from tuner.verdict.measured import Measured
from tuner.verdict.outcome import Evidence, Price, Rail, rule
from tuner.verdict.ruling import THE_WINNER, Caveat, CaveatKind, Decided, Names, Reason, Ruling
from tuner.verdict.words import tell

ALPHA = 0.05
# A difference below this is not worth a deployment, unless the configuration says otherwise.
MIN_EFFECT = 0.01


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
        self,
        winner: FloatArray,
        baseline: FloatArray,
        *,
        alpha: float,
        seed: int,
        labels: Labels | None = None,
    ) -> NonInferiority:
        """Test that the winner is worse by less than the margin, on the same queries.

        ``labels`` say by whose grades the values are, where a judge's count.
        """
        if labels is not None and not self.is_relative:
            return non_inferiority_with_judge(
                winner,
                baseline,
                labels,
                margin=self.max_increase or self.max_decrease or 0.0,
                higher_is_better=self.max_increase is None,
                alpha=alpha,
            )
        quantile = _quantile_of(self.metric)
        test = (
            non_inferiority
            if quantile is None
            else partial(non_inferior_quantile, quantile=quantile, seed=seed)
        )
        return test(
            winner,
            baseline,
            margin=self.max_increase or self.max_decrease or 0.0,
            higher_is_better=self.max_increase is None,
            is_relative=self.is_relative,
            alpha=alpha,
        )


@dataclass(frozen=True)
class Verdict(Decided):
    """What to do, and why.

    Attributes:
        winner, baseline: their parameters.
        comparison: winner against baseline in the composite, on the held-out queries.
        guardrails: each guard-rail's test by metric.
        by_type: the comparison within each query type, where there are several.
        price: winner against baseline in the objective, and what each costs; None without a price
            that is known by query.
        looks: how often these queries, or a tenth of them and more, were looked at before.
        seen_before: how many of these queries any earlier look has asked.
    """

    winner: Params
    baseline: Params
    comparison: PairedComparison
    guardrails: Mapping[str, NonInferiority] = field(default_factory=dict)
    by_type: tuple[GroupComparison, ...] = ()
    price: Price | None = None
    looks: int = 0
    seen_before: int = 0
    run_shift: float = 0.0

    def to_record(self) -> dict[str, Any]:
        """Return the verdict as a JSON-ready mapping."""
        return {**super().to_record(), "effect_size": self.comparison.effect_size}


@dataclass(frozen=True)
class Widened:
    """By how much intervals are widened for differences that depend on each other; 1: not at all.

    The factors of ``tuner.stats.widened_by``.
    """

    composite: float = 1.0
    objective: float = 1.0


INDEPENDENT = Widened()


def decide(
    winner: Measured,
    baseline: Measured,
    *,
    query_types: Sequence[str] = (),
    together: Together | None = None,
    guardrails: Sequence[Guardrail] = (),
    alpha: float = ALPHA,
    min_effect: float = MIN_EFFECT,
    looks: EarlierLooks | None = None,
    names: Names = THE_WINNER,
    held_out_share: float | None = None,
    largest: float | None = None,
    run_shift: float = 0.0,
    widened: Widened = INDEPENDENT,
    seed: int = 0,
    draws: int = 9_999,
) -> Verdict:
    """Decide between two configurations measured on the same held-out queries.

    *Deploy*: the winner is better in the composite (two-sided paired t-test under ``alpha``, and by
    ``min_effect`` as far as the interval can tell) and no guard-rail is in doubt. Or, where the
    objective has a price: its composite is not worse by ``min_effect`` or more (the interval's
    lower end), it costs less, and its objective is better by the same test.
    *Keep the baseline*: it is the better one, or a guard-rail is in doubt, or the winner cannot be
    better by ``min_effect`` or more, or probably is not, since so many queries had shown it.
    Otherwise there are *not enough queries*, and it says how many more would show the difference
    that was seen (at least ``min_effect``) with 80 % power, unless that is ten times as many or
    nothing speaks for the winner.
    A guard-rail whose bound the winner exceeds on these queries keeps the baseline in any case.
    ``together``, shape (queries,), has the same number for queries that count as one, since they
    depend on each other: copies of one text, or a group. ``n`` of each comparison is then how many
    such sets there are.
    ``names`` are for the sentence. Of ``held_out_share`` of all queries it says how many to label.
    ``largest`` is the most that two composites can differ by, None where nobody knows.
    Where people graded only some of the queries, and a judge all of them (``Measured.judge``), both
    count, and how many more queries would tell is said of people's.
    ``run_shift`` is by how much the composite of one configuration moved when it was asked twice:
    two configurations that are asked once each differ by that much at random, so it is a standard
    error of their difference, added to that of the queries. ``widened`` is for differences that are
    not independent, as where each part of the queries meets a winner of its own. ``draws`` are the
    permutations and resamples of ``compare_paired``; 0 saves most of the time and alters no
    outcome.
    """
    drawn = {"seed": seed, "permutations": draws, "resamples": draws}
    groups = by_type(winner, baseline, query_types, together, largest=largest, **drawn)
    alike = [] if together is None else caveat_of(together, names.queries)
    if alike and together is not None:
        winner, baseline = as_one(winner, baseline, together)
    by_judge = partial(labels_of, winner.judge, baseline.judge)
    comparison = compared(
        winner.composite,
        baseline.composite,
        by_judge("composite"),
        confidence=1.0 - alpha,
        further_error=run_shift,
        widened=widened.composite,
        most=largest,
        **drawn,
    )
    tests = {
        guard.metric: guard.test(
            winner.metrics[guard.metric],
            baseline.metrics[guard.metric],
            alpha=_stricter(alpha, widened.composite),
            seed=seed,
            labels=by_judge(guard.metric),
        )
        for guard in guardrails
    }
    price = _price(
        winner,
        baseline,
        alpha=alpha,
        run_shift=run_shift,
        widened=widened.objective,
        drawn=drawn,
    )
    asked = len(winner.composite) if winner.judge is None else int(winner.judge.is_people.sum())
    evidence = Evidence(
        comparison,
        price,
        rails={guard.metric: Rail(tests[guard.metric], guard.is_relative) for guard in guardrails},
        asked=asked,
        run_shift=run_shift,
        held_out_share=held_out_share,
        widened=widened.composite,
    )
    ruling = (
        Ruling("keep the baseline", Reason.SAME)
        if winner.params == baseline.params
        else rule(evidence, alpha=alpha, min_effect=min_effect)
    )
    rare: tuple[Caveat, ...] = ()
    if ruling.outcome == "deploy" and ruling.reason is Reason.BETTER and winner.judge is None:
        differences = winner.composite - baseline.composite
        rare = caveat_of_rare_losses(differences, alpha, names.queries)
    found = (
        *_price_caveats(ruling, evidence, alpha),
        *caveats(
            comparison,
            asked=asked,
            alpha=alpha,
            run_shift=run_shift,
            # Two that are the same do not differ, however often anybody looked.
            looks=None if ruling.reason is Reason.SAME else looks,
            worse_on=_worse_on(groups) if ruling.outcome == "deploy" else (),
            queries=names.queries,
        ),
        *alike,
        *rare,
    )
    return Verdict(
        ruling=ruling,
        told=tell(ruling, found, names),
        caveats=found,
        winner=winner.params,
        baseline=baseline.params,
        comparison=comparison,
        guardrails=tests,
        by_type=groups,
        price=price,
        looks=0 if looks is None else looks.count,
        seen_before=0 if looks is None else looks.seen,
        run_shift=run_shift,
    )


def _stricter(alpha: float, widened: float) -> float:
    """Return the level at which a bound is as wide as one at ``alpha`` that is widened."""
    normal = NormalDist()
    return 1.0 - normal.cdf(widened * normal.inv_cdf(1.0 - alpha)) if widened > 1.0 else alpha


def _price_caveats(ruling: Ruling, evidence: Evidence, alpha: float) -> list[Caveat]:
    """Return what weakens a deployment: its price, or figures without any spread."""
    if ruling.outcome != "deploy":
        return []
    price, found = evidence.price, []
    if ruling.reason is Reason.BETTER and price is not None and price.is_worse:
        costs = {"costs": price.shown_costs(), "objective": price.figures(), "alpha": alpha}
        found.append(Caveat(CaveatKind.COSTS_MORE, costs))
    judged = evidence.composite
    if ruling.reason is Reason.CHEAPER and price is not None:
        judged = price.objective
    if judged.remark:
        found.append(Caveat(CaveatKind.NO_SPREAD, {"remark": judged.remark}))
    return found


def _worse_on(groups: Sequence[GroupComparison]) -> list[str]:
    """Name the query types that clearly lose, corrected for the number of types."""
    return [
        one.group
        for one in groups
        if is_clear(one.adjusted_p) and (one.comparison.mean_difference or 0.0) < 0
    ]


def _price(
    winner: Measured,
    baseline: Measured,
    *,
    alpha: float,
    run_shift: float,
    widened: float,
    drawn: Mapping[str, int],
) -> Price | None:
    if winner.objective is None or baseline.objective is None:
        return None
    objective = compared(
        winner.objective,
        baseline.objective,
        labels_of(winner.judge, baseline.judge, "objective"),
        confidence=1.0 - alpha,
        further_error=run_shift,
        widened=widened,
        **drawn,
    )
    costs = {name: (winner.costs[name], baseline.costs[name]) for name in winner.costs}
    return Price(objective, costs)


def _quantile_of(metric: str) -> float | None:
    """Return the quantile that a metric's name speaks of: ``latency_p95_ms`` -> 0.95."""
    for part in metric.split("_"):
        if part.startswith("p") and part[1:].isdigit():
            return int(part[1:]) / 100.0
    return None
