"""Cohen's kappa against sums by hand, its properties, and what is said where it is undefined."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.evalset.adjudication import verdict
from tuner.stats.agreement import cohen_kappa

FIRST = [0, 0, 1, 1, 3, 3]
SECOND = [0, 0, 0, 1, 3, 1]
# Counts of grades 0, 1, 3: the first gave 2, 2, 2; the second 3, 2, 1. They differ in a 1 against
# a 0 and in a 3 against a 1.

WEIGHTS = ("none", "linear", "quadratic")


def test_plain_kappa():
    # observed differences 2; expected by chance 6 - (2*3 + 2*2 + 2*1)/6 = 4; 1 - 2/4 = .5
    assert cohen_kappa(FIRST, SECOND, weights="none").kappa == pytest.approx(0.5)


def test_linear_kappa():
    # observed 1 + 2 = 3
    # expected 2*(0*3+1*2+3*1) + 2*(1*3+0*2+2*1) + 2*(3*3+2*2+0*1) = 10 + 10 + 26 = 46, over 6
    assert cohen_kappa(FIRST, SECOND, weights="linear").kappa == pytest.approx(1 - 3 * 6 / 46)


def test_quadratic_kappa_counts_distances_between_grades_even_where_one_was_never_given():
    # observed 1 + 4 = 5
    # expected 2*(1*2+9*1) + 2*(1*3+4*1) + 2*(9*3+4*2) = 22 + 14 + 70 = 106, over 6
    # (If 0, 1, 3 were taken as 0, 1, 2: observed 2, expected 48/6, kappa .75.)
    assert cohen_kappa(FIRST, SECOND, weights="quadratic").kappa == pytest.approx(1 - 5 * 6 / 106)


def test_the_textbook_example():
    yes_no = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    found = cohen_kappa([a for a, _ in yes_no], [b for _, b in yes_no], weights="none")
    # (.7 - .5) / (1 - .5)
    assert found.kappa == pytest.approx(0.4)
    assert found.same == pytest.approx(0.7)
    assert found.table == {(0, 0): 15, (0, 1): 10, (1, 0): 5, (1, 1): 20}


def test_the_opposite_of_agreement():
    # observed differences 2, expected 1
    assert cohen_kappa([0, 1], [1, 0]).kappa == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("first", "second", "who"),
    [([1, 1, 1], [1, 1, 1], "first"), ([2, 2], [0, 2], "first"), ([0, 2], [2, 2], "second")],
)
def test_kappa_is_undefined_when_an_annotator_uses_one_label_only(first, second, who):
    found = cohen_kappa(first, second)
    assert found.kappa is None
    assert f"the {who} annotator gave grade" in found.why_undefined
    assert not found.passes(0.1)
    said = verdict(found, 0.8)
    assert "kappa is undefined" in said
    assert "the gate of 0.8 is not passed" in said


def test_nothing_graded_is_undefined_too():
    found = cohen_kappa([], [])
    assert found.kappa is None
    assert found.same is None
    assert "nothing was graded" in verdict(found, 0.8)


def test_the_gate_is_passed_by_its_own_value_and_missed_by_anything_less():
    found = cohen_kappa(FIRST, SECOND, weights="none")
    assert found.passes(0.5)
    assert "agree well enough" in verdict(found, 0.5)
    assert not found.passes(0.5001)
    assert "below 0.5001; settle what the grades mean" in verdict(found, 0.5001)
    assert found.passes(0)
    assert verdict(found, 0).endswith("no gate")


def test_a_kappa_just_below_the_gate_is_not_shown_as_reaching_it():
    # 9,993 of 10,000 halves: 1 - 2 * 7/10,000 = .9986, rounded to .999
    first = [0, 1] * 5000
    second = [*first[:9993], *[1 - grade for grade in first[9993:]]]
    found = cohen_kappa(first, second, weights="none")
    assert found.kappa == pytest.approx(0.9986, abs=1e-6)
    assert verdict(found, 0.999).startswith("kappa 0.998")


@pytest.mark.parametrize("gate", [-0.1, 1.1, math.nan])
def test_an_impossible_gate_is_refused(gate):
    with pytest.raises(InputError, match=r"must be in \[0, 1\]"):
        verdict(cohen_kappa(FIRST, SECOND), gate)


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="6 grades against 1"):
        cohen_kappa(FIRST, [1])
    with pytest.raises(InputError, match="did you mean 'linear'"):
        cohen_kappa(FIRST, SECOND, weights="liniar")


pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40)


@given(pairs, st.sampled_from(WEIGHTS))
def test_kappa_equals_its_definition_and_does_not_mind_who_is_first(graded, weights):
    first, second = [a for a, _ in graded], [b for _, b in graded]
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    found = cohen_kappa(first, second, weights=weights).kappa
    power = {"linear": 1, "quadratic": 2}.get(weights)
    weigh = (lambda a, b: abs(a - b) ** power) if power else (lambda a, b: a != b)
    observed = sum(weigh(a, b) for a, b in graded) / len(graded)
    expected = sum(weigh(a, b) for a in first for b in second) / len(graded) ** 2
    assert found == pytest.approx(1 - observed / expected)
    assert found == pytest.approx(cohen_kappa(second, first, weights=weights).kappa)
    shifted = cohen_kappa([a + 3 for a in first], [b + 3 for b in second], weights=weights)
    assert shifted.kappa == pytest.approx(found)
    assert cohen_kappa(first, first, weights=weights).kappa == pytest.approx(1.0)
