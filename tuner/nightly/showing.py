"""A night's figures in MLflow: tags on the run of its study, and curves by day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from tuner.config import Config
from tuner.core.errors import TunerError
from tuner.nightly.records import Records
from tuner.tracking.nights import show_night

Say = Callable[[str], None]


def show_in_mlflow(
    config: Config, records: Records, summary: Mapping[str, Any], *, say: Say
) -> None:
    """Show a night's summary in MLflow; what cannot be shown is said, and no more."""
    if config.tracking is None:
        return
    nights = {one.night: one.summary for one in records.nights if one.summary is not None}
    nights[date.fromisoformat(summary["night"])] = summary
    drift = summary["drift"] or {}
    try:
        show_night(
            config.tracking.uri,
            config.tracking.experiment,
            name=config.study.name,
            run_id=summary["mlflow_run_id"],
            tags={
                "tuner.night": summary["night"],
                "tuner.night_outcome": summary["outcome"],
                "tuner.champion": _called(summary["champion"]),
                "tuner.drift": str(drift.get("status", "not looked for")),
            },
            figures={night: _figures(of_one) for night, of_one in nights.items()},
        )
    except TunerError as error:
        say(str(error))


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
