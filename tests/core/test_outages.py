"""What says that a system does not answer, and what says that something else is wrong."""

from __future__ import annotations

import doctest
import importlib
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable

import httpx
import pytest

from tuner.core.errors import OutageError, TunerError
from tuner.core.outages import is_outage


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _wrapped(cause: BaseException, *, is_hidden: bool = False) -> BaseException:
    try:
        try:
            raise cause
        except BaseException as error:
            if is_hidden:
                raise TunerError("wrapped") from None
            raise TunerError("wrapped") from error
    except TunerError as error:
        return error


def _raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # whatever the client raises
        call()
    return caught.value


def _status(status: int) -> BaseException:
    request = httpx.Request("GET", "http://localhost")
    return httpx.HTTPStatusError("", request=request, response=httpx.Response(status))


def test_a_port_where_nobody_listens_is_an_outage_with_every_client() -> None:
    url = f"http://127.0.0.1:{_free_port()}/"
    clients: list[Callable[[], object]] = [
        lambda: urllib.request.urlopen(url, timeout=5),
        lambda: httpx.get(url, timeout=5, trust_env=False),
        lambda: socket.create_connection(("127.0.0.1", _free_port()), timeout=5),
    ]
    for client in clients:
        assert is_outage(_raised(client))


def test_requests_errors_are_known_by_their_names() -> None:
    requests = pytest.importorskip("requests")
    url = f"http://127.0.0.1:{_free_port()}/"
    session = requests.Session()
    session.trust_env = False
    assert is_outage(_raised(lambda: session.get(url, timeout=5)))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (OutageError("no worker"), True),
        (httpx.RemoteProtocolError("disconnected"), True),
        (httpx.ReadTimeout("slow"), True),
        (_wrapped(BrokenPipeError()), True),
        (_wrapped(BrokenPipeError(), is_hidden=True), False),
        (_status(503), True),
        (_status(429), True),
        (_status(401), True),
        (_status(400), False),
        (_status(404), False),
        (urllib.error.HTTPError("http://x", 500, "", None, None), True),  # type: ignore[arg-type]
        (urllib.error.HTTPError("http://x", 422, "", None, None), False),  # type: ignore[arg-type]
        (httpx.UnsupportedProtocol("ftp"), False),
        (ValueError("hops"), False),
        (FileNotFoundError("index"), False),
        (SystemExit(500), False),
        (subprocess.CalledProcessError(500, "x"), False),
    ],
)
def test_which_errors_are_outages(error: BaseException, expected: bool) -> None:
    assert is_outage(error) is expected


@pytest.mark.parametrize("name", ["core.outages", "core.calls", "study.failures"])
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"tuner.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
