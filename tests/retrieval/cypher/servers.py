"""Stand-ins for servers: what Neo4j's driver and FalkorDB's client send is heard, and answered by
ladybug.

The drivers are the real ones. Bolt 5.0 and Redis' protocol are spoken as far as they ask for it.
"""

from __future__ import annotations

import json
import re
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SLOW = "slow"
"""A statement with this word takes too long for the stand-ins."""


@dataclass(eq=False)
class Server:
    """A server with a graph of ladybug's behind it, and what it was sent."""

    file: Path
    port: int = 0
    sent: list[tuple[str, Any]] = field(default_factory=list)
    connections: int = 0
    peers: list[Any] = field(default_factory=list)

    def answer(self, text: str, params: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
        import ladybug

        with ladybug.Database(str(self.file), read_only=True, max_db_size=1 << 30) as database:
            result = ladybug.Connection(database, num_threads=1).execute(text, dict(params))
            return result.get_column_names(), result.get_all()

    def of(self, kind: str) -> list[Any]:
        """Return what was sent of one kind."""
        return [given for name, given in self.sent if name == kind]


@contextmanager
def _served(file: Path, talk: Callable[[Server, Any], None], port: int = 0) -> Iterator[Server]:
    server = Server(file)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            server.connections += 1
            server.peers.append(self.connection)
            try:
                talk(server, self)
            except (EOFError, ConnectionError):
                return

    class Listening(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Listening(("127.0.0.1", port), Handler) as listening:
        server.port = listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            for peer in server.peers:
                with suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)


def _read(stream: Any, count: int) -> bytes:
    data: bytes = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


# Bolt ------------------------------------------------------------------------------------------

NAMES = {
    0x01: "HELLO", 0x02: "GOODBYE", 0x0F: "RESET", 0x10: "RUN", 0x11: "BEGIN", 0x12: "COMMIT",
    0x13: "ROLLBACK", 0x2F: "DISCARD", 0x3F: "PULL", 0x66: "ROUTE",
}  # fmt: skip
SUCCESS, RECORD, IGNORED, FAILURE = 0x70, 0x71, 0x7E, 0x7F
REMARK = {
    "code": "Neo.ClientNotification.Statement.FeatureDeprecationWarning",
    "title": "This feature is old.",
    "description": "There is a newer one.",
    "severity": "WARNING",
    "category": "DEPRECATION",
}
TIMED_OUT = "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration"


@contextmanager
def bolt(file: Path, port: int = 0) -> Iterator[Server]:
    """Serve a graph as a Bolt server would."""
    with _served(file, _speak_bolt, port) as server:
        yield server


def _speak_bolt(server: Server, peer: Any) -> None:
    assert _read(peer.rfile, 4) == b"\x60\x60\xb0\x17"
    _read(peer.rfile, 16)
    peer.wfile.write(b"\x00\x00\x00\x05")
    rows: list[list[Any]] = []
    failed = False
    while True:
        tag, fields = _message(peer.rfile)
        name = NAMES[tag]
        server.sent.append((name, fields))
        if name == "GOODBYE":
            return
        if name == "RESET":
            failed = False
            _reply(peer, SUCCESS, {})
        elif failed:
            _reply(peer, IGNORED)
        elif name == "HELLO":
            _reply(peer, SUCCESS, {"server": "Neo4j/5.0.0", "connection_id": "c", "hints": {}})
        elif name == "ROUTE":
            here = [f"127.0.0.1:{server.port}"]
            roles = [{"role": role, "addresses": here} for role in ("READ", "WRITE", "ROUTE")]
            table = {"ttl": 300, "db": fields[2].get("db"), "servers": roles}
            _reply(peer, SUCCESS, {"rt": table})
        elif name == "RUN":
            try:
                if SLOW in fields[0]:
                    raise TimeoutError
                columns, rows = server.answer(fields[0], fields[1])
                _reply(peer, SUCCESS, {"fields": columns})
            except Exception as error:
                failed = True
                is_slow = isinstance(error, TimeoutError)
                code = TIMED_OUT if is_slow else "Neo.ClientError.Statement.SyntaxError"
                _reply(peer, FAILURE, {"code": code, "message": str(error)})
        elif name == "PULL":
            for row in rows:
                _reply(peer, RECORD, row)
            _reply(peer, SUCCESS, {"type": "r", "has_more": False, "notifications": [REMARK]})
        else:
            _reply(peer, SUCCESS, {})


def _message(stream: Any) -> tuple[int, list[Any]]:
    data = b""
    while True:
        (size,) = struct.unpack(">H", _read(stream, 2))
        if size == 0:
            if data:
                break
            continue
        data += _read(stream, size)
    read, end = data[1], 2
    fields = []
    while end < len(data):
        value, end = _unpacked(data, end)
        fields.append(value)
    return read, fields


def _reply(peer: Any, tag: int, *fields: Any) -> None:
    data = bytes([0xB0 + len(fields), tag]) + b"".join(map(_packed, fields))
    parts = [data[start : start + 60_000] for start in range(0, len(data), 60_000)]
    peer.wfile.write(b"".join(struct.pack(">H", len(p)) + p for p in parts) + b"\x00\x00")


def _packed(value: Any) -> bytes:
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xcb" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xc1" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return b"\xd2" + struct.pack(">I", len(data)) + data
    if isinstance(value, dict):
        parts = (_packed(part) for pair in value.items() for part in pair)
        return b"\xda" + struct.pack(">I", len(value)) + b"".join(parts)
    return b"\xd6" + struct.pack(">I", len(value)) + b"".join(map(_packed, value))


def _unpacked(data: bytes, at: int) -> tuple[Any, int]:
    mark, at = data[at], at + 1
    if mark < 0x80 or mark >= 0xF0:
        return (mark if mark < 0x80 else mark - 0x100), at
    if mark in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[mark], at
    if mark == 0xC1:
        return struct.unpack(">d", data[at : at + 8])[0], at + 8
    if 0xC8 <= mark <= 0xCB:
        size = 1 << (mark - 0xC8)
        return int.from_bytes(data[at : at + size], "big", signed=True), at + size
    kind, count, at = _sized(data, mark, at)
    if kind == "text":
        return data[at : at + count].decode(), at + count
    items = []
    for _ in range(count * (2 if kind == "map" else 1)):
        item, at = _unpacked(data, at)
        items.append(item)
    if kind == "map":
        return dict(zip(items[::2], items[1::2], strict=True)), at
    return items, at


def _sized(data: bytes, mark: int, at: int) -> tuple[str, int, int]:
    for kind, tiny, first in (("text", 0x80, 0xD0), ("list", 0x90, 0xD4), ("map", 0xA0, 0xD8)):
        if tiny <= mark < tiny + 16:
            return kind, mark - tiny, at
        if first <= mark < first + 3:
            size = 1 << (mark - first)
            return kind, int.from_bytes(data[at : at + size], "big"), at + size
    raise AssertionError(f"no mark: {mark:#x}")


# FalkorDB --------------------------------------------------------------------------------------

GRAPH = "films"


@contextmanager
def falkordb(file: Path, port: int = 0) -> Iterator[Server]:
    """Serve a graph called ``films`` as FalkorDB would."""
    with _served(file, _speak_redis, port) as server:
        yield server


class _Simple(str):
    """A status, which Redis sends in another way than a text."""


def _speak_redis(server: Server, peer: Any) -> None:
    while True:
        line = peer.rfile.readline()
        if not line:
            return
        words = []
        for _ in range(int(line[1:])):
            size = int(peer.rfile.readline()[1:])
            words.append(_read(peer.rfile, size + 2)[:-2].decode())
        command = words[0].upper()
        server.sent.append((command, words[1:]))
        peer.wfile.write(_resp(_answer(server, command, words[1:])))


def _answer(server: Server, command: str, words: list[str]) -> Any:
    if command == "INFO":
        return "# Server\r\nredis_version:7.2.0\r\nredis_mode:standalone\r\n"
    if command == "GRAPH.LIST":
        return [GRAPH, "songs"]
    if command not in ("GRAPH.QUERY", "GRAPH.RO_QUERY"):
        return _Simple("OK")
    text, params = _headed(words[1])
    if SLOW in text:
        return RuntimeError("Query timed out")
    try:
        columns, rows = server.answer(text, params)
    except RuntimeError as error:
        return error
    return [
        [[1, name] for name in columns],
        [[_typed(value) for value in row] for row in rows],
        ["Cached execution: 0", "Query internal execution time: 0.1 milliseconds"],
    ]


def _headed(text: str) -> tuple[str, dict[str, Any]]:
    """Part the parameters, which stand before a statement, from it."""
    params: dict[str, Any] = {}
    text = text.removeprefix("CYPHER ")
    while found := re.match(r"`(\w+)`=", text):
        rest = re.sub(r"`(\w+)`:", r'"\1":', text[found.end() :])
        params[found[1]], end = json.JSONDecoder().raw_decode(rest)
        text = rest[end:].lstrip(" ")
    return text, params


def _typed(value: Any) -> list[Any]:
    if value is None:
        return [1, None]
    if isinstance(value, str):
        return [2, value]
    return [3, value] if isinstance(value, int) else [5, repr(value)]


def _resp(value: Any) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, _Simple):
        return f"+{value}\r\n".encode()
    if isinstance(value, Exception):
        return f"-ERR {' '.join(str(value).split())}\r\n".encode()
    if isinstance(value, int):
        return f":{value}\r\n".encode()
    if isinstance(value, str):
        data = value.encode()
        return f"${len(data)}\r\n".encode() + data + b"\r\n"
    return f"*{len(value)}\r\n".encode() + b"".join(map(_resp, value))
