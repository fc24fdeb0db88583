"""Who is told of a night: MLflow (tags, curves by day), and a command or web hook, once."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tuner.config import Config
from tuner.config.model import TrackingSection
from tuner.config.nightly import NotifySection
from tuner.core.errors import InputError, TunerError
from tuner.core.json_text import json_text
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.steps import Say
from tuner.nightly.records import Night, Records, read_records
from tuner.run.folder import read_run, timed_summary
from tuner.tracking.history import show_night
from tuner.tracking.mlflow.tracker import Mlflow

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def check_notify(section: NotifySection | None) -> None:
    """Check what can be known before a night of how it will be told.

    Raises:
        InputError: the web hook's address is none, or in a variable that is not set.
    """
    if section is None or section.webhook is None:
        return
    key = ("nightly", "notify", "webhook")
    missing = [name for name in _VARIABLE.findall(section.webhook) if not os.environ.get(name)]
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise InputError(f"the environment variable {names} is not set, or empty", key=key)
    if not re.match(r"https?://[^/\s]", _address(section.webhook)):
        raise InputError("is no address that begins with http:// or https://", key=key)


def tell(config: Config, summary: Mapping[str, Any], *, say: Say) -> dict[str, Any]:
    """Tell of a night as ``nightly.notify`` says, and return its summary with what came of it.

    Of one that somebody interrupted, or in which there was nothing to do, nobody is told.
    ``told`` is None where nobody is to be told, and ``why_not_told`` says what went wrong, which
    changes nothing else. What somebody has been told of a night is not told again, however often
    it is tried; how it ends after a failure is.
    """
    section = config.nightly.notify
    if summary["outcome"] == "nothing to do":
        return dict(summary)
    goes_on = summary["outcome"] == "interrupted" and summary["error"] is None
    if section is None or goes_on:
        return {**summary, "told": None, "why_not_told": None}
    records = read_records(Path(config.study.runs_dir), config.study.name)
    night, outcome = date.fromisoformat(summary["night"]), summary["outcome"]
    # Whoever reads it was told.
    told = {**summary, "told": True, "why_not_told": None}
    if any(
        (notice.night, notice.outcome, notice.is_told) == (night, outcome, True)
        for notice in records.notices
    ):
        say(f"the night of {night} has been told of already: {outcome}")
        return told
    reason = _hand_over(section, json_text(told, indent=2))
    if reason is not None:
        say(f"nobody was told: {reason}")
    try:
        records.write(
            "told", night=night.isoformat(), outcome=outcome, told=reason is None, why=reason
        )
    except TunerError as error:
        say(str(error))
    return {**told, "told": reason is None, "why_not_told": reason}


def _hand_over(section: NotifySection, text: str) -> str | None:
    """Hand a text over; return why that did not work, or None."""
    try:
        if section.command is not None:
            _run(section.command, text, float(section.timeout_s))
        elif section.webhook is not None:
            _post(_address(section.webhook), text, float(section.timeout_s))
    except _Failed as failure:
        return str(failure)
    return None


class _Failed(Exception):
    """Says why, without any secret."""


def _run(command: list[str], summary: str, timeout_s: float) -> None:
    try:
        done = subprocess.run(
            command,
            input=summary,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _Failed(f"{command[0]} did not end in {timeout_s:g} s") from error
    except OSError as error:
        raise _Failed(f"{command[0]}: {error.strerror or error}") from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise _Failed(": ".join([f"{command[0]} left with exit code {done.returncode}", *last]))


def _address(webhook: str) -> str:
    return _VARIABLE.sub(lambda match: os.environ.get(match[1], ""), webhook)


def _post(url: str, summary: str, timeout_s: float) -> None:
    import httpx

    try:
        headers = {"Content-Type": "application/json"}
        # The status tells all: a body that never comes to its end keeps no night waiting.
        with httpx.stream(
            "POST", url, content=summary.encode(), headers=headers, timeout=timeout_s
        ) as answer:
            is_told, status = answer.is_success, answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # Errors may quote the address, and whoever knows that can post.
        raise _Failed(f"{_host(url)}: {type(error).__name__}") from error
    if not is_told:
        raise _Failed(f"{_host(url)} answered {status}")


def _host(url: str) -> str:
    """Return what may be shown of an address: who is asked, not the secret in its path.

    >>> _host("https://user:pass@hooks.example.org:8443/services/T00/B00?token=1")
    'https://hooks.example.org'
    """
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}" if parts.hostname else "the web hook"
    except ValueError:
        return "the web hook"


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
