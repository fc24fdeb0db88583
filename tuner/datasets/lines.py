"""Reading files line by line so that every problem is found, with its place, in one pass."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuner.core.checks import is_number
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.files import MOST_BYTES, open_input, read_input, too_large
from tuner.core.shown import number_ranges
from tuner.core.steps import Advance, unheard

SHOWN_WHOLE = 3
# Bytes; of fewer nobody is told how far reading is.
LARGE_FILE = 1 << 18

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UNREADABLE, _CORRUPT = "unreadable", "gzip"

ABSENT = "judged, absent"
"""The kind of a judgement about a document that the corpus lacks; see `open_dataset`."""

HALF_A_PAIR = "holds half of a surrogate pair (\\ud800 to \\udfff)"

_RECORD = re.compile(r"record \d+")


@dataclass
class _Alike:
    """Problems of one kind in one file: the first ones, and where the others are."""

    shown: list[Problem] = field(default_factory=list)
    elsewhere: list[int | str] = field(default_factory=list)


@dataclass(frozen=True)
class ProblemLog:
    """Collects problems; of each kind in a file the first 3 are told whole, the rest by place.

    ``advance`` is told how much of a large file has been read.
    """

    advance: Advance = unheard
    _found: dict[tuple[str, str], _Alike] = field(default_factory=dict)
    _touched: set[tuple[str, str]] = field(default_factory=set)

    def add(
        self,
        kind: str,
        message: str,
        file: Path,
        line: int | None = None,
        *,
        key: Sequence[str | int] = (),
    ) -> None:
        """Note one problem. ``kind`` groups those that are alike, and is not shown."""
        alike = self._found.setdefault((str(file), kind), _Alike())
        place = f"line {line}" if line is not None else str(key[0]) if key else ""
        self._touched.add((str(file), place))
        if len(alike.shown) < SHOWN_WHOLE or (line is None and not key):
            alike.shown.append(Problem(message, str(file), line, tuple(key)))
        else:
            # Not the whole problem: a wrong file may have a million.
            alike.elsewhere.append(line if line is not None else str(key[0]))

    def mentions(self, file: Path) -> bool:
        """Return whether anything was wrong with a file so far."""
        return any(key[0] == str(file) for key in self._found)

    def is_unread(self, file: Path) -> bool:
        """Return whether a file could not be read, or not to its end."""
        return any((str(file), kind) in self._found for kind in (_UNREADABLE, _CORRUPT))

    def has_only(self, kind: str) -> bool:
        """Return whether all that was wrong so far, if anything, is of one kind."""
        return all(found == kind for _, found in self._found)

    def mentions_place(self, file: Path, place: str) -> bool:
        """Return whether anything was wrong with a ``"line 3"``, or ``"record 3"``, of a file."""
        return (str(file), place) in self._touched

    def refuse(self) -> None:
        """Raise an InputError with every problem, where there are any."""
        refuse(self.problems())

    def problems(self) -> list[Problem]:
        """Return the problems in the order of their kinds' first appearance.

        Those that are not told whole are one problem, with every line or record that has one:
        ``and 48 more like this, in lines 5-52 (51 in all)``.
        """
        found: list[Problem] = []
        for (file, _), alike in self._found.items():
            found += alike.shown
            if alike.elsewhere:
                count = len(alike.elsewhere)
                message = (
                    f"and {count} more like this, {places_told(alike.elsewhere)} "
                    f"({count + len(alike.shown)} in all)"
                )
                found.append(Problem(message, file))
        return found


def places_told(places: Sequence[int | str]) -> str:
    """Name all places: lines, records of an array (``"record 7"``), and keys of an object."""
    names = [place for place in places if isinstance(place, str)]
    records = [name for name in names if _RECORD.fullmatch(name)]
    keys = dict.fromkeys(name for name in names if not _RECORD.fullmatch(name))
    told = [
        _counted("line", [place for place in places if isinstance(place, int)]),
        _counted("record", [int(name.removeprefix("record ")) for name in records]),
        f"at {', '.join(keys)}" if keys else "",
    ]
    return ", ".join(filter(None, told))


def _counted(what: str, numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    return f"in {what}{'s' if len(set(numbers)) > 1 else ''} {number_ranges(numbers)}"


@dataclass(frozen=True)
class Record:
    """One line of a JSON lines file.

    ``id`` is known even of most broken lines, so that one mistake is not reported again wherever
    the id is used; it is empty where it cannot be told. A broken line has no ``values``.
    """

    file: Path
    log: ProblemLog
    line: int
    id: str
    values: dict[str, Any] = field(default_factory=dict)
    is_broken: bool = False

    def report(self, kind: str, message: str) -> None:
        """Note a problem of this line."""
        self.log.add(kind, message, self.file, self.line)

    def note_id(self, id_key: str, lines: dict[str, int]) -> None:
        """Remember in ``lines`` where an id was first seen, and report one that was there."""
        first = lines.setdefault(self.id, self.line) if self.id else self.line
        if first != self.line:
            self.report("duplicate", f"duplicate {id_key} {self.id!r}, first on line {first}")

    def text(self, key: str) -> str:
        """Return a field that must be a string, or empty where it is absent or null."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return value or ""
        message = f"{key!r} must be a string, got {json_type(value)}{as_string(value)}"
        self.report(f"type of {key}", message)
        return ""

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a field that must be a list of strings, or empty where it is absent or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.report(f"type of {key}", f"{key!r} must be a list of strings")
        return ()


def read_lines(path: Path, log: ProblemLog) -> list[tuple[int, str]]:
    """Return the numbered lines of a UTF-8 file, gzipped or not, without the blank ones.

    A byte order mark and CRLF line ends are removed. A line that is not UTF-8 is reported, and
    left in with replacement characters.
    """
    text = read_text(path, log)
    # Split at line feeds only: str.splitlines would also break a JSON string at U+2028.
    lines = enumerate(text.split("\n") if text else [], 1)
    return [(number, line.rstrip("\r")) for number, line in lines if line.strip()]


def read_text(path: Path, log: ProblemLog) -> str | None:
    """Return the text of a UTF-8 file, gzipped or not, or None where nothing can be read.

    A byte order mark is removed. A line that is not UTF-8 is reported, and left in with
    replacement characters.
    """
    content = _read_bytes(path, log)
    if content is None or not _is_utf_8(content, path, log):
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        lines = enumerate(content.removeprefix(_BYTE_ORDER_MARK).split(b"\n"), 1)
        return "\n".join(_decoded(line, number, path, log) for number, line in lines)


def _is_utf_8(content: bytes, path: Path, log: ProblemLog) -> bool:
    """Say whether a file's first bytes are no other encoding's, or report which."""
    message = ""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        message = "is UTF-16; save it as UTF-8"
    elif content[:4] == b"PK\x03\x04":
        message = "is a workbook or a zip archive; save it as CSV or plain text"
    if message:
        log.add("encoding", message, path)
    return not message


def read_records(path: Path, log: ProblemLog, *, id_key: str) -> Iterator[Record]:
    """Yield the objects of a JSON lines file; broken lines and missing ids are reported.

    The file is read line by line: it may be larger than what is kept of it. Of one that breaks off
    or is too large ``log.is_unread`` tells afterwards.
    """
    for number, text in _each_line(path, log):
        yield _parse(number, text, path, log, id_key)


def _each_line(path: Path, log: ProblemLog) -> Iterator[tuple[int, str]]:
    """Yield what ``read_lines`` returns."""
    with _noting(path, log), open_input(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        is_told, tell_at = size >= LARGE_FILE, 0
        unpacked = gzip.GzipFile(fileobj=stream) if path.suffix == ".gz" else stream
        number = read = 0
        while line := unpacked.readline(MOST_BYTES + 1 - read):
            number, read = number + 1, read + len(line)
            if read > MOST_BYTES:
                raise InputError(f"unpacked, {too_large(MOST_BYTES)}")
            if number == 1:
                if not _is_utf_8(line, path, log):
                    return
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if is_told and (done := stream.tell()) >= tell_at:
                log.advance(done if number > 1 else 0, size)
                tell_at = done + size // 100
            text = _decoded(line.removesuffix(b"\n"), number, path, log).rstrip("\r")
            if text.strip():
                yield number, text
        if is_told:
            log.advance(size, size)


def _read_bytes(path: Path, log: ProblemLog) -> bytes | None:
    read: list[bytes] = []
    with _noting(path, log):
        content = read_input(path)
        read.append(_unpacked(content) if path.suffix == ".gz" else content)
    return read[0] if read else None


@contextmanager
def _noting(path: Path, log: ProblemLog) -> Iterator[None]:
    """Report why a file cannot be read, or not to its end."""
    try:
        yield
    except InputError as error:
        log.add(_UNREADABLE, error.problems[0].message, path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        log.add(_CORRUPT, f"corrupt gzip file: {error}; make or download it again", path)
    except OSError as error:
        log.add(_UNREADABLE, f"cannot be read: {error.strerror or error}", path)


def _unpacked(content: bytes) -> bytes:
    # As far as a limit: a small file may unpack to more than any memory holds.
    with gzip.open(io.BytesIO(content)) as stream:
        unpacked = stream.read(MOST_BYTES + 1)
    if len(unpacked) > MOST_BYTES:
        raise InputError(f"unpacked, {too_large(MOST_BYTES)}")
    return unpacked


def _decoded(line: bytes, number: int, path: Path, log: ProblemLog) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        byte = f"byte 0x{line[error.start]:02x} at position {error.start + 1}"
        log.add("encoding", f"invalid UTF-8: {byte}; save the file as UTF-8", path, number)
        return line.decode(errors="replace")


def _parse(number: int, text: str, path: Path, log: ProblemLog, id_key: str) -> Record:
    def broken(kind: str, message: str) -> Record:
        record = Record(path, log, number, _salvage_id(text, id_key), is_broken=True)
        record.report(kind, message)
        return record

    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        if not text.lstrip().startswith("{"):
            return broken("json", f"a line must be a JSON object with {id_key!r}: {text[:60]!r}")
        # 00123 is no JSON number at all, and the bare message would not say why.
        bare = re.search(rf'"{re.escape(id_key)}"\s*:\s*([-\d][-+.\w]*)', text)
        hint = f"; {_write_as_string(id_key, bare[1])}" if bare else ""
        return broken("json", f"invalid JSON: {error.msg} at column {error.colno}{hint}")
    except (ValueError, RecursionError) as error:
        return broken("json", f"invalid JSON: {error}")
    if not isinstance(values, dict):
        return broken("json", f"a line must be a JSON object, got {json_type(values)}")
    if id_key not in values:
        return broken("id", f"{id_key!r} is missing; the keys are: {', '.join(values) or 'none'}")
    id_ = values[id_key]
    if not isinstance(id_, str):
        hint = f"; {_write_as_string(id_key, _salvage_id(text, id_key))}" if is_number(id_) else ""
        return broken("id", f"{id_key!r} must be a string, got {json_type(id_)}{hint}")
    if not id_.strip():
        return broken("id", f"{id_key!r} is empty")
    if "\\ud" in text.lower() and not is_encodable(values):
        return broken("surrogate", HALF_A_PAIR)
    return Record(path, log, number, id_, values)


def _write_as_string(id_key: str, number: str) -> str:
    return f'write it as a string: "{id_key}": "{number}"'


def _salvage_id(text: str, id_key: str) -> str:
    found = re.search(rf'"{re.escape(id_key)}"\s*:\s*(?:"([^"\\]*)"|([-+.\w]+))', text)
    return (found[1] or found[2] or "") if found else ""


def is_encodable(values: object) -> bool:
    """Return whether no string in a JSON value holds half of a surrogate pair."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


_JSON_TYPES = {dict: "an object", list: "a list", bool: "true or false", str: "a string"}


def json_type(value: object) -> str:
    """Return what JSON calls a value, for messages: ``"a list"``, ``"the number 3"``."""
    if value is None:
        return "null"
    return _JSON_TYPES.get(type(value), f"the number {value!r}")


def as_string(value: object) -> str:
    """Return a hint to write a number as a string, or nothing for other values."""
    return f'; write "{value}"' if is_number(value) else ""
