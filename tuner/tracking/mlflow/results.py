"""What a study leaves in MLflow at its end: files, tables, a registered model, a description."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tuner.core.errors import InputError
from tuner.core.journal import read_journal
from tuner.core.json_text import json_text, text_digest
from tuner.core.run_files import (
    BEST_FILE,
    FIGURES_DIR,
    JOURNAL_FILE,
    PLOTS_DIR,
    POLICY_FILE,
    QUERIES_FILE,
    REPORT_DATA_DIR,
    REPORT_FILE,
    TABLE_FILE,
    TRIALS_DIR,
    TRIALS_TABLE_FILE,
)
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.tracking.mlflow.client import Client, FoundRun
from tuner.tracking.mlflow.kept_values import VALUES_FILE, pack_values
from tuner.tracking.mlflow.note import experiment_note
from tuner.tracking.mlflow.traces import changed_most
from tuner.tracking.mlflow.trial_table import trial_table
from tuner.tracking.mlflow.values import uploadable
from tuner.tracking.mlflow.versions import version_content, write_model

# Uploaded at the end of the study, where the run directory has them.
RESULTS = (
    *(BEST_FILE, JOURNAL_FILE, POLICY_FILE, REPORT_FILE),
    *(REPORT_DATA_DIR, PLOTS_DIR, FIGURES_DIR, QUERIES_FILE, TRIALS_DIR),
)
# What a result is called among the artifacts, where that is another name.
_CALLED = {QUERIES_FILE: TABLE_FILE, TRIALS_DIR: VALUES_FILE}
NOTE = "mlflow.note.content"
_TABLES = "mlflow.loggedArtifacts"
_NOTE_DIGEST = "tuner.note"
_NOTE_STUDY = "tuner.note_of"
# The two whose queries the table compares.
_SIDES = ("winner", "baseline")


def upload_result(
    client: Client, run_id: str, header: StudyHeader, run_dir: Path, name: str
) -> None:
    """Store a file or a folder of the run directory as artifacts; nothing where it has none."""
    path = run_dir / name
    if name == QUERIES_FILE:
        if path.is_file():
            _upload_table(client, run_id, _queries(run_dir), TABLE_FILE)
    elif name == TRIALS_DIR:
        _upload_values(client, run_id, run_dir)
    elif path.is_dir():
        client.log_folder(run_id, path, name)
    elif path.is_file():
        with uploadable(path, header) as file:
            client.log_file(run_id, file)
        if name == JOURNAL_FILE:
            with suppress(InputError):  # whoever opens the study says what is wrong with it
                _upload_table(client, run_id, _trials(run_dir, header), TRIALS_TABLE_FILE)


def uploaded(run_dir: Path) -> list[str]:
    """Return the names that the results of a run directory have as artifacts."""
    there = [name for name in RESULTS if (run_dir / name).exists()]
    return [_CALLED.get(name, name) for name in there]


def register_winner(
    client: Client, run_id: str, header: StudyHeader, summary: StudySummary, run_dir: Path
) -> bool:
    """Make the winner a version of the study's registered model; say whether it was missing."""
    content = version_content(header, summary, run_dir)
    if content is None:
        return False
    return client.add_version(run_id, content, lambda folder: write_model(folder, run_dir, header))


def trace_queries(
    client: Client, run_id: str, header: StudyHeader, summary: StudySummary, run_dir: Path
) -> int:
    """Show the queries that changed most as traces of the study's run; say how many it lacked."""
    if summary.state != "finished":
        return 0
    return client.set_traces(run_id, header.study_id, changed_most(header, summary, run_dir))


def describe(client: Client, run: FoundRun, text: str) -> None:
    """Set a run's description, unless somebody has written another one there."""
    there = client.tags(run.run_id)
    current = there.get(NOTE, "")
    if not text or current == text or (current and there.get(_NOTE_DIGEST) != text_digest(current)):
        return
    client.tag(run.run_id, {NOTE: text, _NOTE_DIGEST: text_digest(text)})


def describe_experiment(
    client: Client, header: StudyHeader, summary: StudySummary, run_id: str
) -> None:
    """Say in the experiment's description how its latest study came out, and where all are.

    What somebody else has written there stays, and so does what is said of a later study.
    """
    there = client.experiment_tags()
    current, created_ms = there.get(NOTE, ""), round(header.created_at * 1000)
    is_theirs = bool(current) and there.get(_NOTE_DIGEST) != text_digest(current)
    said_of = there.get(_NOTE_STUDY, "")
    is_of_a_later = said_of.isdecimal() and int(said_of) > created_ms
    if is_theirs or is_of_a_later or summary.state == "interrupted":
        return
    text = experiment_note(header, summary, client.experiment_id, run_id)
    if text != current:
        digest = {_NOTE_DIGEST: text_digest(text), _NOTE_STUDY: str(created_ms)}
        client.tag_experiment({NOTE: text, **digest})


def _upload_values(client: Client, run_id: str, run_dir: Path) -> None:
    if not (run_dir / TRIALS_DIR).is_dir():
        return
    with TemporaryDirectory(prefix="tuner-mlflow-") as folder:
        packed = Path(folder, VALUES_FILE)
        if pack_values(run_dir, packed):
            client.log_file(run_id, packed)


def _upload_table(client: Client, run_id: str, table: Mapping[str, Any], name: str) -> None:
    """Store a table as ``mlflow.log_table`` does.

    Not by ``log_table`` itself, which appends to what is there: a second time would double it.
    """
    with TemporaryDirectory(prefix="tuner-mlflow-") as folder:
        path = Path(folder, name)
        path.write_text(json_text(table), encoding="utf-8")
        client.log_file(run_id, path)
    before = client.tags(run_id).get(_TABLES)
    if (tag := _with_table(before, name)) != before:
        client.tag(run_id, {_TABLES: tag})


def _trials(run_dir: Path, header: StudyHeader) -> dict[str, list[Any]]:
    return trial_table(header, read_journal(run_dir / JOURNAL_FILE).trials.values())


def _queries(run_dir: Path) -> dict[str, list[Any]]:
    lines = (run_dir / QUERIES_FILE).read_text(encoding="utf-8").split("\n")
    return query_table([json.loads(line) for line in lines if line.strip()])


def query_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return columns and data: a row a query, that which lost most first, undefined ones last."""
    names = list(dict.fromkeys(name for row in rows for name in row["winner"]["metrics"]))
    columns = [
        *("query_id", "query", "query_type", "change"),
        *(f"{side} composite" for side in _SIDES),
        *(f"{side} {name}" for name in names for side in _SIDES),
        *(f"{side} retrieved" for side in _SIDES),
        *("relevant", "part"),
    ]
    ordered = sorted(rows, key=_losses_first)
    return {"columns": columns, "data": [_cells(row, names) for row in ordered]}


def _with_table(tag: str | None, name: str) -> str:
    """Return the tag by which MLflow knows a run's tables, with ours in it."""
    ours = {"path": name, "type": "table"}
    tables = json.loads(tag or "[]")
    return json.dumps(tables if ours in tables else [*tables, ours])


def _cells(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    sides = [row[side] for side in _SIDES]
    return [
        *(row[name] for name in ("query_id", "query", "query_type")),
        _change(row),
        *(side["composite"] for side in sides),
        *(side["metrics"].get(name) for name in names for side in sides),
        *([passage["id"] for passage in side["retrieved"]] for side in sides),
        *(row["relevant"], row["part"]),
    ]


def _change(row: Mapping[str, Any]) -> float | None:
    winner, baseline = (row[side]["composite"] for side in _SIDES)
    # Rounded, as a difference of two decimals shows its last binary digits.
    return None if winner is None or baseline is None else round(winner - baseline, 12)


def _losses_first(row: Mapping[str, Any]) -> tuple[bool, float]:
    change = _change(row)
    return (change is None, change or 0.0)
