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
from tuner.config.budget import (
    MOST_MINUTES,
    MOST_MONEY,
    MOST_QUERIES,
    MOST_TRIALS,
    BudgetSection,
)
from tuner.config.model import BackendSection
from tuner.core import registry
from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.files import write_whole
from tuner.core.journal import AMENDED, JournalContent
from tuner.core.money import total
from tuner.core.run_files import CONFIG_FILE
from tuner.core.shown import counted
from tuner.core.spent import least_amount
from tuner.core.steps import Say
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.run.accounts import unopened_budget
from tuner.run.assembly import Assembly
from tuner.run.budget import Budget, HasTrials
from tuner.study.results import BASELINE_ARM
from tuner.study.study import Study

_AMOUNT = re.compile(r"(?P<more>\+?)(?P<amount>[0-9]{1,15}(?:\.[0-9]{1,6})?)")
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


@dataclass(frozen=True)
class Limit:
    """A limit of a budget that can be raised where a study goes on.

    ``example`` is how much more, and how much in all, a reader might write.
    """

    name: str
    noun: str
    most: float
    example: tuple[str, str]

    @property
    def option(self) -> str:
        """Return the option of ``tuner resume`` that raises it."""
        return f"--{self.name.replace('_', '-')}"

    def called(self, amount: float) -> str:
        """Return an amount of it for people."""
        number = _number(amount)
        return f"{self.noun} {number}" if self.name == "money" else f"{number} {self.noun}"


def _number(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.10g}"


LIMITS = {
    limit.name: limit
    for limit in (
        Limit("minutes", "minutes", MOST_MINUTES, ("+30", "90")),
        Limit("query_evaluations", "query evaluations", MOST_QUERIES, ("+2000", "8000")),
        Limit("money", "money", MOST_MONEY, ("+5", "25")),
    )
}


def check_reach(
    assembly: Assembly, run_dir: Path, content: JournalContent, elapsed_s: float
) -> None:
    """Refuse to give a study more where its budget leaves none of it; before anything is written.

    ``elapsed_s`` is what all sessions have taken.

    Raises:
        InputError: a limit does not reach to one more trial; each one, and to what it does.
    """
    config, header = assembly.config, content.header
    arms = {name: most for name, _, most in assembly.plan.arms}
    if not has_more(header, arms, config.budget):
        return
    where = f" in {run_dir / CONFIG_FILE}"
    budget = unopened_budget(assembly, run_dir, content, elapsed_s)
    if problems := out_of_reach(budget, where, by_option=True):
        raise assembly.located(InputError(problems=problems))


def has_more(header: StudyHeader, arms: Mapping[str, int], budget: BudgetSection) -> bool:
    """Say whether a study is given more than its header has: trials, or any limit."""
    had = {arm.name: arm.budget for arm in header.arms}
    return bool(_raised(header, budget)) or any(n > had.get(arm, 0) for arm, n in arms.items())


def _raised(header: StudyHeader, budget: BudgetSection) -> dict[str, float]:
    """Return the limits that are higher than a study's, and what they were."""
    had = header.config.get("budget") or {}
    return {
        name: had[name]
        for name, now in budget.limits.items()
        if had.get(name) is not None and now > had[name]
    }


def out_of_reach(budget: Budget, where: str = "", *, by_option: bool = False) -> list[Problem]:
    """Return each limit that does not reach to one more trial, and to what it has to be raised.

    ``where`` is the file to raise it in; ``by_option``: or by an option of ``tuner resume``.
    """
    problems = []
    if budget.section.trials == 0:
        message = f"it is 0, so no trial is asked: leave it out{where}"
        problems.append(Problem(message, key=("budget", "trials")))
    for name, least in budget.short().items():
        # Going on takes a moment, too.
        whole = math.ceil(1.1 * least if name == "minutes" else least)
        to = least_amount(least) if name == "money" else f"{whole}"
        other = f", or add {LIMITS[name].option} +N" if by_option else ""
        message = (
            f"used up: with one more trial and its verdict it would come to {to}, and "
            f"{budget.section.limits[name]:g} are allowed, so nothing more would be asked; raise "
            f"it to {to} at least{where}{other}"
        )
        problems.append(Problem(message, key=("budget", name)))
    return problems


def lacking_money(budget: Budget, study: HasTrials) -> str:
    """Say of a study without a trial but its baseline that its money reaches to none; or nothing.

    What answers cost by their tokens is not known ahead. A verdict without a trial would cost more,
    and tell nothing.
    """
    if budget.section.trials == 0 or any(
        trial.is_told and trial.arm != BASELINE_ARM for trial in study.trials
    ):
        return ""
    problems = out_of_reach(budget, by_option=True)
    found = (problem for problem in problems if problem.key == ("budget", "money"))
    return next((f"budget.money: {problem.message}" for problem in found), "")


def with_what_is_known(config: Config, header: StudyHeader) -> Config:
    """Return a run's configuration with the arms that its study has by now.

    The journal is what counts: the file beside it may be as it was before the study was given more.
    A study that says nothing of free parameters is of a time when every value was asked.
    """
    if header.config and "free" not in header.config:
        config = config.model_copy(update={"free": "off"})
    sections = {section.arm: section for section in config.backends}
    recorded = {one.arm: one for one in map(_section, header.config.get("backends", ()))}
    for arm in header.arms:
        known = sections.get(arm.name, recorded.get(arm.name))
        if known is not None and known.trials < arm.budget:
            known = known.model_copy(update={"trials": arm.budget})
        if known is not None:
            sections[arm.name] = known
    return config.model_copy(update={"backends": list(sections.values())})


def with_more(
    config: Config,
    header: StudyHeader,
    trials: Sequence[Wish] = (),
    limits: Mapping[str, str] | None = None,
) -> Config:
    """Return a study's configuration with more trials, and with higher limits, as written.

    Raises:
        InputError: what is written means nothing for this study.
    """
    config = _with_more_trials(config, header.arms, trials)
    for name, written in (limits or {}).items():
        config = _with_more_of(config, name, written)
    return config


def _with_more_trials(config: Config, arms: Sequence[ArmRecord], wishes: Sequence[Wish]) -> Config:
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


def _with_more_of(config: Config, name: str, written: str) -> Config:
    """Return a configuration with a higher limit in its budget: ``+30`` more, or ``90`` in all.

    Raises:
        InputError: it is written otherwise, the budget has no such limit to add to, or this is
            less than it has.
    """
    limit = LIMITS[name]
    said = f"{limit.option} {written}"
    more, in_all = limit.example
    found = _AMOUNT.fullmatch(written.strip())
    given = 0.0 if found is None else float(found["amount"])
    is_whole = given == int(given)
    if found is None or not given or (name == "query_evaluations" and not is_whole):
        raise InputError(f"{said}: write {more} for so many more, or {in_all} for so many in all")
    has = config.budget.limits.get(name)
    if has is None:
        raise InputError(
            f"{said}: the study has no budget of {limit.noun}, so there is nothing to add to; to "
            f"limit it write budget: {{{name}: …}} into the config.yaml of the run directory"
        )
    amount = total([has, given]) if found["more"] else given
    if amount < has:
        raise InputError(
            f"{said}: the study has {limit.called(has)}, and can be given more, not less; write "
            f"{more} for so many more"
        )
    if amount > limit.most:
        raise InputError(
            f"{said}: {limit.called(amount)} are more than the {limit.most:,} that can be"
        )
    higher = {name: int(amount) if amount == int(amount) else amount}
    return config.model_copy(update={"budget": config.budget.model_copy(update=higher)})


def _note_limits(study: Study, config: Config, *, say: Say) -> None:
    """Write into the journal that a study goes on with a larger budget.

    Raises:
        TunerError: the journal cannot be written.
    """
    raised = _raised(study.header, config.budget)
    if not raised:
        return
    budget = config.budget.model_dump(mode="json")
    arms = [asdict(arm) for arm in study.header.arms]
    study.note(AMENDED, arms=arms, config={"budget": budget})
    for name, before in raised.items():
        limit, now = LIMITS[name], config.budget.limits[name]
        more = _number(total([now, -before]))
        say(f"the study goes on to {limit.called(now)} in all, {more} more")


def take_up(
    study: Study, before: Sequence[ArmRecord], config: Config, path: Path, *, say: Say
) -> None:
    """Say with what an opened study goes on, and write it down; ``before`` are the arms it had.

    Raises:
        TunerError: the journal cannot be written.
    """
    _told_of_more(before, study.header.arms, say=say)
    _write_more(path, config)
    _note_limits(study, config, say=say)


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
    """Bring a run's configuration file to the arms and limits that its study has by now."""
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
