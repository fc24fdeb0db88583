"""What indexes cost is counted from trials: each index once, and only what was built is paid."""

from __future__ import annotations

from dataclasses import replace

from tuner.core.index_costs import IndexCosts, index_costs
from tuner.core.trial import IndexUse, Trial, TrialState

NEW = IndexUse("a", 10.0, 3.0, 100, tokens=50, money=0.5, is_new=True)
OLD = replace(NEW, is_new=False)


def trial(number: int, index: IndexUse | None) -> Trial:
    return Trial(number, "grid", {}, state=TrialState.FINISHED, objective=0.5, index=index)


def failed(number: int, reason: str, waited: float) -> Trial:
    state = TrialState.FAILED
    return Trial(number, "grid", {}, state=state, error=reason, seconds={"index": waited})


def test_an_index_counts_once_and_as_built_by_whichever_trial_found_it_new() -> None:
    trials = [trial(0, OLD), trial(1, NEW), trial(2, OLD)]
    assert index_costs(trials) == IndexCosts(1, 0, 0, 10.0, 3.0, 50, 0.5)


def test_what_lay_in_the_cache_takes_room_but_was_not_paid_now() -> None:
    other = IndexUse("b", 7.0, 2.0, 100, tokens=9)
    found = index_costs([trial(0, NEW), trial(1, other)])
    assert found == IndexCosts(1, 1, 0, 10.0, 5.0, 50, 0.5)
    assert found.sentence == (
        "2 indexes: 1 built in 10.0 s, 1 found in the cache; 5.0 MB, 50 tokens, money 0.50"
    )


def test_an_index_that_could_not_be_built_counts_once_with_what_was_waited_for_it() -> None:
    reason = "the index with size=3 could not be built: no room"
    found = index_costs([trial(0, NEW), failed(1, reason, 4.0), failed(2, reason, 0.0)])
    assert (found.built, found.failed, found.seconds) == (1, 1, 14.0)


def test_a_trial_that_failed_with_its_index_there_is_no_failure_of_the_index() -> None:
    broken = replace(failed(0, "no such hop", 3.0), index=NEW)
    assert index_costs([broken]) == IndexCosts(1, 0, 0, 10.0, 3.0, 50, 0.5)


def test_there_are_no_costs_where_no_trial_tells_of_an_index() -> None:
    assert index_costs([trial(0, None), replace(failed(1, "no", 1.0), seconds={})]) is None
