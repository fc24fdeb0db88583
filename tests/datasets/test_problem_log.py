"""Many problems of one kind: a few told whole, and the place of every other one."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import Problem, number_ranges
from tuner.datasets._lines import ProblemLog

FILE = Path("log.csv")


def expanded(ranges: str) -> list[int]:
    """Return the numbers that ``3-5, 7`` names."""
    found: list[int] = []
    for part in ranges.split(", "):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


@given(st.lists(st.integers(1, 60), max_size=40))
def test_ranges_name_every_number_once(numbers: list[int]) -> None:
    written = number_ranges(numbers)
    assert (expanded(written) if written else []) == sorted(set(numbers))


@given(st.lists(st.integers(1, 200), min_size=4, unique=True))
def test_every_line_is_named_and_all_are_counted(lines: list[int]) -> None:
    log = ProblemLog()
    for line in lines:
        log.add("bad", f"line {line} is bad", FILE, line)
    *whole, rest = log.problems()
    assert [problem.line for problem in whole] == lines[:3]
    found = re.fullmatch(r"and (\d+) more like this, in lines? (.*) \((\d+) in all\)", rest.message)
    assert found is not None
    assert int(found[1]) == len(lines) - 3
    assert expanded(found[2]) == sorted(lines[3:])
    assert int(found[3]) == len(lines)


def test_records_and_keys_are_named_where_there_are_no_lines() -> None:
    log = ProblemLog()
    for number in range(1, 8):
        log.add("context", "must be a list", FILE, key=(f"record {number}", "context[0]"))
        log.add("context", "must be a list", FILE, key=(f"record {number}", "context[1]"))
    for query in ("q1", "q2", "q3", "q4", "q4"):
        log.add("score", "must be a number", FILE, key=(query, "d1"))
    told = [str(problem) for problem in log.problems()]
    assert told[2] == "log.csv: record 2.context[0]: must be a list"
    assert told[3] == "log.csv: and 11 more like this, in records 2-7 (14 in all)"
    assert told[-1] == "log.csv: and 2 more like this, at q4 (5 in all)"


def test_kinds_and_files_are_told_apart() -> None:
    log = ProblemLog()
    for line in range(1, 6):
        log.add("a", "a is bad", FILE, line)
        log.add("b", "b is bad", FILE, line)
        log.add("a", "a is bad", Path("other.csv"), line)
    told = log.problems()
    assert len(told) == 3 * 4
    assert told[3] == Problem("and 2 more like this, in lines 4, 5 (5 in all)", "log.csv")
    assert told[11] == Problem("and 2 more like this, in lines 4, 5 (5 in all)", "other.csv")


def test_what_has_no_place_is_always_told_whole() -> None:
    log = ProblemLog()
    for name in "abcdef":
        log.add("missing", f"{name} is missing", FILE)
    assert [problem.message for problem in log.problems()] == [f"{n} is missing" for n in "abcdef"]
