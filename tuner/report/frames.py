"""A study as tables of pandas: its trials, the values by query, and the curves of free parameters.

A column of numbers is of numbers: what is undefined, or not set in a trial, is NaN, and whole
numbers stay whole where every trial has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tuner.core.checks import is_number
from tuner.core.ledger import Asked
from tuner.core.rankings import FloatArray
from tuner.core.spent import Cost
from tuner.core.trial import IndexUse, Trial
from tuner.run.side_by_side import Side, SideBySide

if TYPE_CHECKING:
    import pandas

_NAN = float("nan")


def trials_frame(
    trials: Iterable[Trial], *, queries: int | None = None, cost: Cost | None = None
) -> pandas.DataFrame:
    """Return the trials, one a row, by their numbers.

    ``queries`` is how many there are to tune on, and ``cost`` what the system costs; with them each
    trial's row says how many queries its evaluation answered, and what that cost. A trial that
    shares its result asked none; what one that failed had asked is not known.
    """
    import pandas

    rows = [_row(trial, queries, cost) for trial in trials]
    names = list(dict.fromkeys(name for row in rows for name in row))
    ordered = sorted(names, key=_place)  # stable: each family in the order of its first
    columns = {name: _column([row.get(name) for row in rows]) for name in ordered}
    for name in ("asked_at", "told_at"):
        if name in columns:
            columns[name] = pandas.to_datetime(columns[name], unit="s", utc=True)
    table = pandas.DataFrame({name: column for name, column in columns.items() if name != "trial"})
    table.index = pandas.Index([row["trial"] for row in rows], name="trial", dtype="int64")
    return table


def by_query_frame(
    values: Mapping[int, FloatArray], query_ids: Sequence[str] | None
) -> pandas.DataFrame:
    """Return values of shape (queries,) by trial as queries × trials.

    Without ids the rows are numbered, in the order in which the study asked.
    """
    import pandas

    table = pandas.DataFrame(dict(values))
    table.columns = pandas.Index(list(values), name="trial", dtype="int64")
    table.index = pandas.Index(
        range(len(table)) if query_ids is None else query_ids, name="query_id"
    )
    return table


def side_by_side_frame(rows: Sequence[SideBySide]) -> pandas.DataFrame:
    """Return each query with the answers of winner and baseline, by the queries' ids."""
    import pandas

    names = list(dict.fromkeys(name for row in rows for name in row.winner.metrics))
    records = [
        {
            "query": row.query,
            "query_type": row.query_type,
            "part": row.part,
            "change": _number(row.change),
            **_side("winner", row.winner, names),
            **_side("baseline", row.baseline, names),
            "relevant": list(row.relevant),
        }
        for row in rows
    ]
    index = pandas.Index([row.query_id for row in rows], name="query_id")
    return pandas.DataFrame(records, index=index)


def curves_frame(trial: Trial | None) -> pandas.DataFrame:
    """Return the objective against each free parameter, as the answer of a trial tells it.

    ``error`` is the standard error of the paired difference to the chosen value.
    """
    import pandas

    curves = () if trial is None or trial.profile is None else trial.profile.curves
    columns: dict[str, list[Any]] = {
        "parameter": [curve.name for curve in curves for _ in curve.at],
        "value": [value for curve in curves for value in curve.at],
        "objective": [value for curve in curves for value in curve.objective],
        "error": [_number(value) for curve in curves for value in curve.error],
    }
    kinds = dict.fromkeys(("value", "objective", "error"), "float64")
    return pandas.DataFrame(columns).astype(kinds)


def _row(trial: Trial, queries: int | None, cost: Cost | None) -> dict[str, Any]:
    race = trial.race
    answered = _answered(trial, queries)
    return {
        "trial": trial.number,
        "arm": trial.arm,
        "state": trial.state.value,
        "objective": _number(trial.objective),
        # Of a trial that a race stopped, the objective is what it would have had at best guess.
        **({} if race is None else {"estimate": race.estimate}),
        "violation": trial.violation if trial.is_scored else _NAN,
        **{f"params.{name}": value for name, value in trial.params.items()},
        **{f"metrics.{name}": value for name, value in trial.metrics.items()},
        "seconds": _number(trial.seconds.get("total")),
        **{f"seconds.{name}": v for name, v in trial.seconds.items() if name != "total"},
        **({} if queries is None else {"queries": answered}),
        **({} if cost is None else {"cost": _money(trial, answered, cost)}),
        **({} if trial.index is None else _index(trial.index)),
        "asked_at": trial.asked_at,
        "told_at": _number(trial.told_at),
        **({} if trial.shared_from is None else {"shared_from": trial.shared_from}),
        "error": trial.error,
    }


_FAMILIES = (
    *("trial", "arm", "state", "objective", "estimate", "violation", "params.", "metrics."),
    *("seconds", "queries", "cost", "index.", "asked_at", "told_at", "shared_from", "error"),
)


def _place(name: str) -> tuple[int, bool]:
    family = next(f for f in _FAMILIES if name == f or name.startswith(f"{f.rstrip('.')}."))
    return _FAMILIES.index(family), name != family


def _answered(trial: Trial, queries: int | None) -> float:
    if trial.shared_from is not None:
        return 0.0
    if trial.race is not None:
        return float(trial.race.queries)
    return float(queries) if queries is not None and trial.is_scored else _NAN


def _money(trial: Trial, answered: float, cost: Cost) -> float:
    if answered != answered:
        return _NAN
    tokens = trial.metrics.get("context_tokens", 0.0) * answered
    if answered and tokens != tokens:
        return _NAN
    asked = Asked(sent=int(answered), answered=int(answered), tokens=tokens if answered else 0.0)
    built = [use for use in (trial.index.each if trial.index else ()) if use.is_new]
    return cost.of(asked) + sum(
        cost.per_index if use.money is None else use.money for use in built if answered
    )


def _index(use: IndexUse) -> dict[str, Any]:
    return {
        "index.name": use.name,
        "index.is_new": use.is_new,
        "index.seconds": use.seconds,
        "index.megabytes": use.megabytes,
        **({} if use.tokens is None else {"index.tokens": use.tokens}),
        **({} if use.money is None else {"index.money": use.money}),
    }


def _side(name: str, side: Side, metrics: Sequence[str]) -> dict[str, Any]:
    return {
        f"{name}.composite": _number(side.composite),
        **{f"{name}.{metric}": _number(side.metrics.get(metric)) for metric in metrics},
        f"{name}.retrieved": [passage.id for passage in side.retrieved],
    }


def _column(values: Sequence[Any]) -> pandas.Series[Any]:
    """Return values as a column of one type, where they have one."""
    import pandas

    there = [value for value in values if value is not None]
    if there and all(is_number(value) for value in there):
        is_whole = len(there) == len(values) and all(isinstance(value, int) for value in there)
        numbers = [_NAN if value is None else value for value in values]
        return pandas.Series(numbers, dtype="int64" if is_whole else "float64")
    if len(there) == len(values) and all(isinstance(value, bool) for value in there):
        return pandas.Series(values, dtype="bool")
    return pandas.Series(values, dtype=None if _are_texts(there) else "object")


def _are_texts(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def _number(value: float | None) -> float:
    return _NAN if value is None else float(value)
