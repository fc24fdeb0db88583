"""What a tracker reads of a study's journal: the trials that were told, and told anew."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tuner.core.trial import Trial


def journal_trials(journal: Path) -> list[Trial]:
    """Read the told trials, each with its last result; lines that are torn are passed over."""
    told, _ = _read(journal)
    return told


def superseded(journal: Path) -> dict[str, list[float]]:
    """Return, by arm, when results were told that a later one took the place of, in order.

    They count in an arm's curve, whose steps are the order of telling.
    """
    _, times = _read(journal)
    return times


def _read(journal: Path) -> tuple[list[Trial], dict[str, list[float]]]:
    told: dict[int, Trial] = {}
    times: dict[str, list[float]] = defaultdict(list)
    for record in _records(journal):
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            if record["event"] == "told":
                trial = Trial.from_record(record)
                told[trial.number] = trial
            elif record.get("kind") == "retried":
                for number in [number for number in record["trials"] if number in told]:
                    old = told.pop(number)
                    times[old.arm].append(old.told_at or old.asked_at)
    return list(told.values()), {arm: sorted(found) for arm, found in times.items()}


def _records(journal: Path) -> Iterator[Mapping[str, Any]]:
    with suppress(OSError), journal.open(encoding="utf-8") as lines:
        for line in lines:
            with suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, Mapping):
                    yield record
