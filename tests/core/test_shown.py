"""Text from elsewhere, in a terminal and in a spreadsheet."""

from __future__ import annotations

import json

import pytest

from tuner.core.shown import csv_cell, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[bold] :smile: [/x]", "[bold] :smile: [/x]"),
        ("\x1b[2J\x1b]0;title\x07", "\\u001b[2J\\u001b]0;title\\u0007"),
        ("over\rwritten, kept\r\n\tline", "over\\u000dwritten, kept\n\tline"),
        ("\x9b31m", "\\u009b31m"),
        ("user\u202etxt.exe\u2069", "user\\u202etxt.exe\\u2069"),
        ("half \ud83d", "half \\ud83d"),
        ("Zürich 北京 שלום 👩\u200d🔬", "Zürich 北京 שלום 👩\u200d🔬"),
    ],
)
def test_every_character_is_seen_and_none_acts(text, expected):
    assert shown(text) == expected


def test_json_stays_what_it_is():
    record = {"text": "\x1b \x7f \x9b \u202e \u2028 \ud83d [x]\n\r\t"}
    assert json.loads(shown(json.dumps(record, ensure_ascii=False, indent=2))) == record


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1+1", "'+1+1"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("＝1", "'＝1"),
        ("'=1", "''=1"),  # or it could not be told from a quoted "=1"
        ("-0.5", "-0.5"),
        ("+1e-05", "+1e-05"),
        ("-.5", "-.5"),
        (-0.5, -0.5),
        (None, None),
        (True, True),
        ("Ada = 1", "Ada = 1"),
        ("", ""),
    ],
)
def test_a_cell_is_shown_and_not_run(value, expected):
    assert csv_cell(value) == expected
