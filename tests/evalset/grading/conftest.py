"""A small sheet to grade, and the program that serves it, without a browser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tuner.evalset.grading.given import Grading
from tuner.evalset.grading.page import make_page
from tuner.evalset.grading.scale import meanings
from tuner.evalset.grading.server import Server
from tuner.evalset.sheets import Row, write_sheet

ROWS = [
    Row("q1", "Where was Ada born?", "00123", "Ada", "Ada was born in London."),
    Row("q1", "Where was Ada born?", "d2", "London", "London lies on the Thames."),
    Row("q1", "Where was Ada born?", "d3", "", "Nothing of the kind."),
    Row("q2", "阿达在哪里出生？", "d4", "阿达", "阿达出生于伦敦。"),
    Row("q2", "阿达在哪里出生？", "d5", "", "=not a formula"),
]


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    file = tmp_path / "sheet.csv"
    write_sheet(file, ROWS)
    return file


@pytest.fixture
def opened() -> Iterator[Callable[..., Grading]]:
    """Open a sheet; what was opened before is closed first, as where a program ends."""
    with ExitStack() as stack:

        def open_sheet(file: Path, **options: Any) -> Grading:
            stack.close()
            clock = iter(range(100_000))
            return stack.enter_context(
                Grading.open(file, now=lambda: f"second {next(clock)}", **options)
            )

        yield open_sheet


@dataclass
class Client:
    """Asks a server that runs in this process."""

    server: Server
    http: httpx.Client

    def get(self, name: str = "", **asked: Any) -> httpx.Response:
        return self.http.get(f"{self.server.address}{name}", params=asked or None)

    def post(self, name: str, **asked: Any) -> httpx.Response:
        return self.http.post(f"{self.server.address}{name}", json=asked)


@pytest.fixture
def serving() -> Iterator[Callable[[Grading], Client]]:
    with ExitStack() as stack:

        def serve(grading: Grading) -> Client:
            page = make_page(grading.sheet.file, meanings(grading.grades))
            server = stack.enter_context(Server(grading, page, 0))
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            # Not by the proxies of the environment, which do not know this machine's loopback.
            http = stack.enter_context(httpx.Client(trust_env=False, timeout=60))
            return Client(server, http)

        yield serve


@pytest.fixture
def client(
    sheet: Path, opened: Callable[..., Grading], serving: Callable[[Grading], Client]
) -> Client:
    return serving(opened(sheet))
