"""Log lines of a command: one form, one handler, and all is as before when it ends."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import warnings

import pytest

from tuner.core.logs import LEVELS, VARIABLE, adopt, begin_as_told, written

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d (DEBUG|INFO|WARNING|ERROR) [\w.]+: .+")


@pytest.fixture
def log():
    """Return a library's logger, which is as new."""
    logger = logging.getLogger("a_library.part")
    yield logger
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


def test_a_line_has_time_level_place_and_message(log, capsys):
    with written("warning"):
        log.warning("no vector for %r", "Lima")
    line = capsys.readouterr().err.rstrip("\n")
    assert LINE.fullmatch(line)
    assert line.endswith(" WARNING a_library.part: no vector for 'Lima'")


@pytest.mark.parametrize("level", LEVELS)
def test_lines_below_the_level_are_left_out_whatever_the_library_says(log, capsys, level):
    log.setLevel(logging.DEBUG)
    with written(level):
        for each in LEVELS:
            log.log(logging.getLevelName(each.upper()), "of level %s", each)
    told = capsys.readouterr().err.splitlines()
    assert [line.rpartition(" ")[2] for line in told] == list(LEVELS[LEVELS.index(level) :])


def test_a_library_with_a_handler_of_its_own_is_not_heard_twice(log, capsys):
    handler = logging.StreamHandler(sys.stderr)
    log.addHandler(handler)
    log.propagate = False
    with written("info"):
        log.warning("once")
        late = logging.getLogger("a_library.late")
        late.addHandler(logging.StreamHandler(sys.stdout))
        adopt()
        late.warning("once too")
        kept = logging.StreamHandler(io.StringIO())  # no console: it stays
        log.addHandler(kept)
        adopt()
        assert log.handlers == [kept]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.rpartition(": ")[2] for line in captured.err.splitlines()] == ["once", "once too"]
    assert handler in log.handlers  # as it was
    assert not log.propagate
    late.handlers.clear()


def test_it_can_be_entered_twice_and_leaves_nothing_behind(log, capsys):
    before = (list(logging.root.handlers), logging.root.level, os.environ.get(VARIABLE))
    for level in ("error", "info"):
        with written(level):
            assert os.environ[VARIABLE] == level
            log.error("said")
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert (list(logging.root.handlers), logging.root.level, os.environ.get(VARIABLE)) == before


def test_pythons_warnings_and_control_characters(log, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with written("warning"):
            warnings.warn("an old option", UserWarning, stacklevel=1)
            log.warning("red \x1b[31m")
    first, *_, last = capsys.readouterr().err.splitlines()
    assert LINE.fullmatch(first)
    assert "py.warnings" in first
    assert "an old option" in first
    assert last.endswith("red \\u001b[31m")


def test_without_a_command_nothing_is_set_up(log, monkeypatch):
    handler = logging.StreamHandler(sys.stderr)
    log.addHandler(handler)
    monkeypatch.delenv(VARIABLE, raising=False)
    before = list(logging.root.handlers)
    begin_as_told()
    adopt()
    assert log.handlers == [handler]
    assert logging.root.handlers == before
