"""Nights in MLflow: tags on the runs of their studies, curves by day, and what it had missed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from tuner.config import Config
from tuner.config.model import TrackingSection
from tuner.core.errors import InputError, TunerError
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.steps import Say
from tuner.nightly.records import Night, Records
from tuner.run.folder import read_run, timed_summary
from tuner.tracking.mlflow.tracker import Mlflow
from tuner.tracking.nights import show_night


def show_in_mlflow(
    config: Config, records: Records, summary: Mapping[str, Any], *, say: Say
) -> None:
    """Show a night's summary in MLflow, and what it missed of earlier ones.

    What cannot be shown is said, and no more: the next night tries again.
    """
    if config.tracking is None:
        return
    tonight = records.nights[-1]
    made_up = []
    if summary["is_in_mlflow"]:
        made_up = _make_up(config.tracking, records, but=tonight.study_id, say=say)
    nights = {one.night: one.summary for one in records.nights if one.summary is not None}
    nights[date.fromisoformat(summary["night"])] = summary
    tags = {one.study_id: _tags(one.night, one.summary) for one in made_up}
    try:
        show_night(
            config.tracking.uri,
            config.tracking.experiment,
            name=config.study.name,
            tags=tags | {tonight.study_id: _tags(tonight.night, summary)},
            figures={night: _figures(of_one) for night, of_one in nights.items()},
        )
    except TunerError as error:
        say(str(error))


def sync_study(run_dir: Path, tracking: TrackingSection | None = None) -> None:
    """Complete MLflow's view of a run directory; in the store of its own where none is given.

    Raises:
        InputError: its files cannot be read.
        TunerError: the store cannot be reached.
    """
    if not (run_dir / JOURNAL_FILE).is_file():
        return
    content, config = read_run(run_dir)
    section = tracking or config.tracking
    if section is not None:
        tracker = Mlflow(section.uri, section.experiment)
        tracker.sync(content.header, content.trials.values(), timed_summary(content), run_dir)


def _make_up(tracking: TrackingSection, records: Records, *, but: str, say: Say) -> list[Night]:
    """Show MLflow the studies of earlier nights that it missed, and return these nights."""
    made_up = []
    for night in records.nights:
        run_dir = records.runs_dir / night.run_dir
        is_known = night.is_in_mlflow or night.study_id in {but, *records.synced}
        if is_known or not (run_dir / JOURNAL_FILE).is_file():
            continue
        try:
            sync_study(run_dir, tracking)
        except InputError as error:
            say(f"the night of {night.night} cannot be shown in MLflow: {error}")
            continue
        except TunerError as error:
            say(f"{error}; the next night tries again")
            break
        records.write("synced", study_id=night.study_id)
        made_up.append(night)
    if made_up:
        days = ", ".join(night.night.isoformat() for night in made_up)
        say(f"shown in MLflow, which had missed it: {days}")
    return made_up


def _tags(night: date, summary: Mapping[str, Any] | None) -> dict[str, str]:
    if summary is None:
        return {"tuner.night": night.isoformat(), "tuner.night_outcome": "not finished"}
    drift = summary["drift"] or {}
    return {
        "tuner.night": night.isoformat(),
        "tuner.night_outcome": summary["outcome"],
        "tuner.champion": _called(summary["champion"]),
        "tuner.drift": str(drift.get("status", "not looked for")),
    }


def _figures(summary: Mapping[str, Any]) -> dict[str, float]:
    champion, challenger = summary["champion"], summary["challenger"] or {}
    verdict, drift = summary["verdict"] or {}, summary["drift"] or {}
    figures = {
        "champion_score": champion["score"],
        "champion_holdout_score": champion["holdout_score"],
        "challenger_score": challenger.get("score"),
        "challenger_holdout_score": challenger.get("holdout_score"),
        "difference": verdict.get("difference"),
        "alpha": verdict.get("alpha"),
        "drift_alarm": float(drift.get("status") == "alarm"),
    }
    return {name: float(value) for name, value in figures.items() if value is not None}


def _called(champion: Mapping[str, Any]) -> str:
    version = champion["version"]
    return "baseline" if version is None else f"version {version}"
