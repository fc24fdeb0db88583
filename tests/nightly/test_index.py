"""Nights over a parameter of the index: the champion's index stays, whatever else has to go."""

from __future__ import annotations

from typing import Any

import pytest

from tuner.retrieval.indexes.record import read_record

pytestmark = pytest.mark.slow


def test_the_index_of_the_champion_outlasts_the_limit(
    nights: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    space = {
        **nights.config["space"],
        "bm25_k1": {"type": "categorical", "choices": [0.6, 1.2, 1.8, 2.4]},
    }
    nights.configure(
        space=space,
        baseline={**nights.config["baseline"], "bm25_k1": 2.4},
        index={"keep": {"count": 1}},
    )
    first = nights("2026-03-01")
    assert first["outcome"] == "promoted"
    second = nights("2026-03-02")
    champion = second["champion"]["params"]
    assert champion == first["challenger"]["params"]
    assert any("to learn from" in note for note in second["notes"])
    records = [read_record(path) for path in (tmp_path / "cache" / "indexes").iterdir()]
    kept = {record.settings["bm25_k1"] for record in records if record is not None}
    assert champion["bm25_k1"] in kept
