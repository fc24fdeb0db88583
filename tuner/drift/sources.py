"""Where observations are found: files, run directories, MLflow."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from tuner.core.checks import parse_day
from tuner.core.errors import InputError, did_you_mean
from tuner.core.journal import read_journal, read_per_query
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial
from tuner.datasets.lines import ProblemLog, read_text
from tuner.datasets.tables import csv_rows, json_rows, number_of
from tuner.drift.observations import Observation
from tuner.evaluation.objective import Objective
from tuner.run.folder import last_summary
from tuner.study.results import BASELINE_ARM

DATE_COLUMNS = ("date", "day", "time", "timestamp")
QUERY_COLUMNS = ("query_id", "query-id", "qid")
TYPE = "query_type"
# Whatever their cells hold, these are figures: a score that cannot be read must not go unwatched.
FIGURES = ("score", "objective", "graph_used", "retrieved", "without_graph", "empty", "latency_ms")

Row = Mapping[str, Any]

_parse_day = lru_cache(maxsize=4096)(parse_day)  # the lines of a day stand together


def read_observations(path: Path) -> tuple[Observation, ...]:
    """Read a CSV file or JSON lines with a column ``date`` and figures in any others.

    A date is ISO 8601 (``2024-03-01``, or with a time; one with an offset is taken in UTC).
    ``query_id`` and ``query_type`` are known; true and false count 1 and 0; an empty cell, null
    or NaN is undefined. Columns that hold other text are left out.

    Raises:
        InputError: not such a file, or lines that are wrong, with their numbers.
    """
    log = ProblemLog()
    text = read_text(path, log)
    if text is None:
        raise InputError(problems=log.problems())
    is_json = text.lstrip().startswith(("{", "["))

    def rows(log: ProblemLog) -> Iterator[tuple[int, Row]]:
        return json_rows(text, path, log) if is_json else _csv_rows(text, path, log)

    # Read twice: the rows of a year of logs take many times the room of what is kept of them.
    names, figures = _columns(row for _, row in rows(log))
    if not names and not log.mentions(path):
        raise InputError("holds no observation", file=str(path))
    date_column = next((name for name in DATE_COLUMNS if name in names), None)
    if date_column is None:
        if names:
            message = f"no column is called {' or '.join(DATE_COLUMNS)}; the columns are: "
            log.add("date", message + ", ".join(names), path)
        raise InputError(problems=log.problems())
    found = []
    for line, row in rows(ProblemLog()):  # whatever is wrong with the lines is known by now
        day = _day_of_line(row, date_column, path, line, log)
        values = {}
        for name in figures:
            if name not in row:
                continue
            try:
                values[name] = number_of(name, row[name])
            except ValueError as error:
                log.add(f"number {name}", str(error), path, line)
        if day is not None:
            found.append(Observation(day, values, _label(row, *QUERY_COLUMNS), _label(row, TYPE)))
    log.refuse()
    return tuple(found)


def _csv_rows(text: str, path: Path, log: ProblemLog) -> Iterator[tuple[int, Row]]:
    rows = csv_rows(text, path, log)
    line, header = next(rows, (1, []))
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        log.add("twice", f"columns that stand there more than once: {', '.join(twice)}", path, line)
        return
    for number, fields in rows:
        yield number, dict(zip(header, fields, strict=True))


def _columns(rows: Iterable[Row]) -> tuple[list[str], list[str]]:
    """Return all columns, and those of figures: known ones, and any whose cells are mostly numbers.

    A stray text in one of these is an error later.
    """
    labels = {*DATE_COLUMNS, *QUERY_COLUMNS, TYPE}
    balance: dict[str, int] = {}
    filled: set[str] = set()
    for row in rows:
        for name, cell in row.items():
            balance.setdefault(name, 0)
            if name not in labels and name not in FIGURES and not _is_blank(cell):
                filled.add(name)
                balance[name] += 1 if _is_number(name, cell) else -1
    figures = [
        name
        for name in balance
        if name not in labels and (name in FIGURES or name not in filled or balance[name] > 0)
    ]
    return list(balance), figures


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_number(name: str, cell: Any) -> bool:
    try:
        number_of(name, cell)
    except ValueError:
        return False
    return True


def _day_of_line(row: Row, column: str, path: Path, line: int, log: ProblemLog) -> date | None:
    written = row.get(column)
    if not isinstance(written, str):
        log.add("date", f"{column} is {written!r}; write 2024-03-01", path, line)
        return None
    try:
        return _parse_day(written)
    except ValueError as error:
        log.add("date", str(error), path, line)
        return None


def _label(row: Row, *columns: str) -> str:
    for name in columns:
        written = row.get(name)
        if written is not None:
            return sys.intern(str(written).strip())  # the same few ids, day after day
    return ""


OBJECTIVE = "objective"


def observations_of(
    sources: Sequence[str], *, of: str, nights_of: Callable[[Path], Mapping[str, date]]
) -> list[Observation]:
    """Read files, run directories, and folders of run directories.

    ``nights_of`` returns, for the studies in a folder, which night each was of.

    Raises:
        InputError: none of these, or a broken one.
    """
    found: list[Observation] = []
    for source in sources:
        path = Path(source).expanduser()
        if not path.is_dir():
            found += map(_derived, read_observations(path))
            continue
        run_dirs = [path]
        if not (path / JOURNAL_FILE).is_file():
            run_dirs = sorted(one.parent for one in path.glob(f"*/{JOURNAL_FILE}"))
        if not run_dirs:
            raise InputError(f"{source!r} is no run directory, and holds none")
        nights = nights_of(run_dirs[0].parent)
        for run_dir in run_dirs:
            found += _of_run(run_dir / JOURNAL_FILE, of, nights)
    return found


def observations_of_experiment(
    uri: str, experiment: str, tags: Mapping[str, str], metrics: Sequence[str]
) -> list[Observation]:
    """Read the runs of an MLflow experiment; metrics may be named as here or as there.

    Raises:
        InputError: no such store or experiment, or no run that has the metrics.
    """
    from tuner.tracking.history import read_history
    from tuner.tracking.mlflow.values import clean_name

    runs = read_history(uri, experiment, tags=tags)
    there = {name for run in runs for name in run.metrics}
    if not runs:
        raise InputError(f"experiment {experiment!r} has no run with these tags")
    if not metrics:
        raise InputError(f"name a metric of experiment {experiment!r} by --metric{_list(there)}")
    for name in metrics:
        if clean_name(name) not in there:
            hint = did_you_mean(clean_name(name), there)
            raise InputError(f"no run of experiment {experiment!r} has the metric {name!r}{hint}")
    return [
        Observation(
            _day(run.start_ms / 1000.0),
            {name: run.metrics.get(clean_name(name), math.nan) for name in metrics},
        )
        for run in runs
    ]


def _list(names: Iterable[str]) -> str:
    return f"; it has {', '.join(sorted(names))}"


def _derived(one: Observation) -> Observation:
    """Add what is watched instead of its opposite: empty results, and queries without the graph."""
    more = {}
    if "empty" not in one.values and "retrieved" in one.values:
        count = one.values["retrieved"]
        more["empty"] = count if math.isnan(count) else float(count == 0)
    if "without_graph" not in one.values and "graph_used" in one.values:
        more["without_graph"] = 1.0 - one.values["graph_used"]
    return replace(one, values={**one.values, **more}) if more else one


def _of_run(journal: Path, of: str, nights: Mapping[str, date]) -> list[Observation]:
    """Return what a study measured, on the day on which it began; a night's, on that night.

    The baseline was not chosen by its tune queries, so these are told one by one; a winner was,
    and only its figures on the held-out queries do not flatter it.
    """
    content = read_journal(journal)
    day = nights.get(content.header.study_id, _day(content.header.created_at))
    if of == "winner":
        summary = last_summary(content)
        chosen = None if summary is None else summary.chosen
        if chosen is None:
            return []
        if chosen.holdout_objective is None:
            return [Observation(day, {OBJECTIVE: chosen.tune_objective, **chosen.tune_metrics})]
        return [Observation(day, {OBJECTIVE: chosen.holdout_objective, **chosen.holdout_metrics})]
    found: list[Observation] = []
    for trial in content.trials.values():
        if trial.arm == BASELINE_ARM and trial.objective is not None:
            found += map(_derived, _of_trial(journal, content.header, trial, day))
    return found


def _of_trial(journal: Path, header: StudyHeader, trial: Trial, day: date) -> list[Observation]:
    per_query = read_per_query(journal, trial.evaluated_as)
    weights = header.objective.get("maximize", {})
    if not per_query or any(name not in per_query for name, weight in weights.items() if weight):
        mean = math.nan if trial.objective is None else trial.objective
        return [Observation(day, {OBJECTIVE: mean, **trial.metrics})]
    objective = Objective(weights, header.objective.get("price") or {})
    values = {OBJECTIVE: objective.by_query(per_query, trial.metrics), **per_query}
    # The rows of two studies are the same queries where these hash to the same.
    part = header.fingerprints.get("split", header.study_id)
    return [
        Observation(
            day,
            {name: float(row[number]) for name, row in values.items()},
            query_id=f"{part}/{number}",
        )
        for number in range(len(values[OBJECTIVE]))
    ]


def _day(seconds: float) -> date:
    return datetime.fromtimestamp(seconds, tz=UTC).date()
