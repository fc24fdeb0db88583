"""One night, in order: lock, champion, data, start, study, verdict, promotion, drift, report.

A night that was killed goes on with its study when it is called again on the same date. On a later
date the study stays as it is: its trials help that night's search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from tuner.config import Config, Source
from tuner.config.nightly import NightlySection
from tuner.core.errors import InputError, TunerError
from tuner.core.journal import per_query_if_whole
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.steps import Phases, Say
from tuner.core.trial import Trial
from tuner.drift.detection import Measure, find_drift
from tuner.drift.findings import DriftReport
from tuner.drift.observations import Observation, Windows
from tuner.nightly.champion import find_champion, registry_of
from tuner.nightly.data import data_record, params_key, part_of, what_changed
from tuner.nightly.deciding import decide_night, find_challenger, why_failed
from tuner.nightly.history import told_unreadable
from tuner.nightly.pruning import only_one, prune
from tuner.nightly.records import Champion, Records, Score, read_records
from tuner.nightly.showing import check_notify, show_in_mlflow
from tuner.nightly.spending import Spending, remember_part, warmed
from tuner.nightly.summary import Said, nothing_to_do, outcome_of, reason_of, summarise_night
from tuner.report import write_study_report
from tuner.run.assembly import Assembly, assemble
from tuner.run.earlier import Earlier
from tuner.run.planning import make_plan
from tuner.run.session import Session, Watch, begin, reopen
from tuner.run.tunable import check_can_tune
from tuner.study.loop import Event
from tuner.study.results import BASELINE_ARM
from tuner.tracking.registry import Registry

SCORE = "score"


Follow = Callable[[Session], Callable[[Event], None]]
"""Given a study before its loop, returns what takes the loop's events."""


class Refused(InputError):
    """A night that was not begun at all, so that there is nothing to tell of it."""


@dataclass(frozen=True)
class _Tonight:
    """What every step of a night works with; ``notes`` are the lines said so far."""

    config: Config
    source: Source
    night: date
    records: Records
    registry: Registry | None
    say: Say
    phases: Phases
    notes: list[str] = field(default_factory=list)

    def note(self, message: str) -> None:
        """Pass a line on, and keep it for the summary."""
        self.notes.append(message)
        self.say(message)

    def write_failure(self, outcome: str, reason: str) -> None:
        """Write down why this attempt at the night did not come to its end."""
        night = self.night.isoformat()
        self.records.write("failed", night=night, outcome=outcome, error=reason)


def run_night(
    config: Config,
    source: Source,
    *,
    night: date,
    say: Say,
    follow: Follow,
    phases: Phases | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Do everything that a night does, and return its summary, which ``nights.jsonl`` holds too.

    An error is written down too, as how this attempt ended. ``phases`` is the command's clock, and
    ``watch`` as in ``Session.run``.

    Raises:
        Refused: nothing was begun: a variable is not set, or the date lies before the last night.
        Locked: another job is at work on these nights.
        InputError: there is no baseline, or the champion does not fit the configuration.
    """
    try:
        check_notify(config.nightly.notify)
    except InputError as error:
        raise Refused(problems=source.error(error).problems) from error
    if (problem := _wrong_labels(config)) is not None:
        raise Refused(problems=source.error(problem).problems)
    began = time.monotonic()
    runs_dir, study = Path(config.study.runs_dir), config.study.name
    with only_one(runs_dir, study):
        records = read_records(runs_dir, study)
        done = records.of(night)
        if done is not None and done.is_settled:
            return nothing_to_do(records, done)
        last = max((one.night for one in records.nights), default=night)
        if night < last:
            raise Refused(
                f"--date {night}: the last night was that of {last}, and what is measured now is "
                f"not how it was before; nights go forward only: name {last} or a later date"
            )
        registry = registry_of(config)
        tonight = _Tonight(config, source, night, records, registry, say, phases or Phases())
        if records.unreadable:
            tonight.note(told_unreadable(records.unreadable))
        try:
            return _run(tonight, follow, began, watch)
        except Exception as error:
            with suppress(TunerError):  # the first error says what is wrong
                tonight.write_failure(outcome_of(error), reason_of(error))
            raise


def _wrong_labels(config: Config) -> InputError | None:
    """Return why nights cannot have the configured labels, or None: they look again and again."""
    if config.dataset is None:
        return None
    if config.dataset.split.parts is not None:
        return InputError(
            "many nights would look at all queries, and share one alpha by a fixed holdout; "
            "hold queries out instead (holdout: 0.5)",
            key=("dataset", "split", "parts"),
        )
    if config.dataset.people is not None:
        # Looks are compared by plain differences, and the verdict is on corrected ones.
        return InputError(
            "nights share one alpha by what their looks have in common, which is not known of "
            "a judge's labels that people's correct; give nights people's labels alone",
            key=("dataset", "people"),
        )
    return None


def _run(tonight: _Tonight, follow: Follow, began: float, watch: Watch | None) -> dict[str, Any]:
    """Find the champion, open the data, run the study; the rest where it was not interrupted."""
    records = tonight.records
    try:
        champion = find_champion(tonight.config, records, tonight.registry, say=tonight.note)
    except InputError as error:
        raise tonight.source.error(error) from error
    assembly = _assemble(tonight, champion)
    data = data_record(assembly)
    changes = what_changed(records.nights[-1].data, data) if records.nights else []
    for change in changes:
        tonight.note(change)
    resumed = _resumed(tonight, champion, data)
    session = resumed or _begun(tonight, champion, assembly, data)
    begun = records.of(tonight.night)
    if resumed is not None and begun is not None and records.has_promoted(begun):
        champion = begun.champion  # whom its study was tested against
    spending = Spending(records, session.assembly, tonight.night)
    tuned = session.run(
        on_event=follow(session),
        say=tonight.note,
        level_of=spending,
        phases=tonight.phases,
        write_report=write_study_report,
        watch=watch,
    )
    said = Said(
        tonight.night,
        records.study,
        "interrupted",
        champion,
        tuned,
        data,
        began,
        changes,
        is_resumed=resumed is not None,
        notes=tonight.notes,
    )
    if tuned.summary.state != "interrupted":
        return _finish(tonight, session, spending, said)
    if reason := tuned.summary.reason:
        tonight.write_failure("interrupted", reason)
    return summarise_night(replace(said, error=reason or None))


def _finish(tonight: _Tonight, session: Session, spending: Spending, said: Said) -> dict[str, Any]:
    """Decide, look for drift, show it, write it down, and throw away what is old."""
    records, night, note = tonight.records, tonight.night, tonight.note
    champion, tuned = said.champion, said.tuned
    study_id, own = session.study.header.study_id, session.assembly
    settings = tonight.config.nightly
    challenger = find_challenger(own, tuned, study_id, tonight.registry, say=note)
    # What is measured by another objective is no drift.
    measured = {"params": own.params(own.baseline or {}), "by": own.fingerprints()["objective"]}
    key = params_key(measured)
    if (baseline := _baseline(session)) is not None:
        record_score(records, own, baseline, tuned.run_dir, champion=key, night=night)
    drift = check_drift(records, key, night)
    failure = why_failed(tuned.summary, session.study.trials)
    outcome = decide_night(
        tuned,
        challenger,
        settings.promote,
        night=night,
        records=records,
        registry=tonight.registry,
        is_failed=failure is not None,
        say=note,
    )
    said = replace(
        said,
        outcome=outcome,
        error=failure,
        challenger=challenger,
        look=spending.look,
        drift=drift,
    )
    show_in_mlflow(tonight.config, records, summarise_night(said), say=note)
    now = champion if records.champion is None else records.champion
    # Also what waits for approval, and what a rollback would go back to.
    never = {study_id, champion.study_id, now.study_id}
    gone = prune(records, settings.keep, today=night, never=never, say=note)
    summary = summarise_night(replace(said, pruned=gone))
    records.write("ended", night=night.isoformat(), study_id=study_id, summary=summary)
    return summary


def _baseline(session: Session) -> Trial | None:
    trials = (trial for trial in session.study.trials if trial.arm == BASELINE_ARM)
    return next((trial for trial in trials if trial.is_scored), None)


def _assemble(tonight: _Tonight, champion: Champion) -> Assembly:
    """Open data and index, with the champion in the baseline's place."""
    # What the night does besides is not the study's; a web hook's address is not for its files.
    config = tonight.config.model_copy(
        update={"baseline": champion.params, "nightly": NightlySection()}
    )
    source, say = tonight.source, tonight.note
    try:
        assembly = assemble(
            config, source, make_plan(config, source, to_run=True), say=say, phases=tonight.phases
        )
    except InputError as error:
        is_other = any(problem.key[:1] != ("baseline",) for problem in error.problems)
        if champion.source == "config" or is_other:
            raise
        reasons = "; ".join(problem.message for problem in error.problems)
        raise InputError(
            f"the champion, {champion.called}, does not fit this configuration: {reasons}; "
            "choose another: tuner promote CONFIG --to VERSION"
        ) from error
    check_can_tune(assembly)
    return assembly


def _resumed(tonight: _Tonight, champion: Champion, data: dict[str, Any]) -> Session | None:
    """Return tonight's study where it was begun before, and may go on."""
    records, note = tonight.records, tonight.note
    begun = records.of(tonight.night)
    if begun is None or begun.summary is not None:
        return None
    is_same = params_key(begun.champion.params) == params_key(champion.params)
    if not is_same and not records.has_promoted(begun):
        reason = "the champion is another one now"
    elif begun.data["fingerprints"] != _known_to(begun.data["fingerprints"], data["fingerprints"]):
        reason = "the data, the index or the configuration changed"
    else:
        try:
            session = reopen(records.runs_dir / begun.run_dir, say=note, phases=tonight.phases)
        except InputError as error:
            reason = str(error)
        else:
            note(f"this night was begun before: its study in {session.run_dir} goes on")
            return session
    note(f"this night was begun before, and is begun anew: {reason}")
    return None


def _known_to(begun: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return tonight's hashes, less that of free parameters where the night was begun without."""
    return {name: hash_ for name, hash_ in now.items() if name != "free" or name in begun}


def _begun(
    tonight: _Tonight, champion: Champion, assembly: Assembly, data: dict[str, Any]
) -> Session:
    """Begin tonight's study, and write that down."""
    records, note = tonight.records, tonight.note
    last = records.nights[-1] if records.nights else None
    if last is not None and last.summary is None and last.night != tonight.night:
        note(f"the night of {last.night} was not finished; its trials help tonight's search")
    earlier = Earlier()
    if tonight.config.budget.trials != 0:
        earlier = warmed(assembly, records, say=note)
    session = begin(assembly, earlier=earlier)
    records.write(
        "begun",
        night=tonight.night.isoformat(),
        run_dir=session.run_dir.name,
        study_id=session.study.header.study_id,
        champion=asdict(champion),
        data=data,
    )
    return session


def record_score(
    records: Records,
    assembly: Assembly,
    baseline: Trial,
    run_dir: Path,
    *,
    champion: str,
    night: date,
) -> Score | None:
    """Write down what the champion scored tonight on the tune queries; None where it failed."""
    if baseline.objective is None:
        return None
    part_name: str | None = None
    values: tuple[float | None, ...] = ()
    objective = assembly.plan.objective
    per_query = per_query_if_whole(run_dir / JOURNAL_FILE, baseline.evaluated_as)
    if per_query and all(name in per_query for name in objective.weights):
        by_query = objective.by_query(per_query, baseline.metrics)
        values = tuple(None if math.isnan(x) else round(float(x), 9) for x in by_query)
        part_name, part = part_of(assembly.tune_queries)
        remember_part(records, part_name, part)
    score = Score(night, champion, float(baseline.objective), part_name, values)
    write_score(records, score)
    return score


def write_score(records: Records, score: Score) -> None:
    """Write a score down."""
    records.write(
        "scored",
        night=score.night.isoformat(),
        champion=score.champion,
        mean=score.mean,
        part=score.part,
        by_query=list(score.by_query),
    )


def check_drift(records: Records, champion: str, night: date) -> DriftReport:
    """Look for drift in the champion's score up to a night: all queries, and by query type.

    Only nights of the same champion are compared: a better or worse one is no drift.
    """
    latest = {one.night: one for one in records.scores if one.champion == champion}
    observations = [
        seen
        for day, score in sorted(latest.items())
        if day <= night
        for seen in _observations(records, score)
    ]
    return find_drift(observations, [Measure(SCORE)], windows=Windows.until(night), mix_effect=None)


def _observations(records: Records, score: Score) -> list[Observation]:
    part = None if score.part is None else records.parts.get(score.part)
    if part is None or len(part.digests) != len(score.by_query):
        return [Observation(score.night, {SCORE: score.mean})]
    return [
        Observation(score.night, {SCORE: math.nan if value is None else value}, digest, kind)
        for digest, kind, value in zip(part.digests, part.types, score.by_query, strict=True)
    ]
