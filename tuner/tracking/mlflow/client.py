"""The one file that talks to MLflow: a store opened safely, and the few calls that a view needs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock

from tuner.core.json_text import encodable, text_digest
from tuner.core.study_record import StudyHeader
from tuner.tracking.mlflow.records import PARENT_RUN, STUDY_ID, Point, RunContent
from tuner.tracking.mlflow.saved_views import KIND, STUDIES, is_older, saved_views, with_columns_of
from tuner.tracking.mlflow.trace_store import write_traces
from tuner.tracking.mlflow.traces import QueryTrace
from tuner.tracking.mlflow.versions import VersionContent, add_version, in_pages
from tuner.tracking.uri import sqlite_path

_PAGE = 1000
_PARAMS_PER_BATCH = 100
_METRICS_PER_BATCH = 800
_STORE_LOCK_TIMEOUT_S = 120.0
# In bytes; file systems take 255, some that encrypt 143.
_LONGEST_FOLDER = 120


class Refused(Exception):
    """MLflow answered, and will not take this content however often it is sent."""


@dataclass
class FoundRun:
    """A run that the store holds, as far as the view needs to know it."""

    run_id: str
    status: str
    start_ms: int
    tags: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def is_terminated(self) -> bool:
        """Say whether the run has ended, so that everything it should hold was logged before."""
        return self.status in {"FINISHED", "FAILED", "KILLED"}


class Client:
    """One experiment of an MLflow store."""

    def __init__(self, client: Any, uri: str, experiment_id: str, notes: Sequence[str]) -> None:
        self._client = client
        self._uri = uri
        self.experiment_id = experiment_id
        self.notes = tuple(notes)

    @classmethod
    def open(cls, uri: str, experiment: str) -> Client:
        """Connect to the store, creating it and the experiment where they do not exist."""
        from mlflow import MlflowClient

        path = sqlite_path(uri)
        with sole_opener(path) if path else nullcontext():
            client = MlflowClient(tracking_uri=uri)
            experiment_id, notes = _experiment_id(client, experiment, path)
        return cls(client, uri, experiment_id, notes)

    def runs(self, study_id: str) -> list[FoundRun]:
        """Find every run of the study, of whatever role."""
        wanted = f"tags.`{STUDY_ID}` = '{study_id}'"
        return [_found(run) for run in all_runs(self._client, self.experiment_id, wanted)]

    def create(self, content: RunContent, parent_id: str | None) -> FoundRun:
        """Create a run that is still to be filled."""
        tags = {name: encodable(value) for name, value in content.tags.items()}
        if parent_id is not None:
            tags[PARENT_RUN] = parent_id
        with _refusals():
            run = self._client.create_run(
                self.experiment_id, content.start_ms, tags, run_name=encodable(content.name)
            )
        return FoundRun(run.info.run_id, run.info.status, content.start_ms, tags)

    def log(self, run_id: str, params: Mapping[str, str], points: Sequence[Point]) -> None:
        """Log params and metrics, in as few calls as MLflow's limits allow."""
        from mlflow.entities import Metric, Param

        all_params = [Param(name, encodable(value)) for name, value in params.items()]
        all_metrics = [
            Metric(point.name, point.value, point.time_ms, point.step) for point in points
        ]
        with _refusals():
            while all_params or all_metrics:
                self._client.log_batch(
                    run_id,
                    metrics=all_metrics[:_METRICS_PER_BATCH],
                    params=all_params[:_PARAMS_PER_BATCH],
                )
                all_params = all_params[_PARAMS_PER_BATCH:]
                all_metrics = all_metrics[_METRICS_PER_BATCH:]

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags, new or changed."""
        from mlflow.entities import RunTag

        pending = [RunTag(name, encodable(value)) for name, value in tags.items()]
        with _refusals():
            while pending:
                self._client.log_batch(run_id, tags=pending[:_PARAMS_PER_BATCH])
                pending = pending[_PARAMS_PER_BATCH:]

    def untag(self, run_id: str, names: Sequence[str]) -> None:
        """Take tags away from a run."""
        for name in names:
            self._client.delete_tag(run_id, name)

    def end(self, run_id: str, status: str, end_ms: int | None) -> None:
        """End a run; what it should hold is logged before."""
        self._client.set_terminated(run_id, status, end_ms)

    def reopen(self, run_id: str) -> None:
        """Mark a run that had ended as running again."""
        self._client.update_run(run_id, status="RUNNING")

    def rename(self, run_id: str, name: str) -> None:
        """Give a run another name."""
        self._client.update_run(run_id, name=encodable(name))

    def delete(self, run_id: str) -> None:
        """Delete a duplicate (it stays in MLflow's own trash)."""
        self._client.delete_run(run_id)

    def steps(self, run_id: str, metric: str) -> set[int]:
        """Return the steps at which a metric has a value."""
        return {point.step for point in self._client.get_metric_history(run_id, metric)}

    def log_json(self, run_id: str, content: Any, file: str) -> None:
        """Store a mapping as an artifact, YAML or JSON by the file's ending."""
        self._client.log_dict(run_id, content, file)

    def log_file(self, run_id: str, path: Path) -> None:
        """Store a file as an artifact of the same name."""
        self._client.log_artifact(run_id, str(path))

    def save_views(self, header: StudyHeader) -> None:
        """Put the views of a study into the experiment's menu, unless a later study's are there."""
        there = self.experiment_tags()
        tags = {key: value for key, value in KIND.items() if key not in there}
        views = saved_views(header)
        tags |= {key: view for key, view in views.items() if is_older(there.get(key), view)}
        # That of all studies has the parameters of all of them, whichever is the latest.
        tags[STUDIES] = with_columns_of(tags.get(STUDIES, there.get(STUDIES)), views[STUDIES])
        tags[STUDIES] = with_columns_of(tags[STUDIES], there.get(STUDIES))
        self.tag_experiment({key: tag for key, tag in tags.items() if there.get(key) != tag})

    def experiment_tags(self) -> dict[str, str]:
        """Return the experiment's tags as they are now."""
        return dict(self._client.get_experiment(self.experiment_id).tags)

    def tag_experiment(self, tags: Mapping[str, str]) -> None:
        """Set tags of the experiment, new or changed."""
        for key, value in tags.items():
            self._client.set_experiment_tag(self.experiment_id, key, encodable(value))

    def tags(self, run_id: str) -> dict[str, str]:
        """Return a run's tags as they are now."""
        return dict(self._client.get_run(run_id).data.tags)

    def log_folder(self, run_id: str, folder: Path, place: str) -> None:
        """Store a folder's content as artifacts below ``place``."""
        self._client.log_artifacts(run_id, str(folder), place)

    def files(self, run_id: str, place: str) -> set[str]:
        """Return the paths of the artifacts directly below ``place``."""
        return {file.path for file in self._client.list_artifacts(run_id, place)}

    def add_version(
        self, run_id: str, content: VersionContent, write: Callable[[Path], None]
    ) -> bool:
        """Register a version, where it is missing, with the files that ``write`` puts in a folder.

        Returns whether it was missing.
        """
        from mlflow.utils.uri import append_to_uri_path

        # A study that goes on may find another winner; the version of the earlier one stays whole.
        place = f"model/{content.place}"

        def store() -> str:
            if f"{place}/MLmodel" not in self.files(run_id, place):
                with TemporaryDirectory(prefix="tuner-mlflow-") as folder:
                    write(Path(folder))
                    self.log_folder(run_id, Path(folder), place)
            # Absolute, as a server refuses another run's; and a path of another scheme has a query.
            root = self._client.get_run(run_id).info.artifact_uri
            return str(append_to_uri_path(root, place))  # type: ignore[no-untyped-call]  # MLflow's

        return add_version(self._client, content, run_id=run_id, store=store)

    def set_traces(self, run_id: str, study_id: str, traces: Sequence[QueryTrace]) -> int:
        """Let a study's run have these traces and no others of ours; return how many it lacked."""
        return write_traces(self._uri, self.experiment_id, run_id, study_id, traces)

    def log_dataset(self, run_id: str, header: StudyHeader) -> None:
        """Log the data set as MLflow inputs, one for each part that the study uses."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        name = header.dataset.get("name") or header.dataset.get("path")
        if not name:
            return
        digest = str(header.dataset.get("fingerprint") or "unknown")[:36]
        source = json.dumps({"uri": str(header.dataset.get("path", name))})
        inputs = []
        for context in ("tune", "holdout"):
            count = header.dataset.get(f"{context}_queries")
            if context == "holdout" and not count:
                continue
            # One entry a part: MLflow keeps a single context for each name and digest.
            dataset = Dataset(
                name=f"{name} ({context})"[:500],
                digest=digest,
                source_type="local",
                source=source,
                profile=json.dumps({"queries": count}),
            )
            inputs.append(DatasetInput(dataset, [InputTag("mlflow.data.context", context)]))
        self._client.log_inputs(run_id, inputs)


def all_runs(client: Any, experiment_id: str, wanted: str = "") -> list[Any]:
    """Return an experiment's runs, oldest first, or those that a filter string wants."""
    return in_pages(
        client.search_runs,
        [experiment_id],
        wanted,
        max_results=_PAGE,
        order_by=["attributes.start_time ASC"],
    )


@contextmanager
def sole_opener(path: Path) -> Iterator[None]:
    """Let one process at a time open a sqlite store: several that migrate a fresh one break it."""
    with FileLock(f"{path}.lock", timeout=_STORE_LOCK_TIMEOUT_S):
        if not path.exists():
            # A write-ahead log costs one fsync a commit instead of three (a trial: 14 instead of
            # 27 ms, measured), and the UI can read while a study writes.
            with closing(sqlite3.connect(path)) as fresh:
                fresh.execute("PRAGMA journal_mode=WAL")
        yield


@contextmanager
def _refusals() -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if error.error_code == "INVALID_PARAMETER_VALUE":
            raise Refused(str(error)) from error
        raise


def _experiment_id(client: Any, name: str, path: Path | None) -> tuple[str, list[str]]:
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        # Without a location, artifacts of a sqlite store go wherever the process was started.
        location = (path.parent / "mlruns" / _folder_name(name)).as_uri() if path else None
        try:
            return client.create_experiment(name, artifact_location=location), []
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        found = client.get_experiment_by_name(name)  # another process was quicker
    if found.lifecycle_stage == "active":
        return found.experiment_id, []
    client.restore_experiment(found.experiment_id)
    note = f"the MLflow experiment {name!r} had been deleted; it is restored, with its earlier runs"
    return found.experiment_id, [note]


def _folder_name(experiment: str) -> str:
    """Return a folder's name for an experiment; where it is too long for one, a part and a hash."""
    name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in experiment)
    if len(name.encode()) <= _LONGEST_FOLDER:
        return name
    begin = name.encode()[: _LONGEST_FOLDER - 20].decode(errors="ignore")
    return f"{begin}-{text_digest(experiment)}"


def _found(run: Any) -> FoundRun:
    return FoundRun(
        run_id=run.info.run_id,
        status=run.info.status,
        start_ms=run.info.start_time,
        tags=dict(run.data.tags),
        params=dict(run.data.params),
        metrics=dict(run.data.metrics),
    )
