"""Ship, do not ship, or keep collecting: one sentence, and how many units more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tuner.abtest.analysis import Analysis, MetricResult, deciding_p
from tuner.abtest.experiment import CONTROL, ExperimentConfig
from tuner.abtest.size import (
    rounded,
    units_for_guardrail,
    units_for_minimum,
    units_for_primary,
)
from tuner.core.errors import InputError
from tuner.core.shown import as_percent, counted, joined

Outcome = Literal["ship", "do not ship", "keep collecting", "stop"]


@dataclass(frozen=True)
class Decision:
    """What to do with one treatment, or with the experiment.

    Attributes:
        outcome: ``stop`` where the data cannot be believed.
        treatment: the arm it is about; None for the whole experiment.
        more_units: how many more units of treatment and control together, where more are needed and
            their number can be told.
        sentence: the same in words, with the reason.
    """

    outcome: Outcome
    treatment: str | None
    more_units: int | None
    sentence: str


def decide(analysis: Analysis) -> Decision:
    """Say what to do with the experiment.

    Of several treatments that may be shipped it is the one that gains most; while none may, it is
    keep collecting as long as one is open.
    """
    ratio = analysis.sample_ratio
    if ratio.is_mismatch:
        counts = ", ".join(
            f"{arm} {count:,} (expected {ratio.expected[arm]:,.0f})"
            for arm, count in ratio.observed.items()
        )
        return Decision(
            "stop",
            None,
            None,
            f"Stop: the arms do not have their shares of the units: {counts}, p = "
            f"{ratio.p_value:.1g}. Units are lost or added in one arm, so that no difference "
            "between the arms can be believed; find the cause first.",
        )
    every = decide_each(analysis)
    for outcome in ("ship", "keep collecting", "do not ship"):
        chosen = [one for one in every if one.outcome == outcome]
        if chosen:
            return max(chosen, key=lambda one: _gain(analysis, one.treatment))
    raise InputError("the experiment has no treatment")


def decide_each(analysis: Analysis) -> list[Decision]:
    """Say what to do with each treatment; nothing after a sample-ratio mismatch."""
    return [_decide(analysis, treatment) for treatment in analysis.results]


def gain_of(result: MetricResult) -> float | None:
    """Return the difference, positive where the treatment is better."""
    difference = result.comparison.difference
    if difference is None:
        return None
    return difference if result.is_higher_better else -difference


def shown_change(result: MetricResult) -> str:
    """Return the difference in words: as a share of the control where that is defined."""
    comparison = result.comparison
    if comparison.difference is None:
        return "unknown"
    if comparison.relative is None or not comparison.is_share:
        return f"{comparison.difference:+.4g}"
    return as_percent(comparison.relative, "+.2%")


def _gain(analysis: Analysis, treatment: str | None) -> float:
    gain = None if treatment is None else gain_of(analysis.results[treatment][0])
    return -math.inf if gain is None else gain


def _decide(analysis: Analysis, treatment: str) -> Decision:
    config = analysis.config
    primary, *others = analysis.results[treatment]
    guards = [one for one in others if one.role == "guardrail"]
    p_value = deciding_p(config, primary.comparison)
    arms = (analysis.counts[treatment], analysis.counts[CONTROL])
    if p_value is not None:
        # Users without a value of the metric that decides are no evidence.
        arms = (primary.comparison.n_treatment, primary.comparison.n_control)
    fewest = min(arms)
    if fewest < config.minimum_sample_size:
        more = units_for_minimum(config, treatment, analysis.counts, arms)
        return Decision(
            "keep collecting",
            treatment,
            more,
            f"Keep collecting: {counted(fewest, 'unit')} in the smaller arm, and "
            f"nothing is decided before the {config.minimum_sample_size:,} that were planned; "
            f"about {counted(more, 'more unit')} of {treatment} and {CONTROL} "
            "together.",
        )
    gain = gain_of(primary)
    if p_value is None or gain is None:
        reason = primary.remark or "it has no values"
        return _no(treatment, f"the primary metric {primary.metric} was not tested ({reason})")
    change = f"{primary.metric} {shown_change(primary)}"
    is_clear = p_value <= config.alpha_each
    if is_clear and gain < 0.0:
        return _no(treatment, f"{change} is worse (p = {p_value:.2g})")
    for guard in guards:
        if is_broken(config, guard):
            return _no(
                treatment,
                f"the guard-rail {guard.metric} is broken: {shown_change(guard)}, allowed is "
                f"{config.guardrails[guard.metric].margin}",
            )
    open_guards = [guard for guard in guards if not is_kept(config, guard)]
    if is_clear and not open_guards:
        kept = f", and {joined([one.metric for one in guards])} kept" if guards else ""
        return Decision(
            "ship",
            treatment,
            None,
            f"Ship {treatment}: {change} is better (p = {p_value:.2g}, "
            f"{100 * (1 - config.alpha_each):.4g} % interval {_interval(config, primary)}){kept}"
            f"{_price(config, others)}.",
        )
    if not is_clear and config.decide == "fixed_horizon":
        return _no(treatment, f"{change} is not shown to be better (p = {p_value:.2g})")
    if not is_clear and _is_futile(config, primary):
        return _no(
            treatment,
            f"a gain of {config.primary.min_effect} in {primary.metric} is ruled out "
            f"({shown_change(primary)}, interval {_interval(config, primary)})",
        )
    untested = [
        guard
        for guard in open_guards
        if guard.guardrail
        and guard.guardrail.p_value is None
        # Few values become more by waiting; where there is none in an arm nobody writes them down.
        and (config.decide == "fixed_horizon" or not has_values(guard))
    ]
    if untested:
        names = "; ".join(f"{one.metric}: {one.remark}" for one in untested)
        return _no(
            treatment, f"a guard-rail was not tested ({names}), so it is not shown to be kept"
        )
    if config.decide == "fixed_horizon":
        names = joined([guard.metric for guard in open_guards])
        return _no(
            treatment, f"{change} is better (p = {p_value:.2g}), but {names} not shown to be kept"
        )
    return _keep(analysis, treatment, primary, change, p_value, open_guards, is_clear)


def has_values(result: MetricResult) -> bool:
    """Say whether a unit of each arm has a value of the metric."""
    return min(result.comparison.n_treatment, result.comparison.n_control) > 0


def is_broken(config: ExperimentConfig, guard: MetricResult) -> bool:
    """Say whether a guard-rail is shown to be broken, at any look."""
    test = guard.guardrail
    return test is not None and test.broken_p is not None and test.broken_p <= config.alpha_each


def is_kept(config: ExperimentConfig, guard: MetricResult) -> bool:
    """Say whether a guard-rail is shown to be kept, by the plan's kind of test."""
    test = guard.guardrail
    if test is None:
        return True
    p_value = test.p_value if config.decide == "fixed_horizon" else test.always_valid_p
    return p_value is not None and p_value <= config.alpha_each


def _keep(
    analysis: Analysis,
    treatment: str,
    primary: MetricResult,
    change: str,
    p_value: float,
    open_guards: list[MetricResult],
    is_clear: bool,
) -> Decision:
    config = analysis.config
    needed: list[int | None] = []
    reasons: list[str] = []
    have = primary.comparison.n_treatment + primary.comparison.n_control
    if not is_clear:
        needed.append(units_for_primary(config, treatment, primary, gain_of(primary)))
        reasons.append(f"{change} is not clear yet (p = {p_value:.2g})")
    if open_guards:
        needed += [units_for_guardrail(config, treatment, one) for one in open_guards]
        names = joined([one.metric for one in open_guards])
        reasons.append(f"{names} {'is' if len(open_guards) == 1 else 'are'} not shown to be kept")
    known = [units for units in needed if units is not None]
    # Units without a value come along, and tell nothing.
    assigned = analysis.counts[treatment] + analysis.counts[CONTROL]
    lacking = max(max(known) - have, 1) if len(known) == len(needed) and known else None
    more = None if lacking is None else math.ceil(lacking * assigned / max(have, 1))
    unseen = [
        f"{one.metric}: {one.remark}"
        for one in open_guards
        if one.guardrail and one.guardrail.p_value is None
    ]
    if more is not None:
        count = (
            f"about {rounded(more):,} more units of {treatment} and {CONTROL} together, if the "
            "figures stay as they are"
        )
    elif unseen:
        count = f"how many more cannot be told yet ({'; '.join(unseen)})"
    else:
        count = "how many more cannot be told: at the figures of today the margin would not be kept"
    return Decision(
        "keep collecting", treatment, more, f"Keep collecting: {', and '.join(reasons)}; {count}."
    )


def _price(config: ExperimentConfig, others: list[MetricResult]) -> str:
    """Return which secondary metrics got clearly worse: nothing decides by them, people should."""
    worse = [
        f"{one.metric} {shown_change(one)}"
        for one in others
        if one.adjusted_p is not None
        and one.adjusted_p <= config.alpha
        and (gain_of(one) or 0.0) < 0.0
    ]
    verb = "is" if len(worse) == 1 else "are"
    return f"; but {joined(worse)} {verb} clearly worse" if worse else ""


def _is_futile(config: ExperimentConfig, primary: MetricResult) -> bool:
    """Say whether the smallest gain that matters is outside the always-valid interval."""
    comparison = primary.comparison
    if comparison.always_valid_interval is None or comparison.control is None:
        return False
    low, high = comparison.always_valid_interval
    best = high if primary.is_higher_better else -low
    return best < config.primary.min_effect.of(comparison.control)


def deciding_interval(
    config: ExperimentConfig, comparison_of: MetricResult
) -> tuple[float, float] | None:
    """Return the interval that the experiment's plan goes by."""
    comparison = comparison_of.comparison
    is_fixed = config.decide == "fixed_horizon"
    return comparison.interval if is_fixed else comparison.always_valid_interval


def deciding_shares(config: ExperimentConfig, result: MetricResult) -> tuple[float, float] | None:
    """Return the same interval as shares of the control; None where it cannot be told from 0."""
    comparison = result.comparison
    if not comparison.is_share:
        return None
    is_fixed = config.decide == "fixed_horizon"
    return comparison.relative_interval if is_fixed else comparison.always_valid_relative_interval


def _interval(config: ExperimentConfig, result: MetricResult) -> str:
    if (shares := deciding_shares(config, result)) is not None:
        return " to ".join(as_percent(end, "+.2%") for end in shares)
    interval = deciding_interval(config, result)
    if interval is None:
        return "undefined"
    return f"{interval[0]:+.4g} to {interval[1]:+.4g}"


def _no(treatment: str, reason: str) -> Decision:
    return Decision("do not ship", treatment, None, f"Do not ship {treatment}: {reason}.")
