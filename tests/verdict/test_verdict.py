"""The verdict and the choice of the winner, on values made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.profile import Profile
from tuner.core.trial import Trial, TrialState
from tuner.verdict.few_queries import decide_without_holdout
from tuner.verdict.looks import EarlierLooks
from tuner.verdict.measured import Measured
from tuner.verdict.outcome import Rail
from tuner.verdict.ruling import CaveatKind, confidence
from tuner.verdict.verdict import Guardrail, decide
from tuner.verdict.winner import choose_winner

ALTERNATING = np.tile([0.0, 0.02], 50)


def measured(name, composite, **metrics):
    return Measured({"name": name}, np.asarray(composite, dtype=float), metrics)


def trial(number, objective, arm="tpe", **metrics):
    return Trial(
        number, arm, {"n": number}, TrialState.FINISHED, objective=objective, metrics=metrics
    )


def test_a_clear_gain_is_deployed():
    verdict = decide(measured("new", 0.6 + ALTERNATING), measured("old", np.full(100, 0.55)))
    assert verdict.outcome == "deploy"
    # differences .05 and .07 by turns: mean .06
    assert verdict.comparison.mean_difference == pytest.approx(0.06)
    assert verdict.sentence.startswith("Deploy: the winner is better by 0.060 ")
    assert "100 held-out queries" in verdict.sentence


def test_a_clear_loss_keeps_the_baseline():
    verdict = decide(measured("new", 0.5 + ALTERNATING), measured("old", np.full(100, 0.55)))
    assert verdict.outcome == "keep the baseline"
    assert "the winner is worse by 0.040 " in verdict.sentence


def test_no_difference_that_would_matter_keeps_the_baseline():
    noise = np.tile([0.004, -0.004], 500)
    verdict = decide(measured("new", 0.5 + noise), measured("old", np.full(1000, 0.5)))
    assert verdict.outcome == "keep the baseline"
    assert "a gain of 0.01, the least that would matter, is ruled out" in verdict.sentence


def test_an_unclear_gain_asks_for_the_number_of_queries_that_would_show_it():
    noise = np.tile([0.12, -0.08], 20)  # mean .02, sd .1013: d_z = .197
    verdict = decide(measured("new", 0.5 + noise), measured("old", np.full(40, 0.5)))
    assert verdict.outcome == "not enough queries"
    assert verdict.difference_to_show == pytest.approx(0.02)
    # d_z = .1974 needs 204 queries in all, 40 are there
    assert verdict.more_queries == pytest.approx(204 - 40, abs=2)
    assert f"About {verdict.more_queries} more held-out queries" in verdict.sentence
    assert "with 80 % power" in verdict.sentence
    half = decide(
        measured("new", 0.5 + noise), measured("old", np.full(40, 0.5)), held_out_share=0.5
    )
    label = f"(with 50 % held out: {2 * verdict.more_queries} queries to label)"
    assert label in half.sentence


def test_queries_that_lack_a_metric_of_the_composite_are_counted():
    gain = np.r_[0.6 + ALTERNATING, np.full(300, np.nan)]
    verdict = decide(measured("new", gain), measured("old", np.full(400, 0.55)))
    assert "on 100 held-out queries" in verdict.sentence
    assert "(300 of the 400 queries lack a metric of the composite" in verdict.sentence


def test_the_baseline_as_the_winner_is_kept():
    old = measured("old", np.full(50, 0.5))
    verdict = decide(old, old)
    assert verdict.outcome == "keep the baseline"
    assert verdict.sentence == "Keep the baseline: no configuration did better than it."


def test_a_broken_guardrail_keeps_the_baseline_and_is_named():
    slow, fast = 30.0 + np.arange(100) % 7, 10.0 + np.arange(100) % 7
    verdict = decide(
        measured("new", 0.6 + ALTERNATING, latency_p95_ms=slow),
        measured("old", np.full(100, 0.5), latency_p95_ms=fast),
        guardrails=[Guardrail("latency_p95_ms", max_increase=0.1, is_relative=True)],
    )
    assert verdict.outcome == "keep the baseline"
    assert "but latency_p95_ms broke its guard-rail (worse by " in verdict.sentence


def test_a_guardrail_in_doubt_keeps_the_baseline():
    few = np.tile([0.6, 0.9, 0.7, 0.8], 25)
    verdict = decide(
        measured("new", 0.6 + ALTERNATING, **{"recall@10": few}),
        measured("old", np.full(100, 0.5), **{"recall@10": few[::-1]}),
        guardrails=[Guardrail("recall@10", max_decrease=0.01)],
    )
    assert verdict.outcome == "keep the baseline"
    assert (
        "recall@10 (worse by up to 0.0334, 0.01 is allowed) could not be shown" in verdict.sentence
    )


def test_a_broken_guardrail_is_said_although_the_gain_is_unclear():
    noise = np.tile([0.12, -0.08], 20)
    verdict = decide(
        measured("new", 0.5 + noise, latency_mean_ms=np.full(40, 30.0) + np.arange(40) % 3),
        measured("old", np.full(40, 0.5), latency_mean_ms=np.full(40, 10.0) + np.arange(40) % 3),
        guardrails=[Guardrail("latency_mean_ms", max_increase=0.1, is_relative=True)],
    )
    assert verdict.outcome == "keep the baseline"
    assert "latency_mean_ms broke its guard-rail" in verdict.sentence


def test_a_clear_gain_too_small_to_matter_keeps_the_baseline():
    small = np.tile([0.004, 0.006], 50)
    verdict = decide(measured("new", 0.5 + small), measured("old", np.full(100, 0.5)))
    assert verdict.outcome == "keep the baseline"
    assert "better by 0.005" in verdict.sentence
    assert "a gain of 0.01, the least that would matter, is ruled out" in verdict.sentence


def test_a_kept_guardrail_lets_the_winner_pass():
    values = np.tile([0.7, 0.9], 50)
    verdict = decide(
        measured("new", 0.6 + ALTERNATING, **{"recall@10": values}),
        measured("old", np.full(100, 0.5), **{"recall@10": values}),
        guardrails=[Guardrail("recall@10", max_decrease=0.01)],
    )
    assert verdict.outcome == "deploy"
    assert verdict.guardrails["recall@10"].is_non_inferior


def test_a_lower_latency_is_never_held_against_the_winner():
    values = 10.0 + np.arange(100) % 7
    verdict = decide(
        measured("new", 0.6 + ALTERNATING, latency_mean_ms=values / 2),
        measured("old", np.full(100, 0.5), latency_mean_ms=values),
        guardrails=[Guardrail("latency_mean_ms", max_increase=0.0, is_relative=True)],
    )
    assert verdict.outcome == "deploy"


def decided(looks):
    return decide(
        measured("new", 0.6 + ALTERNATING), measured("old", np.full(100, 0.5)), looks=looks
    )


def test_a_second_look_is_said():
    verdict = decided(EarlierLooks(2, 100, 100, "nightly", "2026-11-28"))
    assert "All 100 held-out queries were looked at twice before" in verdict.sentence
    assert "last on 2026-11-28 by the study nightly" in verdict.sentence
    assert "in up to 7.5 % of cases, not in 2.5 %" in verdict.sentence
    assert (verdict.looks, verdict.seen_before) == (2, 100)


def test_a_baseline_against_itself_is_warned_of_no_look():
    same = measured("old", np.full(100, 0.5))
    verdict = decide(same, same, looks=EarlierLooks(9, 100, 100, "nightly", "2026-11-28"))
    assert verdict.sentence == "Keep the baseline: no configuration did better than it."
    assert verdict.looks == 9


def test_an_overlap_with_an_earlier_holdout_is_said():
    verdict = decided(EarlierLooks(1, 41, 100, "nightly", "2026-11-28"))
    assert "(41 of the 100 held-out queries were looked at once before" in verdict.sentence
    verdict = decided(EarlierLooks(0, 4, 100, "nightly", "2026-11-28"))
    assert "(4 of the 100 held-out queries were looked at before" in verdict.sentence
    assert "too few to count as a further look" in verdict.sentence
    assert verdict.looks == 0


def test_a_latest_look_at_some_of_the_queries_says_at_how_many():
    part = EarlierLooks(2, 100, 100, "fast", "2026-11-28", last_seen=18)
    assert "last on 2026-11-28 by the study fast (18 of them): by now" in decided(part).sentence
    whole = EarlierLooks(2, 100, 100, "fast", "2026-11-28", last_seen=100)
    assert "by the study fast: by now" in decided(whole).sentence


def test_fresh_queries_are_not_remarked_on():
    assert "looked at" not in decided(EarlierLooks(0, 0, 100)).sentence
    assert "looked at" not in decided(None).sentence


def test_an_interval_that_rests_on_few_queries_is_said_to():
    values = np.full(100, 0.5)
    values[:6] = [0.9, 0.8, 0.9, 0.95, 0.85, 0.9]
    verdict = decide(measured("new", values), measured("old", np.full(100, 0.5)))
    assert "Only 6 of the queries differ" in verdict.sentence
    verdict = decide(measured("new", 0.6 + ALTERNATING), measured("old", np.full(100, 0.5)))
    assert "Only" not in verdict.sentence


@pytest.mark.parametrize(("queries", "is_warned"), [(48, True), (50, False)])
def test_fewer_queries_than_the_intervals_promise_holds_for_are_said(queries, is_warned):
    values = 0.6 + ALTERNATING[:queries]
    verdict = decide(measured("new", values), measured("old", np.full(queries, 0.5)))
    assert ("(There are fewer than 50 held-out queries:" in verdict.sentence) == is_warned


def test_identical_values_are_said_to_be():
    values = 0.5 + ALTERNATING
    verdict = decide(measured("new", values), measured("old", values))
    assert verdict.outcome == "keep the baseline"
    assert verdict.sentence == (
        "Keep the baseline: the winner and the baseline have the same composite on all 100 "
        "held-out queries."
    )


def test_a_constant_difference_is_said_to_be():
    old = 0.5 + ALTERNATING
    verdict = decide(measured("new", 0.1 + old), measured("old", old))
    assert verdict.outcome == "deploy"
    assert "check that the two were measured independently" in verdict.sentence
    verdict = decide(measured("new", 0.1 + old[:2]), measured("old", old[:2]))
    assert verdict.outcome == "not enough queries"
    assert "both held-out queries differ by the same amount (+0.100)" in verdict.sentence
    assert "at least 10 are needed" in verdict.sentence
    # Seven ties of seven: a tenth of all queries may differ and none be among them (.9^7 = .48).
    for change in (0.1, 0.0):
        verdict = decide(measured("new", change + old[:7]), measured("old", old[:7]))
        assert verdict.outcome == "not enough queries"
        assert "so few are no certainty: at least 10 are needed" in verdict.sentence


def test_undefined_values_are_said_to_be():
    nothing = np.full(3, np.nan)
    verdict = decide(measured("new", nothing), measured("old", np.full(3, 0.5)))
    assert verdict.outcome == "not enough queries"
    assert "none of the 3 held-out queries has a composite from both" in verdict.sentence


def test_types_are_compared_apart():
    new = np.r_[0.6 + ALTERNATING[:50], 0.4 + ALTERNATING[:50]]
    verdict = decide(
        measured("new", new),
        measured("old", np.full(100, 0.5)),
        query_types=["a"] * 50 + ["b"] * 50,
    )
    first, second = verdict.by_type
    assert first.comparison.mean_difference == pytest.approx(0.11)
    assert second.comparison.mean_difference == pytest.approx(-0.09)


@pytest.mark.parametrize(
    ("alpha", "shown"), [(0.05, "95 %"), (0.1, "90 %"), (0.012555, "98.7 %"), (8e-5, "99.992 %")]
)
def test_a_level_is_shown_as_exactly_as_it_needs(alpha, shown):
    assert confidence(alpha) == shown


def test_a_deployment_names_the_types_that_clearly_lose():
    types = ["a"] * 40 + ["b"] * 20 + ["c"] * 20 + ["d"] * 20
    # a gains .31, b and c lose .09, d varies by .2 around a loss of .01
    noise = np.tile([0.2, -0.22], 10)
    new = 0.5 + np.r_[0.3 + ALTERNATING[:40], -0.1 + ALTERNATING[:40], noise]
    verdict = decide(measured("new", new), measured("old", np.full(100, 0.5)), query_types=types)
    assert verdict.outcome == "deploy"
    assert verdict.sentence.endswith(" (It is clearly worse on queries of the types b and c.)")
    lost = decide(measured("new", 0.8 - new), measured("old", np.full(100, 0.5)), query_types=types)
    assert lost.outcome != "deploy"
    assert "clearly worse" not in lost.sentence


def test_one_query_is_not_enough():
    assert decide(measured("new", [0.9]), measured("old", [0.1])).outcome == "not enough queries"


def test_the_cheapest_of_those_that_cannot_be_told_from_the_best_wins():
    noise = np.tile([0.1, -0.1], 20)
    trials = [
        trial(0, 0.50, "baseline", context_tokens=1.0),
        trial(1, 0.72, context_tokens=900.0),
        trial(2, 0.718, context_tokens=500.0),  # within a standard error of trial 1
        trial(3, 0.60, context_tokens=100.0),  # cheap and clearly worse
    ]
    utilities = {
        0: np.full(40, 0.50),
        1: np.full(40, 0.72),
        2: 0.718 + noise,
        3: 0.60 + noise / 10,
    }
    assert choose_winner(trials, utilities).number == 2


def test_the_best_wins_where_it_is_clearly_so():
    trials = [trial(0, 0.7, context_tokens=900.0), trial(1, 0.6, context_tokens=1.0)]
    utilities = {0: np.full(40, 0.7), 1: 0.6 + np.tile([0.01, -0.01], 20)}
    assert choose_winner(trials, utilities).number == 0


def test_of_those_that_cost_the_same_the_better_one_wins():
    trials = [
        trial(0, 0.71, context_tokens=500.0, latency_p95_ms=3.0),
        trial(1, 0.72, context_tokens=500.0, latency_p95_ms=3.0),
        trial(2, 0.715, context_tokens=500.0, latency_p95_ms=3.0),
    ]
    noise = np.tile([0.1, -0.1], 20)
    utilities = {0: 0.71 + noise, 1: np.full(40, 0.72), 2: 0.715 + noise}
    assert choose_winner(trials, utilities).number == 1


def test_without_values_of_each_query_the_best_wins():
    trials = [trial(0, 0.7, context_tokens=900.0), trial(1, 0.69, context_tokens=1.0)]
    assert choose_winner(trials, {}).number == 0


def test_nothing_that_is_not_above_the_baseline_wins():
    trials = [
        trial(0, 0.70, "baseline", context_tokens=500.0),
        trial(1, 0.71, context_tokens=900.0),
        trial(2, 0.69, context_tokens=100.0),  # cheap, within a standard error, below the baseline
    ]
    noise = np.tile([0.2, -0.2], 20)
    utilities = {0: np.full(40, 0.70), 1: np.full(40, 0.71), 2: 0.69 + noise}
    assert choose_winner(trials, utilities).number == 1


def few(gain, gains, **options):
    """Decide without a holdout on a winner that gains ``gain`` by query over a baseline of 0.5."""
    winner, baseline = measured("new", 0.5 + gain), measured("old", np.full(len(gain), 0.5))
    return decide_without_holdout(winner, baseline, gains, searched(gains, gain), **options)


def searched(gains, gain=None):
    """Return the trials of a search: the first row that is the winner's is called new."""
    rows = [row for row, own in enumerate(gains) if gain is not None and np.array_equal(own, gain)]
    return [
        Trial(
            row,
            "baseline" if not own.any() else "tpe",
            {"name": "new" if row in rows[:1] else row},
            TrialState.FINISHED,
            objective=float(own.mean()) if own.size else 0.0,
        )
        for row, own in enumerate(gains)
    ]


def test_few_queries_are_decided_by_the_corrected_gain():
    generator = np.random.default_rng(0)
    noise = generator.normal(0, 0.02, (8, 40))
    verdict = few(0.3 + noise[0], 0.3 + noise)
    assert verdict.outcome == "deploy"
    assert "with only 40 queries none was held out" in verdict.sentence
    assert few(noise[0] - 0.3, noise - 0.3).outcome == "keep the baseline"
    old = measured("old", np.full(40, 0.5))
    assert decide_without_holdout(old, old, noise, searched(noise)).outcome == "keep the baseline"
    slow = Guardrail("latency_mean_ms", max_increase=0.1, is_relative=True).test(
        np.full(40, 30.0) + np.arange(40) % 3,
        np.full(40, 10.0) + np.arange(40) % 3,
        alpha=0.05,
        seed=0,
    )
    verdict = few(0.3 + noise[0], 0.3 + noise, guardrails={"latency_mean_ms": Rail(slow, True)})
    assert verdict.outcome == "keep the baseline"
    assert "latency_mean_ms broke its guard-rail" in verdict.sentence


def test_a_deployment_by_few_queries_that_differ_is_warned_of_where_none_is_held_out():
    for differ in (16, 20):
        gain = np.where(np.arange(40) < differ, 0.3 + np.arange(40) / 1000.0, 0.0)
        verdict = few(gain, np.array([np.zeros(40), gain]))
        assert verdict.outcome == "deploy"
        is_warned = "Only 16 of the queries differ: the truth lies outside" in verdict.sentence
        assert is_warned == (differ == 16)


def test_the_luck_of_free_parameters_is_taken_off_too():
    gains = 0.3 + np.random.default_rng(0).normal(0, 0.02, (8, 40))
    trials = searched(gains, gains[0])
    lucky = [replace(one, profile=Profile({}, 900, 0.9, luck=0.25)) for one in trials]
    winner, baseline = measured("new", 0.5 + gains[0]), measured("old", np.full(40, 0.5))
    plain, lowered = (
        decide_without_holdout(winner, baseline, gains, some).corrected for some in (trials, lucky)
    )
    assert lowered.estimate == pytest.approx(plain.estimate - 0.25)
    assert lowered.interval == pytest.approx([end - 0.25 for end in plain.interval])
    assert lowered.optimism == pytest.approx(plain.optimism + 0.25)


@pytest.mark.parametrize("queries", [0, 1, 2, 5, 9])
def test_under_ten_queries_are_never_enough(queries):
    gains = np.full((3, queries), 0.3) + np.arange(queries) / 100.0
    verdict = few(gains[0], gains)
    assert verdict.outcome == "not enough queries"
    assert "under 10 a gain cannot be told from the search's luck" in verdict.sentence
    assert (verdict.more_queries, verdict.corrected) == (None, None)
    same = measured("old", np.full(queries, 0.5))
    assert (
        decide_without_holdout(same, same, gains, searched(gains)).outcome == "not enough queries"
    )
    assert ("only 1 query none" in verdict.sentence) == (queries == 1)


def test_ten_queries_may_decide():
    gains = np.full((3, 10), 0.3) + np.arange(10) / 100.0
    assert few(gains[0], gains).outcome == "deploy"


def test_an_interval_without_width_is_no_certainty():
    verdict = few(np.zeros(20), np.zeros((3, 20)))
    assert verdict.outcome == "not enough queries"
    assert "do not differ on any of them, and so few are no certainty" in verdict.sentence
    assert verdict.more_queries is None


def test_few_queries_say_how_many_to_label_and_where_it_gains():
    gain = np.tile([0.14, -0.06], 20)  # sd .1013
    gains = np.stack([np.zeros(40), gain])
    verdict = few(gain, gains, query_types=["a", "b"] * 20)
    assert verdict.outcome == "not enough queries"
    shown = max(verdict.corrected.estimate, 0.01)
    assert verdict.difference_to_show == pytest.approx(shown)
    # (1.96 + .84)^2 * (.1013 / D)^2, and a few for Student's t
    expected = (2.8016 * 0.1013 / shown) ** 2
    assert verdict.more_queries == pytest.approx(expected, rel=0.03, abs=3)
    label = 2 * verdict.more_queries - 40
    assert f"label about {label:,} more queries and hold half of all out" in verdict.sentence
    assert [group.comparison.mean_difference for group in verdict.by_type] == pytest.approx(
        [0.14, -0.06]
    )


def test_a_holdout_of_none_by_request_is_not_called_too_few_queries():
    gain = 0.3 + np.tile([0.01, -0.01], 50)
    verdict = few(gain, np.stack([np.zeros(100), gain]))
    assert "none of the 100 queries was held out, as dataset.split.holdout asks" in verdict.sentence
    assert "only" not in verdict.sentence


def test_without_a_holdout_a_price_deploys_nothing_whose_composite_may_be_worse():
    noise = np.tile([0.05, -0.05], 20)

    def decided(composite_gain):
        objective = 0.3 + np.tile([0.01, -0.01], 20)
        return decide_without_holdout(
            Measured({"n": 1}, 0.5 + composite_gain, objective=objective),
            Measured({"n": 0}, np.full(40, 0.5), objective=np.zeros(40)),
            np.stack([np.zeros(40), objective]),
            [
                Trial(
                    n, "tpe" if n else "baseline", {"n": n}, TrialState.FINISHED, objective=0.3 * n
                )
                for n in (0, 1)
            ],
        )

    verdict = decided(noise)
    assert verdict.outcome == "not enough queries"
    # .01 to the margin, sd .0506: (2.8 * .0506 / .01)^2 = 201 held out, and a few for Student's t
    assert verdict.more_queries == pytest.approx(201, abs=4)
    assert "its composite may be worse by 0.01 or more: 0.000, 95 %" in verdict.sentence
    assert "held-out queries would rule that out" in verdict.sentence
    assert "is better by 0.300 in the objective with its price" in verdict.sentence
    assert decided(noise / 50).outcome == "deploy"


def priced(name, composite, tokens, price=0.0001):
    composite, tokens = np.asarray(composite, dtype=float), np.asarray(tokens, dtype=float)
    return Measured(
        {"name": name},
        composite,
        objective=composite - price * tokens,
        costs={"context_tokens": float(tokens.mean())},
    )


TOKENS = 400.0 + np.arange(100) % 7


def test_as_good_and_cheaper_is_deployed():
    change = np.tile([0.006, -0.014], 50)  # mean -.004, se .001
    verdict = decide(
        priced("new", 0.5 + change, TOKENS), priced("old", np.full(100, 0.5), 2_400.0 + TOKENS)
    )
    assert verdict.outcome == "deploy"
    # 2,400 tokens at .0001 are .24, less .004
    assert verdict.price.objective.mean_difference == pytest.approx(0.236)
    assert "as good in the composite (-0.004 on 100 held-out queries" in verdict.sentence
    assert "a loss of 0.01 or more is ruled out" in verdict.sentence
    assert "cheaper (403 instead of 2,803 context tokens)" in verdict.sentence
    assert "the objective gains 0.236 (95 % interval" in verdict.sentence


def test_cheaper_is_not_deployed_where_the_composite_may_be_worse():
    change = np.tile([0.056, -0.064], 50)  # mean -.004, interval -.016 to +.008
    verdict = decide(
        priced("new", 0.5 + change, TOKENS), priced("old", np.full(100, 0.5), 2_400.0 + TOKENS)
    )
    assert verdict.outcome == "not enough queries"
    assert "its composite may be worse by 0.01 or more" in verdict.sentence
    # Distance to the margin: .01 - .004 = .006; sd .0603: (2.8 * .0603 / .006)^2 = 793 in all
    assert verdict.more_queries == pytest.approx(793 - 100, abs=5)
    assert "would rule that out" in verdict.sentence


@pytest.mark.parametrize(("queries", "outcome"), [(149, "not enough queries"), (150, "deploy")])
def test_losses_too_rare_to_be_seen_may_be_absent(queries, outcome):
    # 3 / n of all queries may lose .5 each and none be among n: at 150 that adds up to .01.
    tokens = 400.0 + np.arange(queries) % 7
    same = 0.5 + np.arange(queries) / 1_000.0
    verdict = decide(priced("new", same, tokens), priced("old", same, 2_400.0 + tokens))
    assert verdict.outcome == outcome
    if outcome == "deploy":
        assert "as good in the composite (0.000" in verdict.sentence
    else:
        assert (
            "differs on only 0 queries, so losses that are rare may be absent" in verdict.sentence
        )
        assert "1 more held-out query would hold them" in verdict.sentence
        assert verdict.more_queries == 1


def test_cheaper_and_clearly_worse_keeps_the_baseline_and_says_what_the_objective_gains():
    change = np.tile([-0.03, -0.05], 50)
    verdict = decide(
        priced("new", 0.5 + change, TOKENS), priced("old", np.full(100, 0.5), 2_400.0 + TOKENS)
    )
    assert verdict.outcome == "keep the baseline"
    assert "the winner is worse by 0.040 " in verdict.sentence
    assert "at the study's price its objective gains 0.200" in verdict.sentence


def test_a_cheaper_winner_with_a_broken_guardrail_is_not_deployed():
    new = priced("new", np.full(100, 0.5) + np.tile([0.001, -0.001], 50), TOKENS)
    old = priced("old", np.full(100, 0.5), 2_400.0 + TOKENS)
    recall = np.tile([0.6, 0.9, 0.7, 0.8], 25)
    verdict = decide(
        Measured(new.params, new.composite, {"recall@10": recall}, new.objective, new.costs),
        Measured(old.params, old.composite, {"recall@10": recall[::-1]}, old.objective, old.costs),
        guardrails=[Guardrail("recall@10", max_decrease=0.01)],
    )
    assert verdict.outcome == "keep the baseline"
    assert "and cheaper (403 instead of" in verdict.sentence
    assert (
        "recall@10 (worse by up to 0.0334, 0.01 is allowed) could not be shown" in verdict.sentence
    )


def test_an_objective_that_gains_by_the_composite_alone_is_not_called_cheaper():
    # The composite +.02 in doubt; one token more, whose price takes the doubt away.
    noise = np.tile([0.12, -0.08], 30)
    new = Measured({"n": 1}, 0.5 + noise, objective=0.519 + noise / 100, costs={"t": 2.0})
    old = Measured({"n": 0}, np.full(60, 0.5), objective=np.full(60, 0.5), costs={"t": 1.0})
    verdict = decide(new, old)
    assert verdict.outcome == "not enough queries"
    assert "cheaper" not in verdict.sentence


def test_a_gain_that_costs_more_than_it_is_worth_is_said_to():
    gain = np.tile([0.05, 0.07], 50)
    verdict = decide(
        priced("new", 0.5 + gain, 2_400.0 + TOKENS), priced("old", np.full(100, 0.5), TOKENS)
    )
    assert verdict.outcome == "deploy"
    assert "costs more than that is worth at the study's price" in verdict.sentence
    assert "2,803 instead of 403 context tokens" in verdict.sentence
    assert "the objective changes by -0.180" in verdict.sentence


def test_queries_that_would_have_shown_what_matters_keep_the_baseline():
    # Mean .004, sd .0701, se .0035: interval -.003 to +.011, and the power for .01 is 81 %.
    noise = 0.004 + np.tile([0.07, -0.07], 200)
    verdict = decide(measured("new", 0.5 + noise), measured("old", np.full(400, 0.5)))
    assert verdict.comparison.interval[1] > 0.01
    assert verdict.outcome == "keep the baseline"
    assert "so the true one is probably smaller" in verdict.sentence
    assert "with 80 % power" in verdict.sentence
    assert verdict.more_queries is None


def test_no_number_of_queries_is_derived_from_fewer_than_ten():
    verdict = decide(measured("new", [0.9, 0.5, 0.4]), measured("old", [0.5, 0.5, 0.5]))
    assert verdict.outcome == "not enough queries"
    assert "3 held-out queries" in verdict.sentence
    assert "3 queries are too few to say how many would tell" in verdict.sentence
    assert verdict.more_queries is None


def test_a_rail_in_doubt_is_named_beside_a_broken_one():
    slow, fast = 30.0 + np.arange(100) % 7, 10.0 + np.arange(100) % 7
    recall = np.tile([0.6, 0.9, 0.7, 0.8], 25)
    verdict = decide(
        measured("new", 0.6 + ALTERNATING, latency_mean_ms=slow, **{"recall@10": recall}),
        measured("old", np.full(100, 0.5), latency_mean_ms=fast, **{"recall@10": recall[::-1]}),
        guardrails=[
            Guardrail("latency_mean_ms", max_increase=0.1, is_relative=True),
            Guardrail("recall@10", max_decrease=0.01),
        ],
    )
    assert "latency_mean_ms broke its guard-rail (" in verdict.sentence
    assert ", and recall@10 (worse by up to 0.0334, 0.01 is allowed) could not be shown" in (
        verdict.sentence
    )


def test_one_of_anything_is_said_in_the_singular():
    gain = np.r_[0.6 + ALTERNATING, np.nan]
    verdict = decide(
        measured("new", gain),
        measured("old", np.full(101, 0.55)),
        looks=EarlierLooks(0, 1, 101, "nightly", "2026-11-28"),
    )
    assert "(1 of the 101 queries lacks a metric of the composite and is left out.)" in (
        verdict.sentence
    )
    assert "(1 of the 101 held-out queries was looked at before" in verdict.sentence


def test_a_damaged_memory_of_looks_is_said():
    verdict = decided(EarlierLooks(0, 0, 100, unreadable=2))
    assert "(2 lines of holdouts.jsonl cannot be read" in verdict.sentence


def test_the_baseline_wins_only_where_nothing_is_better():
    trials = [trial(0, 0.7, "baseline"), trial(1, 0.6)]
    utilities = {0: np.full(9, 0.7), 1: np.full(9, 0.6)}
    assert choose_winner(trials, utilities).number == 0
    trials = [trial(0, 0.699, "baseline", context_tokens=1.0), trial(1, 0.7, context_tokens=2.0)]
    utilities = {0: 0.699 + np.tile([0.1, -0.1], 20), 1: np.full(40, 0.7)}
    assert choose_winner(trials, utilities).number == 1


def test_a_system_that_moves_between_runs_widens_the_interval_and_is_said() -> None:
    rng = np.random.default_rng(0)
    baseline = Measured({"x": 0}, rng.random(200))
    winner = Measured({"x": 1}, baseline.composite + 0.02 + 0.05 * rng.standard_normal(200))
    still = decide(winner, baseline)
    moving = decide(winner, baseline, run_shift=0.02)
    assert (still.outcome, moving.outcome) == ("deploy", "not enough queries")
    assert "Asked twice" not in still.sentence
    assert "the same configuration differed from itself by 0.0200" in moving.sentence
    assert (still.run_shift, moving.run_shift) == (0.0, 0.02)


def test_intervals_stay_within_what_a_composite_can_be():
    new, old = [1.0, 1.0, 1.0, 1.0, 0.0] * 2, [0.0, 0.0, 0.0, 0.0, 1.0] * 2
    types = ["a"] * 5 + ["b"] * 5
    both = measured("new", new), measured("old", old)
    free = decide(*both, query_types=types)
    assert free.comparison.interval[1] > 1.0
    within = decide(*both, query_types=types, largest=1.0)
    for one in (within.comparison, *(group.comparison for group in within.by_type)):
        assert one.interval[1] == 1.0
        assert one.interval[0] >= -1.0
    assert "+1.000" in within.sentence


def test_losses_too_rare_to_be_there_are_told_until_one_is_seen() -> None:
    gain = 0.015 + 0.01 * np.tile([1.0, -1.0], 50)
    kinds = [
        {caveat.kind for caveat in found.caveats}
        for found in (
            decide(measured("new", 0.5 + change), measured("old", np.full(change.size, 0.5)))
            for change in (gain, np.r_[gain, gain], np.r_[gain, gain, gain, gain, gain, -0.3])
        )
    ]
    # .015 / .515 is one query in 34: absent from 100 in .971^100 = 5 %, from 200 in .3 %.
    assert CaveatKind.RARE_LOSSES in kinds[0]
    assert CaveatKind.RARE_LOSSES not in kinds[1] | kinds[2]
    many = decide(measured("new", 0.5 - gain), measured("old", np.full(100, 0.5)))
    assert all(caveat.kind is not CaveatKind.RARE_LOSSES for caveat in many.caveats)
