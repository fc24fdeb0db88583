"""Where trials fail is said of trials whose region is known."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tuner.core.trial import Trial, TrialState
from tuner.report import failures
from tuner.report.failing_region import failing_region
from tuner.report.headline import headline
from tuner.report.review import read_review

GRID = [
    {"max_hops": hops, "top_k": top_k, "fusion": fusion}
    for hops, top_k, fusion in product((1, 2, 3, 4, 5), (5, 10, 20, 40), ("rrf", "sum"))
]


def trials(fails, settings=GRID):
    ended = {True: (TrialState.FAILED, None), False: (TrialState.FINISHED, 0.5)}
    return [
        Trial(n, "grid", params, *ended[bool(fails(params))]) for n, params in enumerate(settings)
    ]


@pytest.mark.parametrize(
    ("fails", "told"),
    [
        # hops 4 and 5, top_k 20 and 40, both fusions: 2 x 2 x 2 = 8 of 5 x 4 x 2 = 40
        (
            lambda one: one["max_hops"] >= 4 and one["top_k"] >= 20,
            "All 8 trials with max_hops >= 4 and top_k >= 20 failed, and none of the 32 others.",
        ),
        # one more, elsewhere
        (
            lambda one: (one["max_hops"] >= 4 and one["top_k"] >= 20) or one == GRID[0],
            "All 8 trials with max_hops >= 4 and top_k >= 20 failed, and 1 of the 32 others.",
        ),
        (
            lambda one: one["top_k"] <= 5,  # 5 x 1 x 2
            "All 10 trials with top_k <= 5 failed, and none of the 30 others.",
        ),
        (
            lambda one: one["fusion"] == "sum" and one["max_hops"] <= 2,  # 2 x 4
            "All 8 trials with max_hops <= 2 and fusion is sum failed, and none of the 32 others.",
        ),
        # of the 8 trials with max_hops 5 one ends well: 7 - 3 = 4 is less than 6 of 6
        (
            lambda one: one["max_hops"] == 5 and one != GRID[-1],
            "All 6 trials with max_hops >= 5 and top_k <= 20 failed, and 1 of the 34 others.",
        ),
    ],
)
def test_the_bounds_that_tell_failed_trials_from_others_are_found(fails, told):
    region = failing_region(trials(fails))
    assert region is not None
    assert region.sentence == told


def test_a_parameter_that_is_not_active_bounds_nothing():
    settings = [{"ranker": "naive"} for _ in range(10)]
    settings += [{"ranker": "linear", "alpha": n / 10} for n in range(10)]
    region = failing_region(trials(lambda one: one.get("alpha", 0.0) >= 0.5, settings))
    assert region is not None
    assert region.sentence == "All 5 trials with alpha >= 0.5 failed, and none of the 15 others."
    assert not region.holds({"ranker": "naive"})


def test_failures_by_chance_have_no_region():
    generator = np.random.default_rng(7)
    told = 0
    for _ in range(100):
        settings = [dict(zip("abcd", generator.random(4).tolist(), strict=True)) for _ in range(50)]
        failed = set(generator.choice(50, size=6, replace=False).tolist())
        drawn = trials(lambda one, s=settings, f=failed: s.index(one) in f, settings)
        told += failing_region(drawn) is not None
    assert told <= 3  # of 100; one is expected at most


@pytest.mark.parametrize("fails", [lambda one: False, lambda one: True, lambda one: one == GRID[3]])
def test_none_all_or_one_failed_trial_make_no_region(fails):
    assert failing_region(trials(fails)) is None


def test_the_page_says_where_trials_fail_and_on_which_side_the_winner_lies(study):
    review = read_review(study())
    failing = trials(lambda one: one["max_hops"] >= 4 and one["top_k"] >= 20)
    review = replace(review, trials=(*review.trials, *failing))
    (told,) = [
        block.text
        for block in failures.section(review).blocks
        if "max_hops >= 4" in getattr(block, "text", "")
    ]
    assert "The winner lies outside this region." in told
    assert "max_hops >= 4 and top_k >= 20 failed" in headline(review).caveat
