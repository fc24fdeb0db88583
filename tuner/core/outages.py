"""Whether an error says that a system is out of reach or out of order, and not what was asked."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.error import HTTPError, URLError

from tuner.core.errors import OutageError
from tuner.core.trial import Blame

_ERRORS = (OutageError, ConnectionError, TimeoutError, socket.gaierror)
# What the clients of services raise beside Python's own errors; named, so that none is imported.
_NAMED = frozenset(
    {
        "aiohttp.client_exceptions.ClientConnectionError",
        "grpc.FutureTimeoutError",
        "httpx.NetworkError",
        "httpx.ProxyError",
        "httpx.RemoteProtocolError",
        "httpx.TimeoutException",
        "neo4j.exceptions.ServiceUnavailable",
        "neo4j.exceptions.SessionExpired",
        "openai.APIConnectionError",
        "redis.exceptions.ConnectionError",
        "redis.exceptions.TimeoutError",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
        "urllib3.exceptions.MaxRetryError",
        "urllib3.exceptions.ProtocolError",
        "urllib3.exceptions.TimeoutError",
    }
)
# A key that is not, or no longer, valid; a request that came too slowly; too many of them.
_STATUSES = frozenset({401, 403, 408, 429})


def is_outage(error: BaseException) -> bool:
    """Say whether an error, or one that led to it, is that of a system that does not answer.

    >>> is_outage(ConnectionRefusedError()), is_outage(ValueError("hops"))
    (True, False)
    """
    return any(map(_is_outage, _with_causes(error)))


def blame_of(error: BaseException) -> Blame:
    """Return what an evaluation that ended with an error is to be blamed on."""
    return Blame.SYSTEM if is_outage(error) else Blame.PARAMS


def is_out_of_order(status: int) -> bool:
    """Say whether an HTTP status tells of the service's state rather than of what was asked.

    >>> [status for status in (400, 401, 404, 429, 500, 503) if is_out_of_order(status)]
    [401, 429, 500, 503]
    """
    return status in _STATUSES or 500 <= status <= 599


def _is_outage(error: BaseException) -> bool:
    if isinstance(error, _ERRORS):
        return True
    if not _NAMED.isdisjoint(
        f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).mro()
    ):
        return True
    if isinstance(error, HTTPError):
        return is_out_of_order(error.code)
    if isinstance(error, URLError):
        return isinstance(error.reason, _ERRORS)
    status = getattr(getattr(error, "response", None), "status_code", None)  # httpx, requests
    return type(status) is int and is_out_of_order(status)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        hidden = following.__suppress_context__
        following = following.__cause__ or (None if hidden else following.__context__)
