"""Run a session with progress on one side and results on the other; shared by run and resume."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tuner.cli.options import note
from tuner.cli.out import echo
from tuner.core.errors import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED
from tuner.core.json_text import json_text
from tuner.core.run_files import REPORT_FILE
from tuner.core.steps import START, Phases, duration
from tuner.core.study_facts import NextStep, StudyFacts, asked_told, spent_told, study_facts
from tuner.report import write_study_report
from tuner.report.live.beside import PageBeside, page_beside
from tuner.run.progress import Progress, progress_for

if TYPE_CHECKING:
    from tuner.core.study_record import StudySummary
    from tuner.run.session import Session, Tuned

_EXIT_CODES = {"finished": EXIT_DONE, "failed": EXIT_FAILED, "interrupted": EXIT_INTERRUPTED}


def tune(
    opened: Callable[[Progress, Phases], Session],
    *,
    quiet: bool,
    as_json: bool,
    is_watched: bool = False,
) -> int:
    """Open a session, run it, print how it ended, and return the exit code.

    ``is_watched`` serves the study's page meanwhile, and until Ctrl-C after it has ended.
    """
    with ExitStack() as page_open:
        page: PageBeside | None = None
        with progress_for(quiet=quiet) as progress:
            phases = Phases(progress.step)
            session = opened(progress, phases)
            if is_watched:
                with phases.phase(START):
                    page = page_open.enter_context(page_beside(session.run_dir))
                progress.say(_watched_at(page, session))
            if not quiet:
                from tuner.run.planning import (
                    decided_by_clock,  # it takes long, and the clock runs here
                )

                progress.say(_headline(session))
                if (remark := decided_by_clock(session.assembly.config)) is not None:
                    progress.say(remark)
            progress.follow(session.study.shown_arms, session.study.trials)
            tuned = session.run(
                on_event=progress.show,
                say=progress.say,
                phases=phases,
                write_report=write_study_report,
                watch=progress.watch,
            )
        if as_json:
            echo(json_text(_record(tuned), indent=2))
        else:
            _print(tuned, session)
        # Who has interrupted the study wants to leave.
        if page is not None and tuned.summary.state != "interrupted":
            page.stay(note)
    return _EXIT_CODES[tuned.summary.state]


def _watched_at(page: PageBeside | None, session: Session) -> str:
    if page is None:
        return f"no page to watch, its process has ended; try: tuner watch {session.run_dir}"
    return f"watch at {page.address}"


def _headline(session: Session) -> str:
    header = session.study.header
    arms = ", ".join(f"{arm.name} {arm.budget}" for arm in session.study.shown_arms)
    data = header.dataset
    if not data:
        return f"study {header.name}: {arms} trials of a system that measures itself"
    return (
        f"study {header.name}: {arms} trials on {data['name']} "
        f"({data['documents']} documents, {data['tune_queries']} queries to tune on, "
        f"{data['holdout_queries']} held out)"
    )


def _print(tuned: Tuned, session: Session) -> None:
    from tuner.cli.tables import print_summary

    summary, header = tuned.summary, session.study.header
    facts = study_facts(header, summary)
    if summary.best is not None:
        print_summary(header, summary)
        echo()
    if summary.best is not None and summary.best.violation > 0:
        echo("no configuration met the constraints; `best` is the one closest to them")
    if summary.state == "failed" and summary.reason:
        echo(f"{summary.reason}\n", bold=True)
    for line in (
        _times(summary),
        ", ".join(facts.trials),
        *_reason(summary),
        *(f"{label:<15}{words}" for label, words in spent_told(summary)),
        *_savings(summary),
        *([facts.indexes] if facts.indexes else []),
        *_exhausted(tuned, session),
        *_failures(session),
        *(f"note           {remark}" for remark in summary.remarks),
        *([calls] if (calls := asked_told(header, summary)) else []),
        *_places(tuned),
        *_next_steps(tuned, session, facts),
    ):
        echo(line)


def _times(summary: StudySummary) -> str:
    """Say what the user waited for, and where it went."""
    earlier = f" ({summary.with_earlier_sessions})" if summary.with_earlier_sessions else ""
    took = f"{duration(summary.seconds)}{earlier}"
    return f"{summary.state} after {took}: {summary.where_it_went}".removesuffix(": ")


def _reason(summary: StudySummary) -> list[str]:
    """Say what interrupted a study, where it was not the user, or which limit ended it."""
    if summary.state == "interrupted" and summary.reason:
        return [f"stopped        {summary.reason}"]
    return [f"ended          {summary.ended_by}"] if summary.ended_by else []


def _savings(summary: StudySummary) -> list[str]:
    """Say what racing saved, and why where it could not."""
    if (racing := summary.racing) is None:
        return []
    return [racing.sentence, *([f"note           {racing.note}"] if racing.note else [])]


def _exhausted(tuned: Tuned, session: Session) -> list[str]:
    """Say which arms asked for less than their budget although the study went to its end."""
    if tuned.summary.state != "finished":
        return []
    why = "" if tuned.summary.ended_by else ": it has no further point to try"
    return [
        f"{arm.name:<14} {session.asked(arm.name)} of {arm.budget} trials{why}"
        for arm in session.study.shown_arms
        if session.asked(arm.name) < arm.budget
    ]


def _failures(session: Session) -> list[str]:
    """Show the latest reason for a failure, as one is mostly like the others."""
    errors = [trial.error for trial in session.study.trials if trial.error]
    return [f"last failure   {errors[-1]}"] if errors else []


def _places(tuned: Tuned) -> list[str]:
    lines = [f"run directory  {tuned.run_dir}"]
    if (tuned.run_dir / REPORT_FILE).is_file():
        lines.append(f"report         {tuned.run_dir / REPORT_FILE}")
    if tuned.mlflow_run_id is not None:
        lines.append(f"MLflow run     {tuned.mlflow_url or tuned.mlflow_run_id}")
    return lines


def _next_steps(tuned: Tuned, session: Session, facts: StudyFacts) -> list[str]:
    if tuned.summary.state == "interrupted":
        return [f"go on with     tuner resume {tuned.run_dir}"]
    look = [f"look at it     tuner ui {tuned.run_dir}"] if tuned.mlflow_run_id else []
    if tuned.summary.is_worth_retrying:
        look.append(f"{'try again':<15}tuner resume {tuned.run_dir} --retry-failed")
    if tuned.summary.best is None or facts.next_step is NextStep.RETRY:
        return look
    no_baseline = facts.next_step is NextStep.DECIDE and session.study.header.baseline is None
    is_to_use = facts.next_step is NextStep.DEPLOY or no_baseline
    label = "use it" if is_to_use else tuned.summary.called
    return [*look, f"{label:<15}{tuned.run_dir}/best.yaml"]


def _record(tuned: Tuned) -> dict[str, Any]:
    summary = tuned.summary.to_record()
    return {
        "run_dir": str(tuned.run_dir),
        "mlflow_run_id": tuned.mlflow_run_id,
        "mlflow_url": tuned.mlflow_url,
        **summary,
        "arms": {standing["arm"]: standing for standing in summary["arms"]},
    }
