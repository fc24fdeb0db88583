"""A run directory: its files, what they are called, and how they are written and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tuner.config import Config, load_config
from tuner.config.params import is_json
from tuner.core.errors import InputError
from tuner.core.files import write_whole
from tuner.core.journal import OPENINGS, JournalContent, read_journal
from tuner.core.json_text import json_text, without_undefined
from tuner.core.run_files import (
    ASKED_FILE,
    BEST_FILE,
    CONFIG_FILE,
    JOURNAL_FILE,
    SO_FAR,
    TRIALS_DIR,
)
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.core.trial import Params
from tuner.datasets import BUILTIN
from tuner.retrieval.base import Measures
from tuner.retrieval.wrapped.around import is_engine
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.assembly import Assembly
from tuner.run.planning import waits
from tuner.tracking.uri import absolute, holds_password, mask
from tuner.verdict.looks import TunedOn

ANSWERS_DIR = "answers"
_TIMES = ("seconds", "seconds_by_phase", "seconds_in_all", "index_wait_s")
SUMMARY_NOTE = "summary"
TIMES_NOTE = "times"  # written last, when everything that takes time is over


def new_run_dir(runs_dir: Path, header: StudyHeader) -> Path:
    """Make a directory named after the study and the time; never one that exists.

    Raises:
        InputError: the folder cannot be written to.
    """
    stamp = datetime.fromtimestamp(header.created_at).strftime("%Y%m%d-%H%M%S")
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        run_dir = runs_dir / f"{header.name}-{stamp}{suffix}"
        try:
            run_dir.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(
                f"cannot make the run directory {str(run_dir)!r}: {error.strerror}",
                key=("study", "runs_dir"),
            ) from error
        return run_dir
    raise InputError(f"too many studies called {header.name!r} in one second")


def read_run(run_dir: Path) -> tuple[JournalContent, Config]:
    """Read a run directory without opening its data.

    Raises:
        InputError: not a run directory, or a broken one.
    """
    content = read_journal(journal_in(run_dir))
    return content, load_config(run_dir / CONFIG_FILE)[0]


def last_summary(content: JournalContent) -> StudySummary | None:
    """Return the summary that ended a study, or None if it never ended.

    Its times are those of when it was written, before the report.

    Raises:
        InputError: what it holds is not what a summary holds.
    """
    notes = [note for note in content.notes if note.get("kind") == SUMMARY_NOTE]
    return _summary(content, notes[-1]) if notes else None


def timed_summary(content: JournalContent) -> StudySummary | None:
    """Return the last summary with all that the session took, where it came to write that down.

    Raises:
        InputError: what it holds is not what a summary holds.
    """
    kinds = (SUMMARY_NOTE, TIMES_NOTE)
    record: dict[str, Any] = {}
    for note in content.notes:
        if note.get("kind") in kinds:
            is_new = note["kind"] == SUMMARY_NOTE
            record = dict(note) if is_new else {**record, **_times_in(note)}
    return _summary(content, record) if "kind" in record else None


def _times_in(note: Mapping[str, Any]) -> dict[str, Any]:
    return {name: note[name] for name in _TIMES if name in note}


def _summary(content: JournalContent, record: Mapping[str, Any]) -> StudySummary:
    try:
        return StudySummary.from_record(record)
    except ValueError as error:
        folder = Path(content.file).parent
        message = f"the study's summary is damaged ({error}); write it anew: tuner resume {folder}"
        raise InputError(message, file=content.file) from error


def times_record(summary: StudySummary) -> dict[str, Any]:
    """Return what a session took, as the last note of its journal holds it."""
    return {name: getattr(summary, name) for name in _TIMES}


def earlier_seconds(content: JournalContent) -> float:
    """Return what earlier sessions took; of one that was killed, until its last line."""
    sessions: list[float] = []
    for note in content.notes:
        with suppress(ValueError, KeyError, TypeError):
            if note.get("kind") in OPENINGS:
                sessions.append(content.session_seconds[len(sessions)])
            elif note.get("kind") == TIMES_NOTE and sessions:
                sessions[-1] = float(note["seconds"])
    return sum(sessions)


def write_best(
    run_dir: Path,
    header: StudyHeader,
    summary: StudySummary,
    complete: Callable[[Params], Params],
) -> None:
    """Write ``best.yaml``: the winner's parameters, and how it did.

    Nothing where none is scored, or where the study failed: what a part of its trials found is no
    advice, and one that an earlier, interrupted run left is taken away.
    ``complete`` adds the parameters that were not tuned. The file appears whole or not at all.
    """
    best = summary.chosen
    if summary.state == "failed":
        (run_dir / BEST_FILE).unlink(missing_ok=True)
    if best is None or summary.state == "failed":
        return
    record = {
        "params": complete(best.params),
        "is_feasible": best.violation <= 0.0,
        "study": header.name,
        "study_id": header.study_id,
        "arm": best.arm,
        "trial": best.trial,
        "tuned_on": TunedOn.of(header).to_record() if header.dataset else None,
        "tune": {"objective": best.tune_objective, **best.tune_metrics},
        "holdout": None
        if best.holdout_objective is None
        else {"objective": best.holdout_objective, **best.holdout_metrics},
        "outcome": None if summary.verdict is None else summary.verdict["outcome"],
        "verdict": None if summary.verdict is None else summary.verdict["sentence"],
    }
    text = yaml.safe_dump(without_undefined(record), sort_keys=False, allow_unicode=True)
    head = SO_FAR if summary.state == "interrupted" else ""
    write_whole(run_dir / BEST_FILE, f"{head}{text}")


def write_opening(run_dir: Path, assembly: Assembly) -> None:
    """Write what a study begins with: its resolved configuration, and the queries to tune on.

    The former is for its owner's eyes only where it holds a password. The latter tell whose the
    values by query of each trial are.
    """
    config = assembly.config
    text = yaml.safe_dump(resolved_config(assembly), sort_keys=False, allow_unicode=True)
    is_secret = config.tracking is not None and holds_password(config.tracking.uri)
    write_whole(run_dir / CONFIG_FILE, text, mode=0o600 if is_secret else 0o644)
    if assembly.tune_queries:
        lines = [
            json_text({"query_id": one.id, "query": one.text, "query_type": one.query_type})
            for one in assembly.tune_queries
        ]
        (run_dir / TRIALS_DIR).mkdir(exist_ok=True)
        write_whole(run_dir / ASKED_FILE, "\n".join(lines) + "\n")


def resolved_config(assembly: Assembly) -> dict[str, Any]:
    """Return the configuration with every default, and paths that hold from any folder."""
    config = assembly.config
    record: dict[str, Any] = config.model_dump(mode="json")
    if config.dataset is not None and not assembly.holdout_queries:
        # Too few to split by default: said here, a resumed study does not split them either.
        record["dataset"]["split"]["holdout"] = 0.0
    if config.dataset is not None and not config.dataset.path.startswith(BUILTIN):
        record["dataset"]["path"] = str(Path(config.dataset.path).expanduser().resolve())
    if config.dataset is not None and config.dataset.people is not None:
        record["dataset"]["people"] = str(Path(config.dataset.people).expanduser().resolve())
    if config.tracking is not None:
        record["tracking"]["uri"] = absolute(config.tracking.uri)
    # Who is told of a night is the night's own matter, and a web hook's address is a secret.
    record["nightly"]["notify"] = None
    return record


def without_password(record: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration as the journal holds it, which others may read."""
    if record["tracking"] is None:
        return record
    return {**record, "tracking": {**record["tracking"], "uri": mask(record["tracking"]["uri"])}}


def remembering(assembly: Assembly, run_dir: Path) -> Assembly:
    """Let answers be kept in the run directory, but for the engine's, which come from memory.

    Those of a quick system too where each may cost money: of a service, where there is a cost, and
    where a budget counts queries. So it is known from the start what a verdict asks at most.
    """
    if isinstance(assembly.retriever, Measures) or is_engine(assembly.retriever):
        return assembly
    folder = (run_dir / ANSWERS_DIR).resolve()
    folder.mkdir(exist_ok=True)
    remembered = Remembered(assembly.retriever, folder, is_paid=_is_paid(assembly.config))
    return replace(assembly, retriever=remembered)


def _is_paid(config: Config) -> bool:
    return waits(config) or config.cost is not None or config.budget.is_of_queries


def remembering_from(assembly: Assembly, written: Sequence[str | None]) -> Assembly:
    """Take what the first run among these asked from its folder, and do not ask it again.

    ``written`` are parameters as a command takes them: JSON, a file, or a run directory.
    """
    for one in written:
        if one is None or is_json(one):
            continue
        path = Path(one).expanduser()
        run_dir = path.parent if path.name == BEST_FILE else path
        if (run_dir / JOURNAL_FILE).is_file():
            return remembering(assembly, run_dir)
    return assembly


def journal_in(run_dir: Path) -> Path:
    """Return the path of a run directory's journal.

    Raises:
        InputError: it is no run directory; which is the latest.
    """
    if (run_dir / JOURNAL_FILE).is_file():
        return run_dir / JOURNAL_FILE
    message = f"{str(run_dir)!r} is not a run directory (it holds no {JOURNAL_FILE})"
    journals = sorted(Path("runs").glob(f"*/{JOURNAL_FILE}"), key=lambda path: path.stat().st_mtime)
    latest = f"; the latest is {str(journals[-1].parent)!r}" if journals else ""
    raise InputError(f"{message}{latest}")
