"""Read query logs: CSV or JSON lines with a query and, where known, its time, user and clicks."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError, did_you_mean
from tuner.core.words import normalise
from tuner.datasets.lines import ProblemLog, json_type, read_text
from tuner.datasets.tables import csv_rows, json_rows

# What other systems call the columns, the most specific name first.
COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "query": (
        "query", "query_text", "search_query", "search_term", "search_terms", "keyword",
        "keywords", "question", "text", "q", "查询", "查询词", "搜索词", "问题",
    ),
    "time": (
        "time", "timestamp", "query_time", "datetime", "created_at", "date", "ts", "时间", "日期",
    ),
    "user": (
        "user", "user_id", "userid", "uid", "anonid", "client_id", "session", "session_id", "用户",
    ),
    "clicked": (
        "clicked", "clicked_ids", "clicked_documents", "clicked_docs", "clicks", "document_id",
        "doc_id", "点击", "文档",
    ),
}  # fmt: skip

_PAIR = re.compile(r"\s*[;|]\s*")
_DELIMITERS = ",\t;|"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of a log; ``text`` is normalised, what the log does not tell is empty."""

    text: str
    time: datetime | None = None
    user: str = ""
    clicked: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryLog:
    """A log in its own order, and the column that each role was read from.

    ``blank`` counts the entries without a query, ``wordless`` those of marks alone, such as ???.
    """

    entries: tuple[LogEntry, ...]
    columns: Mapping[str, str]
    blank: int = 0
    wordless: int = 0


def read_query_log(path: str | Path, *, columns: Mapping[str, str] | None = None) -> QueryLog:
    """Read a log, gzipped or not; JSON lines where it begins with ``{``, else CSV with a header.

    ``columns`` names the column of a role (query, time, user, clicked) where its usual names do
    not fit. Several clicked ids stand in a JSON list or are separated by ``;`` or ``|``. Times are
    ISO 8601, or seconds or milliseconds since 1970; without a zone they are UTC. Entries without a
    query, or with one of punctuation alone, are counted and left out; signs such as emoji are words
    in the language of those who type them.

    Raises:
        InputError: everything that is wrong, with file and line, all at once.
    """
    file = Path(path)
    log = ProblemLog()
    text = read_text(file, log) or ""
    is_json = text.lstrip().startswith("{")
    rows = list(json_rows(text, file, log) if is_json else _csv_rows(text, file, log))
    if not rows and not log.mentions(file):
        log.add("none", "holds no query", file)
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    chosen = _choose_columns(names, columns or {}, file, log) if rows else {}
    if "query" not in chosen:
        raise InputError(problems=log.problems())
    entries = [_entry(row, chosen, line, file, log) for line, row in rows]
    log.refuse()
    written = [entry for entry in entries if entry.text]
    kept = tuple(entry for entry in written if any(map(_says_something, entry.text)))
    if not kept:
        how = "holds nothing but punctuation" if written else "is blank throughout"
        raise InputError(f"holds no query: column {chosen['query']!r} {how}", file=str(path))
    return QueryLog(kept, chosen, len(entries) - len(written), len(written) - len(kept))


def _says_something(character: str) -> bool:
    """Say whether a character is a letter, a digit, a mark of one, or a sign such as 🍕 or €."""
    # By Unicode's categories: L(etter), M(ark), N(umber), S(ymbol); not P(unctuation).
    category = unicodedata.category(character)
    return category[0] in "LMN" or category in ("So", "Sc")


def since_date(log: QueryLog, date: str) -> tuple[LogEntry, ...]:
    """Return the entries from a date or time on; those without a time are left out.

    Raises:
        InputError: the log has no times, or the date cannot be read.
    """
    if "time" not in log.columns:
        raise InputError("no column of the log is known to hold times; name it: --column time=NAME")
    start = _parse_time(date)
    if start is None:
        raise InputError(f"{date!r} is no date; write one such as 2026-01-31")
    return tuple(entry for entry in log.entries if entry.time is not None and entry.time >= start)


def _csv_rows(text: str, file: Path, log: ProblemLog) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = csv_rows(text, file, log, delimiters=_DELIMITERS, is_strict=False)
    _, header = next(rows, (1, []))
    return ((line, dict(zip(header, fields, strict=True))) for line, fields in rows)


def _choose_columns(
    names: list[str], given: Mapping[str, str], file: Path, log: ProblemLog
) -> dict[str, str]:
    """Return role -> column; report a role or column that does not exist, or a missing query."""
    usual = {re.sub(r"[\s-]+", "_", name.strip().casefold()): name for name in reversed(names)}
    chosen: dict[str, str] = {}
    for role, known in COLUMN_NAMES.items():
        found = next((usual[name] for name in known if name in usual), None)
        if role not in given and found is not None and found not in given.values():
            chosen[role] = found
    for role, name in given.items():
        if role not in COLUMN_NAMES:
            log.add("role", f"no role {role!r}{did_you_mean(role, COLUMN_NAMES)}", file)
        elif name not in names:
            log.add("column", f"no column {name!r} for {role}{did_you_mean(name, names)}", file)
        else:
            chosen[role] = name
    if "query" not in given and chosen.get("query") == "text" and {"_id", "title"} <= set(names):
        message = "holds documents (_id, title, text); if it is a log, write --column query=text"
        log.add("documents", message, file)
    if "query" not in chosen and "query" not in given:
        message = (
            f"no column of queries among {', '.join(map(repr, names))}; "
            "say which one it is: --column query=NAME"
        )
        log.add("column", message, file)
    return chosen


def _entry(
    row: Mapping[str, Any], columns: Mapping[str, str], line: int, file: Path, log: ProblemLog
) -> LogEntry:
    values = {role: row.get(name) for role, name in columns.items()}
    text = values["query"]
    if text is not None and not isinstance(text, str):
        message = f"{columns['query']!r} must be a string, got {json_type(text)}"
        log.add("query", message, file, line)
    time = None
    written = values.get("time")
    if written is not None and str(written).strip():
        time = _parse_time(str(written).strip())
        if time is None:
            message = f"{columns['time']!r} is no time: {written!r}; write 2026-01-31T18:30:00"
            log.add("time", message, file, line)
    user = values.get("user")
    return LogEntry(
        normalise(text) if isinstance(text, str) else "",
        time,
        "" if user is None else str(user).strip(),
        _clicked(values.get("clicked"), columns.get("clicked", ""), line, file, log),
    )


def _parse_time(written: str) -> datetime | None:
    try:
        if re.fullmatch(r"\d{9,13}(\.\d+)?", written):
            seconds = float(written)
            return datetime.fromtimestamp(seconds / 1000 if seconds >= 1e11 else seconds, UTC)
        time = datetime.fromisoformat(written)
    except (ValueError, OverflowError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _clicked(value: object, name: str, line: int, file: Path, log: ProblemLog) -> tuple[str, ...]:
    """Return clicked ids from a JSON list, in place or as text, or from text with separators."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            log.add("clicked", f"{name!r} is no JSON list: {value!r}", file, line)
            return ()
    if isinstance(value, str):
        return tuple(dict.fromkeys(part for part in _PAIR.split(value.strip()) if part))
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(dict.fromkeys(value))
    message = f"{name!r} must be a list of document ids as strings, got {json_type(value)}"
    log.add("clicked", message, file, line)
    return ()
