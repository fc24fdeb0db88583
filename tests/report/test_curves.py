"""A free parameter is shown as the line that one answer tells, with its band, and not as dots."""

from __future__ import annotations

from dataclasses import replace

from tuner.core.profile import Curve, Profile
from tuner.report.curves import computed_trials
from tuner.report.review import read_review
from tuner.report.slices import section

CURVE = Curve("graph_weight", (0.0, 0.5, 1.0), (0.2, 0.6, 0.4), (0.05, 0.0, None))


def profiled(review):
    profile = Profile({"max_hops": 1}, 1234, 0.6, (CURVE,))
    number = review.chosen.trial
    trials = [replace(t, profile=profile) if t.number == number else t for t in review.trials]
    return replace(review, trials=tuple(trials))


def slice_of(review, name):
    (charts,) = [b for b in section(review, {}).blocks if getattr(b, "name", "") == "slices"]
    return next(chart for chart in charts.charts if chart.name == f"slice-{name}")


def test_a_free_parameter_has_a_line_with_a_band(study):
    review = profiled(read_review(study()))
    chart = slice_of(review, "graph_weight")
    band, line, *marks = chart.series
    assert (line.form, line.x, line.y) == ("line", CURVE.at, CURVE.objective)
    assert (band.form, band.low[1], band.high[2]) == ("band", 0.6, 0.4)
    assert band.low[0] == 0.2 - 1.96 * 0.05
    assert {mark.role for mark in marks} <= {"chosen", "baseline"}
    assert chart.numbers.columns == ("graph_weight", "objective", "standard_error")
    assert chart.y.span[0] < band.low[0]
    texts = [block.text for block in section(review, {}).blocks if hasattr(block, "text")]
    assert any("graph_weight is free: its line is" in text for text in texts)


def test_the_others_keep_their_dots(study):
    review = read_review(study())
    before, after = (slice_of(one, "max_hops") for one in (review, profiled(review)))
    assert after == before


def test_cells_know_of_every_value_of_a_free_parameter(study):
    review = profiled(read_review(study()))
    (charts,) = [b for b in section(review, {}).blocks if getattr(b, "name", "") == "surface"]
    (chart,) = charts.charts
    assert "Other values of a free parameter are computed" in chart.caption
    (trial,) = [t for t in review.trials if t.profile is not None]
    told = {(t.params["graph_weight"], t.objective) for t in computed_trials(trial)}
    assert told == {(0.0, 0.2), (0.5, 0.6), (1.0, 0.4)}
    without = replace(trial, params={**trial.params, "graph_weight": 0.5})
    assert [t.params["graph_weight"] for t in computed_trials(without)] == [0.0, 1.0]
    assert len(computed_trials(trial, most=2)) == 2


def test_a_constraint_at_other_values_is_not_known(study):
    review = profiled(read_review(study()))
    objective = {**review.header.objective, "constraints": {"latency_p95_ms": {"max": 9}}}
    bounded = replace(review, header=replace(review.header, objective=objective))
    (charts,) = [b for b in section(bounded, {}).blocks if getattr(b, "name", "") == "surface"]
    assert "computed" not in charts.charts[0].caption
