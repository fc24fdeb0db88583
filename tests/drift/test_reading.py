"""Files of observations: what they may hold, and that nothing is misread."""

from __future__ import annotations

import math
from datetime import date

import pytest

from tuner.core.errors import InputError
from tuner.drift.observations import Observation
from tuner.drift.sources import read_observations


def write(folder, text, name="daily.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


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
    assert "daily.csv:4: 'score' must be a number, got 'high'" in text
    assert "daily.csv:5: 'score' must be a number, got 'inf'; leave it empty" in text
    broken = write(tmp_path, '{"date": "2024-03-01", "score": 1}\n{"date": \n[1]\n', "x.jsonl")
    with pytest.raises(InputError, match=r"x\.jsonl:2: not valid JSON"):
        read_observations(broken)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no observation"),
        ("\n\n", "holds no observation"),
        ("when,score\n2024-03-01,0.5\n", "the columns are: when, score"),
        ("date,score\n", "holds no observation"),
        ('{"date": 5, "score": 1}\n', "date is 5; write 2024-03-01"),
        ('[{"date": "2024-03-01", "score": 1}]\n', "a line must be a JSON object, got a list"),
    ],
)
def test_a_file_without_dates_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_observations(write(tmp_path, text))


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_observations(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"date,score\n2024-03-01,\xe9\n")
    with pytest.raises(InputError, match=r"latin.csv:2: invalid UTF-8"):
        read_observations(tmp_path / "latin.csv")
    (tmp_path / "wide.csv").write_text("date,score\n2024-03-01,1\n", encoding="utf-16")
    with pytest.raises(InputError, match="is UTF-16; save it as UTF-8"):
        read_observations(tmp_path / "wide.csv")


@pytest.mark.parametrize("apart", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_spreadsheets_write_csv_in_their_own_ways(tmp_path, apart, end, mark):
    lines = ["date, query_type ,score", '2024-03-01,"one, two",0.5', "", "2024-03-02,two,0.25", ""]
    text = mark + end.join(line.replace(",", apart) for line in lines)
    (tmp_path / "daily.csv").write_bytes(text.encode())
    first, second = read_observations(tmp_path / "daily.csv")
    assert first.query_type == f"one{apart} two"
    assert (first.values, second.values) == ({"score": 0.5}, {"score": 0.25})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # read as date 2024-03-01, score 0, and 69 beyond the header, every score would be 0
        ("date,score\n2024-03-01,0,69\n", "daily.csv:2: 3 fields, but the header has 2"),
        ("date,score\n2024-03-01\n", "daily.csv:2: 1 field, but the header has 2"),
        ("date;score;n\n2024-03-01;0,69;5\n", "must be a number, got '0,69'; write 0.69"),
        ("date,score,score\n2024-03-01,1,2\n", "more than once: score"),
        ("date,score\n2024-03-01,1e308\n", "must be a number up to 1e\\+100, got '1e308'"),
        ("date,score\n2024-03-01,1_0\n", "must be a number, got '1_0'"),
        ("date,latency_ms\n2024-03-01,-5\n", "is a time, which cannot be negative, got '-5'"),
        ('date,score\n2024-03-01,1\n"2024-03-02,1\n2024-03-03,1\n', "daily.csv:3: not valid CSV"),
        (f"date,score,note\n2024-03-01,1,{'x' * 200_000}\n", "field larger than field limit"),
        (
            '{"date": "2024-03-01", "score": 1' + "0" * 400 + "}\n",
            r"must be a number, got 10{59}…;",
        ),
        ('{"date": "2024-03-01", "score": [1]}\n', r"must be a number, got '\[1\]'"),
    ],
)
def test_what_would_be_misread_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_observations(write(tmp_path, text))


def test_a_wrong_column_is_told_in_a_few_lines(tmp_path):
    rows = "".join(f"{day}/3/2024,0.5\n" for day in range(1, 30))
    with pytest.raises(InputError) as caught:
        read_observations(write(tmp_path, "date,score\n" + rows))
    assert len(str(caught.value).splitlines()) == 4
    assert "and 26 more like this, in lines 5-30 (29 in all)" in str(caught.value)


def test_a_line_separator_within_a_json_string_ends_no_line(tmp_path):
    path = write(tmp_path, '{"date": "2024-03-01", "score": 1, "note": "a\u2028b"}\n', "x.jsonl")
    assert len(read_observations(path)) == 1


def test_a_quoted_line_break_is_part_of_its_cell_and_lines_are_counted(tmp_path):
    path = write(tmp_path, 'date,note,score\n2024-03-01,"two\nlines",1\n2024-03-02,x,high\n')
    with pytest.raises(InputError, match=r"daily\.csv:4: 'score' must be a number"):
        read_observations(path)
