"""The simulations of the online statistics run, and say what they said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("online.py")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    file = tmp_path_factory.mktemp("online") / "found.json"
    parts = ["assignment", "ratio_mismatch", "methods", "cuped", "small", "decisions"]
    done = subprocess.run(
        [sys.executable, SCRIPT, "--repetitions", "40", "--only", *parts, "--json", file],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("| --- |") == len(parts)
    return json.loads(file.read_text(encoding="utf-8"))


def test_assignment_is_uniform_and_independent(found):
    for row in found["assignment"]:
        assert row["uniform, p"] > 0.001
        assert row["split, p"] > 0.001
        assert row["independent of another experiment, p"] > 0.001
        assert row["units in two parts of a layer"] == 0


def test_a_true_mismatch_is_detected(found):
    by_share = {row["true share"]: row["stopped"] for row in found["ratio_mismatch"]}
    assert by_share[0.5] < 0.05
    assert by_share[0.53] > 0.9


def test_the_wrong_tests_find_what_is_not_there(found):
    for row in found["methods"]:
        assert row["found"] < row["wrongly found"]


def test_cuped_takes_the_squared_correlation(found):
    for row in found["cuped"]:
        assert row["variance less"] == pytest.approx(row["correlation"] ** 2, abs=0.02)


def test_peeking_inflates_the_plain_test_only(found):
    for row in found["small"]:
        assert row["always valid"] <= row["once"] + 0.05
        assert row["always valid"] < row["peeked"]


def test_recommendations_follow_the_truth(found):
    rows = {row["truth"]: row for row in found["decisions"]}
    assert rows["15 % better"]["ship"] > 0.5
    assert rows["15 % worse"]["do not ship"] > 0.8
    assert rows["nothing differs"]["ship"] <= 0.2
