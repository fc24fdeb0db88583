"""The winner beside the baseline, query by query, as a table that MLflow's UI shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuner.core.json_text import json_text
from tuner.core.run_files import QUERIES_FILE, TABLE_FILE

LOGGED_TABLES = "mlflow.loggedArtifacts"

_SIDES = ("winner", "baseline")


def write_query_table(run_dir: Path, folder: Path) -> Path | None:
    """Write ``per_query.json`` as ``mlflow.log_table`` does; None where nothing was compared.

    Not by ``log_table`` itself, which appends to what is there: a second time would double it.
    """
    source = run_dir / QUERIES_FILE
    if not source.is_file():
        return None
    lines = source.read_text(encoding="utf-8").split("\n")
    path = folder / TABLE_FILE
    table = query_table([json.loads(line) for line in lines if line.strip()])
    path.write_text(json_text(table), encoding="utf-8")
    return path


def query_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return columns and data: a row a query, that which lost most first, undefined ones last."""
    names = list(dict.fromkeys(name for row in rows for name in row["winner"]["metrics"]))
    columns = [
        *("query_id", "query", "query_type", "change"),
        *(f"{side} composite" for side in _SIDES),
        *(f"{side} {name}" for name in names for side in _SIDES),
        *(f"{side} retrieved" for side in _SIDES),
        *("relevant", "part"),
    ]
    ordered = sorted(rows, key=_losses_first)
    return {"columns": columns, "data": [_cells(row, names) for row in ordered]}


def with_table(tag: str | None) -> str:
    """Return the tag by which MLflow knows a run's tables, with ours in it."""
    ours = {"path": TABLE_FILE, "type": "table"}
    tables = json.loads(tag or "[]")
    return json.dumps(tables if ours in tables else [*tables, ours])


def _cells(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    sides = [row[side] for side in _SIDES]
    return [
        *(row[name] for name in ("query_id", "query", "query_type")),
        _change(row),
        *(side["composite"] for side in sides),
        *(side["metrics"].get(name) for name in names for side in sides),
        *([passage["id"] for passage in side["retrieved"]] for side in sides),
        *(row["relevant"], row["part"]),
    ]


def _change(row: Mapping[str, Any]) -> float | None:
    winner, baseline = (row[side]["composite"] for side in _SIDES)
    # Rounded, as a difference of two decimals shows its last binary digits.
    return None if winner is None or baseline is None else round(winner - baseline, 12)


def _losses_first(row: Mapping[str, Any]) -> tuple[bool, float]:
    change = _change(row)
    return (change is None, change or 0.0)
