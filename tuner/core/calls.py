"""Queries that a study asks of its system beside its trials, by what they are for."""

from __future__ import annotations

from collections.abc import Mapping

TRIALS = "trials"
DEAD_KNOBS = "dead_knobs"
QUERY_TIME = "query_time"
NOTHING_FOUND = "nothing_found"
PROBE = "probe"
HOLDOUT = "holdout"
VERDICT = "verdict"
ASKED_TWICE = "asked_twice"
LATENCY = "latency"
SIDE_BY_SIDE = "side_by_side"

# In the order in which they are shown.
PURPOSES: Mapping[str, str] = {
    HOLDOUT: "to score the held-out ones",
    VERDICT: "for the verdict",
    ASKED_TWICE: "to see whether the same answer comes twice",
    LATENCY: "to time winner and baseline by turns",
    SIDE_BY_SIDE: "to put winner and baseline side by side",
    DEAD_KNOBS: "to look for parameters without effect (inspection: off leaves them out)",
    QUERY_TIME: "to see how long one takes by itself",
    NOTHING_FOUND: "to see why nothing relevant was found",
    PROBE: "to see whether the system still answers",
}


def calls_sentence(asked: Mapping[str, int]) -> str:
    """Return how many queries were asked, and what for; empty where none was asked besides trials.

    >>> calls_sentence({"trials": 900, "dead_knobs": 0, "holdout": 20, "verdict": 1})
    '900 queries asked in trials, 21 besides: 20 to score the held-out ones, 1 for the verdict'
    """
    besides = {purpose: asked.get(purpose, 0) for purpose in PURPOSES}
    if not any(besides.values()):
        return ""
    parts = [f"{count:,} {PURPOSES[purpose]}" for purpose, count in besides.items() if count]
    total = sum(besides.values())
    return (
        f"{asked.get(TRIALS, 0):,} queries asked in trials, {total:,} besides: {', '.join(parts)}"
    )
