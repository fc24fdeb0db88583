"""A study's files out of MLflow, so that its report can be made where its run directory is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.run_files import CONFIG_FILE, JOURNAL_FILE, TABLE_FILE
from tuner.run.side_by_side import Passage, Side, SideBySide, write_side_by_side
from tuner.tracking.mlflow.tracker import Mlflow

# The same queries as per_query.jsonl holds, as a table that MLflow shows; without the titles.


def fetch_study(uri: str, run_id: str, folder: Path) -> Path:
    """Download what a report is made of into a folder, and return the folder.

    The run of an arm or of a trial leads to its study.

    Raises:
        InputError: the store has no such run.
        TunerError: the store cannot be reached, or the study has not ended.
    """
    Mlflow.check(uri)
    run_id = Mlflow.study_run(uri, run_id)
    folder.mkdir(parents=True)
    Mlflow.fetch(uri, run_id, JOURNAL_FILE, folder)
    # Not every study has these: no configuration of one from Python, no queries without a baseline.
    with suppress(TunerError):
        Mlflow.fetch(uri, run_id, CONFIG_FILE, folder)
    with suppress(TunerError):
        table = json.loads(Mlflow.fetch(uri, run_id, TABLE_FILE, folder).read_bytes())
        write_side_by_side(folder, rows_of(table))
    return folder


def rows_of(table: Mapping[str, Any]) -> list[SideBySide]:
    """Return the queries that a table from MLflow holds: its ``columns`` and its ``data``."""
    rows = [dict(zip(table["columns"], values, strict=True)) for values in table["data"]]
    return [
        SideBySide(
            query_id=row["query_id"],
            query=row["query"],
            query_type=row["query_type"],
            part=row["part"],
            relevant=tuple(row["relevant"]),
            winner=_side(row, "winner"),
            baseline=_side(row, "baseline"),
        )
        for row in rows
    ]


def _side(row: Mapping[str, Any], side: str) -> Side:
    """Read ``winner composite``, ``winner recall@10``, …, ``winner retrieved``."""
    own = {
        name.removeprefix(f"{side} "): value
        for name, value in row.items()
        if name.startswith(f"{side} ")
    }
    retrieved = own.pop("retrieved")
    composite = own.pop("composite")
    passages = (Passage(id_, "", id_ in row["relevant"]) for id_ in retrieved)
    return Side(composite, own, tuple(passages))
