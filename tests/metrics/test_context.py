"""Context precision by hand: both things that go by that name, and fitted discounts."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.errors import MetricError
from tuner.core.rankings import Rankings
from tuner.metrics import Qrels, parse
from tuner.metrics.base import Judged, MetricOptions
from tuner.metrics.context import (
    check_fitted,
    context_precision,
    discounted_precision,
    fit_discount,
    rank_weights,
)
from tuner.scoring.evaluate_run import evaluate_run


def judged(grades: dict[str, float], answer: list[str]) -> Judged:
    rankings = Rankings.from_ids(["q"], [answer])
    return Qrels.build({"q": grades}).judge(rankings)


A_BINARY = judged({"a": 1, "b": 1}, ["a", "b", "x"])  # [1, 1, 0]
B_BINARY = judged({"a": 1, "b": 1}, ["x", "a", "b"])  # [0, 1, 1]
A_GRADED = judged({"a": 1, "b": 0.5}, ["a", "b", "x"])  # [1, .5, 0]
B_GRADED = judged({"a": 1, "b": 0.5}, ["x", "a", "b"])  # [0, 1, .5]


def test_worked_example_ragas_context_precision():
    # A: (1/1 + 2/2) / 2 = 1; B: (1/2 + 2/3) / 2 = .5833
    assert parse("context_precision@3").per_query(A_BINARY) == pytest.approx([1.0])
    assert parse("context_precision@3").per_query(B_BINARY) == pytest.approx([7 / 12])


def test_worked_example_discounted_precision_all_maximum_denominator():
    # weights 1, .6309, .5: sum 2.1309. A: (1 + .5 * .6309) / 2.1309 = .6173
    assert parse("discounted_precision@3").per_query(A_GRADED) == pytest.approx([0.6173], abs=5e-5)
    # B: (.6309 + .5 * .5) / 2.1309 = .4134
    assert parse("discounted_precision@3").per_query(B_GRADED) == pytest.approx([0.4134], abs=5e-5)


def test_a_perfect_ranking_can_score_below_1():
    # Nothing better exists than [1, .5], and it is not k passages of the highest grade.
    assert parse("discounted_precision@3").per_query(A_GRADED)[0] < 1.0
    assert parse("context_precision@3").per_query(A_BINARY)[0] == 1.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # weights 1, 1/2, 1/3: (1/2 + .5/3) / (11/6) = .3636
        ("discounted_precision_reciprocal@3", (1 / 2 + 1 / 6) / (11 / 6)),
        # weights 1, .7071, .5774: (.7071 + .2887) / 2.2845 = .4359
        ("discounted_precision_sqrt@3", (2**-0.5 + 0.5 * 3**-0.5) / (1 + 2**-0.5 + 3**-0.5)),
        # weights 1: (0 + 1 + .5) / 3
        ("discounted_precision_uniform@3", 0.5),
        # .5 is below grade 1, so not relevant: .6309 / 2.1309
        ("discounted_precision_binary@3", 0.6309297536 / 2.1309297536),
        # relevances 0, 1, .5: P = 0, 1/2, .5; (1/2 * 1 + .5 * .5) / 1.5 = .5
        ("context_precision_graded@3", 0.5),
    ],
)
def test_other_discounts_and_relevances(name, value):
    assert parse(name).per_query(B_GRADED) == pytest.approx([value])


def test_grades_are_taken_against_the_highest_judgement_or_the_given_scale():
    three = judged({"a": 2, "b": 1, "c": 3}, ["a", "b"])
    # uniform over 2 ranks: (2/3 + 1/3) / 2
    assert discounted_precision(three, 2, discount="uniform") == pytest.approx([0.5])
    # on a scale to 4: (2/4 + 1/4) / 2
    assert discounted_precision(three, 2, discount="uniform", highest_grade=4) == pytest.approx(
        [0.375]
    )


def test_a_short_ranking_is_compared_with_k_ranks():
    # one of 4 equal ranks
    alone = judged({"a": 1}, ["a"])
    assert discounted_precision(alone, 4, discount="uniform") == pytest.approx([0.25])


def test_precision_of_what_is_not_there():
    nothing_found = judged({"a": 1}, ["x", "y"])
    nothing_relevant = judged({"a": 0}, ["a"])
    for name in ("context_precision@2", "context_precision_graded@2", "discounted_precision@2"):
        assert parse(name).per_query(nothing_found).tolist() == [0.0]
        assert np.isnan(parse(name).per_query(nothing_relevant)).all()
    assert evaluate_run({"q": {"a": 1}}, {"q": []}, "context_precision@2") == {"q": 0.0}


def test_discounts_of_ones_own():
    u_shaped = [1.0, 0.2, 0.8]
    # (.2 * 1 + .8 * .5) / 2
    assert discounted_precision(B_GRADED, 3, discount=u_shaped) == pytest.approx([0.3])
    # weights 1, 1/4, 1/9: (1/4 + .5/9) / (49/36)
    value = discounted_precision(B_GRADED, 3, discount=lambda ranks: ranks**-2.0)
    assert value == pytest.approx([(1 / 4 + 1 / 18) / (49 / 36)])


@pytest.mark.parametrize(
    ("discount", "message"),
    [
        ("lgo", "unknown discount 'lgo'; did you mean 'log'"),
        ([1.0, 0.5], "the discount has 2 weights for 3 ranks"),
        ([1.0, -0.5, 0.2], "from 0 up"),
        ([1.0, np.nan, 0.2], "finite"),
        ([0.0, 0.0, 0.0], "not all 0"),
    ],
)
def test_discounts_that_mean_nothing_are_refused(discount, message):
    with pytest.raises(MetricError, match=message):
        rank_weights(discount, 3)


def test_fitted_weights_are_the_means_by_position_relative_to_the_first():
    # rank 1: (.8 + .4) / 2 = .6; rank 2: .3; rank 3: .45 -> 1, .5, .75: a U, kept as it is
    fitted = fit_discount([1, 2, 1, 3], [0.8, 0.3, 0.4, 0.45])
    np.testing.assert_allclose(fitted, [1.0, 0.5, 0.75])
    np.testing.assert_allclose(discounted_precision(B_GRADED, 3, discount=fitted), [0.875 / 2.25])


def test_fitted_weights_are_least_squares():
    rng = np.random.default_rng(7)
    positions = rng.integers(1, 5, 60)
    gains = rng.normal(1.0, 0.2, 60)
    design = (positions[:, None] == np.arange(1, 5)).astype(float)
    solution = np.linalg.lstsq(design, gains, rcond=None)[0]
    np.testing.assert_allclose(fit_discount(positions, gains), solution / solution[0])


def test_fitted_weights_are_never_negative_and_bridge_ranks_that_were_not_tried():
    # ranks 2 and 3 lie on the line from 1 to .4; rank 5 hurts: 0
    fitted = fit_discount([1, 4, 5], [1.0, 0.4, -0.3])
    np.testing.assert_allclose(fitted, [1.0, 0.8, 0.6, 0.4, 0.0])


@pytest.mark.parametrize(
    ("positions", "contributions", "message"),
    [
        ([], [], "at least 1"),
        ([1, 2], [0.5], "one length"),
        ([0, 1], [0.5, 0.5], "whole numbers from 1"),
        ([1.5], [0.5], "whole numbers from 1"),
        ([1], [np.nan], "not a finite number"),
        ([2, 3], [0.5, 0.4], "relative to rank 1"),
        ([1, 2], [0.0, 0.4], "relative to rank 1"),
    ],
)
def test_ablations_that_cannot_be_fitted_are_refused(positions, contributions, message):
    with pytest.raises(MetricError, match=message):
        fit_discount(positions, contributions)


def test_arguments_that_mean_nothing_are_refused():
    with pytest.raises(MetricError, match="relevance='yes'"):
        context_precision(A_BINARY, 3, relevance="yes")
    with pytest.raises(MetricError, match="highest_grade=0"):
        discounted_precision(A_BINARY, 3, highest_grade=0)


def test_fitted_weights_make_a_metric_of_their_own():
    metric = parse("discounted_precision_fitted@3")
    with pytest.raises(MetricError, match="needs the weights of the ranks"):
        metric.per_query(A_GRADED)
    # A = [1, .5, 0] with weights 1, .2, .6, …: (1 + .5 * .2) / 1.8; the fourth is not looked at
    fitted = metric.with_options(MetricOptions(fit_discount([1, 2, 3, 4], [0.5, 0.1, 0.3, 9.0])))
    assert fitted.per_query(A_GRADED) == pytest.approx([1.1 / 1.8])
    assert fitted.name == metric.name
    # other metrics have their own weights
    plain = parse("discounted_precision@3")
    assert plain.with_options(MetricOptions([1, 0, 0])) is plain


def test_fitted_weights_reach_down_to_the_cut_off():
    check_fitted([1.0, 0.5], 2)
    with pytest.raises(MetricError, match="2 weights for 3 ranks"):
        check_fitted([1.0, 0.5], 3)
    with pytest.raises(MetricError, match="needs the weights"):
        check_fitted(None, 3)
