"""A journal of a later version is read: what this one does not know is left out."""

from __future__ import annotations

from tuner.core.study_record import StudyHeader
from tuner.core.trial import Race, Trial, TrialState

HEADER = {
    "study_id": "s",
    "name": "n",
    "created_at": 1.0,
    "seed": 1,
    "arms": [{"name": "tpe", "kind": "tpe", "budget": 3, "later": True}],
    "space": {},
    "objective": {},
    "later": 7,
}


def test_keys_of_a_later_version_are_left_out():
    header = StudyHeader.from_record(HEADER)
    assert (header.arms[0].budget, header.ahead) == (3, 4)
    race = {"queries": 8, "estimate": 0.5, "low": 0.4, "high": 0.6, "later": 1}
    trial = {"trial": 1, "arm": "tpe", "params": {}, "state": "raced out", "race": race, "later": 1}
    read = Trial.from_record({**trial, "state": TrialState.RACED_OUT.value})
    assert read.race == Race(8, 0.5, 0.4, 0.6)
