"""tuner --log-level: what a user's system logs, here and in worker processes, in one form."""

from __future__ import annotations

import re

import pytest

LOGGING = """
import logging

_log = logging.getLogger("my_app.search")
_own = logging.StreamHandler()
_own.setFormatter(logging.Formatter("MY OWN %(message)s"))
_log.addHandler(_own)
_log.setLevel(logging.INFO)
"""
LINE = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d %s my_app\.search: %s$"


@pytest.fixture
def logging_system(tuner):
    path = tuner.folder / "word_overlap.py"
    text = path.read_text().replace(
        "        answers = []\n",
        '        answers = []\n        _log.info("asked")\n        _log.warning("odd")\n',
    )
    path.write_text(text + LOGGING)
    return tuner


def lines(text: str, level: str, message: str) -> int:
    return len(re.findall(LINE % (level, message), text, re.MULTILINE))


@pytest.mark.slow
def test_quiet_by_default_and_told_more_when_wanted(logging_system):
    plain = logging_system("evaluate", "config.yaml").stderr
    assert lines(plain, "WARNING", "odd") > 0
    assert "asked" not in plain.replace("queries asked", "")
    assert "MY OWN" not in plain
    more = logging_system("--log-level", "info", "evaluate", "config.yaml").stderr
    assert lines(more, "INFO", "asked") == lines(more, "WARNING", "odd") > 0
    less = logging_system("--log-level", "ERROR", "evaluate", "config.yaml").stderr
    assert "my_app" not in less


@pytest.mark.slow
def test_the_same_in_worker_processes(logging_system):
    logging_system.edit("{kind: inline}", "{kind: processes, workers: 1}")
    logging_system.edit("kind: grid, trials: 6", "kind: grid, trials: 1")
    logging_system.edit("kind: random, trials: 6", "kind: random, trials: 1")
    done = logging_system("--log-level", "info", "run", "config.yaml", "--quiet")
    assert lines(done.stderr, "INFO", "asked") > 0
    assert "MY OWN" not in done.stderr
    assert "my_app" not in done.stdout


def test_a_level_from_the_environment_and_one_that_is_none(logging_system):
    logging_system.environment["TUNER_LOG_LEVEL"] = "error"
    assert "my_app" not in logging_system("evaluate", "config.yaml").stderr
    logging_system.environment["TUNER_LOG_LEVEL"] = "loud"
    done = logging_system("check", "config.yaml", code=2)
    assert "'loud' is not one of" in done.stderr
