"""One finished run in MLflow: figures, tags and files of something that is not a study."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tuner.tracking.mlflow.client import Client
from tuner.tracking.mlflow.quiet import reaching
from tuner.tracking.mlflow.records import Point, RunContent
from tuner.tracking.uri import absolute, check_experiment, check_uri, mask


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
