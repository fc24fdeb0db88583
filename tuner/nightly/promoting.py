"""A person moves the champion: approval of a challenger, or a rollback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

from tuner.config import Config
from tuner.core.errors import InputError, TunerError
from tuner.nightly.champion import registry_of
from tuner.nightly.promotion import record_promotion, show_promotion, who_is_it
from tuner.nightly.records import Champion, Night, Promotion, Records, read_records
from tuner.tracking.registry import CHALLENGER, CHAMPION, Registry

Say = Callable[[str], None]

BASELINE = "baseline"


def promote(config: Config, target: str, *, why: str, say: Say) -> Promotion:
    """Make a version, a night's challenger or the baseline the champion, and write that down.

    ``target`` is a version's number, ``"challenger"`` (what the last night found), the date of a
    night, or ``"baseline"``.

    Raises:
        InputError: there is no such thing, or it is the champion already.
        TunerError: a version is asked for, and the registry cannot be reached.
    """
    runs_dir, study = Path(config.study.runs_dir), config.study.name
    records = read_records(runs_dir, study)
    registry = registry_of(config)
    to = _target(config, records, registry, target)
    before = _shown(registry, records, say)
    now = records.champion
    is_known = now is not None and (now.version, now.study_id) == (to.version, to.study_id)
    if is_known and before == to.version:
        raise InputError(f"{to.called} is the champion already")
    promotion = record_promotion(
        runs_dir,
        records,
        to,
        before=before,
        who=who_is_it(),
        why=why or f"tuner promote --to {target}",
    )
    if registry is None:
        return promotion
    shown = show_promotion(registry, records, promotion, runs_dir=runs_dir, say=say)
    return replace(promotion, to=shown)


def _target(config: Config, records: Records, registry: Registry | None, target: str) -> Champion:
    if target == BASELINE:
        if not isinstance(config.baseline, dict):
            raise InputError("there is no baseline to go back to", key=("baseline",))
        return Champion(dict(config.baseline))
    if target == CHALLENGER:
        found = [night for night in records.nights if _has_challenger(night)]
        if not found:
            raise InputError("no night has found a challenger yet")
        return _of_night(found[-1])
    if target.isdecimal():
        return _of_version(registry, int(target))
    try:
        day = date.fromisoformat(target)
    except ValueError as error:
        message = "write a version's number, challenger, the date of a night, or baseline"
        raise InputError(f"--to {target}: {message}") from error
    night = records.of(day)
    if night is None or not _has_challenger(night):
        raise InputError(f"--to {target}: no night of that date has found a challenger")
    return _of_night(night)


def _has_challenger(night: Night) -> bool:
    return bool((night.summary or {}).get("challenger"))


def _of_night(night: Night) -> Champion:
    challenger = (night.summary or {})["challenger"]
    return Champion(
        dict(challenger["params"]), challenger["version"], challenger["study_id"], "nights"
    )


def _of_version(registry: Registry | None, number: int) -> Champion:
    if registry is None:
        raise InputError(
            f"--to {number}: without `tracking:` there is no registry and no version; name the "
            "date of a night"
        )
    version = registry.get(number)
    if version is None:
        known = ", ".join(str(one.version) for one in registry.versions()) or "none"
        raise InputError(f"--to {number}: {registry.name} has no such version; it has {known}")
    if not version.params:
        raise InputError(f"--to {number}: this version holds no parameters, as no study made it")
    return Champion(version.params, version.version, version.study_id, "registry")


def _shown(registry: Registry | None, records: Records, say: Say) -> int | None:
    """Return the registry's champion; the last that is known where it is out of reach."""
    known = records.shown_version
    if registry is None:
        return known
    try:
        found = registry.get(CHAMPION)
    except TunerError as error:
        say(str(error))
        return known
    return None if found is None else found.version
