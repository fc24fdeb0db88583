"""tuner abtest analyze: what came of an experiment, in a sentence, a table, HTML, JSON, MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.completion import files
from tuner.cli.options import config_argument, note, set_option
from tuner.cli.out import echo
from tuner.core.errors import EXIT_SAMPLE_RATIO, InputError
from tuner.core.files import write_whole
from tuner.core.json_text import json_text
from tuner.core.shown import counted

if TYPE_CHECKING:
    from tuner.abtest.analysis import Analysis
    from tuner.abtest.decision import Decision


@click.command("analyze", short_help="Test the results: ship, do not ship, or keep collecting.")
@config_argument
@click.argument("results", shell_complete=files)
@click.option("--html", metavar="FILE", help="Also write one self-contained HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--mlflow", "uri", metavar="URI", help="Also write a run to this store, such as sqlite:///m.db."
)
@set_option
def command(
    config: str,
    results: str,
    html: str | None,
    as_json: bool,
    uri: str | None,
    settings: tuple[str, ...],
) -> None:
    """Compare the arms in RESULTS (.csv, .tsv, .jsonl, .parquet) as CONFIG planned.

    Each row is something that a unit did: it names the unit, its arm, and the columns of the
    metrics. A unit that did nothing needs a row without values, because it counts for the shares of
    the arms. Exit code 21: the arms do not have their shares of the units, so nothing was compared.
    """
    from tuner.abtest.analysis import analyze, read_results
    from tuner.abtest.decision import decide
    from tuner.abtest.experiment import load_experiment
    from tuner.abtest.report import MLFLOW_EXPERIMENT, log_run, to_html, to_record
    from tuner.tracking.uri import check_uri, mask

    experiment, _ = load_experiment(config, settings)
    if uri is not None:
        check_uri(uri)
    if html is not None and not Path(html).parent.is_dir():
        raise InputError(f"--html {html}: there is no folder {str(Path(html).parent)!r}")
    if html is not None and Path(html).is_dir():
        raise InputError(f"--html {html}: this is a folder; name a file, such as page.html")
    analysis = analyze(experiment, read_results(experiment, results))
    decision = decide(analysis)
    if analysis.misplaced:
        note(
            f"note: {analysis.misplaced:,} of {sum(analysis.counts.values()):,} units are in "
            "another arm than `tuner abtest assign` gives them"
        )
    page = to_html(analysis, decision)
    if html is not None:
        write_whole(Path(html), page)
        note(f"page: {html}")
    if as_json:
        echo(json_text(to_record(analysis, decision), indent=2))
    else:
        _print(analysis, decision)
    if uri is not None:  # last, since a server may be away and the rest is known by now
        run_id = log_run(uri, analysis, decision, page)
        note(f"MLflow at {mask(uri)}: run {run_id} in {MLFLOW_EXPERIMENT}")
    if decision.outcome == "stop":
        raise click.exceptions.Exit(EXIT_SAMPLE_RATIO)


def _print(analysis: Analysis, decision: Decision) -> None:
    from tuner.abtest.decision import decide_each
    from tuner.abtest.report import COLUMNS, legend, table_row
    from tuner.cli.console import console, new_table

    units = ", ".join(f"{arm} {count:,}" for arm, count in analysis.counts.items())
    total = sum(analysis.counts.values())
    echo(f"{counted(analysis.rows, 'row')} of {counted(total, 'unit')}: {units}")
    echo(f"sample ratio: p = {analysis.sample_ratio.p_value:.3g}")
    for treatment, results in analysis.results.items():
        echo(f"\n{treatment} against control")
        table = new_table(*COLUMNS, words=("metric", "role", ""))
        for one in results:
            table.add_row(*table_row(analysis.config, one))
        console().print(table)
    if analysis.results:
        echo(legend(analysis.config))
    every = decide_each(analysis)
    if len(every) > 1:
        echo()
        for each in every:
            echo(each.sentence)
    echo(f"\n{decision.sentence}", bold=True)
