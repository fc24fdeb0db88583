"""A look for drift: insufficient data, calendar days, pairing, effects, one false-alarm rate."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta

import numpy as np
import pytest

from tuner.core.errors import InputError
from tuner.drift.detection import MIN_DAYS, Measure, find_drift
from tuner.drift.observations import Observation, Windows

LAST = date(2024, 3, 31)
SCORE = (Measure("score"),)


def day(before):
    return LAST - timedelta(days=before)


def scores(values, *, noise=0.01, seed=0):
    """One score a day, the last one on LAST; None is a day without data."""
    random = np.random.default_rng(seed)
    return [
        Observation(day(len(values) - 1 - place), {"score": value + noise * random.normal()})
        for place, value in enumerate(values)
        if value is not None
    ]


def look(observations, measures=SCORE, **options):
    return find_drift(observations, measures, windows=Windows.until(LAST), **options)


def finding(report, test, group="", measure="score"):
    (one,) = [
        found
        for found in report.findings
        if (found.test, found.group, found.measure) == (test, group, measure)
    ]
    return one


def test_a_drop_is_an_alarm_with_its_effect_and_interval():
    report = look(scores([0.8] * 53 + [0.7] * 7))
    window = finding(report, "window")
    assert report.status == "alarm"
    assert window.is_alarm
    # (.7 - .8) / .8
    assert window.change.relative == pytest.approx(-0.125, abs=0.01)
    low, high = window.change.interval
    assert low < -0.1 < high < -0.05
    assert report.sentence.startswith("Alarm: score fell by 13.0 % in the 7 days to 2024-03-31")
    assert "95 % interval of the change -0.1" in report.sentence


def test_no_drift_is_no_alarm():
    report = look(scores([0.8] * 60))
    assert report.status == "no alarm"
    assert report.sentence.startswith("No alarm: score went from 0.8")
    assert "which may be chance" in report.sentence


def test_an_improvement_is_no_alarm_and_for_a_cost_it_is():
    rising = scores([0.7] * 53 + [0.8] * 7)
    better = look(rising)
    assert better.status == "no alarm"
    assert "score rose by 13." in better.sentence
    assert "for the better" in better.sentence
    assert "chance" not in better.sentence
    assert look(rising, (Measure("score", "higher"),)).status == "alarm"


def test_a_clear_change_below_the_minimum_effect_is_told_but_no_alarm():
    series = scores([0.80] * 53 + [0.78] * 7, noise=0.002)
    report = look(series)
    assert finding(report, "window").is_clear
    assert report.status == "no alarm"
    told = "No alarm. Clear, but too small to matter: score fell by 2."
    assert report.sentence.startswith(told)  # and once only
    assert look(series, (Measure("score", min_effect=0.01),)).status == "alarm"


def test_insufficient_data_below_14_days_instead_of_a_window_against_itself():
    few = scores([0.9] * 6 + [0.1] * 7)
    report = look(few)
    assert report.status == "insufficient data"
    assert (report.findings, MIN_DAYS) == ((), 14)
    assert report.sentence.startswith("Insufficient data: score: 7 recent and 6 reference")
    assert look(scores([0.9] * 7 + [0.1] * 7)).status == "alarm"
    # Twenty runs, but all of them on two days.
    many = [Observation(day(n % 2 * 7), {"score": 0.5}) for n in range(20)]
    assert look(many).status == "insufficient data"


def test_windows_count_calendar_days_not_entries():
    # A score every third day, for a year. The last 35 entries would be plenty and go back 102 days;
    # the last 7 days hold 3 (0, 3, 6), the 28 before them 9 (9, 12, … 33): 12 are under 14.
    rare = [
        Observation(day(n), {"score": (0.6 if n <= 18 else 0.8) + 0.01 * math.sin(n)})
        for n in range(0, 360, 3)
    ]
    report = look(rare)
    assert report.status == "insufficient data"
    assert "3 recent and 9 reference days with data" in report.sentence
    wide = find_drift(
        rare, SCORE, windows=Windows.until(LAST, recent_days=21, reference_days=63, trend_days=90)
    )
    change = finding(wide, "window").change
    assert (change.days_after, change.days_before) == (7, 21)  # days 0..18, days 21..81
    assert wide.status == "alarm"


def test_old_data_are_not_recent():
    old = [Observation(day(n), {"score": 0.8 - 0.1 * (n < 47)}) for n in range(40, 100)]
    assert look(old).status == "insufficient data"


def test_gaps_and_several_runs_a_day_change_nothing_but_the_noise():
    series = scores([0.8] * 53 + [0.7] * 7)
    gaps = [one for place, one in enumerate(series) if place % 5]
    assert look(gaps).status == "alarm"
    # The same again twenty times on one good day of the recent week: still one day of seven.
    again = [*series, *[Observation(day(3), {"score": 0.7})] * 20]
    change = finding(look(again), "window").change
    assert change.days_after == 7
    assert change.after == pytest.approx(0.7, abs=0.01)


def test_a_slow_decline_is_caught_by_the_trend_where_the_windows_see_little():
    # .8 to .74 in 90 days: 1.3 % between windows of 7 and 28 days, whose centres are 17.5 apart.
    report = look(scores([0.8 - 0.06 * n / 89 for n in range(90)]))
    assert not finding(report, "window").is_alarm
    assert finding(report, "trend").is_alarm
    change = finding(report, "trend").change
    assert change.relative == pytest.approx(-0.075, abs=0.01)
    assert "along a line through 90 days with data" in report.sentence


def nightly(drop, *, nights=40, queries=30, kinds=("one", "two", "three")):
    random = np.random.default_rng(2)
    hardness = random.uniform(0.3, 1.0, queries)
    return [
        Observation(
            day(n),
            {"score": hardness[q] - drop(q, n) + 0.02 * random.normal()},
            f"q{q}",
            kinds[q % len(kinds)],
        )
        for n in range(nights)
        for q in range(queries)
        if (n + q) % 4  # a rotating quarter is not asked
    ]


def test_the_same_queries_are_paired():
    report = look(nightly(lambda q, n: 0.06 if n < 7 else 0.0))
    change = finding(report, "window").change
    assert change.queries == 30
    # Hard and easy queries differ by .2, a drop of .06 is found all the same.
    assert finding(report, "window").is_alarm
    assert change.difference == pytest.approx(-0.06, abs=0.01)


def test_other_queries_every_day_are_compared_day_by_day():
    random = np.random.default_rng(3)
    live = [
        Observation(day(n), {"score": random.uniform(0.5, 0.9)}, f"{n}-{q}")
        for n in range(40)
        for q in range(20)
    ]
    change = finding(look(live), "window").change
    assert (change.queries, change.days_before, change.days_after) == (0, 28, 7)


def test_a_query_type_that_slips_alone_is_found_and_corrected_for():
    report = look(nightly(lambda q, n: 0.2 if n < 7 and q % 3 == 1 else 0.0))
    assert finding(report, "window", "two").is_alarm
    assert not finding(report, "window", "one").is_clear
    raw = [found.change.p_value if found.change else found.mix.p_value for found in report.findings]
    adjusted = [found.adjusted_p for found in report.findings]
    # Holm: the smallest of 6 (window, trend, three types, mix) counts six times.
    assert len(raw) == 6
    assert min(adjusted) == pytest.approx(6 * min(raw))
    assert all(high >= low for high, low in zip(adjusted, raw, strict=True))


def test_the_mix_of_types_and_the_inputs_are_watched():
    random = np.random.default_rng(4)
    seen = [
        Observation(
            day(n),
            {
                "without_graph": float(random.random() < (0.4 if n < 7 else 0.1)),
                "latency_ms": random.lognormal(3.0 if n >= 7 else 3.5, 0.3),
                "empty": 0.0,
            },
            query_type="hard" if random.random() < (0.6 if n < 7 else 0.2) else "easy",
        )
        for n in range(40)
        for _ in range(60)
    ]
    measures = (
        Measure("without_graph", "higher"),
        Measure("latency_ms", "higher", 95.0),
        Measure("empty", "higher"),
    )
    report = look(seen, measures)
    for name in ("without_graph", "latency_ms"):
        assert finding(report, "window", measure=name).is_alarm
    assert finding(report, "mix", measure="query_type").is_alarm
    assert "the mix of query types moved by a stability index of 0." in report.sentence
    assert not finding(report, "window", measure="empty").is_clear
    assert "mix" not in [found.test for found in look(seen, measures, mix_effect=None).findings]
    json.dumps(report.to_record(), allow_nan=False)


def test_the_false_alarm_rate_holds_over_all_tests():
    # Promised: at most 5 % of looks with a clear finding; 300 looks have a standard error of 1.3 %.
    random = np.random.default_rng(5)
    clear = 0
    for _ in range(300):
        values = 0.75 + 0.02 * random.standard_normal(35)
        observations = [Observation(day(n), {"score": value}) for n, value in enumerate(values)]
        clear += any(found.is_clear for found in look(observations).findings)
    assert clear / 300 <= 0.05 + 2 * 0.013


def test_nothing_to_watch_is_refused():
    with pytest.raises(InputError, match="name a measure"):
        look([], (), mix_effect=None)


def weekly(days, *, lost=0.0, noise=0.01):
    """Weekdays .70, weekends .80; the last 7 days lose a share of that."""
    values = [0.8 if day(days - 1 - place).weekday() >= 5 else 0.7 for place in range(days)]
    return scores(values[:-7] + [value * (1.0 - lost) for value in values[-7:]], noise=noise)


@pytest.mark.parametrize("days", [28, 35, 90])
def test_a_loss_beside_a_weekly_season_is_an_alarm_and_the_season_is_none(days):
    report = look(weekly(days, lost=0.1))
    assert report.status == "alarm"
    window = finding(report, "window")
    assert window.is_alarm
    # Whole weeks keep their means: (5 * .7 + 2 * .8) / 7 = .7286, and a tenth less.
    assert window.change.before == pytest.approx(0.7286, abs=0.01)
    assert window.change.relative == pytest.approx(-0.1, abs=0.015)
    assert look(weekly(days)).status == "no alarm"


def test_a_season_is_taken_out_of_the_trend_too():
    values = [0.8 if day(89 - place).weekday() >= 5 else 0.7 for place in range(90)]
    falling = scores([value - 0.0009 * place for place, value in enumerate(values)])
    change = finding(look(falling), "trend").change
    assert change.difference == pytest.approx(-0.0009 * 89, abs=0.01)
    low, high = change.interval
    assert high - low < 0.025  # with the season left in, .05 of noise a day: over .07


def test_two_weeks_are_compared_as_they_are():
    # Weekdays cannot be told from chance yet.
    values = ([0.7] * 5 + [0.8] * 2) * 2
    assert look(scores(values)).status == "no alarm"


def test_a_series_that_never_moves_stayed_where_it_is():
    report = look(scores([0.7] * 60, noise=0.0))
    assert report.status == "no alarm"
    assert report.sentence.startswith("No alarm: score stayed at 0.7 in the 7 days to 2024-03-31")
    assert "0.0 %" not in report.sentence
    assert "better" not in report.sentence


def test_the_days_that_are_there_are_told_and_not_those_that_were_asked_for():
    assert "against 7 days with data before" in look(scores([0.7] * 14)).sentence
    assert "against the 28 before" in look(scores([0.7] * 35)).sentence
    few = [None if place in (59, 57) else 0.7 for place in range(61)][:60]
    sentence = look(scores([*few[:-1], None])).sentence
    assert "in the 7 days to 2024-03-31, 5 of them with data, against the 28 before" in sentence


def mixed(hard_before, hard_after, *, hard=0.5, lost=0.0):
    """40 queries a day of two types, easy .9 and hard .5; the last 7 days have another share."""
    random = np.random.default_rng(3)
    found = []
    for before in range(34, -1, -1):
        share = hard_after if before < 7 else hard_before
        for number in range(40):
            is_hard = number < share * 40
            score = (hard if is_hard else 0.9) - (lost if before < 7 else 0.0)
            found.append(
                Observation(
                    day(before),
                    {"score": score + 0.05 * random.normal()},
                    query_type="hard" if is_hard else "easy",
                )
            )
    return found


def test_a_pure_change_of_the_mix_is_called_so():
    report = look(mixed(0.2, 0.6))
    change = finding(report, "window")
    assert change.is_alarm
    # A share of .4 more of the type that is .4 lower.
    assert change.mix_part == pytest.approx(-0.16, abs=0.02)
    assert "no query type changed by itself: it is the mix of queries that changed" in (
        report.sentence
    )


def test_a_loss_of_every_type_is_no_change_of_the_mix():
    report = look(mixed(0.3, 0.3, lost=0.1))
    assert finding(report, "window").is_alarm
    assert "mix of" not in report.sentence
    both = look(mixed(0.2, 0.5, lost=0.1))
    # .3 * .4 = .12 of a loss of .22
    assert "5" in both.sentence.split("% of that is the changed mix")[0][-3:]
