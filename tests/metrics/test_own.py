"""What an author's metric does wrong is told in words, with the line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tuner.core.errors import MetricError
from tuner.core.rankings import Rankings
from tuner.metrics import names
from tuner.metrics.names import parse
from tuner.metrics.qrels import Qrels


def test_an_error_in_a_metric_is_told_with_its_name_and_line() -> None:
    def broken(judged: Any, cutoff: int) -> Any:
        return judged.hits[:, cutoff + 100]

    judged = Qrels.build({"q": {"a": 1.0}}, query_ids=["q"]).judge(
        Rankings.from_ids(["q"], [["a"]])
    )
    metric = replace(parse("recall@5"), function=broken)
    with pytest.raises(
        MetricError, match=r"metric 'recall@5' raised IndexError: .*test_own\.py:\d"
    ):
        metric.per_query(judged)


def test_a_file_of_metrics_that_cannot_be_imported_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_metrics_file.py").write_text("\n1 / 0\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    with pytest.raises(MetricError, match=r"own_metrics_file cannot be imported: ZeroDivision.*:2"):
        names._module("own_metrics_file")
