"""What follows from the verdict: the champion stays, or makes room, or somebody is asked.

A person can move the champion too: approve a challenger, or roll back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Literal

from tuner.config import Config
from tuner.core.errors import InputError, TunerError
from tuner.core.steps import Say, unsaid
from tuner.core.study_record import StudySummary
from tuner.core.trial import Trial
from tuner.nightly.champion import record_promotion, registry_of, show_promotion, who_is_it
from tuner.nightly.records import Champion, Night, Promotion, Records, read_records
from tuner.nightly.summary import Challenger, Outcome
from tuner.run.assembly import Assembly
from tuner.run.session import Tuned
from tuner.study.results import BASELINE_ARM
from tuner.tracking.registry import CHALLENGER, CHAMPION, ModelVersion, Registry

Policy = Literal["auto", "ask", "never"]

DEPLOY = "deploy"


def find_challenger(
    assembly: Assembly, tuned: Tuned, study_id: str, registry: Registry | None, *, say: Say
) -> Challenger | None:
    """Return what the night found; None where that is nothing, or the champion itself."""
    winner = tuned.summary.winner
    if winner is None:
        return None
    params = assembly.params(winner.params)
    if params == assembly.params(assembly.baseline or {}):
        return None
    version = None
    if registry is not None:
        try:
            shown = registry.of_study(study_id, params)
        except TunerError as error:
            say(f"{error}; the challenger has no version yet")
        else:
            version = None if shown is None else shown.version
    return Challenger(params, study_id, version, winner)


def why_failed(summary: StudySummary, trials: Sequence[Trial]) -> str | None:
    """Return why a night's study is of no use; None where it is."""
    if summary.baseline is None:
        errors = [trial.error for trial in trials if trial.arm == BASELINE_ARM and trial.error]
        reason = f": {errors[-1]}" if errors else ""
        return f"the champion could not be evaluated{reason}"
    if summary.state == "failed":
        return summary.reason.removeprefix("Failed: ") or "its study failed"
    return None


def decide_night(
    tuned: Tuned,
    challenger: Challenger | None,
    policy: Policy,
    *,
    night: date,
    records: Records,
    registry: Registry | None,
    is_failed: bool,
    say: Say,
) -> Outcome:
    """Promote the challenger where its verdict is *deploy* and the policy says so.

    Where the champion was moved while the night ran, the verdict is of another pair: it stays.
    """
    summary = tuned.summary
    if is_failed:
        return "failed"
    begun = records.of(night)
    if begun is not None and records.has_promoted(begun):  # and was killed before it said so
        return "promoted"
    if summary.verdict is None and challenger is not None:
        say("there is no verdict on the challenger, so nothing is promoted")
    is_deploy = summary.verdict is not None and summary.verdict["outcome"] == DEPLOY
    if challenger is None or not is_deploy:
        return "kept"
    if policy == "never":
        say("the verdict is to deploy the challenger; nightly.promote is never, so nothing is done")
        return "kept"
    if policy == "ask":
        return "waiting for approval"
    if _was_moved(records, registry):
        say("the champion was moved while the night ran: the challenger is not promoted")
        return "kept"
    promotion = record_promotion(
        records,
        challenger.as_champion(),
        before=records.shown_version,
        who=who_is_it(),
        why=f"the verdict of the night of {night}",
        night=night,
    )
    if registry is not None:
        show_promotion(registry, records, promotion, say=say)
    return "promoted"


def _was_moved(records: Records, registry: Registry | None) -> bool:
    if len(read_records(records.runs_dir, records.study).promotions) != len(records.promotions):
        return True
    try:
        shown = None if registry is None else registry.get(CHAMPION)
    except TunerError:
        return False
    # Where the registry has no champion, there is nobody's choice to overrule.
    return shown is not None and shown.version != records.shown_version


BASELINE = "baseline"


@dataclass(frozen=True)
class _Candidate:
    """What is to be the champion, and the verdict on it; none on the baseline."""

    to: Champion
    outcome: str = "no verdict"
    sentence: str = "No verdict."


def promote(
    config: Config,
    target: str,
    *,
    why: str,
    say: Say,
    show: Say = unsaid,
    is_forced: bool = False,
) -> Promotion:
    """Make a version, a night's challenger or the baseline the champion, and write that down.

    ``target`` is a version's number, ``"challenger"`` (the version with this alias; without a
    registry, what the last night found), the date of a night, or ``"baseline"``. ``show`` is
    given the verdict on it before anything is done. What was not found to be better is promoted
    only where ``is_forced``, or where it was the champion before.

    Raises:
        InputError: there is no such thing, it is the champion already, or the verdict is against
            it.
        TunerError: a version is asked for, and the registry cannot be reached.
    """
    records = read_records(Path(config.study.runs_dir), config.study.name)
    registry = registry_of(config)
    candidate = _target(config, records, registry, target)
    to = candidate.to
    if to.source != "config":
        show(f"verdict on {to.called}: {candidate.sentence}")
    before = _shown(registry, records, say)
    now = records.champion
    is_known = now is not None and (now.version, now.study_id) == (to.version, to.study_id)
    if is_known and before == to.version:
        raise InputError(f"{to.called} is the champion already")
    is_against = (
        candidate.outcome != DEPLOY
        and to.source != "config"
        and all(move.to.params != to.params for move in records.promotions)
    )
    if is_against and not is_forced:
        raise InputError(
            f"{to.called} was not found to be better ({candidate.outcome}), so it is not made the "
            "champion; to do so all the same: --force"
        )
    why = why or f"tuner promote --to {target}"
    promotion = record_promotion(
        records,
        to,
        before=before,
        who=who_is_it(),
        why=f"{why} (forced: {candidate.outcome})" if is_against else why,
    )
    if registry is None:
        return promotion
    shown = show_promotion(registry, records, promotion, say=say)
    return replace(promotion, to=shown)


def _target(config: Config, records: Records, registry: Registry | None, target: str) -> _Candidate:
    if target == BASELINE:
        if not isinstance(config.baseline, dict):
            raise InputError("there is no baseline to go back to", key=("baseline",))
        return _Candidate(Champion(dict(config.baseline)))
    if target == CHALLENGER and registry is not None:
        return _of_alias(registry)
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


def _of_night(night: Night) -> _Candidate:
    summary = night.summary or {}
    challenger, verdict = summary["challenger"], summary.get("verdict") or {}
    champion = Champion(
        dict(challenger["params"]), challenger["version"], challenger["study_id"], "nights"
    )
    return _Candidate(
        champion,
        str(verdict.get("outcome", _Candidate.outcome)),
        str(verdict.get("sentence", _Candidate.sentence)),
    )


def _of_alias(registry: Registry) -> _Candidate:
    """Return the version that MLflow shows as the challenger."""
    try:
        version = registry.get(CHALLENGER)
    except TunerError as error:
        message = "which version is the challenger is not known; name the date of a night instead"
        raise TunerError(f"{error}; {message}") from error
    if version is None:
        raise InputError(
            f"no version of {registry.name} has the alias {CHALLENGER}: no study has found "
            "anything but its baseline yet"
        )
    return _of(version, f"the alias {CHALLENGER} is version {version.version}, which")


def _of_version(registry: Registry | None, number: int) -> _Candidate:
    if registry is None:
        raise InputError(
            f"--to {number}: without `tracking:` there is no registry and no version; name the "
            "date of a night"
        )
    version = registry.get(number)
    if version is None:
        known = ", ".join(str(one.version) for one in registry.versions()) or "none"
        raise InputError(f"--to {number}: {registry.name} has no such version; it has {known}")
    return _of(version, f"--to {number}: this version")


def _of(version: ModelVersion, called: str) -> _Candidate:
    if not version.params:
        raise InputError(f"{called} holds no parameters, as no study made it")
    champion = Champion(version.params, version.version, version.study_id, "registry")
    sentence = version.description or _Candidate.sentence
    return _Candidate(champion, version.outcome, sentence)


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
