"""Records that are read back from JSON."""

from __future__ import annotations

import math

import pytest

from tuner.core.json_text import read_as
from tuner.core.study_record import StudySummary

STANDING = {
    "arm": "tpe", "trial": 3, "params": {"top_k": 5, "mode": None, "weight": 0.5},
    "tune_objective": 1, "tune_metrics": {"recall@5": None, "mrr": 0.5},
}  # fmt: skip
SUMMARY = {
    "state": "finished", "best": STANDING, "baseline": None, "arms": [STANDING],
    "finished_trials": 4, "failed_trials": 0, "shared_trials": 0, "seconds": 1.5,
    "winner": STANDING, "verdict": {"outcome": "deploy", "sentence": "Deploy."},
    "front": [{"trial": 3, "arm": "tpe", "params": {}, "goals": {"mrr": 1}, "is_knee": True}],
    "racing": {"saved": 3, "of": 9}, "from a later version": 7,
}  # fmt: skip


def test_what_is_as_promised_comes_back():
    summary = StudySummary.from_record(SUMMARY)
    assert summary.winner is not None
    assert summary.winner.params == STANDING["params"]
    assert math.isnan(summary.winner.tune_metrics["recall@5"])
    assert summary.arms == (summary.arms[0],)
    assert summary.racing is not None
    assert summary.racing.of == 9
    assert summary.remarks == ()


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("state",), None, "state is None"),
        (("arms",), {}, "arms is {}"),
        (("arms", 0), "tpe", "arms[0] is 'tpe'"),
        (("winner", "trial"), True, "winner.trial is True"),
        (("winner", "tune_objective"), "x", "winner.tune_objective is 'x'"),
        (("best", "params", "top_k"), [5], "best.params.top_k is [5]"),
        (("verdict",), "deploy", "verdict is 'deploy'"),
        (("verdict", "outcome"), 7, "verdict.outcome is 7"),
        (("front", 0, "goals"), None, "front[0].goals is None"),
        (("racing", "of"), "many", "racing.of is 'many'"),
        (("finished_trials",), 1.5, "finished_trials is 1.5"),
    ],
)
def test_what_is_not_is_named(path, value, named):
    def changed(node, keys):
        key, *rest = keys
        copy = list(node) if isinstance(node, list) else dict(node)
        copy[key] = changed(copy[key], rest) if rest else value
        return copy

    with pytest.raises(ValueError) as raised:
        StudySummary.from_record(changed(SUMMARY, path))
    assert str(raised.value) == named


@pytest.mark.parametrize("name", ["state", "best", "arms", "seconds"])
def test_what_is_missing_is_named(name):
    with pytest.raises(ValueError, match=f"^{name} is missing$"):
        StudySummary.from_record({key: v for key, v in SUMMARY.items() if key != name})


def test_a_pair_has_two_parts():
    assert read_as(tuple[float, float] | None, [1, 2.5]) == (1, 2.5)
    assert read_as(tuple[float, float] | None, None) is None
    with pytest.raises(ValueError, match=r"interval is \[1\]"):
        read_as(tuple[float, float] | None, [1], "interval")
