import numpy as np
import pytest
from scipy import stats

from tuner.core.errors import InputError
from tuner.stats import bca_interval, compare_paired, sign_flip_p, standard_error

NAN = float("nan")


def test_a_comparison_by_hand():
    result = compare_paired([0.5, 0.7, 0.9, 0.4], [0.4, 0.5, 0.6, 0.4], seed=0)
    # d = .1, .2, .3, 0: mean .6 / 4 = .15
    # sd = sqrt((.05^2 + .05^2 + .15^2 + .15^2) / 3) = sqrt(.05 / 3) = .129099
    # d_z = .15 / .129099 = 1.161895; se = .129099 / 2 = .064550; t = .15 / .064550 = 2.323790
    # p (3 degrees of freedom, x = t / sqrt 3 = 1.341641)
    #   = 1 - 2/pi (atan x + x / (1 + x^2)) = 1 - 2/pi (.930274 + .479157) = .102728
    # interval: .15 -+ 3.182446 * .064550 = .15 -+ .205426
    assert (result.n, result.undefined) == (4, 0)
    assert result.treatment_mean == pytest.approx(0.625)
    assert result.control_mean == pytest.approx(0.475)
    assert result.mean_difference == pytest.approx(0.15)
    assert result.standard_deviation == pytest.approx(0.129099, abs=1e-6)
    assert result.effect_size == pytest.approx(1.161895, abs=1e-6)
    assert result.p_value == pytest.approx(0.102728, abs=1e-6)
    assert result.interval == pytest.approx((-0.055426, 0.355426), abs=1e-6)
    assert result.interval_kind == "t"
    # Signs of .1, .2, .3: of 8 sums only +.6 reaches .6, and only -.6 on the other side: 2/8.
    assert result.permutation_p == pytest.approx(0.25)
    assert (result.wins, result.ties, result.losses) == (3, 1, 0)
    assert result.relative == pytest.approx(0.15 / 0.475)
    assert result.remark is None


def test_two_queries_by_hand():
    # d = 1, 3: mean 2, sd sqrt 2, se 1, t = 2; one degree of freedom: p = 1 - 2/pi atan 2 = .295167
    result = compare_paired([1.0, 3.0], [0.0, 0.0], seed=0)
    assert result.p_value == pytest.approx(0.295167, abs=1e-6)
    assert result.permutation_p == 0.5  # 2 of 4 signs


def test_identical_arrays_have_p_1_and_say_so():
    result = compare_paired([0.2, 0.4, 0.9], [0.2, 0.4, 0.9], seed=0)
    assert (result.p_value, result.permutation_p) == (1.0, 1.0)
    assert (result.mean_difference, result.interval) == (0.0, (0.0, 0.0))
    assert result.interval_kind == "constant"
    assert (result.wins, result.ties, result.losses) == (0, 3, 0)
    assert result.effect_size is None
    assert result.bca_interval is None
    assert "identical on all 3 queries" in result.remark


def test_values_that_differ_by_rounding_only_are_identical():
    result = compare_paired([0.1 + 0.2, 0.7], [0.3, 0.7], seed=0)
    assert (result.ties, result.p_value) == (2, 1.0)


def test_a_relative_improvement_over_a_mean_of_0_is_undefined():
    assert compare_paired([0.1, 0.3], [0.0, 0.0], seed=0).relative is None
    # Against a negative control the sign still says which is higher.
    assert compare_paired([-1.0, -2.0], [-2.0, -4.0], seed=0).relative == pytest.approx(0.5)


def test_a_constant_difference_leaves_the_answer_to_the_sign_flip_test():
    # .1 more everywhere, though the subtractions differ in their last digits: 2 / 2^6 signs.
    control = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.75])
    result = compare_paired(control + 0.1, control, seed=0)
    assert result.p_value == result.permutation_p == 2 / 64
    assert result.interval == pytest.approx((0.1, 0.1))
    assert (result.interval_kind, result.standard_deviation) == ("constant", 0.0)
    assert result.effect_size is None
    assert "all 6 queries differ by the same amount (0.1)" in result.remark
    assert "check that the two were measured independently" in result.remark


@pytest.mark.parametrize(("n", "words"), [(2, "both queries"), (5, "all 5 queries")])
def test_a_constant_difference_on_few_queries_rules_nothing_out(n, words):
    # 2 / 2^5 = .0625 is above .05: no interval, so that it cannot seem to exclude 0.
    result = compare_paired(np.full(n, 0.6), np.full(n, 0.5), seed=0, permutations=0)
    assert result.p_value == 2.0 ** (1 - n)
    assert (result.interval, result.interval_kind) == (None, "undefined")
    assert result.remark.startswith(f"{words} differ by the same amount (0.1)")
    assert result.remark.endswith("it needs at least 6 queries to rule out chance")


@pytest.mark.parametrize(
    ("treatment", "control", "remark"),
    [
        ([], [], "no queries to compare"),
        ([NAN, 0.5], [0.5, NAN], "none of the 2 queries has a value from both"),
        ([0.5, NAN], [0.25, 0.1], "only one query"),
    ],
)
def test_fewer_than_two_queries_are_not_tested(treatment, control, remark):
    result = compare_paired(treatment, control, seed=0)
    assert result.p_value is result.permutation_p is result.interval is result.effect_size is None
    assert result.bca_interval is result.standard_deviation is None
    assert result.interval_kind == "undefined"
    assert remark in result.remark
    assert result.mean_difference == (0.25 if result.n else None)


def test_pairs_with_a_nan_are_left_out_and_counted():
    with_nan = compare_paired([0.5, NAN, 0.7, 0.1], [0.4, 0.3, 0.5, NAN], seed=0)
    without = compare_paired([0.5, 0.7], [0.4, 0.5], seed=0)
    assert (with_nan.n, with_nan.undefined) == (2, 2)
    assert with_nan.p_value == without.p_value


@pytest.mark.parametrize(
    ("treatment", "control", "message"),
    [
        ([1.0, 2.0], [1.0], "2 values and the control 1"),
        ([[1.0, 2.0]], [1.0, 2.0], r"shape \(1, 2\)"),
        ([1.0, 2.0], [1.0, float("inf")], "infinite value for query 1"),
    ],
)
def test_arrays_that_do_not_match_are_refused(treatment, control, message):
    with pytest.raises(InputError, match=message):
        compare_paired(treatment, control, seed=0)


@pytest.mark.parametrize(
    "options", [{"confidence": 95}, {"permutations": 10}, {"resamples": -1}, {"confidence": 0.0}]
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        compare_paired([1.0, 2.0], [0.0, 0.0], seed=0, **options)


def test_0_draws_leave_a_part_out():
    result = compare_paired([1.0, 3.0], [0.0, 0.0], seed=0, permutations=0, resamples=0)
    assert result.permutation_p is result.bca_interval is None
    assert result.p_value is not None


def test_differences_without_long_tails_get_scipys_paired_t_test():
    random = np.random.default_rng(1)
    treatment, control = random.uniform(0, 1, 60), random.uniform(0, 1, 60)
    result = compare_paired(treatment, control, seed=0, confidence=0.9)
    expected = stats.ttest_rel(treatment, control)
    assert result.degrees_of_freedom == 59
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert result.interval == pytest.approx(tuple(expected.confidence_interval(0.9)), rel=1e-9)


def test_long_tails_cost_degrees_of_freedom():
    # 0 nine times, and 1: mean .1, population variance .09, se = sqrt(.1) / sqrt(10) = .1, t = 1
    # k = (9 * .1^4 + .9^4) / 10 / .09^2 = .0657 / .0081 = 8.1111
    # df = 2 / ((8.1111 - 1) / 10 + 2 / 90) = 2 / .73333 = 2.72727
    difference = np.array([0.0] * 9 + [1.0])
    result = compare_paired(difference, np.zeros(10), seed=0, resamples=0)
    assert result.degrees_of_freedom == pytest.approx(2.72727, abs=1e-5)
    half = stats.t.ppf(0.975, 2.72727) * 0.1
    assert result.interval == pytest.approx((0.1 - half, 0.1 + half), abs=1e-5)
    assert result.p_value == pytest.approx(2 * stats.t.sf(1.0, 2.72727), abs=1e-5)


def test_the_interval_covers_skewed_differences_with_many_ties_where_students_does_not():
    # 70 % ties, normal differences else; true mean .03; 15 queries.
    random = np.random.default_rng(5)
    covered = by_student = 0
    for _ in range(400):
        is_rare = random.random(15) < 0.3
        difference = np.where(is_rare, random.normal(0.1, 0.3, 15), 0.0)
        result = compare_paired(difference, np.zeros(15), seed=0, permutations=0, resamples=0)
        if result.interval_kind != "t":
            continue
        low, high = result.interval
        covered += low <= 0.03 <= high
        low, high = stats.ttest_1samp(difference, 0.0).confidence_interval(0.95)
        by_student += low <= 0.03 <= high
    # 94.3 and 90.8 % of 20,000 samples: 377 and 363 of 400, standard deviations 5 and 6.
    assert covered > 365
    assert covered - by_student > 7


def test_the_sign_flip_test_agrees_with_a_list_of_all_signs():
    difference = np.array([0.3, -0.1, 0.25, 0.0, 0.4, -0.05, 0.2, 0.1])
    signs = 1 - 2 * ((np.arange(2**8)[:, None] >> np.arange(8)) & 1)
    sums = signs @ difference
    share = np.mean(sums >= difference.sum() - 1e-12)
    assert sign_flip_p(difference, seed=0) == pytest.approx(2 * share)


def test_queries_without_a_difference_do_not_stop_the_sign_flip_test_from_being_exact():
    difference = np.concatenate([np.zeros(200), [0.1, 0.2, 0.3, 0.4]])
    assert sign_flip_p(difference, seed=0) == sign_flip_p(difference, seed=1) == 2 / 16


def test_one_query_with_a_difference_shows_nothing():
    result = compare_paired([0.5, 0.5, 1.0], [0.5, 0.5, 0.0], seed=0)
    assert result.permutation_p == 1.0
    # d = 0, 0, 1: mean 1/3, se = sqrt(1/3) / sqrt 3 = 1/3, t = 1
    # two degrees of freedom: p = 1 - t / sqrt(t^2 + 2) = 1 - 1 / sqrt 3
    assert result.p_value == pytest.approx(1 - 1 / 3**0.5)


def test_many_queries_are_drawn_by_seed():
    difference = np.random.default_rng(3).normal(0.05, 0.2, 100)
    first = sign_flip_p(difference, seed=5)
    assert first == sign_flip_p(difference, seed=5)
    # The t-test and the sign-flip test agree on well-behaved data; .01 is 4 Monte Carlo errors.
    assert first == pytest.approx(stats.ttest_1samp(difference, 0).pvalue, abs=0.01)


def test_the_bca_interval_leans_to_the_long_tail_and_is_near_t_without_one():
    random = np.random.default_rng(4)
    skewed, even = random.exponential(1.0, 60), random.normal(1.0, 1.0, 400)
    low, high = bca_interval(skewed, seed=0)
    assert high - skewed.mean() > skewed.mean() - low
    expected = stats.ttest_1samp(even, 0).confidence_interval(0.95)
    assert bca_interval(even, seed=0) == pytest.approx(tuple(expected), abs=0.015)
    assert bca_interval(even, seed=0) == bca_interval(even, seed=0)


def test_the_bca_interval_agrees_with_efrons_formula():
    values = np.array([0.0, 0.1, 0.1, 0.2, 0.5, 1.4, 0.3, 0.9])
    n = values.size
    means = np.sort(np.random.default_rng(9).choice(values, (40_000, n)).mean(axis=1))
    theta = values.mean()
    z0 = stats.norm.ppf(np.mean(means < theta) + np.mean(means == theta) / 2)
    left_out = (values.sum() - values) / (n - 1)
    lean = left_out.mean() - left_out
    a = (lean**3).sum() / (6 * (lean**2).sum() ** 1.5)
    expected = []
    for z in (stats.norm.ppf(0.025), stats.norm.ppf(0.975)):
        expected.append(np.quantile(means, stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z)))))
    assert bca_interval(values, seed=0) == pytest.approx(tuple(expected), abs=0.03)


def test_standard_error_by_hand():
    # 1, 2, 3, 4: sd = sqrt(5/3) = 1.290994, / 2
    assert standard_error([1.0, 2.0, NAN, 3.0, 4.0]) == pytest.approx(0.645497, abs=1e-6)
    assert standard_error([1.0, NAN]) is None


def test_wilcoxon_is_not_used_for_means():
    # Skewed differences whose true mean is 0 do not fool our test as they fool Wilcoxon's.
    random = np.random.default_rng(11)
    runs, n = 300, 200
    rejected = by_wilcoxon = 0
    for _ in range(runs):
        difference = random.exponential(1.0, n) - 1.0
        result = compare_paired(difference, np.zeros(n), seed=0, permutations=0, resamples=0)
        rejected += result.p_value < 0.05
        by_wilcoxon += stats.wilcoxon(difference).pvalue < 0.05
    # True rate near 5 %: 15 of 300, standard deviation 3.8.
    assert rejected <= 33
    assert by_wilcoxon > 100


def test_equal_systems_are_called_different_about_once_in_twenty():
    random = np.random.default_rng(12)
    runs = 400
    t_count = flip_count = 0
    for _ in range(runs):
        difference = random.normal(0.0, 0.2, 12)
        result = compare_paired(difference, np.zeros(12), seed=1, permutations=499, resamples=0)
        t_count += result.p_value < 0.05
        flip_count += result.permutation_p < 0.05
    # 20 expected, standard deviation 4.4.
    assert 5 <= t_count <= 40
    assert 5 <= flip_count <= 40


def test_a_further_error_is_added_in_quadrature() -> None:
    # d = 0, 1, 2, 3: sd 1.291, error .6455; with .6455 more it is sqrt(2) times as large.
    own = compare_paired([1.0, 2.0, 3.0, 4.0], [1.0] * 4, seed=0)
    more = compare_paired([1.0, 2.0, 3.0, 4.0], [1.0] * 4, seed=0, further_error=0.645497)
    assert own.interval is not None
    assert more.interval is not None
    assert more.interval[1] - 1.5 == pytest.approx(2**0.5 * (own.interval[1] - 1.5), rel=1e-5)
    assert own.p_value is not None
    assert more.p_value is not None
    assert more.p_value > own.p_value


def test_equal_differences_with_a_further_error_have_an_interval() -> None:
    result = compare_paired([1.0] * 4, [0.5] * 4, seed=0, further_error=0.1)
    # Student's t with 3 degrees of freedom: 3.182 * .1 on either side.
    assert result.interval == pytest.approx((0.5 - 0.31824, 0.5 + 0.31824), abs=1e-4)
    assert result.effect_size is None


def test_of_a_cost_lower_is_a_win() -> None:
    result = compare_paired([1.0, 2.0, 3.0], [2.0, 2.0, 1.0], seed=0)
    assert (result.wins, result.ties, result.losses) == (1, 1, 1)
    fewer_tokens = compare_paired([100.0, 90.0, 80.0], [200.0, 90.0, 300.0], seed=0).of_a_cost()
    assert (fewer_tokens.wins, fewer_tokens.ties, fewer_tokens.losses) == (2, 1, 0)
    assert fewer_tokens.mean_difference is not None
    assert fewer_tokens.mean_difference < 0
