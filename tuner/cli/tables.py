"""The table at the end of a run: the tune figures of all, the holdout of winner and baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tuner.cli.console import console, new_table
from tuner.cli.out import echo
from tuner.core.shown import counted, figure
from tuner.core.study_facts import types_found, whole_params
from tuner.core.study_record import Standing, StudyHeader, StudySummary
from tuner.core.trial import Params
from tuner.evaluation.system_metrics import SYSTEM_METRICS
from tuner.verdict.ruling import in_queries


def print_summary(header: StudyHeader, summary: StudySummary) -> None:
    """Print who won, by how much, and on which queries."""
    console().print(_table(header, summary))
    if summary.front:
        console().print(_front(summary.front))
        for text in (*(one["sentence"] for one in summary.goals), *summary.front_notes):
            echo(f"  {text}")
    if summary.verdict is not None:
        echo(f"\n{summary.verdict['sentence']}", bold=True)
        if "corrected" in summary.verdict and summary.verdict.get("by_type"):
            echo("by query type, on the queries that chose the winner, which flatters it:")
        print_types(summary.verdict)
        print_guardrails(summary.verdict.get("guardrails", {}))


def _table(header: StudyHeader, summary: StudySummary) -> Table:
    metric_names = tuple(header.objective["maximize"])
    has_holdout = any(one.holdout_objective is not None for _, one, _ in _rows(summary))
    held_out = ("holdout", *metric_names) if has_holdout else ()
    table = new_table("", "tune", *held_out, "parameters", words=("", "parameters"))
    for label, standing, style in _rows(summary):
        metrics = [figure(standing.holdout_metrics.get(name)) for name in metric_names]
        figures = [figure(standing.tune_objective)]
        if has_holdout:
            figures += [figure(standing.holdout_objective), *metrics]
        table.add_row(
            label, *figures, shown_params(whole_params(header, summary, standing)), style=style
        )
    return table


def _front(front: Sequence[Mapping[str, Any]]) -> Table:
    table = new_table("", *front[0]["goals"], "parameters", words=("", "parameters"))
    trials = len({point["trial"] for point in front})
    of_them = "" if trials == len(front) else f"{counted(len(front), 'setting')} of "
    table.title, table.title_justify = f"Pareto front: {of_them}{trials} of the trials", "left"
    for point in front:
        label = f"{point['arm']} #{point['trial']}{' (knee)' if point['is_knee'] else ''}"
        figures = [f"{value:.4g}" for value in point["goals"].values()]
        style = "bold" if point["is_knee"] else ""
        table.add_row(label, *figures, shown_params(point["params"]), style=style)
    return table


def print_types(verdict: Mapping[str, Any]) -> None:
    """Print where the winner of a recorded verdict wins and loses: one line a query type."""
    said = {None: "  too few queries to tell", True: "  clear", False: ""}
    for one in types_found(verdict):
        echo(
            f"  {one.name:<20} {one.difference:+.3f} on {in_queries(one.queries)} "
            f"({one.better} better, {one.worse} worse){said[one.clear]}"
        )


def print_guardrails(tests: Mapping[str, Mapping[str, Any]]) -> None:
    """Print each guard-rail: both values, how much worse at most, and what was allowed."""
    for name, test in tests.items():
        state = "kept" if test["is_non_inferior"] else "not shown to be kept"
        bound = test["loss_bound"]
        shown = _share if name in SYSTEM_METRICS else _amount
        at_most = "" if bound is None else f", worse by at most {shown(max(bound, 0.0))}"
        echo(
            f"  guard-rail {name}: {figure(test['treatment'])} against {figure(test['control'])}"
            f"{at_most} (allowed {shown(test['margin'])}): {state}"
        )


def _rows(summary: StudySummary) -> list[tuple[str, Standing, str]]:
    rows = [(standing.arm, standing, "") for standing in summary.arms]
    if summary.baseline is not None:
        rows.insert(0, ("baseline", summary.baseline, ""))
    if summary.best is not None:
        called = "best, winner" if summary.winner == summary.best else "best"
        rows.append((f"{called} ({summary.best.arm})", summary.best, "bold"))
    if summary.winner is not None and summary.winner != summary.best:
        rows.append((f"winner ({summary.winner.arm})", summary.winner, "bold"))
    return rows


def shown_params(params: Params | Mapping[str, Any]) -> str:
    """Return parameters on one line, floats to four digits."""
    return " ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


def _amount(value: float) -> str:
    return f"{value:.3g}"
