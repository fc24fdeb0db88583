"""Tables and sentences of ``tuner score``: runs side by side, spreads, and comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from tuner.cli.aggregate_tables import SPREAD_COLUMNS, spread_cells
from tuner.cli.console import console
from tuner.core.shown import as_percent, figure, shown_p
from tuner.metrics import aggregate_by
from tuner.scoring.scores import (
    UNJUDGED_DEPTH,
    RunComparison,
    RunScore,
    Scores,
)


def print_scores(scores: Scores) -> None:
    """Print a row for each metric and a column for each run, then what was left out."""
    table = _table("", *(run.name for run in scores.runs))
    for metric in scores.metrics:
        table.add_row(metric, *(figure(run.mean(metric)) for run in scores.runs))
    table.add_section()
    table.add_row("queries missing (0)", *(str(len(run.missing)) for run in scores.runs))
    table.add_row("queries without judgements", *(str(r.without_judgements) for r in scores.runs))
    table.add_row(f"unjudged in top {UNJUDGED_DEPTH}", *(unjudged(run) for run in scores.runs))
    console().print(table)


def print_spreads(scores: Scores) -> None:
    """Print how each metric is spread over the queries, a row for each run and metric."""
    table = _table("run", "metric", *SPREAD_COLUMNS)
    for run in scores.runs:
        for metric in scores.metrics:
            table.add_row(run.name, metric, *spread_cells(run.values[metric]))
    console().print(table)


def print_queries(scores: Scores) -> None:
    """Print every value of every query, a row for each query and run."""
    table = _table("query", "run", *scores.metrics)
    for row, query in enumerate(scores.query_ids):
        for run in scores.runs:
            values = (float(run.values[metric][row]) for metric in scores.metrics)
            table.add_row(query, run.name, *map(figure, values))
    console().print(table)


def print_groups(scores: Scores, label: str, groups: Sequence[str]) -> None:
    """Print the means of each group of queries, such as each query type."""
    table = _table(label.replace("_", " "), "queries", "metric", *(run.name for run in scores.runs))
    by_metric = {
        metric: [aggregate_by(run.values[metric], groups) for run in scores.runs]
        for metric in scores.metrics
    }
    for group in sorted(set(groups)):
        for metric, by_run in by_metric.items():
            is_first = metric == scores.metrics[0]
            head = (group, str(groups.count(group))) if is_first else ("", "")
            table.add_row(*head, metric, *(figure(figures[group].mean) for figures in by_run))
    console().print(table)


def print_comparison(comparisons: Sequence[RunComparison]) -> None:
    """Print one later run against the first: a row for each metric, then what it shows."""
    table = _table(
        "metric", "difference", "95 % interval", "p", "p Holm", "p flip", "w/t/l"
    )  # fmt: skip
    for one in comparisons:
        result = one.comparison
        low, high = result.interval or (None, None)
        table.add_row(
            one.metric,
            figure(result.mean_difference, "+.4f"),
            "–" if low is None else f"{low:+.4f} to {high:+.4f}",
            shown_p(result.p_value),
            shown_p(one.adjusted_p),
            shown_p(result.permutation_p),
            f"{result.wins}/{result.ties}/{result.losses}",
        )
    console().print(table)


def legend(tests: int) -> str:
    """Say which columns of the comparisons allow for their number."""
    test = "paired t-test with degrees of freedom by the kurtosis of the differences (not n - 1)"
    return (
        f"p: {test}; p Holm: that p corrected for all {tests} comparisons (runs x metrics); "
        "each interval is 95 % for its own comparison alone, so it can leave 0 out where p Holm "
        "shows no difference. p flip: sign-flip permutation, not corrected."
        if tests > 1
        else f"p: {test}; p flip: sign-flip permutation. One comparison needs no correction."
    )


def unjudged(run: RunScore) -> str:
    """Return the share of unjudged documents as a percentage."""
    return as_percent(run.unjudged_share, ".1%")


def _table(*columns: str) -> Table:
    # Without padding at the edges, a comparison fits into 80 columns.
    table = Table(*columns, box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "left" if column.header in ("run", "metric") else "right"
    return table
