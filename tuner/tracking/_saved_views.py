"""Views of an experiment's runs, for MLflow's own menu of views: columns, filter and order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from tuner.core.study_record import StudyHeader
from tuner.tracking._records import ROLE, STUDY_ID
from tuner.tracking._values import clean_name

VIEW_PREFIX = "mlflow.sharedViewState."
# Without these the UI takes any experiment for one of agents, and opens its traces.
KIND = {"mlflow.experimentKind": "custom_model_development"}
WORKFLOW = "workflowType=machine_learning"

_OF_STUDIES = (
    *("winner_holdout_objective", "baseline_holdout_objective"),
    *("winner_objective", "best_objective", "baseline_objective"),
    *("finished_trials", "failed_trials"),
)


def saved_views(header: StudyHeader) -> dict[str, str]:
    """Return the experiment tags that hold the views; those of trials and arms show this study."""
    of_study = f"tags.`{STUDY_ID}` = '{header.study_id}' and tags.`{ROLE}` = "
    maximized = list(header.objective.get("maximize", ()))
    params = list(header.space)
    constraints = ["violation"] if header.objective.get("constraints") else []
    views = {
        "studies": (
            "Studies",
            _state(
                f"tags.`{ROLE}` = 'study'",
                "attributes.`Created`",
                _columns("metrics", _OF_STUDIES),
                ["tags.`tuner.verdict`"],
                _columns("params", [f"winner.{name}" for name in params]),
            ),
        ),
        "trials": (
            "Latest study: trials, best first",
            _state(
                f"{of_study}'trial'",
                "metrics.`objective`",
                _columns("metrics", ["objective", *maximized, *constraints]),
                ["tags.`tuner.arm`"],
                _columns("params", params),
            ),
        ),
        "arms": (
            "Latest study: best so far of each arm",
            _state(
                f"{of_study}'arm'",
                "metrics.`best_objective`",
                _columns("metrics", ["best_objective"]),
                _columns("params", ["budget", *(f"best.{name}" for name in params)]),
            )
            | {"chartsSearchFilter": "best_so_far"},
        ),
    }
    return {f"{VIEW_PREFIX}tuner-{key}": _tag(header, *view) for key, view in views.items()}


def is_older(there: str | None, view: str) -> bool:
    """Say whether a view is missing or of an earlier study than ours."""
    try:
        return there is None or bool(json.loads(there)["createdAt"] < json.loads(view)["createdAt"])
    except (ValueError, KeyError, TypeError):
        return True


def links(header: StudyHeader, experiment_id: str) -> dict[str, str]:
    """Return places in MLflow's pages that show a study, by what they show."""
    runs = f"#/experiments/{experiment_id}/runs"

    def of(role: str, order: str, mode: str) -> str:
        wanted = f"tags.`{STUDY_ID}` = '{header.study_id}' and tags.`{ROLE}` = '{role}'"
        asked = {"searchFilter": wanted, "orderByKey": order, "orderByAsc": "false"}
        query = "&".join(f"{key}={quote(value, safe='')}" for key, value in asked.items())
        return f"{runs}?{query}&compareRunsMode={mode}&{WORKFLOW}"

    return {
        "all trials, best first": of("trial", "metrics.`objective`", "TABLE"),
        "their charts": of("trial", "metrics.`objective`", "CHART"),
        "the arms step by step": of("arm", "metrics.`best_objective`", "CHART"),
    }


def _state(where: str, order: str, *columns: Iterable[str]) -> dict[str, object]:
    selected = [column for part in columns for column in part]
    return {
        "searchFilter": where,
        "orderByKey": order,
        "orderByAsc": False,
        "selectedColumns": selected,
    }


def _columns(kind: str, names: Iterable[str]) -> list[str]:
    return [f"{kind}.`{clean_name(name)}`" for name in names]


def _tag(header: StudyHeader, name: str, state: Mapping[str, object]) -> str:
    created_ms = round(header.created_at * 1000)
    return json.dumps({"name": name, "createdAt": created_ms, "state": json.dumps(state)})
