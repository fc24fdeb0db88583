"""Who the champion is tonight: the registry's, else the last known one, else the baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tuner.config import Config
from tuner.core.errors import InputError, TunerError
from tuner.core.steps import Say
from tuner.core.study_record import StudyHeader
from tuner.nightly.promotion import record_promotion, show_promotion
from tuner.nightly.records import Champion, Promotion, Records
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
    config: Config, records: Records, registry: Registry | None, *, runs_dir: Path, say: Say
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
            return _agreed(config, records, registry, shown, runs_dir=runs_dir, say=say)
    return _known(config, known)


def _agreed(
    config: Config,
    records: Records,
    registry: Registry,
    shown: ModelVersion | None,
    *,
    runs_dir: Path,
    say: Say,
) -> Champion:
    last = records.promotions[-1] if records.promotions else None
    version = None if shown is None else shown.version
    if last is not None and not last.is_shown and version == last.before:
        to = show_promotion(registry, records, last, runs_dir=runs_dir, say=say)
        return _known(config, to)
    if shown is None:
        if last is not None and last.to.version is not None:
            say(
                f"the registry has no champion any more; {last.to.called} of {registry.name} was "
                "the last, and counts"
            )
        return _known(config, records.champion)
    if last is None or last.to.version != version:
        return _moved(records, shown, last, runs_dir=runs_dir, say=say)
    return replace(last.to, source="registry")


def _moved(
    records: Records, shown: ModelVersion, last: Promotion | None, *, runs_dir: Path, say: Say
) -> Champion:
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
        runs_dir,
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
