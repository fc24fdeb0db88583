"""Reads from MLflow what earlier runs logged, for questions about how a metric moved."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.core.errors import InputError, did_you_mean
from tuner.tracking.mlflow.client import Client, all_runs
from tuner.tracking.mlflow.quiet import reaching
from tuner.tracking.mlflow.records import ROLE, STUDY_ID, Point, RunContent
from tuner.tracking.uri import absolute, check_experiment, check_there, check_uri, mask


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
