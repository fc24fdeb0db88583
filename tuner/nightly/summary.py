"""What a night has to say: one JSON object, a sentence, and an exit code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from tuner.core.errors import (
    EXIT_ALARM,
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    OutageError,
    TunerError,
)
from tuner.core.run_files import REPORT_FILE
from tuner.core.study_record import Standing, StudySummary
from tuner.drift.findings import DriftReport
from tuner.nightly.records import Champion, Look, Night, Records
from tuner.run.session import Tuned
from tuner.verdict.ruling import Names
from tuner.verdict.words import retold

EXIT_PROMOTED = 10

_NAMES = Names("the challenger", "the champion")

_HEADS = {
    "failed": "The night failed: {reason}",
    "interrupted": "The night was interrupted: {reason} The next call on its date goes on with it.",
}

Outcome = Literal["kept", "promoted", "waiting for approval", "nothing to do", "failed"]

_EXIT_CODES = {
    "kept": EXIT_DONE,
    "nothing to do": EXIT_DONE,
    "promoted": EXIT_PROMOTED,
    "waiting for approval": EXIT_PROMOTED,
    "failed": EXIT_FAILED,
    "interrupted": EXIT_INTERRUPTED,
}


@dataclass(frozen=True)
class Challenger:
    """What a night found; ``version`` is None where the registry holds none, or is out of reach."""

    params: dict[str, Any]
    study_id: str
    version: int | None
    standing: Standing

    def as_champion(self) -> Champion:
        """Return it as what may run from now on."""
        return Champion(self.params, self.version, self.study_id, "nights")


@dataclass(frozen=True)
class Said:
    """Everything that goes into a night's summary; ``began`` is by the monotonic clock."""

    night: date
    study: str
    outcome: str
    champion: Champion
    tuned: Tuned
    data: Mapping[str, Any]
    began: float
    changes: Sequence[str] = ()
    challenger: Challenger | None = None
    look: Look | None = None
    drift: DriftReport | None = None
    error: str | None = None
    is_resumed: bool = False
    pruned: Sequence[str] = ()
    notes: Sequence[str] = field(default_factory=list)


def exit_code(outcome: str, *, is_alarm: bool) -> int:
    """Return how the command leaves: a failure first, then an alarm, then a promotion.

    >>> exit_code("promoted", is_alarm=True), exit_code("promoted", is_alarm=False)
    (20, 10)
    """
    if is_alarm and outcome in ("kept", "promoted", "waiting for approval"):
        return EXIT_ALARM
    return _EXIT_CODES[outcome]


def summarise_night(said: Said) -> dict[str, Any]:
    """Return the summary of a night as a JSON-ready mapping."""
    summary, drift = said.tuned.summary, said.drift
    report = said.tuned.run_dir / REPORT_FILE
    return {
        "night": said.night.isoformat(),
        "study": said.study,
        "outcome": said.outcome,
        "exit_code": exit_code(
            said.outcome, is_alarm=drift is not None and drift.status == "alarm"
        ),
        "sentence": _sentence(said),
        "error": said.error,
        "champion": {
            "version": said.champion.version,
            "study_id": said.champion.study_id,
            "source": said.champion.source,
            "params": said.champion.params,
            **_scores(summary.baseline),
        },
        "challenger": None if said.challenger is None else _challenger(said.challenger),
        "verdict": _verdict(summary, said.look),
        "drift": None if drift is None else _drift(drift),
        "data": {
            **{name: said.data[name] for name in ("documents", "queries", "judgements")},
            "changes": list(said.changes),
        },
        "trials": {
            "evaluated": summary.finished_trials,
            "raced_out": summary.raced_out_trials,
            "shared": summary.shared_trials,
            "failed": summary.failed_trials,
        },
        "seconds": round(time.monotonic() - said.began, 3),
        "is_resumed": said.is_resumed,
        "run_dir": str(said.tuned.run_dir),
        "report": str(report) if report.is_file() else None,
        "mlflow_run_id": said.tuned.mlflow_run_id,
        "mlflow_url": said.tuned.mlflow_url,
        "is_in_mlflow": said.tuned.is_in_mlflow,
        "pruned": list(said.pruned),
        "notes": list(said.notes),
    }


def nothing_to_do(records: Records, night: Night) -> dict[str, Any]:
    """Say that a night was done already, with what it said, and what became of it since."""
    summary = dict(night.summary or {})
    sentence = f"The night of {night.night} is done: {summary.get('outcome')}."
    notice, approval = records.notice(night.night), records.approval_of(night)
    if approval is not None:
        sentence = (
            f"The night of {night.night} is done; it waited for approval, and {approval.to.called} "
            f"was approved since ({approval.when}, by {approval.who})."
        )
    return {
        **summary,
        "night": night.night.isoformat(),
        "study": records.study,
        "outcome": "nothing to do",
        "exit_code": EXIT_DONE,
        "sentence": sentence,
        "told": None if notice is None else notice.is_told,
        "why_not_told": None if notice is None else notice.why,
    }


def failed(night: date, study: str, error: BaseException) -> dict[str, Any]:
    """Say that a night ended with an error, of which nobody has been told yet."""
    outcome = outcome_of(error)
    return {
        "night": night.isoformat(),
        "study": study,
        "outcome": outcome,
        "exit_code": error.exit_code if isinstance(error, TunerError) else EXIT_FAILED,
        "sentence": _HEADS[outcome].format(reason=_ended(reason_of(error))),
        "error": reason_of(error),
        "told": None,
        "why_not_told": None,
    }


def outcome_of(error: BaseException) -> str:
    """Return what a night comes to that ends with an error: one of no answer is tried again."""
    return "interrupted" if isinstance(error, OutageError) else "failed"


def reason_of(error: BaseException) -> str:
    """Return an error in words; the kind of one that is not of our making is told too.

    >>> reason_of(TunerError("the disk is full")), reason_of(KeyError("a")), reason_of(OSError())
    ('the disk is full', "KeyError: 'a'", 'OSError')
    """
    kind = "" if isinstance(error, TunerError) else type(error).__name__
    return ": ".join(filter(None, (kind, str(error)))) or type(error).__name__


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _sentence(said: Said) -> str:
    new = "" if said.challenger is None else said.challenger.as_champion().called
    head = {
        "promoted": f"Promoted: {new} takes the place of {said.champion.called}.",
        "waiting for approval": f"Waiting for approval: {new} against {said.champion.called}.",
        "kept": f"Kept: {said.champion.called} stays the champion.",
        "failed": _HEADS["failed"],
        "interrupted": _HEADS["interrupted"],
    }[said.outcome].format(reason=_ended(said.error or "by a signal"))
    verdict = _verdict(said.tuned.summary, said.look)
    parts = [head]
    if verdict is not None:
        parts.append(verdict["sentence"])
    if said.drift is not None:
        parts.append(f"Drift of the champion: {_told(said.drift)}")
    return " ".join(parts)


def _scores(standing: Standing | None) -> dict[str, float | None]:
    if standing is None:
        return {"score": None, "holdout_score": None}
    return {"score": standing.tune_objective, "holdout_score": standing.holdout_objective}


def _challenger(challenger: Challenger) -> dict[str, Any]:
    return {
        "version": challenger.version,
        "study_id": challenger.study_id,
        "params": challenger.params,
        "arm": challenger.standing.arm,
        "trial": challenger.standing.trial,
        **_scores(challenger.standing),
    }


def _verdict(summary: StudySummary, look: Look | None) -> dict[str, Any] | None:
    """Return the verdict in short; None where nothing was tried.

    The whole one stands in the study's journal.
    """
    verdict = summary.verdict
    if verdict is None or not summary.arms:
        return None
    comparison = verdict.get("comparison") or {}
    corrected = verdict.get("corrected") or {}
    interval = comparison.get("interval") or corrected.get("interval")
    return {
        "outcome": verdict["outcome"],
        "sentence": retold(verdict, _NAMES),
        "difference": comparison.get("mean_difference", corrected.get("estimate")),
        "interval": None if interval is None else list(interval),
        "p_value": comparison.get("p_value"),
        "alpha": None if look is None else look.alpha,
        "look": None if look is None else look.number,
    }


def _told(drift: DriftReport) -> str:
    """Return what was found; where nothing could be tested, why, once for all query types."""
    return drift.sentence if drift.findings else f"Insufficient data: {drift.untested[0]}."


def _drift(drift: DriftReport) -> dict[str, Any]:
    return {
        "status": drift.status,
        "sentence": _told(drift),
        "alarms": [
            {
                "test": found.test,
                "query_type": found.group or None,
                "before": None if found.change is None else found.change.before,
                "after": None if found.change is None else found.change.after,
                "p_value": found.adjusted_p,
            }
            for found in drift.alarms
        ],
    }
