"""A pytest plugin that writes down how each test ended, a line a test, as it ends.

Loaded with ``-p reporting``; the file to write to is in the environment.
"""

from __future__ import annotations

import json
import os
from typing import Any

FILE = "MUTANTS_REPORT"
_started = os.times()


def pytest_runtest_logreport(report: Any) -> None:
    _write(report.nodeid, report.outcome, report.duration, str(report.longrepr or ""))


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _write(report.nodeid, "failed", 0.0, str(report.longrepr))


def _write(test: str, outcome: str, seconds: float, words: str) -> None:
    global _started
    now = os.times()
    # The processor's seconds, those of processes that were started and waited for included.
    work_s = sum(now[:4]) - sum(_started[:4])
    _started = now
    line = {"test": test, "outcome": outcome, "seconds": seconds, "work_s": work_s}
    with open(os.environ[FILE], "a", encoding="utf-8") as file:
        file.write(json.dumps({**line, "end": words[-300:]}) + "\n")
