"""Which held-out queries have decided before: every further look makes a false winner likelier."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.corpus import Query
from tuner.core.files import append_lines

LOOKS_FILE = "holdouts.jsonl"
# Every line's: a record is a JSON object with its time first.
BEGINNING = '{"time": '
# From this share of common queries on, an earlier verdict counts as a look at the same holdout. Two
# means over halves that share a tenth of their queries correlate by .1, so an earlier difference of
# two standard errors moves this one by .2 of one: chance then deploys 3.9 instead of 2.5 %.
SHARE_THAT_COUNTS = 0.1


@dataclass(frozen=True)
class EarlierLooks:
    """What is remembered of a set of held-out queries.

    Attributes:
        count: earlier verdicts on at least ``SHARE_THAT_COUNTS`` of these queries.
        seen: how many of these queries any earlier verdict was given on.
        queries: how many queries there are.
        last_study: the study of the latest verdict that shares a query, else "".
        last_date: its date, such as "2026-11-30", else "".
        unreadable: how many lines are damaged, so that there may have been more.
    """

    count: int = 0
    seen: int = 0
    queries: int = 0
    last_study: str = ""
    last_date: str = ""
    unreadable: int = 0


def count_look(
    runs_dir: Path,
    queries: Sequence[Query],
    *,
    study: str,
    dataset: str,
    fingerprint: str,
    decision: str = "",
) -> EarlierLooks:
    """Return what verdicts these held-out queries have given before, and remember this one.

    ``decision`` tells verdicts apart: the same one again, as of a finished study that is resumed,
    is no further look. "" is always a new one.
    Queries are known by their words, so that another seed, another share held out, or a new version
    of the corpus does not make them fresh. Only verdicts below the same ``runs_dir`` are known.
    """
    path = runs_dir / LOOKS_FILE
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    now = {query_digest(query.text) for query in queries}
    seen: set[str] = set()
    count = 0
    is_new = True
    last: dict[str, Any] = {}
    records, unreadable = _read(text)
    for record in records:
        if decision and record.get("decision") == decision:
            is_new = False
            continue
        common = now.intersection(record["queries"])
        if common:
            seen |= common
            count += len(common) >= SHARE_THAT_COUNTS * len(now)
            last = record
    if is_new:
        line = {
            "time": time.time(),
            "study": study,
            "dataset": dataset,
            "fingerprint": fingerprint,
            "decision": decision,
            "queries": sorted(now),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        append_lines(path, json.dumps(line, ensure_ascii=False))
    return EarlierLooks(
        count,
        sum(query_digest(query.text) in seen for query in queries),
        len(queries),
        str(last.get("study", "")),
        time.strftime("%Y-%m-%d", time.localtime(last["time"])) if last else "",
        unreadable,
    )


def _read(text: str) -> tuple[list[dict[str, Any]], int]:
    """Return what is remembered, and how many lines are damaged.

    A line that a crash cut off in the writing is not: its verdict was never given.
    """
    records: list[dict[str, Any]] = []
    damaged = 0
    for line in text.splitlines():
        try:
            record = json.loads(line)
            is_known = isinstance(record["queries"], list) and isinstance(record["time"], float)
        except (ValueError, KeyError, TypeError):
            is_known = False
        if is_known:
            records.append(record)
        elif line.strip() and not _is_torn(line):
            damaged += 1
    return records, damaged


def _is_torn(line: str) -> bool:
    """Return whether a line begins as ours do and ends before its last bracket."""
    is_ours = line.startswith(BEGINNING) or BEGINNING.startswith(line)
    return is_ours and not line.endswith("}")


def query_digest(text: str) -> str:
    """Return what a query is known by: a hash of its words, whatever its id."""
    words = " ".join(text.casefold().split())
    return hashlib.sha256(words.encode("utf-8", errors="surrogatepass")).hexdigest()[:12]
