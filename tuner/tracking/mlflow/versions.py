"""Versions of a registered model in MLflow, one a configuration: read, found and added.

A study's winner is a model of parameters and configuration as data, without pickled code.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile
from typing import Any

import yaml

from tuner.core.json_text import json_text, text_digest
from tuner.core.run_files import BEST_FILE, CONFIG_FILE
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.tracking.mlflow.records import STUDY_ID, TRIAL
from tuner.tracking.mlflow.values import uploadable

CHALLENGER = "challenger"
CHAMPION = "champion"
OUTCOME = "tuner.outcome"
FEASIBLE = "tuner.is_feasible"
PARAMS = "tuner.params"
SYSTEM = "tuner.system"  # a hash of the retriever and its options
STUDIED_AT = "tuner.studied_at"  # when the study of the tags began, in seconds since 1970

_PAGE = 200
_WHAT_IT_IS = (
    "Tuned retrieval parameters, a version a configuration. The alias `challenger` is the latest "
    "that a study found instead of its baseline, `champion` the one that was promoted."
)


@dataclass(frozen=True)
class ModelVersion:
    """One version of a registered model: one configuration, and the latest study that found it.

    ``params`` are its complete parameters (or a policy's record); empty for a version that was not
    made by a study. ``created_ms`` counts milliseconds since 1970. ``description`` is the verdict's
    sentence.
    """

    name: str
    version: int
    params: dict[str, Any]
    run_id: str | None
    study_id: str | None
    aliases: tuple[str, ...]
    created_ms: int
    tags: Mapping[str, str] = field(default_factory=dict)
    description: str = ""

    @property
    def outcome(self) -> str:
        """Return what the verdict on it was, such as ``"deploy"``."""
        return self.tags.get(OUTCOME, "no verdict")

    @property
    def is_feasible(self) -> bool:
        """Say whether it met the constraints of the study's objective."""
        return self.tags.get(FEASIBLE) != "false"

    @property
    def studied_at(self) -> float:
        """Return when the latest study that found it began, in seconds since 1970."""
        with suppress(KeyError, ValueError):
            return float(self.tags[STUDIED_AT])
        return self.created_ms / 1000.0


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

    @property
    def studied_at(self) -> float:
        """Return when its study began, in seconds since 1970."""
        return float(self.tags[STUDIED_AT])

    def is_in(self, version: ModelVersion) -> bool:
        """Say whether a version is of the same configuration, whichever study found it."""
        system = self.tags[SYSTEM]
        is_same_system = version.tags.get(SYSTEM, system) == system
        return is_same_system and version.params == json.loads(self.tags[PARAMS])


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
    entries = in_pages(client.search_model_versions, f"name = '{name}'", max_results=_PAGE)
    found = [_version(entry, by_version) for entry in entries]
    return sorted(found, key=lambda version: -version.version)


def in_pages(search: Callable[..., Any], *wanted: Any, **more: Any) -> list[Any]:
    """Return all that a search finds, page by page."""
    page = search(*wanted, **more)
    found = list(page)
    while page.token:
        page = search(*wanted, **more, page_token=page.token)
        found += page
    return found


def add_version(
    client: Any, content: VersionContent, *, run_id: str, store: Callable[[], str]
) -> bool:
    """Make a version of the study's winner and the challenger of it; say whether it was missing.

    A configuration has one version: where a later study finds it again, what is said of it is
    brought up to date. A study that began before the challenger's does not take its place.
    ``store`` puts the files of a new version where it then says.
    """
    name = content.name
    found = find_versions(client, name)
    challenger = next((one for one in found if CHALLENGER in one.aliases), None)
    same = next((one for one in found if content.is_in(one)), None)
    if same is None:
        source = store()
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
        number = same.version
        if content.studied_at >= same.studied_at:
            _bring_up_to_date(client, content, same)
    if challenger is None or (
        challenger.version != number and content.studied_at >= challenger.studied_at
    ):
        client.set_registered_model_alias(name, CHALLENGER, str(number))
    return same is None


def _bring_up_to_date(client: Any, content: VersionContent, version: ModelVersion) -> None:
    number = str(version.version)
    for key, value in content.tags.items():
        if version.tags.get(key) != value:
            client.set_model_version_tag(version.name, number, key, value)
    if version.description != content.description:
        client.update_model_version(version.name, number, description=content.description)


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
        entry.description or "",
    )


_DATA = (BEST_FILE, CONFIG_FILE)
_NEEDS = ("graphrag-tuner", "mlflow")
_LOADER = "tuner.serving"  # stands in every model that is registered: it may not move
_REFUSED_IN_NAMES = re.compile(r"[^\w .-]")
_LONGEST_NAME = 100


def model_name(header: StudyHeader) -> str:
    """Return the name of the registered model: as configured, else that of the study."""
    tracking = header.config.get("tracking")
    configured = tracking.get("model") if isinstance(tracking, Mapping) else None
    clean = _REFUSED_IN_NAMES.sub("_", str(configured or header.name))[:_LONGEST_NAME]
    return clean if clean.strip(" .") else "study"


def version_content(
    header: StudyHeader, summary: StudySummary, run_dir: Path
) -> VersionContent | None:
    """Describe the version that a study makes.

    None where it has no winner, where that is the baseline itself, or where it has not ended.
    """
    chosen, baseline = summary.chosen, summary.baseline
    has_files = all((run_dir / name).is_file() for name in _DATA)
    if summary.state != "finished" or chosen is None or not has_files:
        return None
    best = yaml.safe_load((run_dir / BEST_FILE).read_text(encoding="utf-8"))
    is_baseline = baseline is not None and chosen.params == baseline.params
    # A trial has what the space has, a baseline may set more: with that the two can be equal.
    if is_baseline or best["params"] == header.baseline:
        return None
    verdict = summary.verdict or {"outcome": "no verdict", "sentence": "No verdict."}
    scores = {"tune": chosen.tune_objective, "holdout": chosen.holdout_objective}
    tags = {
        STUDY_ID: header.study_id,
        TRIAL: str(chosen.trial),
        OUTCOME: str(verdict["outcome"]),
        FEASIBLE: "true" if chosen.violation <= 0.0 else "false",
        PARAMS: json_text(best["params"]),
        SYSTEM: _system(header),
        STUDIED_AT: repr(header.created_at),
        "tuner.study": header.name,
        "tuner.arm": chosen.arm,
        **{f"tuner.{part}_objective": f"{x:.6g}" for part, x in scores.items() if x is not None},
    }
    return VersionContent(model_name(header), tags, str(verdict["sentence"]))


def _system(header: StudyHeader) -> str:
    text = json.dumps(header.config.get("retriever"), sort_keys=True, default=str)
    return text_digest(text)


def write_model(folder: Path, run_dir: Path, header: StudyHeader) -> None:
    """Write the model's folder: what ``mlflow.pyfunc.load_model`` reads.

    Not by ``mlflow.pyfunc.save_model``, which imports hundreds of modules, warns, and looks into
    the loader for what it needs. No signature: one with a column would refuse a list of queries.
    """
    from mlflow.models import Model

    data = folder / "data"
    data.mkdir(parents=True)
    for name in _DATA:
        with uploadable(run_dir / name, header) as file:
            copyfile(file, data / name)
    environment: dict[str, Any] = {
        "python": header.versions.get("python", platform.python_version()),
        "dependencies": ["-r requirements.txt"],
    }
    dataset = header.dataset.get("path")
    model = Model()
    model.add_flavor(
        "python_function",
        loader_module=_LOADER,
        data="data",
        env={"virtualenv": "python_env.yaml"},
        python_version=environment["python"],
        # load_model(…, model_config={"dataset": "/data/corpus"}) where the data lie elsewhere
        config={} if dataset is None else {"dataset": str(dataset)},
    )
    model.save(str(folder / "MLmodel"))
    needs = [f"{name}=={header.versions[name]}" for name in _NEEDS if name in header.versions]
    (folder / "requirements.txt").write_text("\n".join(needs) + "\n", encoding="utf-8")
    (folder / "python_env.yaml").write_text(yaml.safe_dump(environment), encoding="utf-8")
