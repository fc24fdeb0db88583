"""Going on: more trials for the arms of a study, or a further arm, also where it has ended."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from tuner.config import Config
from tuner.config.budget import MOST_MINUTES, MOST_TRIALS
from tuner.config.model import BackendSection
from tuner.core import registry
from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.files import write_whole
from tuner.core.journal import AMENDED, JournalContent
from tuner.core.run_files import CONFIG_FILE
from tuner.core.shown import counted
from tuner.core.spent import least_amount
from tuner.core.steps import Say
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.run.accounts import unopened_budget
from tuner.run.assembly import Assembly
from tuner.study.study import Study

_MINUTES = re.compile(r"(?P<more>\+?)(?P<minutes>[0-9]{1,7}(?:\.[0-9]{1,6})?)")
_FORM = re.compile(r"(?:(?P<arm>[^=]+)=)?(?P<more>\+?)(?P<trials>[0-9]{1,7})")


@dataclass(frozen=True)
class Wish:
    """Trials that an arm is to be given: so many more, or so many in all. ``arm`` "": every arm."""

    arm: str
    trials: int
    is_more: bool

    @classmethod
    def parse(cls, written: str) -> Wish:
        """Read ``tpe=+40``, ``tpe=80`` or, for every arm, ``+40``.

        Raises:
            InputError: it is written otherwise.
        """
        found = _FORM.fullmatch(written.strip())
        if found is None:
            raise InputError(
                f"--trials {written}: write tpe=+40 for 40 more trials of the arm tpe, tpe=80 for "
                "80 in all, or +40 for 40 more of every arm"
            )
        return cls((found["arm"] or "").strip(), int(found["trials"]), found["more"] == "+")


def check_reach(
    assembly: Assembly, run_dir: Path, content: JournalContent, elapsed_s: float
) -> None:
    """Refuse to give a study more where its budget leaves none of it; before anything is written.

    ``elapsed_s`` is what all sessions have taken.

    Raises:
        InputError: a limit does not reach to one more trial; each one, and to what it does.
    """
    config, header = assembly.config, content.header
    had = {arm.name: arm.budget for arm in header.arms}
    minutes = (header.config.get("budget") or {}).get("minutes")
    gains_minutes = minutes is not None and (config.budget.minutes or 0) > minutes
    if not gains_minutes and all(most <= had.get(name, 0) for name, _, most in assembly.plan.arms):
        return
    where = f"in {run_dir / CONFIG_FILE}"
    problems = []
    if config.budget.trials == 0:
        message = f"it is 0, so no trial is asked: leave it out {where}"
        problems.append(Problem(message, key=("budget", "trials")))
    budget = unopened_budget(assembly, run_dir, content, elapsed_s)
    for name, least in budget.short().items():
        # Going on takes a moment, too.
        whole = math.ceil(1.1 * least if name == "minutes" else least)
        to = least_amount(least) if name == "money" else f"{whole}"
        other = ", or add --minutes +N" if name == "minutes" else ""
        message = (
            f"used up: with one more trial and its verdict it would come to {to}, and "
            f"{config.budget.limits[name]:g} are allowed, so nothing more would be asked; raise "
            f"it to {to} at least {where}{other}"
        )
        problems.append(Problem(message, key=("budget", name)))
    if problems:
        raise assembly.located(InputError(problems=problems))


def with_what_is_known(config: Config, header: StudyHeader) -> Config:
    """Return a run's configuration with the arms and the minutes that its study has by now.

    The journal is what counts: the file beside it may be as it was before the study was given more.
    """
    minutes = (header.config.get("budget") or {}).get("minutes")
    if minutes is not None and config.budget.minutes is not None:
        config = _with_minutes(config, max(minutes, config.budget.minutes))
    sections = {section.arm: section for section in config.backends}
    recorded = {one.arm: one for one in map(_section, header.config.get("backends", ()))}
    for arm in header.arms:
        known = sections.get(arm.name, recorded.get(arm.name))
        if known is not None and known.trials < arm.budget:
            known = known.model_copy(update={"trials": arm.budget})
        if known is not None:
            sections[arm.name] = known
    return config.model_copy(update={"backends": list(sections.values())})


def with_more_trials(config: Config, arms: Sequence[ArmRecord], wishes: Sequence[Wish]) -> Config:
    """Return a configuration whose arms have what was wished for; ``arms`` are the study's.

    Raises:
        InputError: no such arm, and no such kind of search; or fewer trials than it has.
    """
    sections = {section.arm: section for section in config.backends}
    for wish in wishes:
        for name in [wish.arm] if wish.arm else [arm.name for arm in arms]:
            if name not in sections:
                sections[name] = _new(name, wish.trials, sections)
                continue
            # Of what the study has, so that a call that was refused can be repeated.
            has = next((arm.budget for arm in arms if arm.name == name), 0)
            trials = has + wish.trials if wish.is_more else wish.trials
            _check(name, trials, has)
            sections[name] = sections[name].model_copy(update={"trials": trials})
    return config.model_copy(update={"backends": list(sections.values())})


def with_more_minutes(config: Config, written: str) -> Config:
    """Return a configuration whose budget has more minutes: ``+30``, or ``90`` in all.

    Raises:
        InputError: it is written otherwise, there is no budget of minutes to add to, or these are
            fewer than there are.
    """
    found = _MINUTES.fullmatch(written.strip())
    if found is None or not float(found["minutes"]):
        message = f"--minutes {written}: write +30 for 30 minutes more, or 90 for 90 in all"
        raise InputError(message)
    has = config.budget.minutes
    if has is None:
        raise InputError(
            f"--minutes {written}: the study has no budget of minutes, so its time is not limited; "
            "to limit it write budget: {minutes: …} into the config.yaml of the run directory"
        )
    given = float(found["minutes"])
    minutes = float(has) + given if found["more"] else given
    if minutes < float(has):
        raise InputError(
            f"--minutes {written}: the study has {has:g} minutes, and can be given more, not "
            "fewer; write +30 for 30 more"
        )
    if minutes > MOST_MINUTES:
        raise InputError(
            f"--minutes {written}: {minutes:,.0f} are more than the {MOST_MINUTES:,} that can be"
        )
    return _with_minutes(config, int(minutes) if minutes == int(minutes) else minutes)


def _with_minutes(config: Config, minutes: float) -> Config:
    budget = config.budget.model_copy(update={"minutes": minutes})
    return config.model_copy(update={"budget": budget})


def _note_minutes(study: Study, config: Config, *, say: Say) -> None:
    """Write into the journal that a study goes on with more minutes.

    Raises:
        TunerError: the journal cannot be written.
    """
    minutes = config.budget.minutes
    before = (study.header.config.get("budget") or {}).get("minutes")
    if minutes is None or before is None or minutes <= before:
        return
    budget = config.budget.model_dump(mode="json")
    arms = [asdict(arm) for arm in study.header.arms]
    study.note(AMENDED, arms=arms, config={"budget": budget})
    say(f"the study goes on to {minutes:g} minutes in all, {minutes - before:g} more")


def take_up(
    study: Study, before: Sequence[ArmRecord], config: Config, path: Path, *, say: Say
) -> None:
    """Say with what an opened study goes on, and write it down; ``before`` are the arms it had.

    Raises:
        TunerError: the journal cannot be written.
    """
    _told_of_more(before, study.header.arms, say=say)
    _note_minutes(study, config, say=say)
    _write_more(path, config)


def _told_of_more(before: Sequence[ArmRecord], after: Sequence[ArmRecord], *, say: Say) -> None:
    """Say with how many trials which arm goes on."""
    known = {arm.name: arm.budget for arm in before}
    for arm in after:
        if arm.name not in known:
            say(f"{arm.name} is a further arm, of {counted(arm.budget, 'trial')}")
        elif arm.budget > known[arm.name]:
            trials = counted(arm.budget, "trial")
            say(f"{arm.name} goes on to {trials}, {arm.budget - known[arm.name]} more")


def _write_more(path: Path, config: Config) -> None:
    """Bring a run's configuration file to the arms and minutes that its study has by now."""
    record: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    whole = config.model_dump(mode="json")
    now = {**record, "backends": whole["backends"]}
    if "budget" in record:
        now["budget"] = whole["budget"]
    if now != record:
        text = yaml.safe_dump(now, sort_keys=False, allow_unicode=True)
        write_whole(path, text, mode=path.stat().st_mode & 0o777)


def _section(record: Mapping[str, Any]) -> BackendSection:
    return BackendSection.model_validate(record)


def _new(name: str, trials: int, known: Mapping[str, BackendSection]) -> BackendSection:
    kinds = registry.kinds("backends")
    if name not in kinds and ":" not in name:
        raise InputError(
            f"--trials {name}=…: the study has no arm {name!r}{did_you_mean(name, known)}; it has "
            f"{', '.join(known)}, and a further one is called by its kind: {', '.join(kinds)}"
        )
    _check(name, trials, 0)
    return BackendSection(kind=name, trials=trials)


def _check(name: str, trials: int, has: int) -> None:
    if trials < max(has, 1):
        raise InputError(
            f"--trials {name}={trials}: the arm has {counted(has, 'trial')}, and can be given "
            f"more, not fewer; write {name}=+20 for 20 more"
        )
    if trials > MOST_TRIALS:
        raise InputError(f"--trials {name}: {trials} are more than the {MOST_TRIALS} that can be")
