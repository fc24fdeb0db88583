"""Nights in MLflow: what a night said as tags of its study's run, and the scores by day as curves.

The curves are metrics of one run, ``nights of NAME``: a step is a day, counted from the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from tuner.core.errors import TunerError
from tuner.tracking._client import quiet
from tuner.tracking._records import ROLE
from tuner.tracking._uri import absolute, mask
from tuner.tracking._uri import without_password as hide
from tuner.tracking._writer import one_line

OF = "tuner.nights_of"
FIRST = "tuner.first_night"


def show_night(
    uri: str,
    experiment: str,
    *,
    name: str,
    night: date,
    run_id: str | None,
    tags: Mapping[str, str],
    metrics: Mapping[str, float],
    request_timeout_s: int = 10,
) -> None:
    """Tag the run of a night's study, and add the night's figures to the curves of ``name``.

    Raises:
        TunerError: the store cannot be reached.
    """
    try:
        with quiet(request_timeout_s=request_timeout_s):
            from mlflow import MlflowClient

            client = MlflowClient(tracking_uri=absolute(uri))
            if run_id is not None:
                for key, value in tags.items():
                    client.set_tag(run_id, key, value)
            _add(client, experiment, name, night, metrics)
    except Exception as error:  # whatever MLflow, SQLAlchemy or the network raise
        reason = hide(one_line(error), uri)
        raise TunerError(f"MLflow at {mask(uri)} was not told of the night: {reason}") from error


def _add(
    client: Any, experiment: str, name: str, night: date, metrics: Mapping[str, float]
) -> None:
    experiment_id = client.get_experiment_by_name(experiment).experiment_id
    mine = f"tags.`{OF}` = '{name}'"
    runs = client.search_runs([experiment_id], mine, max_results=1)
    if runs:
        run = runs[0]
    else:
        tags = {ROLE: "nights", OF: name, FIRST: night.isoformat()}
        run = client.create_run(experiment_id, tags=tags, run_name=f"nights of {name}")
    first = date.fromisoformat(run.data.tags[FIRST])
    noon_ms = round(datetime.combine(night, time(12), tzinfo=UTC).timestamp() * 1000)
    for metric, value in metrics.items():
        client.log_metric(
            run.info.run_id, metric, value, timestamp=noon_ms, step=(night - first).days
        )
    client.set_terminated(run.info.run_id)
