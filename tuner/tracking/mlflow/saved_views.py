"""Views of an experiment's runs, for MLflow's own menu of views: columns, filter and order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from tuner.core.study_record import StudyHeader
from tuner.tracking.mlflow.records import ROLE, STUDY_ID
from tuner.tracking.mlflow.values import clean_name

VIEW_PREFIX = "mlflow.sharedViewState."
STUDIES = f"{VIEW_PREFIX}tuner-studies"
NIGHT_COLUMNS = ("tags.`tuner.night`", "tags.`tuner.night_outcome`")
# What one study has and another has not.
_GATHERED = ("params.", *NIGHT_COLUMNS)
# Some stores take no longer tag.
_LONGEST = 4900
# Without these the UI takes any experiment for one of agents, and opens its traces.
KIND = {"mlflow.experimentKind": "custom_model_development"}
WORKFLOW = "workflowType=machine_learning"

_OF_STUDIES = (
    "difference",
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
                ["tags.`tuner.outcome`", "tags.`tuner.verdict`"],
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


def with_columns_of(view: str | None, other: str | None) -> str:
    """Return a view with those columns of another one too that it lacks, as many as it can hold."""
    columns = () if other is None else _columns_in(other)
    return with_columns(view or "", columns)


def with_columns(view: str, columns: Iterable[str]) -> str:
    """Return a view with further columns; one that cannot be read stays as it is."""
    try:
        record = json.loads(view)
        state = json.loads(record["state"])
        selected = list(state["selectedColumns"])
    except (ValueError, KeyError, TypeError):
        return view
    longer = view
    for column in columns:
        if column in selected or not column.startswith(_GATHERED):
            continue
        selected.append(column)
        tag = json.dumps({**record, "state": json.dumps({**state, "selectedColumns": selected})})
        if len(tag) > _LONGEST:
            return longer
        longer = tag
    return longer


def _columns_in(view: str) -> list[str]:
    try:
        return [str(name) for name in json.loads(json.loads(view)["state"])["selectedColumns"]]
    except (ValueError, KeyError, TypeError):
        return []


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


def _state(where: str, order: str, *columns: Iterable[str]) -> dict[str, Any]:
    selected = [column for part in columns for column in part]
    return {
        "searchFilter": where,
        "orderByKey": order,
        "orderByAsc": False,
        "selectedColumns": selected,
    }


def _columns(kind: str, names: Iterable[str]) -> list[str]:
    return [f"{kind}.`{clean_name(name)}`" for name in names]


def _tag(header: StudyHeader, name: str, state: Mapping[str, Any]) -> str:
    created_ms = round(header.created_at * 1000)
    columns = list(state["selectedColumns"])
    fixed = [column for column in columns if not column.startswith(_GATHERED)]
    short = json.dumps({**state, "selectedColumns": fixed})
    tag = json.dumps({"name": name, "createdAt": created_ms, "state": short})
    return with_columns(tag, [column for column in columns if column not in fixed])
