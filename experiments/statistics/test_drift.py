"""The simulation behind `tuner drift` runs, and a small one finds what the large one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("drift.py")

pytestmark = pytest.mark.slow


def run(tmp_path, *options):
    found = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options, "--json", str(found)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "| --- |" in done.stdout
    return json.loads(found.read_text(encoding="utf-8"))


def test_false_alarms_are_rare(tmp_path):
    rows = run(tmp_path, "--only", "looks", "--repetitions", "40")["looks"]
    assert max(row["tests"] for row in rows) == 10
    # 16 cases of 40 looks, promised at most 5 %, 8.5 % with strong autocorrelation: of 640 looks
    # 10 % would be 64.
    assert sum(row["clear"] for row in rows) / len(rows) < 0.10
    assert all(row["alarm"] <= row["clear"] for row in rows)


def test_declines_are_seen(tmp_path):
    picture = tmp_path / "delay.png"
    rows = run(tmp_path, "--only", "delay", "--delays", "5", "--png", str(picture))["delay"]
    medians = {(row["decline"], row["r"]): row["median"] for row in rows}
    assert medians["drop of 20 %", 0.0] <= 7
    assert medians["drop of 10 %", 0.0] < medians["decline of 1 % a week", 0.0] <= 60
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_year_without_drift_is_quiet(tmp_path):
    rows = run(tmp_path, "--only", "years", "--years", "1")["years"]
    assert [row["r"] for row in rows] == [0.0, 0.3, 0.6]
    assert rows[0]["begun"] <= 2
