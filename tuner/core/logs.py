"""Log lines, ours and libraries': one form, one place, and one level for a command.

A line is ``2026-12-02T02:54:20 WARNING my_app.search: no vector for 'Lima'``: time, level, where,
message. It goes to standard error, through the one handler that ``written`` puts on the root
logger, in worker processes too. From Python nothing is set up: there the log is the caller's.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tuner.core.shown import shown

LEVELS = ("debug", "info", "warning", "error")
DEFAULT = "warning"
VARIABLE = "TUNER_LOG_LEVEL"
_FORM = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")


class _ToStandardError(logging.Handler):
    """Writes to what standard error is by then, so that a progress bar is not torn.

    ``replaced`` are handlers of others that it stands for, each with its logger and what that had
    for ``propagate``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[tuple[logging.Logger, logging.Handler, bool]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; control characters of a message do nothing."""
        try:
            sys.stderr.write(f"{shown(self.format(record))}\n")
        except Exception:
            self.handleError(record)


@contextmanager
def written(level: str) -> Iterator[None]:
    """Write log lines from this level on while the block runs, and Python's warnings as such.

    Processes that are started meanwhile do the same: the level stands in ``$TUNER_LOG_LEVEL``.
    """
    root, before = logging.getLogger(), os.environ.get(VARIABLE)
    had_level, handler = root.level, _begin(level)
    os.environ[VARIABLE] = level
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)
        root.setLevel(had_level)
        for logger, replaced, propagate in reversed(handler.replaced):
            logger.addHandler(replaced)
            logger.propagate = propagate
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def begin_as_told() -> None:
    """Write log lines in this process as the command does that started it, where one did."""
    if (level := os.environ.get(VARIABLE)) in LEVELS:
        _begin(level)


def adopt() -> None:
    """Let what others print of their logs by handlers of their own go through ours alone.

    To be called where others' code was imported; without a command of ours nothing is changed.
    """
    if (ours := _ours()) is None:
        return
    for logger in [logging.root, *logging.root.manager.loggerDict.values()]:
        if not isinstance(logger, logging.Logger):
            continue
        for handler in list(logger.handlers):
            if _prints(handler):
                ours.replaced.append((logger, handler, logger.propagate))
                logger.removeHandler(handler)
                logger.propagate = True


def handlers_of(*names: str) -> list[logging.Handler]:
    """Return the handlers of some loggers, and ours."""
    found = [handler for name in names for handler in logging.getLogger(name).handlers]
    ours = _ours()
    return found if ours is None else [*found, ours]


def _begin(level: str) -> _ToStandardError:
    root = logging.getLogger()
    if (earlier := _ours()) is not None:
        root.removeHandler(earlier)
    handler = _ToStandardError()
    handler.setFormatter(_FORM)
    # The level of a library's own logger may be lower than that of the root.
    handler.setLevel(level.upper())
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    adopt()
    return handler


def _ours() -> _ToStandardError | None:
    return next((h for h in logging.root.handlers if isinstance(h, _ToStandardError)), None)


def _prints(handler: logging.Handler) -> bool:
    stream = getattr(handler, "stream", None)
    return stream is not None and stream in (
        sys.stdout,
        sys.stderr,
        sys.__stdout__,
        sys.__stderr__,
    )
