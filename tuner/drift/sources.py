"""Where observations are found: files, run directories, MLflow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from tuner.core.errors import InputError, did_you_mean
from tuner.core.journal import read_journal, read_per_query
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial
from tuner.drift.observations import Observation
from tuner.drift.reading import read_observations
from tuner.evaluation.objective import Objective
from tuner.run.folder import last_summary
from tuner.study.results import BASELINE_ARM

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
