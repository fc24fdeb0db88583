"""Read the records of a JSON array or of JSON lines, each with its place for messages."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from tuner.core.errors import Problem
from tuner.datasets.lines import (
    HALF_A_PAIR,
    ProblemLog,
    as_string,
    is_encodable,
    json_type,
    read_text,
)

# A record of these sets takes a few thousand characters, rarely more than a hundred thousand.
_HEAD_BYTES = 1 << 18
_KEY = re.compile(r'(?<!\\)"([A-Za-z_]\w*)"\s*:')


@dataclass(frozen=True)
class Item:
    """One record. ``number`` counts from 1; ``line`` is None in a JSON array, or an object."""

    values: dict[str, Any]
    file: Path
    log: ProblemLog
    number: int
    line: int | None = None

    @property
    def place(self) -> str:
        """Where the record is, for messages about another one."""
        return f"record {self.number}" if self.line is None else f"line {self.line}"

    def report(self, kind: str, message: str, key: str = "") -> None:
        """Note a problem of this record, or of the value at ``key``, such as ``context[2]``."""
        place = () if self.line is not None else (self.place,)
        self.log.add(kind, message, self.file, self.line, key=(*place, *((key,) if key else ())))

    def get(self, key: str, kind: type | tuple[type, ...], expected: str) -> Any:
        """Return a list or object that must be there, or None after reporting that it is not.

        It may be a string of JSON, too.
        """
        if key not in self.values:
            self._report_missing(key)
            return None
        value = self.values[key]
        # Some mirrors of 2WikiMultihopQA hold their lists as strings of JSON.
        parsed = _parsed(value) if isinstance(value, str) else value
        if isinstance(parsed, kind) and not isinstance(parsed, bool):
            return parsed
        self.report(f"type of {key}", f"must be {expected}, got {json_type(value)}", key)
        return None

    def text(self, key: str, *, is_required: bool = False) -> str:
        """Return a string, or empty where it is absent or null; a required one may not be."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            message = f"must be a string, got {json_type(value)}{as_string(value)}"
            self.report(f"type of {key}", message, key)
        elif is_required and key not in self.values:
            self._report_missing(key)
        elif is_required and not (value or "").strip():
            self.report("empty", "must not be empty", key)
        return value if isinstance(value, str) else ""

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, or empty where it is absent or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if is_texts(value):
            return tuple(value)
        self.report(f"type of {key}", "must be a list of strings", key)
        return ()

    def id(self, *keys: str) -> str:
        """Return the first of the keys that is there, as an id; empty where there is none."""
        for key in keys:
            if self.values.get(key) is not None:
                return self.text(key, is_required=True)
        return ""

    def _report_missing(self, key: str) -> None:
        there = ", ".join(self.values) or "none"
        self.report(f"missing {key}", f"{key!r} is missing; the keys are: {there}")


def is_texts(value: object) -> TypeGuard[list[str]]:
    """Return whether a JSON value is a list of strings."""
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def read_items(file: Path, log: ProblemLog, *, list_key: str = "") -> list[Item]:
    """Return the objects of a JSON array or of a JSON lines file; what is broken is reported.

    With a ``list_key``, the file is one object, and the array is what it holds under that key. A
    bare NaN or Infinity is accepted as a number, as Python writes it.
    """
    text = read_text(file, log)
    if text is None:
        return []
    rows: list[tuple[int | None, Any]]
    if list_key or text.lstrip().startswith("["):
        rows = [(None, value) for value in _array(text, file, log, list_key)]
    elif text.lstrip().startswith("{") and _is_one_object(text):
        message = "is one JSON object; expected an array of records, or one record a line"
        log.add("json", message, file)
        return []
    else:
        lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        rows = [(n, value) for n, line in lines for value in _parse(line, file, log, n)]
    if not rows and not log.mentions(file):
        log.add("none", "holds no record", file)
    items = [
        Item(value if isinstance(value, dict) else {}, file, log, number, line)
        for number, (line, value) in enumerate(rows, 1)
    ]
    has_surrogates = "\\ud" in text.lower()
    return [
        item
        for item, (_, value) in zip(items, rows, strict=True)
        if _is_object(item, value) and not (has_surrogates and _has_half_a_pair(item))
    ]


def json_problems(path: Path) -> list[Problem]:
    """Return why a file that begins like JSON is neither one JSON value nor JSON lines."""
    if peek(path).lstrip()[:1] not in ("{", "["):
        return []
    log = ProblemLog()
    text = read_text(path, log) or ""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if _parse(text, path, log, None):
        return log.problems()  # not empty where the text is not UTF-8
    in_lines = ProblemLog()
    whole = [n for n, line in lines if _parse(line, path, in_lines, n)]
    if whole and text.lstrip().startswith("{"):
        return in_lines.problems()
    return log.problems()


def peek_keys(path: Path) -> frozenset[str]:
    """Return the keys in the first record of a JSON file, nested ones too, from its head alone.

    Empty for a folder, and for what does not begin like a JSON array or object.
    """
    text = peek(path).lstrip()
    start = re.match(r"(\[\s*)?(?=\{)", text)
    if not start:
        return frozenset()
    try:
        _, end = json.JSONDecoder().raw_decode(text, start.end())
    except (ValueError, RecursionError):
        end = len(text)  # broken, or longer than the head: its keys so far tell enough
    return frozenset(_KEY.findall(text, 0, end))


def peek(path: Path) -> str:
    """Return the first 256 KiB of a text file, gzipped or not; empty where that is impossible."""
    if not path.is_file():
        return ""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return stream.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace")
    except (OSError, EOFError, zlib.error):
        return ""


def _array(text: str, file: Path, log: ProblemLog, list_key: str) -> list[Any]:
    for value in _parse(text, file, log, None):
        array = value
        expected = "an array of records"
        if list_key:
            array = value.get(list_key) if isinstance(value, dict) else None
            expected = f"an object with a list of records {list_key!r}"
        if isinstance(array, list):
            return array
        log.add("json", f"must be {expected}", file)
    return []


def _parse(text: str, file: Path, log: ProblemLog, line: int | None) -> list[Any]:
    """Return the one value, or nothing after reporting why."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as error:
        message = f"invalid JSON: {error.msg} at column {error.colno}"
        log.add("json", message, file, error.lineno if line is None else line)
    except (ValueError, RecursionError) as error:
        log.add("json", f"invalid JSON: {error}", file, line)
    return []


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _is_one_object(text: str) -> bool:
    first_line = text.lstrip().split("\n", 1)[0]
    return isinstance(_parsed(first_line), str) and isinstance(_parsed(text), dict)


def _is_object(item: Item, value: object) -> bool:
    if isinstance(value, dict):
        return True
    item.report("json", f"a record must be a JSON object, got {json_type(value)}")
    return False


def _has_half_a_pair(item: Item) -> bool:
    if is_encodable(item.values):
        return False
    item.report("surrogate", HALF_A_PAIR)
    return True
