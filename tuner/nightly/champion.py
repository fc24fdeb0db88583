"""Who the champion is: the registry's, else the last known one, else the baseline; and moving it.

A move is written down first, then shown in MLflow's registry.
"""

from __future__ import annotations

import getpass
import socket
from dataclasses import asdict, replace
from datetime import UTC, date, datetime

from tuner.config import Config
from tuner.core.errors import InputError, TunerError
from tuner.core.steps import Say
from tuner.core.study_record import StudyHeader
from tuner.nightly.records import Champion, Promotion, Records
from tuner.nightly.showing import sync_study
from tuner.tracking.registry import CHAMPION, ModelVersion, Registry, model_name

SOMEBODY = "somebody, in the registry"


def registry_of(config: Config) -> Registry | None:
    """Return the registry that a configuration names; None where nothing is tracked."""
    if config.tracking is None:
        return None
    tracking = {"model": config.tracking.model}
    header = StudyHeader("", config.study.name, 0.0, 0, (), {}, {}, config={"tracking": tracking})
    return Registry(config.tracking.uri, model_name(header))


def find_champion(
    config: Config, records: Records, registry: Registry | None, *, say: Say
) -> Champion:
    """Return what runs today, with a note wherever it is not what one would expect.

    A champion that somebody has moved in the registry is written down as moved. A promotion that
    the registry has not seen, since it was down, is shown to it now.

    Raises:
        InputError: there is none, or the registry's holds no parameters.
    """
    known = records.champion
    if registry is not None:
        try:
            shown = registry.get(CHAMPION)
        except TunerError as error:
            say(f"{error}; {_called(known)} counts as the champion")
        else:
            return _agreed(config, records, registry, shown, say=say)
    return _known(config, known)


def record_promotion(
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
    records.write(
        "champion",
        to=asdict(to),
        before=before,
        who=who,
        why=why,
        is_shown=is_shown,
        **({} if night is None else {"night": night.isoformat()}),
    )
    return records.promotions[-1]


def show_promotion(
    registry: Registry, records: Records, promotion: Promotion, *, say: Say
) -> Champion:
    """Move the registry's champion as a promotion says, with tags of who, when and why.

    What the registry cannot be told now is said, and the next night tries again.
    """
    to = promotion.to
    try:
        version = to.version or _version_of(registry, records, to)
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
    records.write("shown", version=version)
    return replace(to, version=version)


def who_is_it() -> str:
    """Return the user and the machine, such as ``"anna@night-1"``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


def _agreed(
    config: Config,
    records: Records,
    registry: Registry,
    shown: ModelVersion | None,
    *,
    say: Say,
) -> Champion:
    last = records.promotions[-1] if records.promotions else None
    version = None if shown is None else shown.version
    if last is not None and not last.is_shown and version == last.before:
        to = show_promotion(registry, records, last, say=say)
        return _known(config, to)
    if shown is None:
        if last is not None and last.to.version is not None:
            say(
                f"the registry has no champion any more; {last.to.called} of {registry.name} was "
                "the last, and counts"
            )
        return _known(config, records.champion)
    if last is None or last.to.version != version:
        return _moved(records, shown, last, say=say)
    return replace(last.to, source="registry")


def _moved(records: Records, shown: ModelVersion, last: Promotion | None, *, say: Say) -> Champion:
    if not shown.params:
        raise InputError(
            f"the champion in the registry is version {shown.version} of {shown.name}, which holds "
            "no parameters, as no study made it; choose one that a study made: "
            "tuner promote CONFIG --to VERSION"
        )
    champion = Champion(shown.params, shown.version, shown.study_id, "registry")
    before = "none was known" if last is None else f"{last.to.called} before"
    say(f"the champion in the registry is version {shown.version} now ({before})")
    record_promotion(
        records,
        champion,
        before=None if last is None else last.to.version,
        who=SOMEBODY,
        why="found as the champion in the registry",
        is_shown=True,
    )
    return champion


def _known(config: Config, known: Champion | None) -> Champion:
    if known is not None and known.source != "config":
        return replace(known, source="nights")
    if not isinstance(config.baseline, dict):
        raise InputError(
            "a night tests what it finds against what runs today: write down its parameters",
            key=("baseline",),
        )
    return Champion(dict(config.baseline))


def _called(known: Champion | None) -> str:
    return "the baseline" if known is None else f"the last known one, {known.called},"


def _version_of(registry: Registry, records: Records, to: Champion) -> int | None:
    """Return the version of a champion's study, made from its journal where it is missing yet."""
    if to.study_id is None:
        return None
    found = registry.of_study(to.study_id, to.params)
    night = next((one for one in records.nights if one.study_id == to.study_id), None)
    if found is None and night is not None:
        sync_study(records.runs_dir / night.run_dir)
        found = registry.of_study(to.study_id, to.params)
    return None if found is None else found.version


def _tags(promotion: Promotion) -> dict[str, str]:
    when = datetime.fromtimestamp(promotion.at, tz=UTC).isoformat(timespec="seconds")
    return {
        "tuner.promoted_at": when,
        "tuner.promoted_by": promotion.who,
        "tuner.promoted_why": promotion.why,
    }
