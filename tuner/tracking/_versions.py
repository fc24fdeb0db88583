"""Versions of a registered model in MLflow: read, found and added."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tuner.tracking._records import STUDY_ID, TRIAL

CHALLENGER = "challenger"
CHAMPION = "champion"
OUTCOME = "tuner.outcome"
PARAMS = "tuner.params"

_PAGE = 200
_WHAT_IT_IS = (
    "Tuned retrieval parameters, a version a study. The alias `challenger` is the latest study's "
    "winner, `champion` the one that was promoted."
)


@dataclass(frozen=True)
class ModelVersion:
    """One version of a registered model: the winner of one study.

    ``params`` are its complete parameters (or a policy's record); empty for a version that was not
    made by a study. ``created_ms`` counts milliseconds since 1970.
    """

    name: str
    version: int
    params: dict[str, Any]
    run_id: str | None
    study_id: str | None
    aliases: tuple[str, ...]
    created_ms: int
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class VersionContent:
    """What a study's version of the registered model holds."""

    name: str
    tags: Mapping[str, str]
    description: str

    @property
    def place(self) -> str:
        """Return a name for its files that no other winner of the study has."""
        return f"trial-{self.tags[TRIAL]}"

    def is_in(self, version: ModelVersion) -> bool:
        """Say whether a version is of the same study and of the same winner."""
        return all(version.tags.get(key) == self.tags[key] for key in (STUDY_ID, TRIAL, PARAMS))


def find_versions(client: Any, name: str) -> list[ModelVersion]:
    """Return all versions, newest first; none where there is no such model."""
    from mlflow.exceptions import MlflowException

    try:
        aliases = client.get_registered_model(name).aliases
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return []
        raise
    by_version: dict[int, list[str]] = {}
    for alias, version in aliases.items():
        by_version.setdefault(int(version), []).append(alias)
    found: list[ModelVersion] = []
    token: str | None = None
    while True:
        page = client.search_model_versions(f"name = '{name}'", max_results=_PAGE, page_token=token)
        found += [_version(entry, by_version) for entry in page]
        token = page.token
        if not token:
            return sorted(found, key=lambda version: -version.version)


def add_version(client: Any, content: VersionContent, *, run_id: str, source: str) -> bool:
    """Make the study's version and the challenger of it; say whether it was missing.

    A study whose newest version holds this winner already gets no other: what is said of it is
    brought up to date. The challenger never goes back to an older version.
    """
    name = content.name
    found = find_versions(client, name)
    challenger = max((one.version for one in found if CHALLENGER in one.aliases), default=0)
    newest = next((one for one in found if one.study_id == content.tags[STUDY_ID]), None)
    is_missing = newest is None or not content.is_in(newest)
    if newest is None or is_missing:
        _make_model(client, name)
        made = client.create_model_version(
            name,
            source,
            run_id,
            tags=dict(content.tags),
            description=content.description,
            await_creation_for=0,
        )
        number = int(made.version)
    else:
        number = newest.version
        for key, value in content.tags.items():
            if newest.tags.get(key) != value:
                client.set_model_version_tag(name, str(number), key, value)
    if challenger < number:
        client.set_registered_model_alias(name, CHALLENGER, str(number))
    return is_missing


def _make_model(client: Any, name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(name, description=_WHAT_IT_IS)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def _version(entry: Any, aliases: Mapping[int, list[str]]) -> ModelVersion:
    number, tags = int(entry.version), dict(entry.tags)
    params: Any = {}
    with suppress(ValueError):
        params = json.loads(tags.get(PARAMS, "{}"))
    return ModelVersion(
        entry.name,
        number,
        params if isinstance(params, dict) else {},
        entry.run_id or None,
        tags.get(STUDY_ID),
        tuple(sorted(aliases.get(number, ()))),
        int(entry.creation_timestamp),
        tags,
    )
