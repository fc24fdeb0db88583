import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.stats import (
    Labels,
    Shares,
    calibrated_ratio,
    compare_paired,
    compare_with_judge,
    degrees_of_freedom,
    non_inferiority,
    non_inferiority_with_judge,
)
from tuner.stats.with_judge import _degrees

NAN = float("nan")


def mean_of(*values):
    return Shares.of_mean(np.array(values, dtype=float))


def made_up(n, others, *, noise, seed=0, gain=0.1):
    """Return treatment, control and labels: differences of mean ``gain``, a judge with noise."""
    random = np.random.default_rng(seed)
    true = gain + 0.2 * random.standard_normal(n + others)
    judged = true + noise * random.standard_normal(n + others)
    is_people = np.arange(n + others) < n
    control = np.full(n + others, 0.5)
    labels = Labels(is_people, 0.5 + judged, control)
    return np.where(is_people, 0.5 + true, 0.5 + judged), control, labels


def test_an_estimate_by_hand():
    # y = 1, 2, 3; f = 1, 3, 2: cov = ((-1)(-1) + 0 * 1 + 1 * 0) / 2 = .5, var f = 1, slope .5
    # lambda = .5 * 2 / 5 = .2; the others' mean 5: 2 + .2 (5 - 2) = 2.6
    found = calibrated_ratio(mean_of(1, 2, 3), mean_of(1, 3, 2), mean_of(4, 6), rare_error=0.0)
    assert float(found.value) == pytest.approx(2.6)
    assert float(found.weight) == pytest.approx(0.2)
    # Residuals: y - 2 = -1, 0, 1 less .2 (f - 2) = -.2, .2, 0: -.8, -.2, 1; leverages of f are
    # 1/2, 1/2, 0, each times 2/5: divided by .8, .8, 1: -1, -.25, 1; squares 2.0625 / 2 / 3.
    # The judge's: .2^2 * var(4, 6) / 2 = .04 * 2 / 2 = .04.
    assert float(found.error) == pytest.approx(np.sqrt(2.0625 / 6 + 0.04))
    assert float(found.people_error) == pytest.approx(np.sqrt(1 / 3))


def test_a_rare_error_that_no_query_shows_is_allowed_for():
    perfect = mean_of(*range(10)), mean_of(*range(10)), mean_of(*range(10))
    narrow = calibrated_ratio(*perfect, rare_error=0.0)
    wide = calibrated_ratio(*perfect, rare_error=0.5)
    # slope 1, lambda = 10 / 20; one query in ten with .5: (.5 * .5 / 10)^2
    assert float(wide.error**2 - narrow.error**2) == pytest.approx(0.025**2)


def test_a_ratio_is_that_of_two_means_where_the_judge_says_nothing():
    above, below = np.array([1.0, 2.0, 3.0, NAN]), np.array([2.0, 2.0, 4.0, 9.0])
    silent = Shares(np.zeros(4), np.zeros(4))
    found = calibrated_ratio(Shares.of_ratio(above, below), silent, silent)
    assert float(found.value) == pytest.approx(6 / 8)
    assert float(found.weight) == 0.0


def test_a_perfect_judge_is_worth_nearly_all_of_its_queries():
    treatment, control, labels = made_up(60, 540, noise=0.0)
    found = compare_with_judge(treatment, control, labels)
    everything = compare_paired(treatment, control, seed=0)
    assert found.mean_difference == pytest.approx(everything.mean_difference)
    assert found.judge.weight == pytest.approx(0.9)
    assert found.judge.queries == 540
    # The interval of 600 queries is .0160 to either side; rare errors are allowed for beside it.
    assert 200 < found.judge.worth < 600
    assert found.n == 60


def test_a_judge_that_says_the_opposite_counts_for_nothing():
    treatment, control, labels = made_up(60, 540, noise=0.0)
    opposite = Labels(labels.is_people, 1.0 - labels.judged_treatment, labels.judged_control)
    found = compare_with_judge(treatment, control, opposite)
    alone = compare_paired(treatment[:60], control[:60], seed=0)
    assert found.judge.weight == 0.0
    assert found.mean_difference == pytest.approx(alone.mean_difference)
    assert found.interval == pytest.approx(alone.interval, abs=2e-3)  # a degree of freedom less


def test_the_better_the_judge_the_narrower_the_interval():
    widths = []
    for noise in (0.0, 0.1, 0.2, 0.4, 0.8):
        low, high = compare_with_judge(*made_up(60, 600, noise=noise)).interval
        widths.append(high - low)
    assert widths == sorted(widths)
    assert widths[0] < 0.6 * widths[-1]


def test_a_judge_that_favours_the_treatment_does_not_move_the_mean():
    treatment, control, labels = made_up(100, 900, noise=0.1, gain=0.0)
    kind = Labels(labels.is_people, labels.judged_treatment + 0.3, labels.judged_control)
    honest = compare_with_judge(treatment, control, labels)
    found = compare_with_judge(treatment, control, kind)
    assert found.mean_difference == pytest.approx(honest.mean_difference)
    assert found.p_value > 0.05


def test_what_people_cannot_judge_is_left_out_of_the_judges_queries_too():
    # People find nothing relevant for half of the queries, and neither does the judge: the mean is
    # over the others, .1 for everybody, and not half of it.
    random = np.random.default_rng(0)
    values = np.where(np.arange(400) % 2, NAN, 0.1 + 0.01 * random.standard_normal(400))
    labels = Labels(np.arange(400) < 100, values, np.where(np.isnan(values), NAN, 0.0))
    found = compare_with_judge(values, np.where(np.isnan(values), NAN, 0.0), labels)
    assert (found.n, found.undefined) == (50, 50)
    assert found.mean_difference == pytest.approx(0.1, abs=0.005)
    assert found.control_mean == 0.0


def test_few_of_peoples_queries_answer_alone():
    treatment, control, labels = made_up(19, 500, noise=0.1)
    assert compare_with_judge(treatment, control, labels) == compare_paired(
        treatment[:19], control[:19], seed=0, permutations=0, resamples=0
    )


def test_no_difference_on_peoples_queries_is_no_difference():
    treatment, control, labels = made_up(60, 500, noise=0.1)
    found = compare_with_judge(np.where(labels.is_people, 0.5, treatment), control, labels)
    assert found.interval_kind == "constant"
    assert found.judge is None


def test_a_loss_is_tested_by_both_kinds_of_labels():
    treatment, control, labels = made_up(60, 600, noise=0.05, gain=0.0)
    given = {"margin": 0.03, "higher_is_better": True}
    alone = non_inferiority(treatment[:60], control[:60], **given)
    both = non_inferiority_with_judge(treatment, control, labels, **given)
    compared = compare_with_judge(treatment, control, labels, confidence=0.9)
    # The one-sided bound at .05 is the lower end of the two-sided interval at .9.
    assert both.loss_bound == pytest.approx(-compared.interval[0])
    assert both.loss_bound - both.loss < alone.loss_bound - alone.loss
    assert both.is_non_inferior == (both.loss_bound <= 0.03)


def test_values_and_labels_of_different_queries_are_refused():
    labels = Labels(np.ones(3, dtype=bool), np.zeros(3), np.zeros(3))
    with pytest.raises(InputError, match="same queries"):
        compare_with_judge(np.zeros(4), np.zeros(4), labels)


@given(st.lists(st.integers(0, 4), min_size=3, max_size=20))
def test_degrees_of_freedom_are_those_of_one_row(values):
    row = np.array(values, dtype=float)
    assert float(_degrees(row, row.size - 1)) == pytest.approx(max(degrees_of_freedom(row), 1.0))
