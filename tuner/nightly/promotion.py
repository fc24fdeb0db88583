"""Moving the champion: written down first, then shown in MLflow's registry."""

from __future__ import annotations

import getpass
import socket
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from pathlib import Path

from tuner.core.errors import TunerError
from tuner.core.steps import Say
from tuner.nightly.records import Champion, Promotion, Records, append
from tuner.nightly.showing import sync_study
from tuner.tracking.registry import CHAMPION, Registry


def record_promotion(
    runs_dir: Path,
    records: Records,
    to: Champion,
    *,
    before: int | None,
    who: str,
    why: str,
    night: date | None = None,
    is_shown: bool = False,
) -> Promotion:
    """Write down that the champion is another one; ``before`` is the registry's version so far.

    Raises:
        TunerError: the disk refuses.
    """
    append(
        runs_dir,
        "champion",
        records.study,
        to=asdict(to),
        before=before,
        who=who,
        why=why,
        is_shown=is_shown,
        **({} if night is None else {"night": night.isoformat()}),
    )
    promotion = Promotion(to, before, datetime.now(UTC).timestamp(), who, why, night, is_shown)
    records.promotions.append(promotion)
    return promotion


def show_promotion(
    registry: Registry, records: Records, promotion: Promotion, *, runs_dir: Path, say: Say
) -> Champion:
    """Move the registry's champion as a promotion says, with tags of who, when and why.

    What the registry cannot be told now is said, and the next night tries again.
    """
    to = promotion.to
    try:
        version = to.version or _version_of(registry, records, to, runs_dir)
        if version is None and to.source != "config":
            say(f"{registry.name} has no version of {to.called} yet: its champion is not moved")
            return to
        if version is None:
            registry.remove_alias(CHAMPION)
        else:
            registry.set_alias(CHAMPION, version)
            registry.tag(version, _tags(promotion))
    except TunerError as error:
        say(f"{error}; the registry's champion is moved by the next night")
        return to
    append(runs_dir, "shown", records.study, version=version)
    shown = replace(to, version=version)
    records.promotions[-1] = replace(promotion, to=shown, is_shown=True)
    return shown


def who_is_it() -> str:
    """Return the user and the machine, such as ``"anna@night-1"``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


def _version_of(registry: Registry, records: Records, to: Champion, runs_dir: Path) -> int | None:
    """Return the version of a champion's study, made from its journal where it is missing yet."""
    if to.study_id is None:
        return None
    found = registry.of_study(to.study_id, to.params)
    night = next((one for one in records.nights if one.study_id == to.study_id), None)
    if found is None and night is not None:
        sync_study(runs_dir / night.run_dir)
        found = registry.of_study(to.study_id, to.params)
    return None if found is None else found.version


def _tags(promotion: Promotion) -> dict[str, str]:
    when = datetime.fromtimestamp(promotion.at, tz=UTC).isoformat(timespec="seconds")
    return {
        "tuner.promoted_at": when,
        "tuner.promoted_by": promotion.who,
        "tuner.promoted_why": promotion.why,
    }
