"""Every case that a verdict knows, with the exact words: outcome, reason, prospect and caveats."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from tuner.core.trial import Trial, TrialState
from tuner.study.failures import Failures
from tuner.verdict.by_judge import ByJudge
from tuner.verdict.caveats import caveat_of_parts, caveats_of_failures
from tuner.verdict.few_queries import decide_without_holdout
from tuner.verdict.looks import EarlierLooks
from tuner.verdict.measured import Measured
from tuner.verdict.outcome import Rail
from tuner.verdict.ruling import (
    THE_WINNER,
    CaveatKind,
    Names,
    Outlook,
    Reason,
    Ruling,
    read_record,
)
from tuner.verdict.verdict import Guardrail, decide
from tuner.verdict.words import retold, tell, weakened

QUICK = {"draws": 0}
COMPARED = Names("B", "A", "tune queries", "A and B are the same")
POLICY = Names("the policy", "the fixed parameters")
SLOWER = Guardrail("latency_p95_ms", max_increase=0.1, is_relative=True)
RECALL = Guardrail("recall@10", max_decrease=0.01)


def noise(mean, spread, queries):
    """Return values with this mean that lie ``spread`` above and below it by turns."""
    return mean + np.tile([spread, -spread], queries // 2)


def against(gain, *, tokens=None, rails=None, **options):
    """Decide where the second gains ``gain`` by query over .5; ``tokens`` are of both."""
    gain = np.asarray(gain, dtype=float)
    names = ("new", "new" if options.pop("is_same", False) else "old")
    sides = []
    for side, composite in enumerate((0.5 + gain, np.full(len(gain), 0.5))):
        metrics = {
            name: np.asarray(both[side], dtype=float) for name, both in (rails or {}).items()
        }
        priced = {}
        if tokens is not None:
            paid = tokens[side] + np.arange(len(gain)) % 7
            priced = {
                "objective": composite - 0.0001 * paid,
                "costs": {"context_tokens": float(paid.mean())},
            }
        sides.append(Measured({"name": names[side]}, composite, metrics, **priced))
    return decide(*sides, **QUICK, **options)


def beside_a_judge(gain, judged, **options):
    """Decide where people graded the first queries and a judge all: these gains by each."""
    judged = np.asarray(judged, dtype=float)
    is_people = np.arange(len(judged)) < len(gain)
    sides = []
    for name, people, judge in (
        ("new", 0.5 + np.resize(gain, len(judged)), 0.5 + judged),
        ("old", np.full(len(judged), 0.5), np.full(len(judged), 0.5)),
    ):
        by_judge = ByJudge(is_people, judge)
        values = np.where(is_people, people, judge)
        sides.append(Measured({"name": name}, values, judge=by_judge))
    return decide(*sides, **QUICK, **options)


def searched(gain, *, priced=None, rails=None, **options):
    """Decide without a holdout on one configuration that gains ``gain`` over the baseline."""
    gain = np.asarray(gain, dtype=float)
    base = np.full(len(gain), 0.5)
    objective = gain if priced is None else np.asarray(priced, dtype=float)
    worth = (None, None) if priced is None else (objective, np.zeros(len(gain)))
    name = "old" if options.pop("is_same", False) else "new"
    trials = [
        Trial(n, arm, {"name": own}, TrialState.FINISHED, objective=float(n))
        for n, (arm, own) in enumerate((("baseline", "old"), ("tpe", "new")))
    ]
    return decide_without_holdout(
        Measured({"name": name}, base + gain, objective=worth[0]),
        Measured({"name": "old"}, base, objective=worth[1]),
        np.stack([np.zeros(len(gain)), objective]),
        trials,
        guardrails={
            one.metric: Rail(one.test(*both, alpha=0.05, seed=0), one.is_relative)
            for one, both in (rails or ())
        },
        **QUICK,
        **options,
    )


def times(slow, queries):
    return slow + np.arange(queries) % 7, 10.0 + np.arange(queries) % 7


def grades(queries):
    few = np.tile([0.6, 0.9, 0.7, 0.8], queries // 4)
    return few, few[::-1]


FAST, FULL = 400.0, 2_400.0
GAIN = noise(0.06, 0.01, 100)
LOOKS = {"last_study": "nightly", "last_date": "2026-11-28"}

# A name, how it is decided, and what is said. Nothing is said in any other words than these.
HELD_OUT = {
    "better": lambda: against(GAIN),
    "better, compared": lambda: against(GAIN, names=COMPARED),
    "better, with a judge": lambda: beside_a_judge(
        noise(0.06, 0.1, 60), noise(0.08, 0.1, 360) + np.arange(360) % 3 * 0.05
    ),
    "chance, with a judge": lambda: beside_a_judge(
        noise(0.012, 0.1, 60), noise(0.02, 0.1, 360) + np.arange(360) % 3 * 0.05
    ),
    "better, with a judge of no use": lambda: beside_a_judge(
        noise(0.06, 0.1, 60), noise(0.08, -0.1, 360)
    ),
    "better, a policy": lambda: against(GAIN, names=POLICY),
    "better, at too high a price": lambda: against(GAIN, tokens=(FULL, FAST)),
    "better, all by the same": lambda: against(np.full(100, 0.1)),
    "better, but not for all": lambda: against(
        np.r_[noise(0.3, 0.01, 60), noise(-0.1, 0.01, 40)], query_types=["a"] * 60 + ["b"] * 40
    ),
    "better, queries left out": lambda: against(np.r_[GAIN, np.full(300, np.nan)]),
    "better, one left out": lambda: against(np.r_[GAIN, np.nan]),
    "better, few differ": lambda: against(np.r_[np.full(50, 0.0), noise(0.4, 0.1, 18)]),
    "better, few queries": lambda: against(noise(0.06, 0.01, 40)),
    "better, of a system that moves": lambda: against(GAIN, run_shift=0.002),
    "better, seen in part": lambda: against(GAIN, looks=EarlierLooks(0, 3, 100, **LOOKS)),
    "better, looked at once": lambda: against(GAIN, looks=EarlierLooks(1, 41, 100, **LOOKS)),
    "better, looked at often": lambda: against(GAIN, looks=EarlierLooks(4, 100, 100, **LOOKS)),
    "better, memory damaged": lambda: against(GAIN, looks=EarlierLooks(0, 0, 100, unreadable=2)),
    "better, rare losses": lambda: against(noise(0.015, 0.01, 100)),
    "better, copies of queries": lambda: against(GAIN, together=np.arange(100) % 60),
    "cheaper": lambda: against(noise(-0.004, 0.01, 100), tokens=(FAST, FULL)),
    "cheaper, compared": lambda: against(
        noise(-0.004, 0.01, 100), tokens=(FAST, FULL), names=COMPARED
    ),
    "worse": lambda: against(noise(-0.04, 0.01, 100)),
    "worse, compared": lambda: against(noise(-0.04, 0.01, 100), names=COMPARED),
    "worse, for less": lambda: against(noise(-0.04, 0.01, 100), tokens=(FAST, FULL)),
    "the same": lambda: against(GAIN, is_same=True),
    "the same, compared": lambda: against(GAIN, is_same=True, names=COMPARED),
    "alike": lambda: against(np.zeros(50)),
    "alike, a policy": lambda: against(np.zeros(50), names=POLICY),
    "too small and clear": lambda: against(noise(0.005, 0.001, 100)),
    "too small": lambda: against(noise(0.002, 0.02, 200)),
    "too small, none at all": lambda: against(noise(0.0, 0.02, 200)),
    "too small, lower": lambda: against(noise(-0.043, 0.36, 204)),
    "probably too small": lambda: against(noise(0.004, 0.07, 400)),
    "rail broken by a gain": lambda: against(
        GAIN, guardrails=[SLOWER], rails={"latency_p95_ms": times(30.0, 100)}
    ),
    "rail broken, no clear gain": lambda: against(
        noise(0.02, 0.1, 40), guardrails=[SLOWER], rails={"latency_p95_ms": times(30.0, 40)}
    ),
    "rail broken, another in doubt": lambda: against(
        GAIN,
        guardrails=[SLOWER, RECALL],
        rails={"latency_p95_ms": times(30.0, 100), "recall@10": grades(100)},
    ),
    "rail in doubt": lambda: against(GAIN, guardrails=[RECALL], rails={"recall@10": grades(100)}),
    "rail in doubt, cheaper": lambda: against(
        noise(0.0, 0.001, 100),
        tokens=(FAST, FULL),
        guardrails=[RECALL],
        rails={"recall@10": grades(100)},
    ),
    "chance": lambda: against(noise(0.02, 0.1, 40)),
    "chance, half held out": lambda: against(noise(0.02, 0.1, 40), held_out_share=0.5),
    "chance, compared": lambda: against(noise(0.02, 0.1, 40), names=COMPARED),
    "chance, hopeless": lambda: against(noise(0.008, 0.2, 60)),
    "chance, lower": lambda: against(noise(-0.02, 0.3, 60)),
    "chance, lower, compared": lambda: against(noise(-0.02, 0.3, 60), names=COMPARED),
    "chance, few": lambda: against([0.4, 0.0, -0.1]),
    "chance, a system that moves": lambda: against(noise(0.02, 0.05, 100), run_shift=0.02),
    "chance, a few decide": lambda: against(np.r_[noise(0.05, 0.005, 40), [0.9]]),
    "loss open": lambda: against(noise(-0.004, 0.1, 100), tokens=(FAST, FULL)),
    "loss open, hopeless": lambda: against(noise(-0.009, 0.1, 100), tokens=(FAST, FULL)),
    "loss open, and there": lambda: against(noise(-0.012, 0.1, 100), tokens=(FAST, FULL)),
    "loss open, few": lambda: against(noise(-0.002, 0.1, 8), tokens=(FAST, FULL)),
    "rare losses": lambda: against(np.zeros(120), tokens=(FAST, FULL), held_out_share=0.5),
    "rare losses, one more": lambda: against(np.zeros(149), tokens=(FAST, FULL)),
    "no values": lambda: against(np.full(3, np.nan)),
    "one value": lambda: against([0.4, np.nan, np.nan]),
    "one query": lambda: against([0.4]),
    "no queries": lambda: against([]),
    "alike on few": lambda: against(np.zeros(7)),
    "alike but for a constant": lambda: against(np.full(2, 0.1)),
    "alike but for a constant, at a low level": lambda: against(np.full(12, 0.1), alpha=1e-5),
}
NONE_HELD_OUT = {
    "few: better": lambda: searched(noise(0.3, 0.02, 40)),
    "few: better, by request": lambda: searched(noise(0.3, 0.02, 100)),
    "few: better, priced": lambda: searched(noise(0.0, 0.001, 40), priced=noise(0.3, 0.01, 40)),
    "few: too few": lambda: searched(noise(0.3, 0.02, 8)),
    "few: one": lambda: searched([0.3]),
    "few: too few, the baseline": lambda: searched(noise(0.3, 0.02, 8), is_same=True),
    "few: the same": lambda: searched(noise(0.3, 0.02, 40), is_same=True),
    "few: too small": lambda: searched(noise(0.001, 0.01, 40)),
    "few: chance": lambda: searched(noise(0.03, 0.1, 40)),
    "few: chance, enough to split": lambda: searched(noise(0.022, 0.2, 400), min_effect=0.045),
    "few: chance, hopeless": lambda: searched(noise(0.004, 0.2, 40)),
    "few: chance, lower": lambda: searched(noise(-0.01, 0.1, 40)),
    "few: rail broken": lambda: searched(noise(0.3, 0.02, 40), rails=[(SLOWER, times(30.0, 40))]),
    "few: rail in doubt": lambda: searched(noise(0.3, 0.02, 40), rails=[(RECALL, grades(40))]),
    "few: alike": lambda: searched(np.zeros(20)),
    "few: alike but for a constant": lambda: searched(np.full(20, 0.1)),
    "few: loss open": lambda: searched(noise(0.0, 0.05, 40), priced=noise(0.3, 0.01, 40)),
    "few: loss open, hopeless": lambda: searched(noise(0.0, 0.2, 40), priced=noise(0.3, 0.01, 40)),
    "few: loss open, and there": lambda: searched(
        noise(-0.05, 0.2, 40), priced=noise(0.3, 0.01, 40)
    ),
    "few: rare losses": lambda: searched(np.zeros(40), priced=noise(0.3, 0.01, 40)),
    "few: loss unknown": lambda: searched(np.full(40, np.nan), priced=noise(0.3, 0.01, 40)),
}

# What each says, in full.
SAID = {
    "better": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062)."
    ),
    "better, with a judge": (
        "Deploy: the winner is better by 0.060 in the composite on 60 held-out queries that "
        "people graded (95 % interval +0.046 to +0.074). (A judge graded 300 other queries, "
        "which count by 0.71: the interval is as wide as that of 210 queries of people's.)"
    ),
    "chance, with a judge": (
        "Not enough queries: the winner scored 0.012 higher in the composite on 60 held-out "
        "queries that people graded (95 % interval -0.002 to +0.026), which may be chance. "
        "About 101 more held-out queries that people graded would show a difference of 0.012 "
        "with 80 % power. (A judge graded 300 other queries, which count by 0.71: the "
        "interval is as wide as that of 210 queries of people's.)"
    ),
    "better, with a judge of no use": (
        "Deploy: the winner is better by 0.060 in the composite on 60 held-out queries that "
        "people graded (95 % interval +0.034 to +0.086). (A judge graded 300 other queries; "
        "they add nothing to people's.)"
    ),
    "better, compared": (
        "Deploy: B is better by 0.060 in the composite on 100 tune queries (95 % interval "
        "+0.058 to +0.062)."
    ),
    "better, a policy": (
        "Deploy: the policy is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062)."
    ),
    "better, at too high a price": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062). (It costs more than that is worth at the study's price: "
        "2,403 instead of 403 context tokens; the objective changes by -0.140, 95 % interval "
        "-0.142 to -0.138.)"
    ),
    "better, all by the same": (
        "Deploy: the winner is better by 0.100 in the composite on 100 held-out queries (95 % "
        "interval +0.100 to +0.100). (All 100 queries differ by the same amount (0.1), so there"
        " is no spread for a t-test and the sign-flip test answers alone; check that the two "
        "were measured independently.)"
    ),
    "better, but not for all": (
        "Deploy: the winner is better by 0.140 in the composite on 100 held-out queries (95 % "
        "interval +0.101 to +0.179). (It is clearly worse on queries of the type b.)"
    ),
    "better, queries left out": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062). (300 of the 400 queries lack a metric of the composite and"
        " are left out.)"
    ),
    "better, one left out": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062). (1 of the 101 queries lacks a metric of the composite and "
        "is left out.)"
    ),
    "better, few differ": (
        "Deploy: the winner is better by 0.106 in the composite on 68 held-out queries (95 % "
        "interval +0.061 to +0.151). (Only 18 of the queries differ: the truth lies outside "
        "such an interval more often than it promises.)"
    ),
    "better, few queries": (
        "Deploy: the winner is better by 0.060 in the composite on 40 held-out queries (95 % "
        "interval +0.057 to +0.063). (There are fewer than 50 held-out queries: the truth lies "
        "outside such an interval more often than it promises.)"
    ),
    "better, of a system that moves": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.056 to +0.064). (Asked twice, the same configuration differed from itself "
        "by 0.0020: the interval allows for that.)"
    ),
    "better, seen in part": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062). (3 of the 100 held-out queries were looked at before, last"
        " on 2026-11-28 by the study nightly: too few to count as a further look.)"
    ),
    "better, looked at once": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062). (41 of the 100 held-out queries were looked at once "
        "before for other configurations, last on 2026-11-28 by the study nightly: by now "
        "chance deploys what is no better in up to 5 % of cases, not in 2.5 %. For a decision "
        "that matters, take fresh queries.)"
    ),
    "better, looked at often": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062). (All 100 held-out queries were looked at 4 times before "
        "for other configurations, last on 2026-11-28 by the study nightly: by now chance deploys "
        "what is no better in up to 12.5 % of cases, not in 2.5 %. These queries are spent: label "
        "new ones, and compare on them alone (tuner compare … --set dataset.path=NEW --queries "
        "all).)"
    ),
    "better, memory damaged": (
        "Deploy: the winner is better by 0.060 in the composite on 100 held-out queries (95 % "
        "interval +0.058 to +0.062). (2 lines of holdouts.jsonl cannot be read, so these "
        "queries may have been looked at more often than is known: restore that file from a "
        "copy.)"
    ),
    "better, rare losses": (
        "Deploy: the winner is better by 0.015 in the composite on 100 held-out queries (95 % "
        "interval +0.013 to +0.017). (No query lost as much as 0.25. A loss of 0.5 on one query "
        "in 34 would undo the gain, and 100 held-out queries hold none of these in 5 % of cases.)"
    ),
    "better, copies of queries": (
        "Deploy: the winner is better by 0.060 in the composite on 60 held-out queries (95 % "
        "interval +0.055 to +0.065). (Of 100 held-out queries, those with the same text or of one "
        "group count as one: 60 in all.)"
    ),
    "cheaper": (
        "Deploy: the winner is as good in the composite (-0.004 on 100 held-out queries, 95 % "
        "interval -0.006 to -0.002, so a loss of 0.01 or more is ruled out) and cheaper (403 "
        "instead of 2,403 context tokens): the objective gains 0.196 (95 % interval +0.194 to "
        "+0.198)."
    ),
    "cheaper, compared": (
        "Deploy: B is as good in the composite (-0.004 on 100 tune queries, 95 % interval "
        "-0.006 to -0.002, so a loss of 0.01 or more is ruled out) and cheaper (403 instead of "
        "2,403 context tokens): the objective gains 0.196 (95 % interval +0.194 to +0.198)."
    ),
    "worse": (
        "Keep the baseline: the winner is worse by 0.040 in the composite on 100 held-out "
        "queries (95 % interval -0.042 to -0.038)."
    ),
    "worse, compared": (
        "Keep A: B is worse by 0.040 in the composite on 100 tune queries (95 % interval -0.042"
        " to -0.038)."
    ),
    "worse, for less": (
        "Keep the baseline: the winner is worse by 0.040 in the composite on 100 held-out "
        "queries (95 % interval -0.042 to -0.038); at the study's price its objective gains "
        "0.160 (95 % interval +0.158 to +0.162), but the composite may not lose 0.01."
    ),
    "the same": "Keep the baseline: no configuration did better than it.",
    "the same, compared": "Keep A: A and B are the same.",
    "alike": (
        "Keep the baseline: the winner and the baseline have the same composite on all 50 "
        "held-out queries."
    ),
    "alike, a policy": (
        "Keep the fixed parameters: the policy and the fixed parameters have the same composite"
        " on all 50 held-out queries."
    ),
    "too small and clear": (
        "Keep the baseline: the winner is better by 0.005 in the composite on 100 held-out "
        "queries (95 % interval +0.005 to +0.005), but a gain of 0.01, the least that would "
        "matter, is ruled out."
    ),
    "too small": (
        "Keep the baseline: the winner is hardly better: it scored 0.002 higher in the "
        "composite on 200 held-out queries (95 % interval -0.001 to +0.005), so a gain of 0.01,"
        " the least that would matter, is ruled out."
    ),
    "too small, none at all": (
        "Keep the baseline: the winner is no better: it scored the same in the composite on 200"
        " held-out queries (95 % interval -0.003 to +0.003), so a gain of 0.01, the least that "
        "would matter, is ruled out."
    ),
    "too small, lower": (
        "Keep the baseline: the winner is no better: it scored 0.043 lower in the composite on "
        "204 held-out queries (95 % interval -0.093 to +0.007), so a gain of 0.01, the least "
        "that would matter, is ruled out."
    ),
    "probably too small": (
        "Keep the baseline: the winner scored 0.004 higher in the composite on 400 held-out "
        "queries (95 % interval -0.003 to +0.011), which may be chance; so many queries would "
        "have shown a gain of 0.01, the least that would matter, with 80 % power, so the true "
        "one is probably smaller."
    ),
    "rail broken by a gain": (
        "Keep the baseline: the winner is better by 0.060 in the composite on 100 held-out "
        "queries (95 % interval +0.058 to +0.062), but latency_p95_ms broke its guard-rail "
        "(worse by 125 %, 10 % is allowed)."
    ),
    "rail broken, no clear gain": (
        "Keep the baseline: the winner scored 0.020 higher in the composite on 40 held-out "
        "queries (95 % interval -0.012 to +0.052), which may be chance, and latency_p95_ms "
        "broke its guard-rail (worse by 125 %, 10 % is allowed). (There are fewer than 50 "
        "held-out queries: the truth lies outside such an interval more often than it promises.)"
    ),
    "rail broken, another in doubt": (
        "Keep the baseline: the winner is better by 0.060 in the composite on 100 held-out "
        "queries (95 % interval +0.058 to +0.062), but latency_p95_ms broke its guard-rail "
        "(worse by 125 %, 10 % is allowed), and recall@10 (worse by up to 0.0334, 0.01 is "
        "allowed) could not be shown to stay within its guard-rail."
    ),
    "rail in doubt": (
        "Keep the baseline: the winner is better by 0.060 in the composite on 100 held-out "
        "queries (95 % interval +0.058 to +0.062), but recall@10 (worse by up to 0.0334, 0.01 "
        "is allowed) could not be shown to stay within its guard-rail; more queries may show "
        "it."
    ),
    "rail in doubt, cheaper": (
        "Keep the baseline: the winner is as good in the composite (0.000 on 100 held-out "
        "queries, 95 % interval 0.000 to 0.000) and cheaper (403 instead of 2,403 context "
        "tokens), but recall@10 (worse by up to 0.0334, 0.01 is allowed) could not be shown to "
        "stay within its guard-rail; more queries may show it."
    ),
    "chance": (
        "Not enough queries: the winner scored 0.020 higher in the composite on 40 held-out "
        "queries (95 % interval -0.012 to +0.052), which may be chance. About 164 more held-out"
        " queries would show a difference of 0.020 with 80 % power. (There are fewer than 50 "
        "held-out queries: the truth lies outside such an interval more often than it promises.)"
    ),
    "chance, half held out": (
        "Not enough queries: the winner scored 0.020 higher in the composite on 40 held-out "
        "queries (95 % interval -0.012 to +0.052), which may be chance. About 164 more held-out"
        " queries would show a difference of 0.020 with 80 % power (with 50 % held out: 328 "
        "queries to label). (There are fewer than 50 held-out queries: the truth lies outside "
        "such an interval more often than it promises.)"
    ),
    "chance, compared": (
        "Not enough queries: B scored 0.020 higher in the composite on 40 tune queries (95 % "
        "interval -0.012 to +0.052), which may be chance. About 164 more queries would show a "
        "difference of 0.020 with 80 % power. (There are fewer than 50 tune queries: the truth "
        "lies outside such an interval more often than it promises.)"
    ),
    "chance, hopeless": (
        "Not enough queries: the winner scored 0.008 higher in the composite on 60 held-out "
        "queries (95 % interval -0.044 to +0.060), which may be chance. More queries will "
        "hardly decide it: to show a gain of 0.010 with 80 % power takes about 3,195 held-out "
        "queries, and there are 60."
    ),
    "chance, lower": (
        "Not enough queries: the winner scored 0.020 lower in the composite on 60 held-out "
        "queries (95 % interval -0.098 to +0.058), which may be chance. Nothing speaks for the "
        "winner: keep the baseline."
    ),
    "chance, lower, compared": (
        "Not enough queries: B scored 0.020 lower in the composite on 60 tune queries (95 % "
        "interval -0.098 to +0.058), which may be chance. Nothing speaks for B: keep A."
    ),
    "chance, few": (
        "Not enough queries: the winner scored 0.100 higher in the composite on 3 held-out "
        "queries (95 % interval -0.557 to +0.757), which may be chance. 3 queries are too few "
        "to say how many would tell: compare on 10 or more. (Only 2 of the queries differ: the "
        "truth lies outside such an interval more often than it promises.)"
    ),
    "chance, a system that moves": (
        "Not enough queries: the winner scored 0.020 higher in the composite on 100 held-out "
        "queries (95 % interval -0.021 to +0.061), which may be chance. No number of queries "
        "would show a difference of 0.020, since the system differs from itself by as much when"
        " it is asked again: let it answer alike first (a fixed seed, a temperature of 0). "
        "(Asked twice, the same configuration differed from itself by 0.0200: the interval "
        "allows for that.)"
    ),
    "chance, a few decide": (
        "Not enough queries: the winner scored 0.071 higher in the composite on 41 held-out "
        "queries (95 % interval -0.012 to +0.154), which may be chance. A few large differences"
        " decide it, so that several times as many queries would be needed. (There are fewer "
        "than 50 held-out queries: the truth lies outside such an interval more often than it "
        "promises.)"
    ),
    "loss open": (
        "Not enough queries: the winner is cheaper (403 instead of 2,403 context tokens) and "
        "its objective gains 0.196 (95 % interval +0.176 to +0.216), but its composite may be "
        "worse by 0.01 or more: -0.004 on 100 held-out queries, 95 % interval -0.024 to +0.016."
        " More queries will hardly decide it: to rule that out with 80 % power takes about "
        "2,205 held-out queries, and there are 100."
    ),
    "loss open, hopeless": (
        "Not enough queries: the winner is cheaper (403 instead of 2,403 context tokens) and "
        "its objective gains 0.191 (95 % interval +0.171 to +0.211), but its composite may be "
        "worse by 0.01 or more: -0.009 on 100 held-out queries, 95 % interval -0.029 to +0.011."
        " More queries will hardly decide it: to rule that out with 80 % power takes about "
        "79,284 held-out queries, and there are 100."
    ),
    "loss open, and there": (
        "Not enough queries: the winner is cheaper (403 instead of 2,403 context tokens) and "
        "its objective gains 0.188 (95 % interval +0.168 to +0.208), but its composite may be "
        "worse by 0.01 or more: -0.012 on 100 held-out queries, 95 % interval -0.032 to +0.008."
        " On these queries the composite does lose that much, so more of them will hardly rule "
        "it out: keep the baseline."
    ),
    "loss open, few": (
        "Not enough queries: the winner is cheaper (403 instead of 2,403 context tokens) and "
        "its objective gains 0.198 (95 % interval +0.109 to +0.287), but its composite may be "
        "worse by 0.01 or more: -0.002 on 8 held-out queries, 95 % interval -0.091 to +0.087. 8"
        " queries are too few to say how many would tell: compare on 10 or more. (Only 8 of the"
        " queries differ: the truth lies outside such an interval more often than it promises.)"
    ),
    "rare losses": (
        "Not enough queries: the winner is cheaper (403 instead of 2,403 context tokens) and "
        "its objective gains 0.200 (95 % interval +0.200 to +0.200), but its composite differs "
        "on only 0 queries, so losses that are rare may be absent. About 30 more held-out "
        "queries would hold them (with 50 % held out: 60 queries to label)."
    ),
    "rare losses, one more": (
        "Not enough queries: the winner is cheaper (403 instead of 2,403 context tokens) and "
        "its objective gains 0.200 (95 % interval +0.200 to +0.200), but its composite differs "
        "on only 0 queries, so losses that are rare may be absent. About 1 more held-out query "
        "would hold them."
    ),
    "no values": (
        "Not enough queries: none of the 3 held-out queries has a composite from both, and at "
        "least 10 are needed. (3 of the 3 queries lack a metric of the composite and are left "
        "out.)"
    ),
    "one value": (
        "Not enough queries: only one of the 3 held-out queries has a composite from both, and "
        "at least 10 are needed. (2 of the 3 queries lack a metric of the composite and are "
        "left out.)"
    ),
    "one query": "Not enough queries: there is only 1 query, and at least 10 are needed.",
    "no queries": "Not enough queries: there are no queries to compare.",
    "alike on few": (
        "Not enough queries: the winner and the baseline have the same composite on all 7 "
        "held-out queries, but so few are no certainty: at least 10 are needed."
    ),
    "alike but for a constant": (
        "Not enough queries: both held-out queries differ by the same amount (+0.100), but so "
        "few are no certainty: at least 10 are needed."
    ),
    "alike but for a constant, at a low level": (
        "Not enough queries: all 12 held-out queries differ by the same amount (+0.100), but so"
        " few are no certainty: at least 18 are needed."
    ),
    "few: better": (
        "Deploy: with only 40 queries none was held out; corrected for the search's luck, the "
        "winner is better by 0.300 in the composite (95 % interval +0.291 to +0.308; "
        "uncorrected +0.300)."
    ),
    "few: better, by request": (
        "Deploy: none of the 100 queries was held out, as dataset.split.holdout asks; corrected"
        " for the search's luck, the winner is better by 0.300 in the composite (95 % interval "
        "+0.295 to +0.305; uncorrected +0.300)."
    ),
    "few: better, priced": (
        "Deploy: with only 40 queries none was held out; corrected for the search's luck, the "
        "winner is better by 0.300 in the objective with its price (95 % interval +0.295 to "
        "+0.304; uncorrected +0.300)."
    ),
    "few: too few": (
        "Not enough queries: with only 8 queries none was held out, and under 10 a gain cannot "
        "be told from the search's luck. Label 60 or more, of which half are held out."
    ),
    "few: one": (
        "Not enough queries: with only 1 query none was held out, and under 10 a gain cannot be"
        " told from the search's luck. Label 60 or more, of which half are held out."
    ),
    "few: too few, the baseline": (
        "Not enough queries: with only 8 queries none was held out, and under 10 a gain cannot "
        "be told from the search's luck; no configuration did better than the baseline on them."
        " Label 60 or more, of which half are held out."
    ),
    "few: the same": "Keep the baseline: no configuration did better than it.",
    "few: too small": (
        "Keep the baseline: with only 40 queries none was held out; corrected for the search's "
        "luck, the winner is no better: it scored the same in the composite (95 % interval "
        "-0.004 to +0.003; uncorrected +0.001), so a gain of 0.01, the least that would matter,"
        " is ruled out."
    ),
    "few: chance": (
        "Not enough queries: with only 40 queries none was held out; corrected for the search's"
        " luck, the winner scored 0.027 higher in the composite (95 % interval -0.015 to "
        "+0.063; uncorrected +0.030), which may be chance. About 117 held-out queries would "
        "show a difference of 0.027 with 80 % power: label about 194 more queries and hold half"
        " of all out."
    ),
    "few: chance, enough to split": (
        "Not enough queries: none of the 400 queries was held out, as dataset.split.holdout "
        "asks; corrected for the search's luck, the winner scored 0.021 higher in the composite"
        " (95 % interval -0.003 to +0.046; uncorrected +0.022), which may be chance. About 158 "
        "held-out queries would show a difference of 0.045 with 80 % power: hold half of these "
        "out (dataset.split.holdout: 0.5)."
    ),
    "few: chance, hopeless": (
        "Not enough queries: with only 40 queries none was held out; corrected for the search's"
        " luck, the winner scored 0.012 lower in the composite (95 % interval -0.087 to +0.033;"
        " uncorrected +0.004), which may be chance. Nothing speaks for the winner: keep the "
        "baseline. With 60 queries or more, half of them held out, the answer is sharper."
    ),
    "few: chance, lower": (
        "Keep the baseline: with only 40 queries none was held out; corrected for the search's "
        "luck, the winner is no better: it scored 0.007 lower in the composite (95 % interval "
        "-0.054 to 0.000; uncorrected -0.010), so a gain of 0.01, the least that would matter, "
        "is ruled out."
    ),
    "few: rail broken": (
        "Keep the baseline: with only 40 queries none was held out; corrected for the search's "
        "luck, the winner is better by 0.300 in the composite (95 % interval +0.291 to +0.308; "
        "uncorrected +0.300), but latency_p95_ms broke its guard-rail (worse by 125 %, 10 % is "
        "allowed)."
    ),
    "few: rail in doubt": (
        "Keep the baseline: with only 40 queries none was held out; corrected for the search's "
        "luck, the winner is better by 0.300 in the composite (95 % interval +0.291 to +0.308; "
        "uncorrected +0.300), but recall@10 (worse by up to 0.054, 0.01 is allowed) could not "
        "be shown to stay within its guard-rail; more queries may show it."
    ),
    "few: alike": (
        "Not enough queries: with only 20 queries none was held out; the winner and the "
        "baseline do not differ on any of them, and so few are no certainty."
    ),
    "few: alike but for a constant": (
        "Deploy: with only 20 queries none was held out; corrected for the search's luck, the "
        "winner is better by 0.100 in the composite (95 % interval +0.100 to +0.100; "
        "uncorrected +0.100). (All 20 queries differ by the same amount (0.1), so there is no "
        "spread for a t-test and the sign-flip test answers alone; check that the two were "
        "measured independently.)"
    ),
    "few: loss open": (
        "Not enough queries: with only 40 queries none was held out; corrected for the search's"
        " luck, the winner is better by 0.300 in the objective with its price (95 % interval "
        "+0.295 to +0.304; uncorrected +0.300), but its composite may be worse by 0.01 or more:"
        " 0.000, 95 % interval -0.016 to +0.016. About 204 held-out queries would rule that out"
        " with 80 % power: label about 368 more queries and hold half of all out."
    ),
    "few: loss open, hopeless": (
        "Not enough queries: with only 40 queries none was held out; corrected for the search's"
        " luck, the winner is better by 0.300 in the objective with its price (95 % interval "
        "+0.295 to +0.304; uncorrected +0.300), but its composite may be worse by 0.01 or more:"
        " 0.000, 95 % interval -0.065 to +0.065. More queries will hardly decide it: to rule "
        "that out with 80 % power takes about 3,222 held-out queries, and there are 40 in all."
    ),
    "few: loss open, and there": (
        "Not enough queries: with only 40 queries none was held out; corrected for the search's"
        " luck, the winner is better by 0.300 in the objective with its price (95 % interval "
        "+0.295 to +0.304; uncorrected +0.300), but its composite may be worse by 0.01 or more:"
        " -0.050, 95 % interval -0.115 to +0.015. On these queries the composite does lose that"
        " much, so more of them will hardly rule it out: keep the baseline."
    ),
    "few: rare losses": (
        "Not enough queries: with only 40 queries none was held out; corrected for the search's"
        " luck, the winner is better by 0.300 in the objective with its price (95 % interval "
        "+0.295 to +0.304; uncorrected +0.300), but its composite differs on only 0 queries, so"
        " losses that are rare may be absent. About 150 held-out queries would hold them: label"
        " about 260 more queries and hold half of all out."
    ),
    "few: loss unknown": (
        "Not enough queries: with only 40 queries none was held out; corrected for the search's"
        " luck, the winner is better by 0.300 in the objective with its price (95 % interval "
        "+0.295 to +0.304; uncorrected +0.300), but whether its composite loses cannot be said:"
        " none of the 40 queries has a value from both."
    ),
}


@cache
def verdict_of(name):
    return {**HELD_OUT, **NONE_HELD_OUT}[name]()


@pytest.mark.parametrize("name", SAID)
def test_every_case_is_said_in_these_words(name):
    assert verdict_of(name).sentence == SAID[name]


def test_a_study_of_which_nothing_meets_the_constraints_says_so():
    nobody = tell(Ruling("keep the baseline", Reason.INFEASIBLE))
    assert nobody.sentence == (
        "Keep the baseline: no configuration met the objective's constraints."
    )


def test_failed_trials_weaken_a_verdict_in_its_sentence_and_its_caveats():
    record = verdict_of("better, few queries").to_record()
    assert weakened(record, caveats_of_failures(Failures(2, 41, "ValueError: hops"))) == record
    weaker = weakened(record, caveats_of_failures(Failures(5, 41, "ValueError: hops")))
    text = "5 of 41 trials, 12 %, failed, most often by: ValueError: hops."
    assert weaker["sentence"] == f"{record['sentence']} ({text})"
    assert [one["text"] for one in weaker["caveats"]] == [record["caveats"][0]["text"], text]


def test_no_reason_outlook_or_caveat_is_without_its_case():
    assert set(SAID) == {*HELD_OUT, *NONE_HELD_OUT}
    verdicts = [verdict_of(name) for name in SAID]
    prospects = [one.ruling.prospect for one in verdicts]
    assert {one.ruling.reason for one in verdicts} == set(Reason) - {Reason.INFEASIBLE}
    assert {one.outlook for one in prospects if one is not None} == set(Outlook)
    kinds = {caveat.kind for one in verdicts for caveat in one.caveats}
    assert kinds == set(CaveatKind) - {CaveatKind.FAILED_TRIALS, CaveatKind.PARTS}
    # Each has its outcome, and no other.
    by_reason = {one.ruling.reason: one.outcome for one in verdicts}
    assert by_reason[Reason.BETTER] == by_reason[Reason.CHEAPER] == "deploy"
    assert by_reason[Reason.TOO_SMALL] == by_reason[Reason.WORSE] == "keep the baseline"
    assert by_reason[Reason.CHANCE] == by_reason[Reason.LOSS_OPEN] == "not enough queries"


def test_more_queries_are_asked_for_only_where_that_is_advice():
    for name in HELD_OUT:
        verdict = verdict_of(name)
        more, found = verdict.more_queries, verdict.comparison
        if more is None:
            assert verdict.difference_to_show is None, name
            continue
        assert verdict.outcome == "not enough queries", name
        assert more <= 10 * found.n, name
        # Of something that is not better, only a lower price may ask for more.
        assert found.mean_difference > 0 or verdict.price is not None, name


@pytest.mark.parametrize("name", SAID)
def test_a_record_holds_the_figures_and_the_words_apart(name):
    verdict = verdict_of(name)
    record = json.loads(json.dumps(verdict.to_record(), allow_nan=False))
    told = [record["finding"], record["advice"], *(f"({one['text']})" for one in record["caveats"])]
    said = " ".join(part for part in told if part)
    head, _, rest = record["sentence"].partition(": ")
    assert said == f"{rest[0].upper()}{rest[1:]}"
    assert head.startswith(("Deploy", "Keep", "Not enough queries"))
    assert record["outcome"] in ("deploy", "keep the baseline", "not enough queries")
    assert record["reason"] == verdict.ruling.reason.value
    if "low" in record["figures"]:
        assert record["figures"]["low"] <= record["figures"]["high"]


@pytest.mark.parametrize("name", SAID)
def test_a_record_is_told_again_in_the_words_of_nights(name):
    verdict = verdict_of(name)
    record = json.loads(json.dumps(verdict.to_record(), allow_nan=False))
    again = retold(record, Names("the challenger", "the champion"))
    assert "winner" not in again
    assert "baseline" not in again
    if not name.endswith(("compared", "policy")):
        assert retold(record, THE_WINNER) == SAID[name]
    ruling, caveats = read_record(record)
    assert (ruling, caveats) == (verdict.ruling, tuple(verdict.caveats))


CHALLENGER = Names("the challenger", "the champion")


def record_of(name):
    return json.loads(json.dumps(verdict_of(name).to_record()))


@pytest.mark.parametrize("part", ["prospect", "figures", "caveats", "reason", "outcome"])
@pytest.mark.parametrize("change", ["missing", None, 7, "of a later version", ["x"]])
def test_a_record_that_is_not_made_as_here_keeps_its_sentence(part, change):
    record = record_of("better, few queries")
    record = {**record, part: change}
    if change == "missing":
        del record[part]
    kept = record["sentence"]
    if (part, change) == ("prospect", None):  # as it is where there is no advice
        kept = kept.replace("the winner", "the challenger").replace("the baseline", "the champion")
    assert retold(record, CHALLENGER) == kept


@pytest.mark.parametrize("name", SAID)
def test_a_figure_that_is_lacking_or_null_is_no_traceback(name):
    whole = record_of(name)
    for figure in whole["figures"]:
        null = {**whole, "figures": {**whole["figures"], figure: None}}
        assert retold(null, CHALLENGER) == whole["sentence"]
        rest = {key: value for key, value in whole["figures"].items() if key != figure}
        for figures in (rest, {**rest, figure: []}, {**rest, figure: "x"}):
            assert retold({**whole, "figures": figures}, CHALLENGER)
    for field in whole["prospect"] or {}:
        rest = {key: value for key, value in whole["prospect"].items() if key != field}
        for prospect in (rest, {**rest, field: None}, {**rest, field: "x"}):
            assert retold({**whole, "prospect": prospect}, CHALLENGER)
    for caveat in whole["caveats"]:
        for broken in ({**caveat, "kind": "later"}, {**caveat, "figures": {}}, {"kind": "later"}):
            assert retold({**whole, "caveats": [broken]}, CHALLENGER)


@pytest.mark.parametrize("name", SAID)
def test_a_key_of_a_later_version_changes_nothing(name):
    record = record_of(name)
    later = {**record, "later": 1, "figures": {**record["figures"], "later": 1}}
    later["caveats"] = [{**caveat, "later": 1} for caveat in record["caveats"]]
    later["prospect"] = record["prospect"] and {**record["prospect"], "later": 1}
    assert retold(later, CHALLENGER) == retold(record, CHALLENGER)


def test_what_cannot_be_read_is_named():
    record = record_of("better, few queries")
    for part, value, named in (
        ("reason", "later", "reason is 'later'"),
        ("outcome", None, "outcome is None"),
        ("caveats", [{"kind": "later", "figures": {}}], r"caveats\[0\].kind is 'later'"),
        ("figures", {"difference": None}, "figures.difference is None"),
        ("prospect", {}, "prospect.outlook is missing"),
        ("prospect", {"outlook": "later"}, "prospect.outlook is 'later'"),
    ):
        with pytest.raises(ValueError, match=named):
            read_record({**record, part: value})


@pytest.mark.parametrize(
    ("stayed", "said"),
    [
        (0, ""),
        (1, "; without one part nothing was better than the baseline"),
        (2, "; without 2 parts nothing was better than the baseline"),
    ],
)
def test_a_verdict_by_parts_says_what_was_tested(stayed, said):
    caveat = caveat_of_parts({"parts": 5, "as_deployed": 0.74, "stayed": stayed})
    record = weakened(against(noise(0.1, 0.05, 60)).to_record(), [caveat])
    assert record["sentence"].endswith(
        "(Each of 5 parts of the queries met what a search without it chose; what is deployed "
        f"was chosen by all. On 74 % of the queries both score the same{said}.)"
    )
    assert retold(record, THE_WINNER) == record["sentence"]
