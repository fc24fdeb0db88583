"""What holds for every comparison, correction and sample size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tuner.stats import (
    bootstrap_corrected,
    compare_paired,
    correct_holm,
    minimum_detectable_effect,
    non_inferiority,
    power_paired,
    sample_size_paired,
    within_one_standard_error,
)

# Metric values, with many ties and some queries undefined.
metric_values = st.one_of(
    st.integers(0, 20).map(lambda number: number / 20),
    st.floats(0.0, 1.0),
    st.just(float("nan")),
)
paired_values = st.lists(st.tuples(metric_values, metric_values), max_size=12)
matrices = st.tuples(st.integers(1, 5), st.integers(2, 8)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 10).map(lambda n: n / 10))
)
few = settings(max_examples=40)


def compared(pairs, **options):
    treatment, control = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    # 2^12 signs at most, so that the permutation test is exact.
    settled = {"seed": 0, "permutations": 4096, "resamples": 100, **options}
    return compare_paired(treatment, control, **settled)


@few
@given(pairs=paired_values)
def test_swapping_the_two_systems_turns_every_sign(pairs):
    forth = compared(pairs)
    back = compared([(b, a) for a, b in pairs])
    assert (forth.wins, forth.ties, forth.losses) == (back.losses, back.ties, back.wins)
    assert forth.remark == back.remark
    assert (forth.p_value is None) == (forth.n < 2)
    if forth.n >= 2:
        assert forth.mean_difference == pytest.approx(-back.mean_difference, abs=1e-12)
        assert forth.p_value == pytest.approx(back.p_value, rel=1e-6)
        assert forth.permutation_p == pytest.approx(back.permutation_p)
    # A constant difference on too few queries to rule out chance has none.
    assert (forth.interval is None) == (back.interval is None)
    if back.interval is not None:
        low, high = back.interval
        assert forth.interval == pytest.approx((-high, -low), rel=1e-6, abs=1e-9)


@few
@given(pairs=paired_values, data=st.data())
def test_the_order_of_the_queries_changes_nothing(pairs, data):
    assert compared(pairs) == compared(data.draw(st.permutations(pairs)))


@few
@given(pairs=paired_values)
def test_p_values_are_shares_and_the_interval_holds_the_mean_and_agrees_with_p(pairs):
    result = compared(pairs)
    assert result.n + result.undefined == len(pairs)
    assert result.wins + result.ties + result.losses == result.n
    if result.n < 2:
        return
    assert 0.0 <= result.p_value <= 1.0
    assert 0.0 < result.permutation_p <= 1.0
    assert (result.interval is None) == (result.interval_kind == "undefined")
    if result.interval is None:
        assert result.p_value >= 0.05
    else:
        low, high = result.interval
        assert low <= result.mean_difference <= high
        if abs(result.p_value - 0.05) > 1e-9:
            assert (result.p_value < 0.05) == (not low <= 0.0 <= high)
    if result.interval_kind == "t":
        assert min(2.0, result.n - 1.0) <= result.degrees_of_freedom <= result.n - 1.0
    if result.bca_interval is not None:
        low, high = result.bca_interval
        assert -1.0 <= low <= high <= 1.0


@few
@given(pairs=paired_values, shift=st.integers(-8, 8))
def test_a_shift_of_both_systems_changes_only_the_means(pairs, shift):
    before = compared(pairs, resamples=0)
    after = compared([(a + shift, b + shift) for a, b in pairs], resamples=0)
    assert (before.n, before.interval_kind) == (after.n, after.interval_kind)
    if before.interval_kind == "t" and before.standard_deviation > 1e-6:
        assert after.p_value == pytest.approx(before.p_value, rel=1e-4, abs=1e-9)


@given(p_values=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_never_lowers_a_p_value(p_values):
    raw = np.array(p_values)
    adjusted = correct_holm(raw)
    assert (adjusted >= raw).all()
    assert (adjusted <= 1.0).all()
    assert (np.diff(adjusted[np.argsort(raw)]) >= 0.0).all()


@few
@given(effect=st.floats(0.05, 3.0), power=st.floats(0.3, 0.99))
def test_a_sample_size_is_the_smallest_that_is_enough(effect, power):
    n = sample_size_paired(effect, power=power)
    assert power_paired(effect, n) >= power
    assert n == 2 or power_paired(effect, n - 1) < power
    assert minimum_detectable_effect(n, power=power) <= effect + 1e-9


@few
@given(pairs=paired_values, margins=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)))
def test_a_wider_margin_never_makes_a_guard_rail_harder_to_keep(pairs, margins):
    treatment, control = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    strict, loose = (
        non_inferiority(treatment, control, margin=margin, higher_is_better=True)
        for margin in sorted(margins)
    )
    if strict.p_value is None:
        assert not strict.is_non_inferior
        return
    assert 0.0 <= loose.p_value <= strict.p_value + 1e-12
    if strict.remark is None and abs(strict.loss_bound - strict.margin) > 1e-9:
        assert strict.is_non_inferior == (strict.loss_bound < strict.margin)
    mirrored = non_inferiority(-treatment, -control, margin=strict.margin, higher_is_better=False)
    assert mirrored.p_value == pytest.approx(strict.p_value)


@given(values=matrices, data=st.data())
def test_the_best_and_whatever_beats_it_are_within_one_standard_error(values, data):
    best = data.draw(st.integers(0, values.shape[0] - 1))
    is_within = within_one_standard_error(values, best)
    is_ahead = (values >= values[best]).all(axis=1)
    assert is_within[best]
    assert is_within[is_ahead].all()
    # Exact in binary, so that no rounding decides.
    np.testing.assert_array_equal(is_within, within_one_standard_error(values * 4.0, best))


@few
@given(values=matrices, data=st.data())
def test_a_corrected_estimate_stays_within_the_values_and_its_interval(values, data):
    result = bootstrap_corrected(values, seed=0, resamples=100)
    low, high = result.interval
    assert values.min() - 1e-12 <= low <= high <= values.max() + 1e-12
    assert values.min() - 1e-12 <= result.estimate <= values.max() + 1e-12
    assert result.naive == pytest.approx(values.mean(axis=1).max())
    baseline = data.draw(st.integers(0, values.shape[0] - 1))
    gain = bootstrap_corrected(values - values[baseline], seed=0, resamples=100)
    assert gain.winner == result.winner
