"""Observations by day: read from files, cut by the calendar, gaps and several runs a day."""

from __future__ import annotations

import math
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.monitoring.drift import (
    Observation,
    Windows,
    by_day,
    by_query,
    count_types,
    read_observations,
)

MONDAY = date(2024, 3, 4)


def seen(day, value, query="", kind=""):
    return Observation(MONDAY + timedelta(days=day), {"score": value}, query, kind)


def write(folder, text, name="daily.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


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
    assert list(cells.queries) == ["a", "b", "a"]
    assert cells.values == pytest.approx([0.3, 0.9, 1.0])
    # Without ids every line is a query of its own.
    assert by_day([seen(0, 0.2), seen(0, 0.4), seen(0, 0.9)], "score").values == pytest.approx(
        [0.5]
    )


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


def test_a_csv_file_is_read_with_everything_that_it_may_hold(tmp_path):
    path = write(
        tmp_path,
        "\ufeffdate,query_id,query_type,score,graph_used,model\n"
        "2024-03-01,q1,bridge,0.5,true,a\n"
        "2024-03-01T23:30:00-02:00,q1,bridge,,False,a\n"
        "2024-03-02 08:00:00,q2,,NaN,1,b\n",
    )
    first, second, third = read_observations(path)
    assert first == Observation(date(2024, 3, 1), {"score": 0.5, "graph_used": 1.0}, "q1", "bridge")
    assert second.day == date(2024, 3, 2)  # in UTC
    assert math.isnan(second.values["score"])
    assert second.values["graph_used"] == 0.0
    assert third.query_type == ""
    assert "model" not in third.values


def test_json_lines_are_read(tmp_path):
    path = write(
        tmp_path,
        '{"timestamp": "2024-03-01T08:00:00Z", "latency_ms": 12.5, "query_id": 7}\n\n'
        '{"timestamp": "2024-03-02", "latency_ms": null, "graph_used": true}\n',
        "queries.jsonl",
    )
    first, second = read_observations(path)
    assert first == Observation(date(2024, 3, 1), {"latency_ms": 12.5}, "7")
    assert math.isnan(second.values["latency_ms"])
    assert second.values["graph_used"] == 1.0


def test_every_wrong_line_is_named(tmp_path):
    path = write(
        tmp_path, "date,score\n2024-03-01,0.5\nyesterday,0.5\n2024-03-02,high\n2024-03-03,inf\n"
        "2024-03-04,0.6\n"
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        read_observations(path)
    text = str(caught.value)
    assert "daily.csv:3: 'yesterday' is not a date; write 2024-03-01" in text
    assert "daily.csv:4: score: 'high' is not a number" in text
    assert "daily.csv:5: score is infinite" in text
    broken = write(tmp_path, '{"date": "2024-03-01", "score": 1}\n{"date": \n[1]\n', "x.jsonl")
    with pytest.raises(InputError, match=r"x\.jsonl:2: invalid JSON"):
        read_observations(broken)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column is called date or day or time or timestamp; the columns are: none"),
        ("when,score\n2024-03-01,0.5\n", "the columns are: when, score"),
        ("date,score\n", "no column|holds no observation"),
        ('{"date": 5, "score": 1}\n', "date is 5; write 2024-03-01"),
    ],
)
def test_a_file_without_dates_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_observations(write(tmp_path, text))


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(InputError, match="cannot read it"):
        read_observations(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"date,score\n2024-03-01,\xe9\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_observations(tmp_path / "latin.csv")
