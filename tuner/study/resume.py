"""Whether a journal belongs to the study that is about to resume it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tuner.core.errors import InputError, Problem
from tuner.core.shown import shortened
from tuner.core.study_record import StudyHeader

# What must be equal. A fingerprint says more than the mapping it was made of, so both are compared.
_SUBJECTS = ("seed", "ahead", "arms", "space", "objective", "baseline", "fingerprints")
_LONGEST_VALUE = 120


def check_same_study(stored: StudyHeader, current: StudyHeader, *, file: str) -> dict[str, Any]:
    """Compare two headers; return the versions that differ, as ``{package: [then, now]}``.

    Raises:
        InputError: they are different studies; one problem for every difference.
    """
    # Both through JSON: a tuple that was configured comes back from the journal as a list.
    then, now = (json.loads(json.dumps(header.to_record())) for header in (stored, current))
    differences = [
        f"{subject} was {_short(before)} and is {_short(after)} now"
        for name in _SUBJECTS
        for subject, before, after in _differences(name, then[name], now[name])
    ]
    if differences:
        advice = "run it as a new study, or restore what it was started with"
        first = f"this is another study; {advice}"
        problems = [Problem(text, file=file) for text in (first, *differences)]
        raise InputError(problems=problems)
    return {
        package: [before, after]
        for package, before, after in _differences("", then["versions"], now["versions"])
    }


def _differences(name: str, then: Any, now: Any) -> list[tuple[str, Any, Any]]:
    """Name each differing leaf of two JSON values by its path."""
    if then == now:
        return []
    if not (isinstance(then, Mapping) and isinstance(now, Mapping)):
        return [(name, then, now)]
    found = []
    for key in dict.fromkeys((*then, *now)):
        path = f"{name}.{key}" if name else str(key)
        found += _differences(path, then.get(key), now.get(key))
    return found


def _short(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
