"""Where to look in MLflow's pages: MLflow opens on pages for language models, which are empty."""

from __future__ import annotations

from tuner.tracking.mlflow.client import quiet
from tuner.tracking.mlflow.records import ROLE, STUDY_ID
from tuner.tracking.mlflow.saved_views import WORKFLOW


def places(
    uri: str, experiment: str, study_id: str | None = None, *, request_timeout_s: int = 10
) -> dict[str, str]:
    """Return addresses within the pages of a store, by what they show; ``{}`` before any study.

    Raises whatever MLflow or the network raise.
    """
    with quiet(request_timeout_s=request_timeout_s):
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=uri)
        found = client.get_experiment_by_name(experiment)
        if found is None:
            return {}
        runs = f"#/experiments/{found.experiment_id}/runs"
        shown = {}
        if study_id is not None:
            wanted = f"tags.`{STUDY_ID}` = '{study_id}' and tags.`{ROLE}` = 'study'"
            for run in client.search_runs([found.experiment_id], wanted, max_results=1):
                shown["the study"] = f"{runs}/{run.info.run_id}?{WORKFLOW}"
        shown["all studies"] = f"{runs}?viewStateShareKey=tuner-studies&{WORKFLOW}"
        return shown
