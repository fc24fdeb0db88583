"""Qualities of answers that exist already: JSON lines of query, configuration and quality."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.checks import is_number, is_whole
from tuner.core.errors import InputError, did_you_mean
from tuner.core.shown import counted
from tuner.datasets.lines import ProblemLog, read_text
from tuner.datasets.tables import json_rows

_ID_KEYS = ("query_id", "id", "_id")
_EXAMPLE = '{"query_id": "q1", "trial": 7, "quality": 0.8}'

# A trial by its number; ``baseline``, ``winner``, or parameters as JSON.
Name = str | int


@dataclass(frozen=True)
class Qualities:
    """What files hold: by configuration and query id, for the same queries of each.

    ``query_ids`` are in the order of the data set; ``left_out`` counts its other queries.
    """

    by_configuration: Mapping[Name, Mapping[str, float]]
    query_ids: tuple[str, ...]
    left_out: int

    @property
    def names(self) -> tuple[Name, ...]:
        """Return the configurations as the files name them, in their order."""
        return tuple(self.by_configuration)


def read_qualities(
    paths: Sequence[Path], query_ids: Sequence[str], other_ids: Collection[str]
) -> Qualities:
    """Read files of qualities of the queries ``query_ids``, which are those to tune on.

    ``other_ids`` are those of the data set that are held out. Queries that no line names are left
    out; one that has a quality for some configurations has to have one for all.

    Raises:
        InputError: every line that is wrong, and what is missing.
    """
    log = ProblemLog()
    found: dict[Name, dict[str, float]] = {}
    places: dict[str, tuple[Path, int]] = {}
    known = dict.fromkeys(query_ids)
    for path in paths:
        text = read_text(path.expanduser(), log) or ""
        for line, record in json_rows(text, path, log):
            row = _row(record, path, line, log)
            if row is None:
                continue
            name, query, value = row
            of = found.setdefault(name, {})
            if query in other_ids:
                message = f"query {query!r} is held out for the verdict; leave it out of this file"
                log.add("held out", message, path, line)
            elif query not in known:
                hint = did_you_mean(query, known) if len(known) < 1000 else ""
                log.add("query", f"unknown query {query!r}{hint}", path, line)
            elif query in of:
                message = f"query {query!r} has a quality for {_shown(name)} already"
                log.add("twice", message, path, line)
            else:
                of[query] = value
                places.setdefault(query, (path, line))
        if not text.strip() and not log.mentions(path):
            log.add("empty", f"holds no line; write lines such as {_EXAMPLE}", path)
    for query, (path, line) in places.items():
        lacking = [name for name, of in found.items() if query not in of]
        if lacking:
            message = (
                f"query {query!r} has no quality for {', '.join(map(_shown, lacking[:3]))}"
                f"{' and others' if len(lacking) > 3 else ''}; give one for each configuration, or "
                "leave the query out"
            )
            log.add("missing", message, path, line)
    log.refuse()
    if len(found) < 2:
        raise InputError(
            f"{counted(len(found), 'configuration')} in {', '.join(map(str, paths))}: a "
            "correlation needs at least 2, better 8"
        )
    ids = tuple(id_ for id_ in query_ids if id_ in places)
    return Qualities(found, ids, len(query_ids) - len(ids))


def _row(
    record: Mapping[str, Any], path: Path, line: int, log: ProblemLog
) -> tuple[Name, str, float] | None:
    """Return what a line holds, or report what is wrong with it."""
    query = next((str(record[key]) for key in _ID_KEYS if record.get(key) is not None), None)
    given = record.get("trial", record.get("configuration"))
    if query is None or given is None or "quality" not in record:
        there = ", ".join(record) or "none"
        message = (
            "needs query_id, quality, and trial or configuration; the keys are: "
            f"{there}. Write for example {_EXAMPLE}"
        )
        log.add("keys", message, path, line)
        return None
    name: Name
    if isinstance(given, dict):
        name = json.dumps(given, sort_keys=True)
    elif isinstance(given, str) or is_whole(given):
        name = given
    else:
        message = f"{given!r} is no configuration: write a trial's number, a name, or parameters"
        log.add("configuration", message, path, line)
        return None
    value = record["quality"]
    value = float(value) if isinstance(value, bool) else value
    if not is_number(value) or not math.isfinite(value):
        message = f"quality {value!r} is no finite number; leave out a query that has none"
        log.add("quality", message, path, line)
        return None
    return name, query, float(value)


def _shown(name: Name) -> str:
    return f"trial {name}" if isinstance(name, int) else f"{name!r:.60}"
