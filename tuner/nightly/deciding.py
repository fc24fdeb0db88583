"""What follows from the verdict: the champion stays, or makes room, or somebody is asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Literal

from tuner.core.errors import TunerError
from tuner.core.steps import Say
from tuner.core.study_record import StudySummary
from tuner.core.trial import Trial
from tuner.nightly.champion import record_promotion, show_promotion, who_is_it
from tuner.nightly.records import Records, read_records
from tuner.nightly.summary import Challenger, Outcome
from tuner.run.assembly import Assembly
from tuner.run.session import Tuned
from tuner.study.results import BASELINE_ARM
from tuner.tracking.registry import CHAMPION, Registry

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
