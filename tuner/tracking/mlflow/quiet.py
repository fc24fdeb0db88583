"""MLflow without its noise: its settings and messages, and one line for whatever it raises."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tuner.core.errors import InputError, TunerError
from tuner.core.logs import adopt, handlers_of
from tuner.core.shown import shortened
from tuner.tracking.uri import without_password

# Libraries wrap what the system said, such as "[Errno 111] Connection refused", several times.
_HTTP_STATUS = re.compile(r"too many (\d{3}) error responses|error code (\d{3})")
_LOGGERS = ("mlflow", "alembic", "sqlalchemy.engine")
_SYSTEM_ERROR = re.compile(r"\[Errno -?\d+\] ([A-Z][A-Za-z ]+[a-z])")


@dataclass(frozen=True)
class Timeouts:
    """How long MLflow is waited for: for an answer (``request_s``), and at the end of a study.

    There it is up to ``finish_s`` for all that is to be written, and up to ``retry_s`` for a store
    that is down.
    """

    request_s: int = 10
    retry_s: float = 3.0
    finish_s: float = 60.0


TIMEOUTS = Timeouts()


@contextmanager
def quiet(*, request_s: int = Timeouts.request_s) -> Iterator[None]:
    """Keep MLflow's messages, telemetry and endless retries away while this thread uses it.

    MLflow reads its settings from the environment only; what the user has set there stays. An
    answer is waited for up to ``request_s``.
    """
    ours = {
        # Our own loop retries, and finds out first what a lost request has done all the same.
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": str(request_s),
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    }
    added = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(added)
    thread = threading.get_ident()

    def from_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != thread or not record.name.startswith(_LOGGERS)

    handlers: list[logging.Handler] = []
    try:
        import mlflow  # noqa: F401  its import installs the handlers that are filtered here

        adopt()
        handlers += handlers_of(*_LOGGERS)
        for handler in handlers:
            handler.addFilter(from_elsewhere)
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(from_elsewhere)
        for name, value in added.items():
            if os.environ.get(name) == value:
                del os.environ[name]


@contextmanager
def reaching(
    uri: str,
    otherwise: str,
    *,
    reason: Callable[[Exception], str] | None = None,
    request_s: int = Timeouts.request_s,
) -> Iterator[None]:
    """Use the store at ``uri`` quietly; where that fails, say ``otherwise`` and why, in one line.

    Raises:
        TunerError: whatever MLflow, SQLAlchemy or the network raise, without the URI's passwords.
    """
    try:
        with quiet(request_s=request_s):
            yield
    except InputError:
        raise
    except Exception as error:
        why = (reason or message_of)(error)
        raise TunerError(f"{otherwise}: {without_password(why, uri)}") from error


def reason_of(error: Exception) -> str:
    """Return why a store is out of reach: the system's own words, where they are in the error.

    >>> reason_of(OSError("HTTPConnectionPool(host='h'): Max retries exceeded (Caused by "
    ...                   "NewConnectionError('[Errno 111] Connection refused'))"))
    'Connection refused'
    >>> reason_of(OSError("… (Caused by ResponseError('too many 503 error responses'))"))
    'it answers 503'
    """
    text = message_of(error, longest=1000)
    if found := _SYSTEM_ERROR.findall(text):
        return str(found[-1])
    if status := _HTTP_STATUS.search(text):
        return f"it answers {status[1] or status[2]}"
    if "timed out" in text.lower():
        return "no answer in time"
    return message_of(error, longest=150)


def message_of(error: Exception, *, longest: int = 300) -> str:
    """Return what an error says, in one line of bounded length."""
    return shortened(" ".join(str(error).split()) or type(error).__name__, longest)
