"""Many problems of one kind: a few told whole, and the place of every other one."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError, Problem
from tuner.core.files import read_input
from tuner.core.shown import number_ranges
from tuner.datasets import lines
from tuner.datasets.lines import ProblemLog, read_text

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


def test_pipes_and_devices_are_reported_and_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        log = ProblemLog()
        assert read_text(path, log) is None
        message = "is a pipe or a device, which may never end; give a file"
        assert log.problems() == [Problem(message, str(path))]


def test_a_file_of_more_than_can_be_is_refused_with_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MOST_BYTES", 1_000)
    (tmp_path / "small.gz").write_bytes(gzip.compress(b"\n" * 1_001))
    log = ProblemLog()
    assert read_text(tmp_path / "small.gz", log) is None
    assert "unpacked, larger than 1,000 bytes" in str(log.problems()[0])
    (tmp_path / "large").write_bytes(b"x" * 1_001)
    with pytest.raises(InputError, match="larger than 1,000 bytes; is this a list"):
        read_input(tmp_path / "large", most=1_000, is_what="is this a list?")
