"""Which held-out queries were looked at before: every look makes a false winner likelier."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.files import append_lines
from tuner.core.json_text import read_as, text_digest
from tuner.core.study_record import StudyHeader
from tuner.datasets import Dataset, split_queries

LOOKS_FILE = "holdouts.jsonl"
# Every line's: a record is a JSON object with its time first.
BEGINNING = '{"time": '
# From this share of common queries on, an earlier one counts as a look at the same holdout. Two
# means over halves that share a tenth of their queries correlate by .1, so an earlier difference of
# two standard errors moves this one by .2 of one: chance then deploys 3.9 instead of 2.5 %.
SHARE_THAT_COUNTS = 0.1


@dataclass(frozen=True)
class EarlierLooks:
    """What is remembered of a set of held-out queries.

    Attributes:
        count: earlier looks at ``SHARE_THAT_COUNTS`` of these queries or more, in which other
            configurations took part; smaller ones of one configuration are one look together.
        seen: how many of these queries any of them asked.
        queries: how many queries there are.
        last_study: the study of the latest look that counts, or, where none does, of the latest
            that shares a query, else "".
        last_date: its date, such as "2026-11-30", else "".
        unreadable: how many lines are damaged, so that there may have been more.
        is_new: whether this look told anything that none before did, so that it was remembered.
        unwritten: why it could not be written down, else "".
        last_seen: how many of these queries that latest look asked; 0 where that is not known.
    """

    count: int = 0
    seen: int = 0
    queries: int = 0
    last_study: str = ""
    last_date: str = ""
    unreadable: int = 0
    is_new: bool = True
    unwritten: str = ""
    last_seen: int = 0

    def told(self, runs_dir: Path) -> str:
        """Return what became of this look, for people."""
        path = runs_dir / LOOKS_FILE
        some = f"the {self.queries} held-out queries"
        if self.queries == 1:
            some = "the held-out query"
        if self.unwritten:
            return f"this look at {some} could not be remembered: {path}: {self.unwritten}"
        if not self.is_new:
            they = "it was" if self.queries == 1 else "they were"
            return f"no further look at {some}: {they} asked the same before"
        return f"remembered as a look at {some}, in {path}"

    def remarks(self, runs_dir: Path) -> list[str]:
        """Return what became of this look, and how often others had looked before it."""
        if not (self.count and self.is_new):
            return [self.told(runs_dir)]
        they = "it" if self.queries == 1 else "they"
        before = f"{they} had been looked at {times(self.count)} before for other configurations"
        why = f"last on {self.last_date}: each look makes a false winner likelier"
        return [self.told(runs_dir), f"{before}, {why}"]


def times(number: int) -> str:
    """Return how often: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def count_look(
    runs_dir: Path,
    queries: Sequence[Query],
    *,
    study: str,
    dataset: str,
    fingerprint: str,
    configurations: Collection[str] = (),
) -> EarlierLooks:
    """Return what looks at these held-out queries there were before, and remember this one.

    ``configurations`` are the keys of what is measured, such as a winner's and a baseline's. Where
    all of them met these queries together before, at once or one by one, this look adds nothing and
    is not remembered; an earlier one of some of them alone, at the same queries, adds nothing to
    this one and is not counted. Without any it is always a new one.
    Queries are known by their words, so that another seed, another share held out, or a new version
    of the corpus does not make them fresh. Only looks below the same ``runs_dir`` are known.
    """
    path = runs_dir / LOOKS_FILE
    text, unwritten = _text(path)
    now = {query_digest(query.text) for query in queries}
    seen: set[str] = set()
    count = 0
    last: dict[str, Any] = {}
    is_last_counted = False
    records, unreadable = _read(text)
    asked = set(configurations)
    met: set[str] = set()  # queries that these configurations have met together
    few: list[set[str]] = []  # what looks at fewer than count had in common with these
    of_few: dict[str, list[int]] = {}  # by each other configuration, which of those it took part in
    for record in records:
        then = set(record["configurations"])
        if asked and asked <= then:
            met.update(record["queries"])
            if now <= set(record["queries"]):
                continue
        if then and then <= asked and now == set(record["queries"]):
            continue
        common = now.intersection(record["queries"])
        if common:
            seen |= common
            is_counted = len(common) >= SHARE_THAT_COUNTS * len(now)
            count += is_counted
            if not is_counted:
                for name in then - asked:
                    of_few.setdefault(name, []).append(len(few))
                few.append(common)
            if is_counted or not is_last_counted:
                last, is_last_counted = record, is_counted
    is_new = not (asked and now <= met)
    # Those that were always asked beside each other are one look.
    for rows in {tuple(rows) for rows in of_few.values()}:
        count += len(set().union(*(few[row] for row in rows))) >= SHARE_THAT_COUNTS * len(now)
    if is_new and not unwritten:
        line = {
            "time": time.time(),
            "study": study,
            "dataset": dataset,
            "fingerprint": fingerprint,
            "configurations": sorted(asked),
            "queries": sorted(now),
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            append_lines(path, json.dumps(line, ensure_ascii=False))
        except OSError as error:  # what was measured must not be lost for it
            unwritten = error.strerror or str(error)
    digests = [query_digest(query.text) for query in queries]
    last_asked = set(last.get("queries", ()))
    return EarlierLooks(
        count,
        sum(digest in seen for digest in digests),
        len(queries),
        str(last.get("study", "")),
        time.strftime("%Y-%m-%d", time.localtime(last["time"])) if last else "",
        unreadable,
        is_new,
        unwritten,
        sum(digest in last_asked for digest in digests),
    )


def _text(path: Path) -> tuple[str, str]:
    """Return what is written, and why it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace"), ""
    except FileNotFoundError:
        return "", ""
    except OSError as error:
        return "", error.strerror or str(error)


def _read(text: str) -> tuple[list[dict[str, Any]], int]:
    """Return what is remembered, and how many lines are damaged.

    A line that a crash cut off in the writing is not: its verdict was never given.
    """
    records: list[dict[str, Any]] = []
    damaged = 0
    # Not by splitlines, which ends a line within a name that holds what Unicode takes for one.
    for line in text.split("\n"):
        try:
            record = _checked(json.loads(line))
        except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
            record = None
        if record is not None:
            records.append(record)
        elif line.strip() and not _is_torn(line):
            damaged += 1
    return records, damaged


def _checked(record: Any) -> dict[str, Any] | None:
    """Return a line's record with its parts of the right types; None where they are not."""
    when, queries = record["time"], record["queries"]
    configurations = record.get("configurations", [])
    is_known = (
        isinstance(when, float)
        and math.isfinite(when)
        and all(isinstance(part, list) for part in (queries, configurations))
        and all(isinstance(one, str) for one in [*queries, *configurations])
    )
    time.localtime(when)  # refuses what is no time
    return {**record, "configurations": configurations} if is_known else None


def _is_torn(line: str) -> bool:
    """Return whether a line begins as ours do and ends before its last bracket."""
    is_ours = line.startswith(BEGINNING) or BEGINNING.startswith(line)
    return is_ours and not line.endswith("}")


def query_digest(text: str) -> str:
    """Return what a query is known by: a hash of its words, whatever its id."""
    return text_digest(" ".join(text.casefold().split()), 12)


@dataclass(frozen=True)
class TunedOn:
    """The data and the split of the study that chose a configuration.

    ``fingerprint`` is the data set's; with the other fields it tells the tune queries.
    """

    study: str
    dataset: str
    fingerprint: str
    seed: int
    holdout: float
    stratify_by: tuple[str, ...]

    @classmethod
    def of(cls, header: StudyHeader) -> TunedOn:
        """Return what a study tunes on."""
        split = header.config["dataset"]["split"]
        return cls(
            header.name,
            str(header.dataset["name"]),
            str(header.dataset["fingerprint"]),
            header.seed,
            float(split["holdout"]),
            tuple(split["stratify_by"]),
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any] | None) -> TunedOn | None:
        """Read it back from ``best.yaml``; None where it is not there or not whole."""
        try:
            return None if record is None else read_as(cls, record)
        except (TypeError, ValueError):
            return None

    def to_record(self) -> dict[str, Any]:
        """Return it as plain data, the content of ``tuned_on`` in ``best.yaml``."""
        return {**asdict(self), "stratify_by": list(self.stratify_by)}

    def remark(
        self, called: str, dataset: Dataset, queries: Sequence[Query], *, which: str = "these"
    ) -> str | None:
        """Say how many of these queries the configuration was tuned on; None where it was on none.

        ``which`` says of them which they are, such as "the held-out".
        Another data set's queries are fresh. Another version of the same one cannot be told.
        """
        if self.fingerprint != dataset.fingerprint:
            return (
                f"{called} was tuned on another version of {dataset.name} (study {self.study}): "
                f"whether {which} queries were among those cannot be told."
                if self.dataset == dataset.name
                else None
            )
        try:
            tune_ids, _ = split_queries(
                dataset.queries,
                holdout=self.holdout,
                stratify_by=self.stratify_by,
                seed=self.seed,
            )
        except InputError:  # a hand-edited file describes no split
            return None
        seen = len({query.id for query in queries}.intersection(tune_ids))
        if seen == 0:
            return None
        some = "all" if seen == len(queries) else f"{seen} of"
        were = "was" if seen == 1 else "were"
        return (
            f"{some} {which} {len(queries)} queries {were} among those that {called} was tuned on "
            f"(study {self.study}), which flatters it."
        )
