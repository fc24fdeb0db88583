"""Nights in MLflow: what a night said as tags of its study's run, and the scores by day as curves.

The curves are metrics of one run, ``nights of NAME``: a step is a day, counted from the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from tuner.tracking.mlflow.quiet import reaching, reason_of
from tuner.tracking.mlflow.records import ROLE, STUDY_ID
from tuner.tracking.mlflow.saved_views import NIGHT_COLUMNS, STUDIES, with_columns
from tuner.tracking.uri import absolute, mask

OF = "tuner.nights_of"
FIRST = "tuner.first_night"


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
                noon = datetime.combine(night, time(12), tzinfo=UTC)
                at_ms = round(noon.timestamp() * 1000)
                client.log_metric(run_id, metric, of_one[metric], timestamp=at_ms, step=step)
    client.set_terminated(run_id)
