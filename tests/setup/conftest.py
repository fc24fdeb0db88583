from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import write_data


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a small data set in ``data``, and a cache of its own."""
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    write_data(tmp_path / "data")
    return tmp_path
