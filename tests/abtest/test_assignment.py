"""Assignment: the same arm for ever, splits that are what they say, experiments apart."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tuner.abtest.assignment import BUCKETS, Assignment, Range, hash64
from tuner.core.errors import InputError

HALVES = {"control": 0.5, "treatment": 0.5}
USERS = [f"user-{number}" for number in range(40_000)]

# Computed once and never again: another value would move users to another arm.
GOLDEN = [
    ("wider-graph", "ann", 4557693124891185294),
    ("wider-graph", "bob", 9517495097967639925),
    ("wider-graph", "", 17764487475026568302),
    ("wider-graph", "用户-7", 11342964404027933476),
    ("layer:retrieval", "ann", 16881211845070432741),
    ("", "ann", 6638263185083308053),
]


@pytest.mark.parametrize(("salt", "unit", "number"), GOLDEN)
def test_golden_values(salt, unit, number):
    assert hash64(salt, unit) == number


def test_golden_arms():
    arms = Assignment.of("wider-graph", {"control": 0.5, "a": 0.3, "b": 0.2})
    assert [arms.arm(f"user-{number}") for number in range(12)] == [
        "b",
        "b",
        "a",
        "b",
        "a",
        "control",
        "a",
        "a",
        "control",
        "a",
        "control",
        "a",
    ]


def test_same_user_same_arm_in_every_process():
    code = (
        "from tuner.abtest.assignment import Assignment;"
        "a = Assignment.of('wider-graph', {'control': 0.5, 'treatment': 0.5});"
        "print(*[a.arm(f'user-{i}') for i in range(50)])"
    )
    here = Assignment.of("wider-graph", HALVES)
    expected = [here.arm(f"user-{number}") for number in range(50)]
    for seed in ("1", "2"):  # Python's own hash() differs between these two
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == expected


def test_a_split_of_half_a_percent_is_not_one_percent():
    split = Assignment.of("rare", {"control": 0.995, "treatment": 0.005})
    assert split.bounds[0] == int(BUCKETS * 995 // 1000)
    share = sum(split.arm(user) == "treatment" for user in USERS) / len(USERS)
    # 4 standard errors of sqrt(.005 * .995 / 40000) = .00035; one percent is 14 of them away.
    assert share == pytest.approx(0.005, abs=0.0014)


def test_splits_are_exact_to_a_millionth():
    shares = {"control": 0.999999, "treatment": 0.000001}
    assert Assignment.of("x", shares).bounds == (BUCKETS * 999_999 // 1_000_000, BUCKETS)


def test_tenths_sum_to_one_although_floats_do_not():
    assert 0.7 + 0.2 + 0.1 < 1.0
    assert Assignment.of("x", {"a": 0.7, "b": 0.2, "c": 0.1}).bounds[-1] == BUCKETS


@pytest.mark.parametrize("count", [3, 6, 7, 49])
def test_equal_shares_leave_nobody_out(count):
    split = Assignment.of("x", {f"arm{number}": 1 / count for number in range(count)})
    assert split.bounds[-1] == BUCKETS


def test_several_arms_get_their_shares():
    shares = {"control": 0.4, "a": 0.35, "b": 0.2}  # and 5 % in no arm
    split = Assignment.of("several", shares)
    arms = [split.arm(user) for user in USERS]
    observed = [arms.count(arm) for arm in (*shares, None)]
    expected = [len(USERS) * share for share in (*shares.values(), 0.05)]
    assert stats.chisquare(observed, expected).pvalue > 0.001


def test_another_experiment_has_independent_arms():
    first, second = Assignment.of("first", HALVES), Assignment.of("second", HALVES)
    table = [[0, 0], [0, 0]]
    for user in USERS:
        table[first.arm(user) == "control"][second.arm(user) == "control"] += 1
    assert stats.chi2_contingency(table, correction=False).pvalue > 0.001


def test_experiments_of_one_layer_never_share_a_user():
    low, high = Range("retrieval", 0.0, 0.3), Range("retrieval", 0.3, 1.0)
    assert not low.overlaps(high)
    first = Assignment.of("first", HALVES, range=low)
    second = Assignment.of("second", HALVES, range=high)
    in_first = [first.arm(user) is not None for user in USERS]
    in_second = [second.arm(user) is not None for user in USERS]
    assert all(one != other for one, other in zip(in_first, in_second, strict=True))
    assert sum(in_first) / len(USERS) == pytest.approx(0.3, abs=0.01)


def test_a_larger_part_of_the_layer_moves_nobody_to_another_arm():
    small = Assignment.of("grow", HALVES, range=Range("retrieval", 0.0, 0.05))
    large = Assignment.of("grow", HALVES, range=Range("retrieval", 0.0, 0.5))
    early = {user: arm for user in USERS if (arm := small.arm(user)) is not None}
    assert len(early) > 1000
    assert all(large.arm(user) == arm for user, arm in early.items())


def test_layers_are_independent_of_each_other():
    first, second = Range("first", 0.0, 0.5), Range("second", 0.0, 0.5)
    assert not first.overlaps(second)
    both = sum(first.holds(user) and second.holds(user) for user in USERS) / len(USERS)
    assert both == pytest.approx(0.25, abs=0.01)


def test_salt_and_unit_are_kept_apart():
    assert hash64("ab", "c") != hash64("a", "bc")


@given(st.text(max_size=30), st.floats(0.000001, 0.999999))
def test_every_unit_has_exactly_one_arm(unit, share):
    share = round(share, 6)
    split = Assignment.of("any", {"control": 1 - share, "treatment": share})
    assert split.arm(unit) in ("control", "treatment")
    assert split.arm(unit) == split.arm(unit)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"a": 0.6, "b": 0.5}, "sum to 1.1"),
        ({}, "sum to 0"),
        ({"a": 0.5, "b": 0.0}, "the share of 'b' is 0.0"),
        ({"a": 0.5, "b": 0.0000001}, "at least 1e-06"),
        ({"a": 0.5, "b": -0.1}, "the share of 'b' is -0.1"),
    ],
)
def test_shares_that_cannot_be(shares, message):
    with pytest.raises(InputError, match=message):
        Assignment.of("x", shares)


def test_an_empty_range_is_refused():
    with pytest.raises(InputError, match="empty"):
        Assignment.of("x", HALVES, range=Range("layer", 0.5, 0.5))
