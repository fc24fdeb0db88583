"""tuner drift: does quality slip? Daily scores, and what goes in, against the weeks before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.completion import configs_and_runs
from tuner.cli.options import FiniteRange, check_plot, note
from tuner.cli.out import echo
from tuner.core.errors import EXIT_ALARM, InputError
from tuner.core.json_text import json_text
from tuner.drift.watched import QUERY_MIX, WATCHED, last_day, measures_of

if TYPE_CHECKING:
    from tuner.drift.observations import Observation


@click.command("drift", short_help="Look for a loss of quality; exit code 20 on an alarm.")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=configs_and_runs)
@click.option("--experiment", metavar="NAME", help="Read the runs of an MLflow experiment.")
@click.option("--uri", default="sqlite:///mlflow.db", show_default=True, help="The MLflow store.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="KEY=VALUE",
    help="Read only the MLflow runs with this tag. May be repeated.",
)
@click.option(
    "--of",
    type=click.Choice(["baseline", "winner"]),
    default="baseline",
    show_default=True,
    help="What to read of a run directory: the parameters that run today, or those that the study "
    "chose.",
)
@click.option(
    "--metric",
    "names",
    multiple=True,
    metavar="NAME",
    help="A figure to watch. May be repeated; the first is also watched by query type. "
    f"{QUERY_MIX} is the mix of types. Default: what is there of {', '.join(WATCHED)} and "
    f"{QUERY_MIX}.",
)
@click.option(
    "--higher-is-worse",
    multiple=True,
    metavar="NAME",
    help="A metric where a higher value is worse and that the tuner does not know.",
)
@click.option("--recent", default=7, show_default=True, help="How many days are asked about.")
@click.option(
    "--reference",
    default=28,
    show_default=True,
    help="How many days before those they are compared with.",
)
@click.option(
    "--trend", default=90, show_default=True, help="Through how many days the trend is fitted."
)
@click.option(
    "--as-of", metavar="DATE", help="The last of the recent days. Default: the last day with data."
)
@click.option(
    "--min-effect",
    "effects",
    multiple=True,
    metavar="[NAME=]SHARE",
    help="The smallest relative change that matters, for every metric or for NAME. Default: 0.05. "
    "May be repeated.",
)
@click.option(
    "--alpha",
    type=FiniteRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="How often there may be an alarm where nothing has changed, all tests together.",
)
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.png", help="Draw it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    sources: tuple[str, ...],
    experiment: str | None,
    uri: str,
    tags: tuple[str, ...],
    of: str,
    names: tuple[str, ...],
    higher_is_worse: tuple[str, ...],
    recent: int,
    reference: int,
    trend: int,
    as_of: str | None,
    effects: tuple[str, ...],
    alpha: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare recent days with those before: an alarm where a figure got worse, and not by chance.

    \b
    SOURCE: a CSV file or JSON lines, with a line for each query, batch or day. It has `date`,
            figures such as score, graph_used, retrieved and latency_ms, and, where known,
            query_id and query_type. Or a run directory, or a folder of run directories.

    Each figure is tested twice: the recent days against the days before, and the trend over a
    longer time. The first figure is also tested by query type. A query that was asked both times is
    compared with itself. Exit codes: 20 an alarm; 0 no alarm, or too little data (under 14 days);
    2 bad input.
    """
    from tuner.cli.drift_report import print_report
    from tuner.drift.detection import find_drift
    from tuner.drift.findings import draw
    from tuner.drift.mix import MODERATE_PSI
    from tuner.drift.observations import Windows
    from tuner.drift.sources import observations_of, observations_of_experiment
    from tuner.nightly.records import dates_of_studies

    if plot is not None:
        check_plot(plot)
    if bool(sources) == (experiment is not None):
        raise InputError("give files or run directories, or --experiment NAME of an MLflow store")
    if tags and experiment is None:
        raise InputError("--tag chooses among the runs of --experiment; files have no tags")
    if experiment is None:
        observations = observations_of(sources, of=of, nights_of=dates_of_studies)
    else:
        asked = [name for name in names if name != QUERY_MIX]
        observations = observations_of_experiment(uri, experiment, _pairs(tags), asked)
    if not observations:
        other = "winner" if of == "baseline" else "baseline"
        raise InputError(f"nothing was observed: no run has a {of}; try --of {other}")
    smallest = _effects(effects)
    is_mix_watched = not names or QUERY_MIX in names
    measures = measures_of(observations, names, higher_is_worse, smallest)
    report = find_drift(
        observations,
        measures,
        windows=Windows.until(
            _last_day(observations, as_of),
            recent_days=recent,
            reference_days=reference,
            trend_days=trend,
        ),
        alpha=alpha,
        mix_effect=smallest.get(QUERY_MIX, MODERATE_PSI) if is_mix_watched else None,
    )
    if plot is not None:
        draw(observations, measures, report, plot)
        note(f"plot: {plot}")
    if as_json:
        record = {**report.to_record(), "sentence": report.sentence}
        echo(json_text(record, indent=2))
    else:
        print_report(report)
    if report.status == "alarm":
        click.get_current_context().exit(EXIT_ALARM)


def _effects(written: Sequence[str]) -> dict[str, float]:
    """Return the smallest effects by name, that of all others under the empty one."""
    found: dict[str, float] = {}
    for text in written:
        name, _, share = text.rpartition("=")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not 0.0 <= value < float("inf"):
            raise InputError(f"--min-effect {text}: write a share such as 0.05, or latency_ms=0.2")
        found[name] = value
    return found


def _pairs(tags: Sequence[str]) -> dict[str, str]:
    for text in tags:
        if "=" not in text:
            raise InputError(f"--tag {text}: write KEY=VALUE, such as tuner.study=nightly")
    return {name: value for name, _, value in (text.partition("=") for text in tags)}


def _last_day(observations: Sequence[Observation], as_of: str | None) -> date:
    from tuner.core.checks import parse_day

    if as_of is None:
        last, age = last_day(observations)
        if age > 1:
            note(f"note: the last data are {age} days old, of {last}")
        return last
    try:
        return parse_day(as_of)
    except ValueError as error:
        raise InputError(f"--as-of: {error}") from error
