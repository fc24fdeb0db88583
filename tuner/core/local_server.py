"""Serve a page on this machine alone, to whoever knows the token of its address."""

from __future__ import annotations

import json
import os
import secrets
import sys
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tuner.core.errors import InputError, TunerError
from tuner.core.json_text import json_text

HOST = "127.0.0.1"
# Another name in the header is one that somebody let point here, to read with a page of theirs.
# The port may be another: that of a tunnel.
HOST_NAMES = frozenset({HOST, "localhost", "::1"})
MOST_BYTES = 1 << 16
IDLE_S = 60.0

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Asked:
    """What a page asks: ``name`` is what stands in the address behind the token.

    ``body`` is what was sent with it, None where nothing was: of a GET.
    """

    name: str
    query: Mapping[str, str]
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Answer:
    """What it gets: a text of a kind, such as ``text/html``, and the policy that a page keeps."""

    text: str
    kind: str = "application/json"
    policy: str = "default-src 'none'"

    @classmethod
    def of(cls, record: Any) -> Answer:
        """Return the answer that holds a record as JSON."""
        return cls(json_text(record))


class LocalServer(ThreadingHTTPServer):
    """A page at the name "", and the answers to what it asks.

    ``answer`` gives them, from several threads at once; None where there is nothing at an address.
    An InputError of it is told to the page as ``{"problem": …}``. ``address`` holds the token.
    ``first_address`` leads there once: it may stand in the arguments of a browser, which everybody
    on the machine can see.
    """

    daemon_threads = True

    def __init__(self, answer: Callable[[Asked], Answer | None], port: int) -> None:
        self.answer = answer
        self.token, self.once = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._connections: set[socket] = set()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise TunerError(
                f"cannot serve on {HOST}, port {port}: {error.strerror or error}; choose another: "
                "--port (0 takes one that is free)"
            ) from error

    @property
    def address(self) -> str:
        """Return where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def first_address(self) -> str:
        """Return what leads to the page, one time."""
        return f"http://{HOST}:{self.server_port}/{self.once}"

    def get_request(self) -> tuple[socket, Any]:
        """Accept a connection, which a browser keeps for many requests."""
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Take nothing more: what is given after the end must not look saved."""
        super().server_close()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)

    def is_first(self, token: str) -> bool:
        """Say whether this is the token that opens the page once, which it then does no more."""
        is_first = self.once != "" and _is_same(token, self.once)
        if is_first:
            self.once = ""
        return is_first

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that goes away is no error, and all others are answered."""

    def server_bind(self) -> None:
        """Bind without looking this machine's name up, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: LocalServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the addresses hold the token."""

    def version_string(self) -> str:
        return "graphrag-tuner"

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        token, _, name = path.removeprefix("/").partition("/")
        try:
            self._check_host()
            if self.server.is_first(token):
                self._lead_to(f"/{self.server.token}/")
                return
            if not _is_same(token, self.server.token):
                problem = (
                    "the token in this address is wrong, or of an earlier start; open the address "
                    "that the command printed"
                )
                raise _Refused(HTTPStatus.FORBIDDEN, problem)
            self._answer_to(name, query)
        except _Refused as error:
            self.close_connection = True  # what was sent may be unread
            self._send(error.status, f"{error}\n", kind="text/plain")
        except InputError as error:
            self._send(HTTPStatus.BAD_REQUEST, json_text({"problem": str(error)}))
        except OSError as error:
            if isinstance(error, ConnectionError | TimeoutError):
                raise
            place = f" {error.filename}" if error.filename else ""
            problem = f"cannot be written:{place}: {error.strerror or error}"
            self._send(HTTPStatus.INSUFFICIENT_STORAGE, json_text({"problem": problem}))

    def _check_host(self) -> None:
        """Refuse what a page from elsewhere asks, or one that lets its own name point here."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if _host_name(host) not in HOST_NAMES:
            raise _Refused(HTTPStatus.FORBIDDEN, f"this page is served as {HOST} only")
        if origin is not None and origin != f"http://{host}":
            raise _Refused(HTTPStatus.FORBIDDEN, "another page may not ask here")

    def _answer_to(self, name: str, query: str) -> None:
        body = self._body() if self.command == "POST" else None
        found = self.server.answer(
            Asked(name, dict(parse_qsl(query, keep_blank_values=True)), body)
        )
        if found is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        self._send(HTTPStatus.OK, found.text, kind=found.kind, policy=found.policy)

    def _body(self) -> Mapping[str, Any]:
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        length = self.headers.get("Content-Length", "")
        if kind != "application/json":  # a form of another page could send anything else
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json")
        if not (length.isascii() and length.isdigit()) or int(length) > MOST_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"send at most {MOST_BYTES} bytes")
        try:
            asked = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise InputError(f"what was sent is no JSON: {error}") from error
        if not isinstance(asked, dict):
            raise InputError("what was sent is no JSON object")
        return asked

    def _send(
        self,
        status: HTTPStatus,
        text: str,
        *,
        kind: str = "application/json",
        policy: str = "default-src 'none'",
    ) -> None:
        content = text.encode(errors="backslashreplace")
        headers = {
            **_HEADERS,
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
        }
        self._begin(status, headers)
        self.wfile.write(content)

    def _lead_to(self, path: str) -> None:
        headers = {**_HEADERS, "Location": path, "Content-Length": "0"}
        self._begin(HTTPStatus.SEE_OTHER, headers)

    def _begin(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _is_same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(errors="replace"), token.encode())


def open_in_browser(address: str) -> bool:
    """Open an address in a browser with a window; say whether there is one."""
    has_window = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    # Without a window, one that draws in this terminal would be found.
    return has_window and webbrowser.open(address)
