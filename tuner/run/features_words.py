"""What a policy by features looks at, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tuner.core.feature_rule import DEFAULT, FeatureRule, Gains, Line, Split
from tuner.core.seen import phrase
from tuner.core.shown import counted, joined
from tuner.evaluation.by_features.learned import Learned
from tuner.run.by_features import FeaturesResult

# Features that move a value by less than this share of what the first one does are not named.
NAMED = 0.25
MOST_NAMED = 4


def left_out_sentences(learned: Learned) -> list[str]:
    """Say which features tell nothing, and of how many queries others are not known."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in learned.left_out.items():
        by_reason.setdefault(reason, []).append(name)
    told = [f"left out: {', '.join(names)} ({reason})" for reason, names in by_reason.items()]
    unknown = [
        f"{name} of {number} of {counted(learned.queries, 'query', 'queries')}"
        for name, number in learned.missing.items()
    ]
    if unknown:
        told.append(f"not known: {', '.join(unknown)}; there it counts as the mean")
    return told


def gain_sentence(learned: Learned) -> str:
    """Say what the choice by features is expected to be worth on other queries."""
    some = counted(learned.queries, "tune query", "tune queries")
    if learned.error != learned.error:
        return f"{some} are too few to learn from: the winner stays for all"
    found = f"{learned.gain:+.3f} ± {learned.error:.3f} over the winner, on {some} out of fold"
    if not learned.model:
        return f"{found}: no better by a standard error, so the winner stays for all"
    return f"expected gain  {found}"


def rule_lines(result: FeaturesResult) -> Iterator[str]:
    """Yield what the rule does: its form, the settings it uses, and the features that matter."""
    rule = result.judged.policy.rule
    assert isinstance(rule, FeatureRule)
    if not result.learned.model:
        return
    yield f"model   {result.learned.model}, of {counted(len(rule.features), 'feature')}"
    if rule.line is not None:
        yield from _line(rule.line, result)
    elif rule.gains is not None:
        yield from _gains(rule.gains, result)
    elif rule.split is not None:
        yield from _split(rule.split, rule, "  ")


def _line(line: Line, result: FeaturesResult) -> Iterator[str]:
    values = sorted(float(params[line.parameter]) for params in result.chosen)  # type: ignore[arg-type]  # a number, as a line's are
    low, middle, high = values[0], values[len(values) // 2], values[-1]
    yield (
        f"{line.parameter} from {low:.3g} to {high:.3g} on the tune queries, {middle:.3g} in the "
        "middle"
    )
    yield f"{line.parameter} {moves(line.weights)}"


def moves(weights: Mapping[str, float]) -> str:
    """Say with what a value rises and falls, the strongest first; by how much for one deviation.

    >>> moves({"names": 0.2, "words": -0.1, "numbers": 0.01})
    'rises with the number of capitalised names (+0.2), and falls with the number of words (-0.1)'
    """
    ordered = sorted(weights, key=lambda name: -abs(weights[name]))[:MOST_NAMED]
    named = [
        n for n in ordered if weights[n] and abs(weights[n]) >= NAMED * abs(weights[ordered[0]])
    ]
    rising = [f"{phrase(name)} ({weights[name]:+.2g})" for name in named if weights[name] > 0]
    falling = [f"{phrase(name)} ({weights[name]:+.2g})" for name in named if weights[name] < 0]
    parts = [
        f"{verb} {joined(those)}"
        for verb, those in (("rises with", rising), ("falls with", falling))
        if those
    ]
    if named and weights[named[0]] < 0:
        parts.reverse()
    return ", and ".join(parts) or "stays"


def _gains(gains: Gains, result: FeaturesResult) -> Iterator[str]:
    names = {tuple(params.items()): name for name, params in result.judged.policy.types.items()}
    used = [names.get(tuple(params.items()), DEFAULT) for params in result.chosen]
    yield f"  as the winner: {counted(used.count(DEFAULT), 'query', 'queries')}"
    for name in gains.start:
        told = moves(gains.weights.get(name, {}))
        yield f"  {name}: {counted(used.count(name), 'query', 'queries')}; its gain {told}"


def _split(split: Split, rule: FeatureRule, indent: str) -> Iterator[str]:
    scale = rule.features[split.feature]
    at = scale.mean + split.at * scale.deviation
    for side, how in ((split.below, "below"), (split.above, "at least")):
        where = f"{indent}where {phrase(split.feature)} is {how} {at:.3g}: "
        if isinstance(side, Split):
            yield where.rstrip()
            yield from _split(side, rule, f"{indent}  ")
        else:
            yield f"{where}{side or 'as the winner'}"
