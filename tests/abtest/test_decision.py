"""What is recommended, and why, from rows in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tuner.abtest.analysis import analyze
from tuner.abtest.decision import decide, decide_each
from tuner.abtest.experiment import ExperimentConfig
from tuner.abtest.report import table_row, to_html
from tuner.abtest.size import rounded
from tuner.abtest.table import Table
from tuner.core.errors import InputError


def config(**changes):
    plan = {
        "name": "made-up",
        "arms": {"control": {}, "treatment": {}},
        "metrics": {
            "gain": {"mean": "gain", "better": "higher"},
            "cost": {"mean": "cost", "better": "lower"},
        },
        "primary": {"metric": "gain", "min_effect": 0.5},
        "guardrails": {"cost": {"max_increase": "10%"}},
        "minimum_sample_size": 100,
    }
    return ExperimentConfig.model_validate({**plan, **changes})


def table(users=400, *, gain=0.0, cost=1.0, seed=0, arms=("control", "treatment"), **columns):
    """Two rows a user; the second arm gains ``gain`` and costs ``cost`` times as much."""
    random = np.random.default_rng(seed)
    names = [f"u{number // 2}" for number in range(2 * users)]
    arm = [arms[number // 2 % len(arms)] for number in range(2 * users)]
    is_treated = np.array([one == "treatment" for one in arm])
    numbers = {
        "gain": np.repeat(random.normal(10, 1, users), 2) + gain * is_treated,
        "cost": np.repeat(random.normal(10, 1, users), 2) * np.where(is_treated, cost, 1.0),
        **columns,
    }
    lines = list(range(2, 2 * users + 2))
    return Table(Path("rows.csv"), {"user": names, "arm": arm}, numbers, lines, True)


def outcome(plan, rows):
    decision = decide(analyze(plan, rows))
    return decision.outcome, decision.sentence


def test_users_are_the_unit_not_their_rows():
    # Two equal rows a user: as many observations as users.
    (primary, *_) = analyze(config(), table(400)).results["treatment"]
    assert primary.comparison.n_treatment == 200


def test_clear_gain_and_kept_guard_rail_ship():
    found, sentence = outcome(config(), table(gain=1.0))
    assert found == "ship"
    assert sentence.startswith("Ship treatment: gain +")
    assert sentence.endswith("and cost kept.")


def test_no_difference_that_matters_is_ruled_out():
    found, sentence = outcome(config(), table(4000))
    assert found == "do not ship"
    assert "a gain of 0.5 in gain is ruled out" in sentence


def test_a_guard_rail_that_is_not_tested_is_not_kept():
    rows = table(gain=1.0, cost=1.0)
    rows.numbers["cost"][:] = np.nan
    found, sentence = outcome(config(), rows)
    assert found == "do not ship"
    assert "a guard-rail was not tested (cost: no unit of the treatment has a value" in sentence


def test_a_primary_metric_that_is_not_tested_decides_nothing():
    rows = table()
    rows.numbers["gain"][:] = 1.0
    found, sentence = outcome(config(), rows)
    assert found == "do not ship"
    assert "was not tested (all units of each arm have the same value" in sentence


def test_an_open_guard_rail_keeps_collecting_and_says_how_many():
    rows = table(300, gain=1.0, cost=1.07)
    decision = decide(analyze(config(), rows))
    assert decision.outcome == "keep collecting"
    assert "cost is not shown to be kept" in decision.sentence
    assert 0 < decision.more_units < 300
    # As many users again with the same figures are more than enough.
    doubled = Table(
        rows.path,
        {
            "user": rows.texts["user"] + [f"again-{user}" for user in rows.texts["user"]],
            "arm": rows.texts["arm"] * 2,
        },
        {name: np.tile(values, 2) for name, values in rows.numbers.items()},
        list(range(2, 2 + 2 * len(rows.lines))),
        True,
    )
    assert decide(analyze(config(), doubled)).outcome == "ship"


def test_a_loss_at_the_margin_cannot_be_told_how_many_more():
    plan = config(guardrails={"cost": {"max_increase": "1%"}})
    decision = decide(analyze(plan, table(300, gain=1.0, cost=1.03)))
    if decision.outcome == "keep collecting":
        assert decision.more_units is None
        assert "cannot be told" in decision.sentence
    else:
        assert decision.outcome == "do not ship"


def test_one_planned_look_decides_for_good():
    plan = config(decide="fixed_horizon")
    assert outcome(plan, table(gain=1.0))[0] == "ship"
    found, sentence = outcome(plan, table())
    assert found == "do not ship"
    assert "is not shown to be better" in sentence
    found, sentence = outcome(plan, table(gain=1.0, cost=1.11))
    assert found == "do not ship"
    assert "cost not shown to be kept" in sentence


def test_one_planned_look_is_not_taken_before_the_minimum_sample():
    found, sentence = outcome(config(decide="fixed_horizon"), table(100, gain=2.0))
    assert found == "keep collecting"
    assert "about 100 more units" in sentence


def test_any_look_asks_for_more_evidence_than_one():
    for seed in range(20):
        (primary, *_) = analyze(config(), table(200, gain=0.3, seed=seed)).results["treatment"]
        assert primary.comparison.always_valid_p >= primary.comparison.p_value


def test_lower_is_better_turns_the_direction():
    plan = config(
        primary={"metric": "cost", "min_effect": "5%"},
        guardrails={"gain": {"max_decrease": 0.5}},
    )
    assert outcome(plan, table(cost=0.8))[0] == "ship"
    assert "is worse" in outcome(plan, table(cost=1.3))[1]


def test_the_best_of_several_treatments_is_shipped_at_its_share_of_alpha():
    plan = config(
        arms={"control": {}, "treatment": {}, "other": {}}, guardrails={}, minimum_sample_size=50
    )
    rows = table(900, gain=1.0, arms=("control", "treatment", "other"))
    analysis = analyze(plan, rows)
    assert decide_each(analysis)[0].outcome == "ship"
    assert decide(analysis).treatment == "treatment"
    (primary, *_) = analysis.results["treatment"]
    assert primary.comparison.alpha == 0.025
    assert "97.5 % interval" in decide(analysis).sentence


def test_holm_over_secondary_metrics_of_all_treatments_leaves_out_what_is_not_tested():
    plan = config(
        metrics={
            "gain": {"mean": "gain", "better": "higher"},
            "cost": {"mean": "cost", "better": "lower"},
            "nothing": {"mean": "nothing", "better": "lower"},
        },
        guardrails={},
        decide="fixed_horizon",
    )
    rows = table(gain=1.0, cost=1.5, nothing=np.full(800, np.nan))
    primary, cost, nothing = analyze(plan, rows).results["treatment"]
    assert primary.adjusted_p is None
    assert cost.adjusted_p == cost.comparison.p_value  # one test, so nothing to correct
    assert nothing.adjusted_p is None
    assert table_row(plan, nothing)[5:8] == ("not tested",) * 3


def test_values_from_during_the_experiment_are_not_used_for_cuped():
    plan = config(
        metrics={
            "gain": {"mean": "gain", "better": "higher", "before": "later"},
            "cost": {"mean": "cost", "better": "lower"},
        }
    )
    rows = table(gain=1.0)
    rows.numbers["later"] = rows.numbers["gain"] + 0.0  # moved by the treatment
    primary, _ = analyze(plan, rows).results["treatment"]
    assert primary.variance_reduction is None
    assert "not from before the experiment" in primary.remark
    assert primary.comparison.difference == pytest.approx(1.0, abs=0.4)


def test_a_user_without_values_counts_for_the_sample_ratio_only():
    rows = table(400)
    rows.numbers["gain"][:40] = np.nan  # the first 20 users did nothing
    analysis = analyze(config(), rows)
    assert analysis.counts == {"control": 200, "treatment": 200}
    (primary, _) = analysis.results["treatment"]
    assert primary.comparison.n_treatment == 190


def test_the_minimum_sample_counts_users_with_a_value():
    rows = table(400, gain=2.0)
    rows.numbers["gain"][300:] = np.nan  # 150 users have one, 75 in each arm
    found, sentence = outcome(config(), rows)
    assert found == "keep collecting"
    assert "75 units in the smaller arm" in sentence


def test_after_a_mismatch_nothing_is_compared():
    analysis = analyze(config(), table(900, gain=5.0, arms=("control", "control", "treatment")))
    assert analysis.results == {}
    decision = decide(analysis)
    assert decision.outcome == "stop"
    assert "control 600 (expected 450), treatment 300 (expected 450)" in decision.sentence
    assert "a mismatch" in to_html(analysis, decision)


def test_a_ratio_needs_denominators_that_are_not_negative():
    plan = config(metrics={
        "gain": {"ratio": {"of": "gain", "per": "times"}, "better": "higher"},
        "cost": {"mean": "cost", "better": "lower"},
    })  # fmt: skip
    with pytest.raises(InputError, match="negative"):
        analyze(plan, table(times=np.full(800, -1.0)))
    (primary, _) = analyze(plan, table(times=np.zeros(800))).results["treatment"]
    assert primary.comparison.p_value is None


def test_a_guard_rail_with_too_few_values_yet_keeps_collecting():
    plan = {
        "metrics": {
            "gain": {"mean": "gain", "better": "higher"},
            "cost": {"quantile": {"of": "cost", "at": 0.99}, "better": "lower"},
        }
    }
    rows = table(gain=2.0)  # 400 rows in each arm: four beyond the 99th percentile
    decision = decide(analyze(config(**plan), rows))
    assert decision.outcome == "keep collecting"
    assert "cost is not shown to be kept" in decision.sentence
    assert "cannot be told yet (cost: the control has 400 values" in decision.sentence
    # One planned look has no later one.
    found, sentence = outcome(config(**plan, decide="fixed_horizon"), rows)
    assert found == "do not ship"
    assert "a guard-rail was not tested (cost: the control has 400 values" in sentence


def test_only_a_guard_rail_that_cannot_be_tested_yet_is_named_as_such():
    plan = config(
        metrics={
            "gain": {"mean": "gain", "better": "higher"},
            "cost": {"mean": "cost", "better": "lower"},
            "slow": {"quantile": {"of": "cost", "at": 0.99}, "better": "lower"},
        },
        guardrails={"cost": {"max_increase": "10%"}, "slow": {"max_increase": "10%"}},
    )
    decision = decide(analyze(plan, table(300, gain=1.0, cost=1.07)))
    assert decision.outcome == "keep collecting"
    assert "cost and slow are not shown to be kept" in decision.sentence
    assert "cannot be told yet (slow: the control has" in decision.sentence


def test_who_ships_is_told_which_secondary_metric_pays_for_it():
    plan = config(guardrails={})
    found, sentence = outcome(plan, table(gain=1.0, cost=1.2))
    assert found == "ship"
    assert "; but cost +2" in sentence
    assert sentence.endswith("% is clearly worse.")
    assert "worse" not in outcome(plan, table(gain=1.0, cost=0.8))[1]


def test_a_broken_guard_rail_is_called_so_in_the_table_too():
    plan = config()
    analysis = analyze(plan, table(gain=1.0, cost=1.5))
    assert "cost is broken" in decide(analysis).sentence
    assert table_row(plan, analysis.results["treatment"][1])[-1] == "broken (allowed 10 %)"


def test_a_forecast_is_rounded_up_to_two_digits():
    assert [rounded(units) for units in (1, 99, 100, 4_094, 46_708, 1_569_369)] == [
        1, 99, 100, 4_100, 47_000, 1_600_000,
    ]  # fmt: skip


def test_rare_values_in_a_small_arm_are_warned_of():
    users = 1_000
    plan = config(split={"control": 0.9, "treatment": 0.1}, guardrails={})
    arms = ("treatment", *["control"] * 9)
    rare = np.repeat(np.where(np.arange(users) % 37 == 0, 1.0, 0.0), 2)
    rows = table(users, arms=arms)
    assert analyze(plan, rows).results["treatment"][0].remark is None
    rows.numbers["gain"] = rare
    assert "few units carry it" in analyze(plan, rows).results["treatment"][0].remark
    even = table(users)
    even.numbers["gain"] = rare
    assert analyze(config(guardrails={}), even).results["treatment"][0].remark is None


def arms_of(control: int, treatment: int, *, without: int = 0):
    """One row a user; the last ``without`` users of the control have no value."""
    random = np.random.default_rng(0)
    count = control + treatment
    gain = random.normal(10, 1, count)
    gain[control - without : control] = np.nan
    names = {"user": [f"u{number}" for number in range(count)]}
    names["arm"] = ["control"] * control + ["treatment"] * treatment
    numbers = {"gain": gain, "cost": np.ones(count)}
    return Table(Path("rows.csv"), names, numbers, list(range(2, count + 2)), True)


@pytest.mark.parametrize(
    ("control", "treatment", "without", "more"),
    [
        (1011, 989, 0, 22),  # 11 are lacking in an arm that gets every second unit
        (1004, 986, 0, 28),
        (772, 728, 0, 544),
        # 600 of 1,000 have a value: 400 with one are 667 with and without, of two arms
        (1000, 1000, 400, 1334),
        (999, 1001, 0, 2),
    ],
)
def test_the_smaller_arm_decides_how_many_more_reach_the_minimum(control, treatment, without, more):
    plan = config(minimum_sample_size=1000, guardrails={}, decide="fixed_horizon")
    decision = decide(analyze(plan, arms_of(control, treatment, without=without)))
    assert decision.outcome == "keep collecting"
    assert decision.more_units == more
    assert f"about {more:,} more units of treatment and control together" in decision.sentence


def test_shares_of_a_rate_stay_within_what_can_be():
    random = np.random.default_rng(0)
    rows = table(150)
    rows.numbers["gain"][:] = np.repeat(random.random(150) < 0.08, 2)
    (primary, *_) = analyze(config(minimum_sample_size=10), rows).results["treatment"]
    comparison = primary.comparison
    assert comparison.always_valid_interval[0] / comparison.control < -1.0
    if comparison.always_valid_relative_interval is not None:
        assert comparison.always_valid_relative_interval[0] >= -1.0
    assert comparison.relative_interval is None or comparison.relative_interval[0] >= -1.0
    # What cannot be told as a share is told as a difference.
    shown = table_row(config(), primary)[5]
    assert ("%" in shown) == comparison.is_share
