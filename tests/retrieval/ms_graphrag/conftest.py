"""A real output folder of GraphRAG's, made by experiments/ms_graphrag/make_fixture.py."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from tuner.datasets import Dataset, open_dataset

FIXTURE = Path(__file__).resolve().parents[1] / "data" / "ms_graphrag"

Rows = list[dict[str, Any]]
Edit = Callable[[str, Callable[[Rows], Rows]], None]


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return open_dataset(FIXTURE / "data")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the output folder; tests then change parts of it."""
    return shutil.copytree(FIXTURE / "output", tmp_path / "output")


@pytest.fixture
def edit(folder: Path) -> Edit:
    """Change the rows of one table."""

    def change(table: str, how: Callable[[Rows], Rows]) -> None:
        path = folder / f"{table}.parquet"
        was = parquet.read_table(path)
        rows = how(was.to_pylist())
        columns = rows[0].keys() if rows else was.column_names
        types = {name: was.schema.field(name).type for name in was.column_names}
        arrays = {
            name: pyarrow.array([row[name] for row in rows], types.get(name)) for name in columns
        }
        parquet.write_table(pyarrow.table(arrays), path)

    return change
