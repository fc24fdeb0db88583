"""tuner bench: how long a query takes in service, and how many a second are answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.options import (
    check_plot,
    config_argument,
    have_ready,
    load_shown,
    note,
    read_params,
    set_option,
)
from tuner.cli.out import echo
from tuner.core.errors import EXIT_FAILED
from tuner.core.json_text import json_text
from tuner.core.shown import counted

if TYPE_CHECKING:
    from tuner.bench.levels import Level, Loop
    from tuner.core.policy import Policy
    from tuner.core.trial import Params

_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 86_400.0
_LEVELS: Mapping[str, tuple[Callable[[str], float], str, float]] = {
    "concurrency": (int, "whole number", 1024),
    "rate": (float, "number", 1e6),
}


def _duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read a time such as 30s, 500ms, 2m or 30 (seconds)."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(ms|s|m|min|h|)", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is no duration; write 30s, 500ms or 2m", ctx, param)
    seconds = float(found[1]) * _UNITS[found[2]]
    if not 0.0 < seconds <= _LONGEST_S:
        raise click.BadParameter(f"{value!r} must be above 0 and at most a day", ctx, param)
    return seconds


def _levels(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[float, ...] | None:
    """Read numbers apart by commas, such as 1,2,4,8; those of workers are whole."""
    if value is None:
        return None
    read, kind, highest = _LEVELS[param.name or ""]
    levels = []
    for part in value.split(","):
        try:
            level = read(part)
        except ValueError:
            message = f"{part.strip()!r} is no {kind}; write for example 1,2,4"
            raise click.BadParameter(message, ctx, param) from None
        if not 0 < level <= highest:
            message = f"{level:g} must be above 0 and at most {highest:g}"
            raise click.BadParameter(message, ctx, param)
        levels.append(level)
    return tuple(dict.fromkeys(levels))


@click.command("bench", short_help="Measure latency and throughput in service.")
@config_argument
@click.option(
    "--params",
    metavar="JSON|FILE",
    help="Parameters as JSON, or a YAML file such as best.yaml. Default: the configuration's "
    "baseline; without one the retriever's defaults; without those the middle of the `space:`.",
)
@click.option(
    "--concurrency",
    callback=_levels,
    metavar="N,…",
    help="Numbers of workers. Each worker asks its next query as soon as the last one is answered. "
    "Default: 1,2,4,8, or none where --rate is given.",
)
@click.option(
    "--rate",
    callback=_levels,
    metavar="QPS,…",
    help="Rates in queries a second. Queries arrive at random at this rate, whether or not earlier "
    "ones are answered, and their latency counts from their arrival.",
)
@click.option(
    "--duration",
    callback=_duration,
    metavar="TIME",
    default="10s",
    show_default=True,
    help="How long each number of workers, or rate, is kept up: 30s, 500ms, 2m.",
)
@click.option(
    "--warmup",
    callback=_duration,
    metavar="TIME",
    help="How long each load runs before it is measured. Default: a tenth of --duration.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False), help="Draw the curves: a .png, .svg or .pdf file."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@set_option
def command(
    config: str,
    params: str | None,
    concurrency: tuple[float, ...] | None,
    rate: tuple[float, ...] | None,
    duration: float,
    warmup: float | None,
    plot: str | None,
    as_json: bool,
    settings: tuple[str, ...],
) -> int:
    """Ask the retriever of CONFIG one query at a time, as live traffic would, and time it.

    All queries of the data set are asked in random order. A query that fails counts, with its time.
    """
    from tuner.bench.levels import asking, draw, measured, remarks
    from tuner.bench.load import check_arrivals
    from tuner.cli.bench_tables import print_levels

    if plot is not None:
        check_plot(Path(plot))
    for qps in rate or ():
        check_arrivals(qps, max(duration, warmup or 0.0))
    assembly = load_shown(config, settings)
    given = (assembly.baseline or {}) if params is None else read_params(params, "--params")
    choice = assembly.choice(given)
    if guessed := [knob.name for knob in assembly.guessed if knob.name not in given]:
        note(
            f"note: no baseline and no default says what {', '.join(guessed)} is today: asked with "
            "the middle of the space; give --params, or a baseline"
        )
    have_ready(assembly, choice)
    seed = assembly.config.study.seed
    retriever, asked = assembly.answering(choice)
    ask = asking(retriever, asked, assembly.part("all"), seed=seed)
    warmup_s = duration / 10 if warmup is None else warmup
    if concurrency is None:
        concurrency = (1, 2, 4, 8) if rate is None else ()
    loads: list[tuple[Loop, float]] = [("closed", workers) for workers in concurrency]
    loads += [("open", qps) for qps in rate or ()]
    note(f"{counted(len(loads), 'load')} of {duration:g} s, each after {warmup_s:g} s to warm up")
    levels: list[Level] = []
    is_interrupted = False
    try:
        for level in measured(
            ask, loads, duration_s=duration, warmup_s=warmup_s, seed=seed, say=note
        ):
            levels.append(level)  # before it is told: who then stops is shown what was told
            count = level.load.latencies.summary().count
            note(f"{level.label}: {counted(count, 'query', 'queries')}")
    except KeyboardInterrupt:
        is_interrupted = True
        if not levels:
            raise
    if plot is not None:
        draw(levels, Path(plot), title=assembly.config.retriever.kind)
    if as_json:
        record = _record(choice, duration, warmup_s, levels)
        echo(json_text({**record, "is_interrupted": is_interrupted}, indent=2))
    else:
        print_levels(levels, choice)
    if is_interrupted:
        raise KeyboardInterrupt
    for line in remarks(levels):
        note(line)
    return 0 if any(level.load.qps for level in levels) else EXIT_FAILED


def _record(
    choice: Params | Policy, duration_s: float, warmup_s: float, levels: list[Level]
) -> dict[str, Any]:
    from tuner.core.policy import Policy

    return {
        "params": choice.to_record() if isinstance(choice, Policy) else dict(choice),
        "duration_s": duration_s,
        "warmup_s": warmup_s,
        "levels": [level.to_record() for level in levels],
    }
