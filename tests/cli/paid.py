"""A stand-in for a paid service: a server on this machine that counts its calls, and charges."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, Mapping[str, Any]], tuple[Mapping[str, Any], float]]
"""Answers a query with parameters: what is sent back, and how many tokens of contexts that is."""


class PaidService:
    """Keeps the books of a service, by itself: what it was asked, and the tokens that it sent.

    Attributes:
        asked: requests so far, those that failed as well.
        tokens: of the contexts that were sent whole.
        settings: the parameters of each request.
        fails_at: the requests, counted from 1, that are answered by 503.
        refuses: says of parameters whether they are always answered by 503.
        at: what is done just before a request is answered.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked = 0
        self.tokens = 0.0
        self.settings: list[Mapping[str, Any]] = []
        self.fails_at: set[int] = set()
        self.refuses: Callable[[Mapping[str, Any]], bool] = lambda params: False
        self.answer_s = 0.004
        self.at: dict[int, Callable[[], object]] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.service = self  # type: ignore[attr-defined]
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign,assignment]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"

    def bill(self, per_query: float, per_1000_tokens: float) -> float:
        """Return what all requests so far cost."""
        return per_query * self.asked + per_1000_tokens * self.tokens / 1000.0

    def begin_anew(self) -> None:
        """Forget what was asked so far."""
        self.asked, self.tokens, self.settings = 0, 0.0, []

    def count(self, params: Mapping[str, Any]) -> int:
        with self._lock:
            self.asked += 1
            self.settings.append(params)
            number = self.asked
        self.at.get(number, lambda: None)()
        return number

    def charge(self, tokens: float) -> None:
        with self._lock:
            self.tokens += tokens

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service: PaidService = self.server.service  # type: ignore[attr-defined]
        number = service.count(asked["params"])
        time.sleep(service.answer_s)
        answer, tokens = service.answer(asked["query"], asked["params"])
        is_failed = number in service.fails_at or service.refuses(asked["params"])
        body = json.dumps(answer).encode()
        self.send_response(503 if is_failed else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not is_failed:
            service.charge(tokens)
        self.wfile.write(body)
