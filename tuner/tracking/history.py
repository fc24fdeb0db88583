"""Beside the studies in MLflow: what earlier runs logged, single runs, and nights.

The scores of nights by day are curves of one run, ``nights of NAME``: a step is a day, counted from
the first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError, did_you_mean
from tuner.tracking.mlflow.client import Client, all_runs
from tuner.tracking.mlflow.quiet import reaching, reason_of
from tuner.tracking.mlflow.records import ROLE, STUDY_ID, Point, RunContent
from tuner.tracking.mlflow.saved_views import NIGHT_COLUMNS, STUDIES, with_columns
from tuner.tracking.uri import absolute, check_experiment, check_there, check_uri, mask

OF = "tuner.nights_of"
FIRST = "tuner.first_night"


@dataclass(frozen=True)
class LoggedRun:
    """One run: when it began, in milliseconds since 1970, and the last value of each metric."""

    run_id: str
    start_ms: int
    metrics: Mapping[str, float]
    tags: Mapping[str, str]


def read_history(
    uri: str,
    experiment: str,
    *,
    tags: Mapping[str, str] | None = None,
) -> list[LoggedRun]:
    """Return the runs of an experiment that carry all of these tags, oldest first.

    A study logs runs for itself, for its arms and for every trial: unless ``tags`` say otherwise,
    only the study's own is returned. Nothing is created or changed.

    Raises:
        InputError: no such store or experiment, or a URI that MLflow would refuse.
        TunerError: the store cannot be reached.
    """
    check_uri(uri)
    check_experiment(experiment)
    check_there(uri)
    with reaching(uri, f"cannot read from MLflow at {mask(uri)}"):
        runs = _search(absolute(uri), experiment, tags or {})
    if tags is None or ROLE not in tags:
        return [run for run in runs if run.tags.get(ROLE, "study") == "study"]
    return runs


def _search(uri: str, experiment: str, tags: Mapping[str, str]) -> list[LoggedRun]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    found = client.get_experiment_by_name(experiment)
    if found is None:
        known = [one.name for one in client.search_experiments()]
        raise InputError(f"no experiment {experiment!r}{did_you_mean(experiment, known)}")
    return [
        LoggedRun(
            run.info.run_id,
            run.info.start_time,
            _in_words_of_today(run.data.metrics, run.data.tags),
            dict(run.data.tags),
        )
        for run in all_runs(client, found.experiment_id)
        # Compared here, since a filter string cannot hold every key and value.
        if all(run.data.tags.get(name) == value for name, value in tags.items())
    ]


def _in_words_of_today(metrics: Mapping[str, float], tags: Mapping[str, str]) -> dict[str, float]:
    """Return metrics under the names they have now: of the winner, of the best, of the baseline.

    Earlier versions wrote a study's winner, and an arm's best, without a name (``holdout_…``), and
    called the objective of either ``best_objective``.
    """
    side = {"study": "winner", "arm": "best"}.get(tags.get(ROLE, ""))
    nameless = {name for name in metrics if name.startswith(("tune_", "holdout_"))}
    if side is None or STUDY_ID not in tags or not nameless:
        return dict(metrics)
    named = {f"{side}_{name}": metrics[name] for name in nameless}
    rest = {name: value for name, value in metrics.items() if name not in nameless}
    if side == "winner" and "winner_objective" not in rest and "best_objective" in rest:
        rest["winner_objective"] = rest.pop("best_objective")
    return named | rest


def log_single_run(
    uri: str,
    experiment: str,
    name: str,
    *,
    params: Mapping[str, str],
    metrics: Mapping[str, float],
    tags: Mapping[str, str],
    files: Sequence[Path] = (),
) -> str:
    """Write one run and end it; metrics that are not finite are left out. Returns the run's id.

    Raises:
        InputError: a URI or a name that MLflow would refuse.
        TunerError: the store cannot be reached, or refuses what it is given.
    """
    check_uri(uri)
    check_experiment(experiment)
    uri = absolute(uri)
    now_ms = round(time.time() * 1000)
    points = [
        Point(metric, value, 0, now_ms) for metric, value in metrics.items() if math.isfinite(value)
    ]
    with reaching(uri, f"cannot write a run to MLflow at {mask(uri)}"):
        client = Client.open(uri, experiment)
        run = client.create(RunContent(name=name, tags=tags, start_ms=now_ms), None)
        client.log(run.run_id, params, points)
        for file in files:
            client.log_file(run.run_id, file)
        client.end(run.run_id, "FINISHED", round(time.time() * 1000))
    return run.run_id


def show_night(
    uri: str,
    experiment: str,
    *,
    name: str,
    tags: Mapping[str, Mapping[str, str]],
    figures: Mapping[date, Mapping[str, float]],
) -> None:
    """Tag the runs of nights' studies, and complete the curves of ``name``.

    ``tags`` are by study; one that MLflow does not have is left out. ``figures`` are those of all
    nights by metric: a night that MLflow missed is made up for.

    Raises:
        TunerError: the store cannot be reached.
    """
    with reaching(uri, f"MLflow at {mask(uri)} was not told of the night", reason=reason_of):
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=absolute(uri))
        found = client.get_experiment_by_name(experiment)
        id_ = client.create_experiment(experiment) if found is None else found.experiment_id
        for study_id, of_one in tags.items():
            _tag(client, id_, study_id, of_one)
        _show_nights(client, id_)
        _complete(client, id_, name, figures)


def _tag(client: Any, experiment_id: str, study_id: str, tags: Mapping[str, str]) -> None:
    """Tag a study's run with its night, and log the night's date to compare by."""
    own = f"tags.`{STUDY_ID}` = '{study_id}' and tags.`{ROLE}` = 'study'"
    for run in client.search_runs([experiment_id], own, max_results=1):
        for key, value in tags.items():
            client.set_tag(run.info.run_id, key, value)
        # What came of a night may change, by `tuner promote`; its date may not, nor may a param.
        if "tuner.night" in tags and "night" not in run.data.params:
            client.log_param(run.info.run_id, "night", tags["tuner.night"])


def _show_nights(client: Any, experiment_id: str) -> None:
    """Have night and outcome among the columns of the view of all studies."""
    view = client.get_experiment(experiment_id).tags.get(STUDIES, "")
    if (more := with_columns(view, NIGHT_COLUMNS)) != view:
        client.set_experiment_tag(experiment_id, STUDIES, more)


def _complete(
    client: Any, experiment_id: str, name: str, figures: Mapping[date, Mapping[str, float]]
) -> None:
    runs = client.search_runs([experiment_id], f"tags.`{OF}` = '{name}'", max_results=1)
    if runs:
        run = runs[0]
    else:
        tags = {ROLE: "nights", OF: name, FIRST: min(figures).isoformat()}
        run = client.create_run(experiment_id, tags=tags, run_name=f"nights of {name}")
    run_id, first = run.info.run_id, date.fromisoformat(run.data.tags[FIRST])
    for metric in dict.fromkeys(metric for of_one in figures.values() for metric in of_one):
        there = {one.step for one in client.get_metric_history(run_id, metric)}
        for night, of_one in sorted(figures.items()):
            step = (night - first).days
            if metric in of_one and step not in there:
                noon = datetime(night.year, night.month, night.day, 12, tzinfo=UTC)
                at_ms = round(noon.timestamp() * 1000)
                client.log_metric(run_id, metric, of_one[metric], timestamp=at_ms, step=step)
    client.set_terminated(run_id)
