"""Observations by day: cut by the calendar, gaps and several runs a day."""

from __future__ import annotations

import math
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.checks import parse_day
from tuner.core.errors import InputError
from tuner.drift.observations import (
    Observation,
    Windows,
    by_day,
    by_query,
    count_types,
)

MONDAY = date(2024, 3, 4)


def seen(day, value, query="", kind=""):
    return Observation(MONDAY + timedelta(days=day), {"score": value}, query, kind)


def test_windows_are_days_of_the_calendar():
    windows = Windows.until(date(2024, 3, 10), recent_days=7, reference_days=28, trend_days=90)
    assert windows.recent == (date(2024, 3, 4), date(2024, 3, 10))
    assert windows.reference == (date(2024, 2, 5), date(2024, 3, 3))  # over a 29th of February
    assert windows.trend == (date(2023, 12, 12), date(2024, 3, 10))
    daily = by_day([seen(0, 0.5), seen(-27, 0.6), seen(-28, 0.7), seen(-29, 0.8)], "score")
    # By position the last entries would count, however long ago; by the calendar these do.
    assert daily.within(windows.recent).values.tolist() == [0.5]
    assert daily.within(windows.reference).values.tolist() == [0.7, 0.6]
    with pytest.raises(InputError, match="no shorter"):
        Windows.until(MONDAY, recent_days=7, reference_days=3)
    with pytest.raises(InputError, match="at least 2"):
        Windows.until(MONDAY, recent_days=1)


@given(st.integers(2, 30), st.integers(0, 60), st.integers(1, 200))
def test_windows_lie_side_by_side_and_within_the_trend(recent, more, trend):
    windows = Windows.until(
        MONDAY, recent_days=recent, reference_days=recent + more, trend_days=trend
    )
    assert windows.reference[1] + timedelta(days=1) == windows.recent[0]
    assert (windows.recent[1] - windows.recent[0]).days == recent - 1
    assert windows.trend[0] <= windows.reference[0]


def test_several_runs_a_day_are_one_value_and_a_query_counts_once():
    # a: (.2 + .4) / 2 = .3; b: .9; the day: (.3 + .9) / 2 = .6, not (.2 + .4 + .9) / 3 = .5.
    observations = [seen(0, 0.2, "a"), seen(0, 0.4, "a"), seen(0, 0.9, "b"), seen(2, 1.0, "a")]
    daily = by_day(observations, "score")
    assert daily.values == pytest.approx([0.6, 1.0])
    assert np.diff(daily.days).tolist() == [2]  # the gap is a gap
    cells = by_query(observations, "score")
    assert cells.queries.tolist() == [0, 1, 0]
    assert cells.values == pytest.approx([0.3, 0.9, 1.0])
    # Without ids every line is a query of its own.
    assert by_day([seen(0, 0.2), seen(0, 0.4), seen(0, 0.9)], "score").values == pytest.approx(
        [0.5]
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["", "b", "a", "c"]), st.floats(0.0, 1.0)),
        max_size=30,
    ),
    st.randoms(use_true_random=False),
)
def test_days_and_queries_are_averaged_as_a_loop_does_in_any_order(rows, random):
    observations = [seen(day, value, query) for day, query, value in rows]
    expected = {}
    for number, (day, query, value) in enumerate(rows):
        expected.setdefault(day, {}).setdefault(query or number, []).append(value)
    means = {
        day: {query: math.fsum(values) / len(values) for query, values in found.items()}
        for day, found in expected.items()
    }
    daily, cells = by_day(observations, "score"), by_query(observations, "score")
    assert (daily.days - MONDAY.toordinal()).tolist() == sorted(means)
    assert daily.values == pytest.approx(
        [math.fsum(means[day].values()) / len(means[day]) for day in sorted(means)]
    )
    known = [(day, query) for day in sorted(means) for query in "abc" if query in means[day]]
    ids = sorted({query for _, query in known})
    assert (cells.days - MONDAY.toordinal()).tolist() == [day for day, _ in known]
    assert cells.queries.tolist() == [ids.index(query) for _, query in known]
    assert cells.values == pytest.approx([means[day][query] for day, query in known])
    random.shuffle(observations)
    assert by_query(observations, "score").values.tolist() == cells.values.tolist()


def test_undefined_values_are_left_out_and_percentiles_are_numpys():
    assert by_day([seen(0, math.nan), seen(1, 0.5), seen(1, math.nan)], "score").values == [0.5]
    hundred = [seen(0, float(value)) for value in range(1, 101)]
    assert by_day(hundred, "score", percentile=95.0).values == pytest.approx([95.05])
    assert by_day([], "score").days.size == 0


def test_types_are_counted_by_day():
    observations = [
        seen(0, 1.0, kind="one"), seen(0, 1.0, kind="two"), seen(0, 1.0, kind="one"),
        seen(2, 1.0, kind="two"), seen(9, 1.0, kind="two"), seen(1, 1.0),
    ]  # fmt: skip
    window = (MONDAY, MONDAY + timedelta(days=6))
    assert count_types(observations, window, ["one", "two"]).tolist() == [[2, 1], [0, 1]]
    assert count_types([], window, ["one", "two"]).shape == (0, 2)


def test_days_are_those_of_utc():
    assert parse_day("2024-03-01T23:30:00-02:00") == date(2024, 3, 2)
    assert parse_day("2024-03-01T23:30:00+02:00") == date(2024, 3, 1)
    assert parse_day("2024-03-01T00:30:00+02:00") == date(2024, 2, 29)
    assert parse_day(" 2024-03-01 08:00:00 ") == date(2024, 3, 1)


@pytest.mark.parametrize(
    "text", ["yesterday", "3/1/2024", "2024-02-30", "0001-01-01T00:00:00+10:00", "9" * 80, ""]
)
def test_what_is_no_day_is_said_in_words(text):
    with pytest.raises(ValueError, match="is not a date; write 2024-03-01") as caught:
        parse_day(text)
    assert len(str(caught.value)) < 150


def test_windows_that_begin_before_the_calendar_are_refused():
    for last, days in ((date(1, 1, 2), {}), (MONDAY, {"trend_days": 10**9})):
        with pytest.raises(InputError, match="begin before the calendar does"):
            Windows.until(last, **days)
