"""Queries that are asked of a system, by what they are for: in trials, and beside them."""

from __future__ import annotations

from collections.abc import Mapping

from tuner.core.shown import counted

TRIALS = "trials"
TIMED_IN_TRIALS = "timed_in_trials"
DEAD_KNOBS = "dead_knobs"
QUERY_TIME = "query_time"
NOTHING_FOUND = "nothing_found"
PROBE = "probe"
PREPARING = "preparing"
HOLDOUT = "holdout"
VERDICT = "verdict"
ASKED_TWICE = "asked_twice"
CHECKED = "checked"
LATENCY = "latency"
SIDE_BY_SIDE = "side_by_side"
EVALUATION = "evaluation"
PARTS = "parts"
TIMED = "timed"

# What the search asks.
OF_TRIALS = (TRIALS, TIMED_IN_TRIALS)

# In the order in which they are shown.
PURPOSES: Mapping[str, str] = {
    TIMED_IN_TRIALS: "to time queries in trials",
    EVALUATION: "to evaluate",
    PARTS: "to search again without each part",
    HOLDOUT: "to score the held-out ones",
    VERDICT: "for the verdict",
    ASKED_TWICE: "to see whether the same answer comes twice",
    TIMED: "to time queries",
    LATENCY: "to time winner and baseline by turns",
    SIDE_BY_SIDE: "to put winner and baseline side by side",
    DEAD_KNOBS: "to look for parameters without effect (inspection: off leaves them out)",
    QUERY_TIME: "to see how long one takes by itself",
    NOTHING_FOUND: "to see why nothing relevant was found",
    CHECKED: "to check which parameters are free",
    PROBE: "to see whether the system still answers",
    PREPARING: "to make the system ready",
}

# What is spent on what, beside the baseline, which is one of the trials.
SPENT_ON: Mapping[str, tuple[str, ...]] = {
    "search": OF_TRIALS,
    "search without each part": (PARTS,),
    "held-out queries": (HOLDOUT, TIMED),
    "verdict": (VERDICT, ASKED_TWICE, LATENCY, SIDE_BY_SIDE),
    "probing": (PREPARING, CHECKED, NOTHING_FOUND, PROBE, QUERY_TIME, DEAD_KNOBS),
    "evaluation": (EVALUATION,),
}

# The parts of it that come after the search.
AFTER_THE_SEARCH = ("held-out queries", "verdict")
# What reads again what was answered in trials, or to score the held-out queries: nothing is saved
# by that.
READ_AGAIN = (VERDICT, SIDE_BY_SIDE, DEAD_KNOBS)

# What asks queries one at a time for its own sake; in any other, one that is asked alone is timed.
_ALONE = (LATENCY, QUERY_TIME, PROBE)


def purpose_alone(purpose: str) -> str:
    """Return what a query is counted for that is asked alone: to be timed, in most purposes.

    >>> purpose_alone(HOLDOUT), purpose_alone(PROBE), purpose_alone(TRIALS)
    ('timed', 'probe', 'timed_in_trials')
    """
    if purpose == TRIALS:
        return TIMED_IN_TRIALS
    return purpose if purpose in _ALONE else TIMED


def calls_sentence(asked: Mapping[str, int]) -> str:
    """Return how many queries were asked, and what for; empty where none was.

    >>> calls_sentence({"trials": 900, "dead_knobs": 0, "holdout": 20, "verdict": 1})
    '900 queries asked in trials, 21 besides: 20 to score the held-out ones, 1 for the verdict'
    >>> calls_sentence({"trials": 900})
    '900 queries asked in trials'
    >>> calls_sentence({"evaluation": 20, "timed": 21})
    '41 queries asked: 20 to evaluate, 21 to time queries'
    >>> calls_sentence({"evaluation": 1})
    '1 query asked: 1 to evaluate'
    """
    besides = {purpose: asked.get(purpose, 0) for purpose in PURPOSES}
    parts = [f"{count:,} {PURPOSES[purpose]}" for purpose, count in besides.items() if count]
    total, told = sum(besides.values()), ", ".join(parts)
    if TRIALS not in asked:
        return f"{counted(total, 'query', 'queries')} asked: {told}" if parts else ""
    in_trials = f"{counted(asked[TRIALS], 'query', 'queries')} asked in trials"
    if not parts:
        return in_trials if asked[TRIALS] else ""
    return f"{in_trials}, {total:,} besides: {told}"
