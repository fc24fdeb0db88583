import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from tuner.core.errors import InputError
from tuner.stats import compare_paired, correct_holm, per_group


def test_holm_by_hand():
    # Sorted .005, .01, .03, .04: .005 * 4 = .02; .01 * 3 = .03; .03 * 2 = .06; .04 * 1 < .06
    adjusted = correct_holm([0.01, 0.04, 0.03, 0.005])
    assert adjusted.tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_holm_agrees_with_statsmodels(count):
    # Rounded, so that some are equal; squared, so that some are small.
    p_values = np.random.default_rng(count).uniform(0.0, 1.0, count).round(1) ** 2
    expected = multipletests(p_values, method="holm")[1]
    np.testing.assert_allclose(correct_holm(p_values), expected, rtol=1e-12)


def test_holm_never_exceeds_1():
    assert correct_holm([0.9, 0.6]).tolist() == [1.0, 1.0]


def test_what_was_not_tested_is_not_counted_and_stays_undefined():
    adjusted = correct_holm([0.02, None, 0.5])
    assert adjusted[[0, 2]].tolist() == pytest.approx([0.04, 0.5])
    assert np.isnan(adjusted[1])
    assert correct_holm([]).size == 0


@pytest.mark.parametrize("wrong", [-0.1, 1.5])
def test_numbers_that_are_no_p_values_are_refused(wrong):
    with pytest.raises(InputError, match="not a p-value"):
        correct_holm([0.5, wrong])


def test_groups_are_compared_one_by_one_and_corrected_together():
    treatment = np.array([0.5, 0.9, 0.7, 0.4, 0.8, 0.2, 0.3, 0.6, 0.8, 0.9, 0.6, 1.0])
    control = np.array([0.4, 0.5, 0.6, 0.4, 0.9, 0.3, 0.1, 0.2, 0.7, 0.7, 0.1, 0.0])
    groups = ["bridge"] * 5 + ["yesno"] * 6 + ["rare"]
    bridge, rare, yesno = per_group(treatment, control, groups, seed=3)
    assert (bridge.group, rare.group, yesno.group) == ("bridge", "rare", "yesno")
    assert bridge.comparison == compare_paired(treatment[:5], control[:5], seed=3)
    assert yesno.comparison == compare_paired(treatment[5:11], control[5:11], seed=3)
    # "rare" has one query: not tested, and the other two are corrected for two tests, not three.
    assert rare.adjusted_p is None
    expected = correct_holm([bridge.comparison.p_value, yesno.comparison.p_value])
    assert [bridge.adjusted_p, yesno.adjusted_p] == expected.tolist()


def test_a_group_of_fewer_than_five_queries_has_no_interval_and_is_not_tested():
    # Two queries: differences .6 and .9 have a t-interval of .75 -+ 12.7 * .15 = -1.16 to +2.66.
    treatment = np.r_[[0.9, 1.0], np.full(5, 0.5), [0.5, 0.5]]
    control = np.r_[[0.3, 0.1], [0.1, 0.2, 0.3, 0.4, 0.4], [0.1, np.nan]]
    rare, yesno, absent = per_group(
        treatment, control, ["a", "a", "b", "b", "b", "b", "b", "c", "c"], seed=0
    )
    for few in (rare, absent):
        assert (few.comparison.interval, few.comparison.bca_interval) == (None, None)
        assert (few.comparison.p_value, few.adjusted_p) == (None, None)
        assert few.comparison.remark == "fewer than 5 queries: too few for an interval"
    assert rare.comparison.mean_difference == pytest.approx(0.75)
    assert yesno.adjusted_p == yesno.comparison.p_value  # corrected for one test
    assert yesno.comparison.interval is not None


def test_no_interval_is_longer_than_the_metric():
    # d = 1, 1, 1, -1, -1: mean .2, sd 1.095, se .49: beyond 1 on the upper side.
    treatment, control = np.array([1.0, 1.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    labels = ["a"] * 5
    (free,) = per_group(treatment, control, labels, seed=0, confidence=0.99)
    assert free.comparison.interval[1] > 1.0
    (within,) = per_group(treatment, control, labels, seed=0, confidence=0.99, largest=1.0)
    assert within.comparison.interval == (-1.0, 1.0)
    (percent,) = per_group(treatment, control, labels, seed=0, confidence=0.99, largest=100.0)
    assert percent.comparison.interval == free.comparison.interval


def test_groups_that_do_not_match_the_values_are_refused():
    with pytest.raises(InputError, match="3 groups"):
        per_group(np.zeros(2), np.zeros(2), ["a", "a", "b"], seed=0)


def test_no_queries_give_no_groups():
    assert per_group(np.zeros(0), np.zeros(0), [], seed=0) == ()
