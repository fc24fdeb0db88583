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
    treatment = np.array([0.5, 0.9, 0.7, 0.2, 0.3, 0.6, 0.8, 1.0])
    control = np.array([0.4, 0.5, 0.6, 0.3, 0.1, 0.2, 0.7, 0.0])
    groups = ["bridge", "bridge", "bridge", "yesno", "yesno", "yesno", "yesno", "rare"]
    bridge, rare, yesno = per_group(treatment, control, groups, seed=3)
    assert (bridge.group, rare.group, yesno.group) == ("bridge", "rare", "yesno")
    assert bridge.comparison == compare_paired(treatment[:3], control[:3], seed=3)
    assert yesno.comparison == compare_paired(treatment[3:7], control[3:7], seed=3)
    # "rare" has one query: not tested, and the other two are corrected for two tests, not three.
    assert rare.adjusted_p is None
    expected = correct_holm([bridge.comparison.p_value, yesno.comparison.p_value])
    assert [bridge.adjusted_p, yesno.adjusted_p] == expected.tolist()


def test_groups_that_do_not_match_the_values_are_refused():
    with pytest.raises(InputError, match="3 groups"):
        per_group(np.zeros(2), np.zeros(2), ["a", "a", "b"], seed=0)


def test_no_queries_give_no_groups():
    assert per_group(np.zeros(0), np.zeros(0), [], seed=0) == ()
