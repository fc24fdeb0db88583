"""The verdict where no queries were held out: the gain less the search's luck."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
)
from tuner.stats.pairs import ROUNDING, is_constant
from tuner.stats.pairs import largest as largest_of
from tuner.stats.power import MOST_TIMES
from tuner.verdict.as_one import Together, as_one, by_type, caveat_of, gains_as_one
from tuner.verdict.measured import Measured
from tuner.verdict.more_queries import FEWEST_TO_PLAN, needed
from tuner.verdict.outcome import FEWEST_THAT_DIFFER, RARE_LOSS, RULE_OF_THREE, Rail, is_as_good
from tuner.verdict.ruling import (
    Caveat,
    CaveatKind,
    Decided,
    Figures,
    Outlook,
    Prospect,
    Reason,
    Ruling,
)
from tuner.verdict.verdict import ALPHA, MIN_EFFECT
from tuner.verdict.winner import winner_rule
from tuner.verdict.words import tell

# Among equal configurations 5 % of the searches on 3 queries were deployed, from 10 on at most 1 %
# (experiments/statistics/README.md). Below 10 nobody can tell how far off it may be elsewhere.
FEWEST_QUERIES = FEWEST_TO_PLAN
# Half of fewer queries tells two configurations apart only if they differ grossly, so none are held
# out unless the configuration asks for it.
FEWEST_TO_SPLIT = 60


@dataclass(frozen=True)
class FewQueriesVerdict(Decided):
    """What to do where no queries were held out; see ``decide_without_holdout``.

    Attributes:
        corrected: the winner's gain over the baseline, less the search's luck; None under 10
            queries.
        effect_size: d_z, that gain in standard deviations of the differences by query.
        guardrails: each guard-rail's test by metric, on the queries that chose the winner.
        by_type: winner against baseline in the composite within each query type, on the queries
            that chose the winner, which flatters it.
    """

    corrected: CorrectedEstimate | None = None
    effect_size: float | None = None
    guardrails: Mapping[str, NonInferiority] = field(default_factory=dict)
    by_type: tuple[GroupComparison, ...] = ()


def decide_without_holdout(
    winner: Measured,
    baseline: Measured,
    gains: FloatArray,
    trials: Sequence[Trial],
    *,
    guardrails: Mapping[str, Rail] | None = None,
    query_types: Sequence[str] = (),
    together: Together | None = None,
    alpha: float = ALPHA,
    min_effect: float = MIN_EFFECT,
    largest: float | None = None,
    seed: int = 0,
    draws: int = 9_999,
) -> FewQueriesVerdict:
    """Decide by the gain over the baseline that the search would have on new queries.

    ``gains`` has shape (trials, queries): each trial's objective less the baseline's. The winner's
    is corrected for having been chosen (BBC-CV, Tsamardinos, Greasidou and Borboudakis 2018) by the
    rule that did choose it (``choose_winner``), applied to each resample. With a price
    (``objective`` is given), a deployment also needs a composite that is not worse by
    ``min_effect`` or more. That, the guard-rails and the query types are judged on the queries that
    were tuned on, which flatters the winner. ``together`` as in ``decide``.
    Under 10 queries there are never enough, and an interval without any width is no certainty.
    """
    rails = dict(guardrails or {})
    tests = {name: rail.test for name, rail in rails.items()}
    drawn = {"seed": seed, "permutations": draws, "resamples": draws}
    first, second = winner, baseline
    alike = [] if together is None else caveat_of(together, "queries")
    if alike and together is not None:
        gains = gains_as_one(gains, together)
        winner, baseline = as_one(winner, baseline, together)
    queries = _complete(gains)
    is_baseline = winner.params == baseline.params
    if queries < FEWEST_QUERIES:
        counts = {**_counts(queries), "is_baseline": is_baseline}
        label = Prospect(Outlook.MORE)
        few = Ruling("not enough queries", Reason.TOO_FEW, counts, label)
        return FewQueriesVerdict(few, tell(few, alike), tuple(alike), guardrails=tests)
    if is_baseline:
        same = Ruling("keep the baseline", Reason.SAME)
        return FewQueriesVerdict(same, tell(same), ())
    rows = np.flatnonzero(~np.isnan(gains).all(axis=1))
    known = [trials[row] for row in rows.tolist()]
    row = next(row for row, trial in enumerate(known) if trial.params == winner.params)
    corrected = bootstrap_corrected(
        gains[rows], seed=seed, choose=winner_rule(known), winner=row, confidence=1.0 - alpha
    )
    if (profile := known[row].profile) is not None:
        # What its answer was searched for was not one setting: that luck comes on top.
        corrected = _lowered(corrected, profile.luck)
    composite = compare_paired(
        winner.composite, baseline.composite, confidence=1.0 - alpha, **drawn
    ).within(largest)
    spread = _spread(gains[rows[row]])
    ruling = _rule(
        corrected,
        rails,
        composite,
        spread,
        is_priced=winner.objective is not None,
        alpha=alpha,
        min_effect=min_effect,
    )
    remarks: tuple[Caveat, ...] = ()
    differ = composite.wins + composite.losses
    if ruling.outcome == "deploy" and composite.remark and winner.objective is None:
        remarks = (Caveat(CaveatKind.NO_SPREAD, {"remark": composite.remark}),)
    elif ruling.outcome == "deploy" and differ < FEWEST_THAT_DIFFER:
        remarks = (Caveat(CaveatKind.FEW_DIFFER, {"differ": differ}),)
    remarks = (*remarks, *alike)
    return FewQueriesVerdict(
        ruling,
        tell(ruling, remarks),
        remarks,
        corrected,
        corrected.estimate / spread if spread > 0.0 else None,
        tests,
        by_type(first, second, query_types, together, largest=largest, **drawn),
    )


def _lowered(corrected: CorrectedEstimate, luck: float) -> CorrectedEstimate:
    low, high = corrected.interval
    return replace(
        corrected,
        estimate=corrected.estimate - luck,
        interval=(low - luck, high - luck),
        optimism=corrected.optimism + luck,
    )


def _rule(
    corrected: CorrectedEstimate,
    rails: Mapping[str, Rail],
    composite: PairedComparison,
    spread: float,
    *,
    is_priced: bool,
    alpha: float,
    min_effect: float,
) -> Ruling:
    low, high = corrected.interval
    seen = {
        **_counts(corrected.queries),
        "difference": corrected.estimate,
        "low": low,
        "high": high,
        "naive": corrected.naive,
        "alpha": alpha,
        "min_effect": min_effect,
        "is_priced": is_priced,
        "is_clear": low > 0.0 or high < 0.0,
    }
    in_doubt = {name: rail for name, rail in rails.items() if not rail.test.is_non_inferior}
    if in_doubt:
        broken = {name: rail for name, rail in in_doubt.items() if rail.is_broken}
        figures = {
            **seen,
            "broken": [rail.figures(name) for name, rail in broken.items()],
            "in_doubt": [one.figures(name) for name, one in in_doubt.items() if name not in broken],
        }
        reason = Reason.RAIL_BROKEN if broken else Reason.RAIL_IN_DOUBT
        return Ruling("keep the baseline", reason, figures)
    if spread == 0.0 and abs(corrected.naive) <= ROUNDING:
        return Ruling("not enough queries", Reason.ALIKE, {**seen, "is_few": True})
    if high < min_effect:
        return Ruling("keep the baseline", Reason.TOO_SMALL, seen)
    if low <= 0.0:
        to_show = max(corrected.estimate, min_effect)
        prospect = (
            Prospect(Outlook.NO_SIGN)
            if corrected.estimate <= 0.0
            else _prospect(to_show, spread, corrected.queries, alpha)
        )
        return Ruling("not enough queries", Reason.CHANCE, seen, prospect)
    if not is_priced or is_as_good(composite, min_effect):
        return Ruling("deploy", Reason.BETTER, seen)
    return _open_loss(composite, seen)


def _open_loss(composite: PairedComparison, seen: Figures) -> Ruling:
    """Rule where the objective gains by its price, and the composite may lose."""
    alpha, min_effect, queries = seen["alpha"], seen["min_effect"], seen["queries"]
    difference, interval = composite.mean_difference, composite.interval
    if difference is None or interval is None:
        unknown = {**seen, "remark": composite.remark}
        return Ruling("not enough queries", Reason.LOSS_UNKNOWN, unknown)
    if interval[0] > -min_effect:
        rare = {**seen, "differ": composite.wins + composite.losses}
        total = math.ceil(RULE_OF_THREE * RARE_LOSS / min_effect)
        prospect = _prospect_of(total, min_effect, queries)
        return Ruling("not enough queries", Reason.RARE_LOSSES, rare, prospect)
    change = {"difference": difference, "low": interval[0], "high": interval[1]}
    figures = {**seen, "composite": change}
    margin = difference + min_effect
    if margin <= 0.0:
        return Ruling("not enough queries", Reason.LOSS_OPEN, figures, Prospect(Outlook.LOSS_SEEN))
    still_open = _prospect(margin, composite.standard_deviation or 0.0, queries, alpha)
    return Ruling("not enough queries", Reason.LOSS_OPEN, figures, still_open)


def _prospect(to_show: float, spread: float, queries: int, alpha: float) -> Prospect | None:
    if min(to_show, spread) <= 0.0:
        return None
    total = needed(to_show, spread, alpha=alpha)
    return None if total is None else _prospect_of(total, to_show, queries)


def _prospect_of(total: int, to_show: float, queries: int) -> Prospect:
    """Say how many to hold out, and how many to label so that half of all are so many."""
    label = max(2 * total, FEWEST_TO_SPLIT) - queries
    if label <= 0:
        return Prospect(Outlook.SPLIT, to_show, total, total)
    if label > MOST_TIMES * queries:
        return Prospect(Outlook.HARDLY, to_show, total)
    return Prospect(Outlook.MORE, to_show, total, total, label)


def _counts(queries: int) -> dict[str, int]:
    return {"queries": queries, "fewest_to_split": FEWEST_TO_SPLIT}


def _spread(gain: FloatArray) -> float:
    """Return the standard deviation of the winner's gain by query."""
    defined = gain[~np.isnan(gain)]
    if defined.size < 2 or is_constant(defined, magnitude=largest_of(defined)):
        return 0.0
    return float(defined.std(ddof=1))


def _complete(gains: FloatArray) -> int:
    """Return how many queries have a value from every trial that has any."""
    known = gains[~np.isnan(gains).all(axis=1)]
    return int((~np.isnan(known).any(axis=0)).sum()) if known.size else 0
