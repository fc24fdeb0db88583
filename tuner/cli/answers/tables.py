"""Tables and sentences of ``tuner answers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuner.cli.console import console, new_table
from tuner.cli.out import echo
from tuner.core.shown import as_percent, counted, figure

if TYPE_CHECKING:
    from tuner.answers.correlation import Correlated, FittedComposite, PositionGain
    from tuner.answers.positions import Positions
    from tuner.stats import PairedComparison


def print_correlated(found: Correlated) -> None:
    """Print a row for each metric, then what positions gain, then the fitted composite."""
    missing = ""
    if found.incomplete:
        missing = f"; {counted(found.incomplete, 'query', 'queries')} not answered for all"
    echo(
        f"{counted(found.queries, 'query', 'queries')} answered from "
        f"{counted(len(found.configurations), 'configuration')}: "
        f"{', '.join(found.configurations)}{missing}\n"
    )
    table = new_table(
        "metric",
        "within queries",
        "95 % interval",
        "queries",
        "explained",
        "between configurations",
        "95 % interval",
        words=("metric",),
    )
    for name, one in found.metrics.items():
        table.add_row(
            name,
            figure(one.within, "+.3f"),
            _interval(one.within_interval),
            str(one.queries),
            as_percent(one.explained),
            figure(one.between, "+.2f"),
            _interval(one.between_interval, "+.2f"),
        )
    console().print(table)
    echo(
        "within queries: Kendall's tau-b over configurations, its mean over the queries where both "
        "vary\nexplained: of the variance of quality within queries\nbetween configurations: tau-b "
        "of means; pairs that are not told apart may agree or not"
    )
    for line in _without_variation(found):
        echo(line)
    for gain in found.gains:
        echo(f"\n{gain_sentence(gain)}")
    for remark in found.remarks:
        echo(f"\nnote: {remark}")
    echo()
    if found.composite is None:
        echo(f"No composite: {found.no_composite}.", bold=True)
        return
    _print_composite(found.composite)


def gain_sentence(gain: PositionGain) -> str:
    """Say what weighting by position gains."""
    explained = gain.explained
    told = (
        f"position weighting: {gain.weighted} explains {as_percent(explained.first, '.1%')} of the "
        f"quality within queries, {gain.unweighted} {as_percent(explained.second, '.1%')}"
    )
    if explained.relative is not None:
        low_high = ""
        if explained.interval is not None:
            low, high = (as_percent(end, "+.0%") for end in explained.interval)
            low_high = f" (95 % interval {low} to {high})"
        told = f"{told}: {as_percent(explained.relative, '+.0%')}{low_high}"
    return f"{told}; tau {_difference(gain.within)}"


def _print_composite(found: FittedComposite) -> None:
    taus = ", ".join(f"{name} {figure(tau, '+.3f')}" for name, tau in found.taus.items())
    echo(
        f"a composite fitted on {found.fitted_on} queries, tested on {found.tested_on} others "
        f"(tau within queries: {taus})"
    )
    echo(f"against equal weights: {_difference(found.against_equal)}")
    if found.against_today is not None:
        echo(f"against today's objective: {_difference(found.against_today)}")
    echo(f"{sentence(found)}\n", bold=True)
    echo(found.yaml.rstrip())


def sentence(found: FittedComposite) -> str:
    """Say whether the fitted weights are to be taken."""
    other = found.against_equal if found.against_today is None else found.against_today
    called = "equal weights" if found.against_today is None else "today's objective"
    if other.interval is not None and other.interval[0] > 0:
        return f"The fitted weights go better with the answers than {called}: take them."
    if other.interval is not None and other.interval[1] < 0:
        return f"The fitted weights go worse with the answers than {called}: keep those."
    return f"Not shown to go better with the answers than {called}: keep those."


def _without_variation(found: Correlated) -> list[str]:
    """Say how many queries say nothing since nothing varies in them."""
    first = next(iter(found.metrics.values()), None)
    if first is None:
        return []
    lines = []
    if first.constant_quality:
        lines.append(
            f"{counted(first.constant_quality, 'query', 'queries')} with answers of one quality "
            "from all configurations: left out within queries"
        )
    still = {name: one.constant_metric for name, one in found.metrics.items()}
    if any(still.values()):
        told = ", ".join(f"{name} {count}" for name, count in still.items() if count)
        lines.append(f"queries where the answers vary and the metric does not: {told}")
    return lines


def _difference(compared: PairedComparison) -> str:
    """Return a mean difference with its interval."""
    mean = figure(compared.mean_difference, "+.3f")
    if compared.interval is None:
        return mean
    low, high = compared.interval
    return f"{mean} (95 % interval {low:+.3f} to {high:+.3f})"


def _interval(interval: tuple[float, float] | None, form: str = "+.3f") -> str:
    if interval is None:
        return "–"
    low, high = interval
    return f"{low:{form}} to {high:{form}}"


def print_positions(found: Positions) -> None:
    """Print a row for each rank that was tried, then who was left out, and the self-agreement."""
    fitted = found.fitted
    table = new_table("rank", "quality", "gain", "95 % interval", "weight", "95 % interval")
    for rank, gain, around in zip(fitted.ranks, fitted.gains, fitted.gain_intervals, strict=True):
        table.add_row(
            str(rank),
            figure(found.qualities[rank], ".3f"),
            figure(gain, "+.3f"),
            _interval(around),
            figure(fitted.weights[rank - 1], ".3f"),
            "–" if rank == 1 else _interval(fitted.intervals[rank - 1], ".3f"),
        )
    console().print(table)
    echo(f"without the relevant passage: {figure(found.qualities[0], '.3f')}")
    echo("gain: of quality, over that without it; weight: in units of the gain at rank 1")
    queries = counted(fitted.queries, "query", "queries")
    left = "".join(f"; {number} left out: {why}" for why, number in found.left_out.items())
    echo(f"{queries}, contexts of {found.passages} passages{left}")
    twice = found.agreement
    if twice.same is None:
        echo("nothing was asked twice: how far the answers agree with themselves is unknown")
        return
    echo(
        f"asked twice: {as_percent(twice.same)} of {counted(twice.pairs, 'question')} got the same "
        f"quality (mean difference {figure(twice.mean_difference, '.3f')})"
    )
