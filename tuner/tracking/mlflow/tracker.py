"""The study in MLflow: runs for the study, its arms and its trials, written in the background."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tuner.core.errors import InputError
from tuner.core.journal import read_journal
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.steps import Advance, Say, unheard, watched
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.core.trial import Trial
from tuner.tracking.base import EXPERIMENT
from tuner.tracking.mlflow.process import ProcessWriter
from tuner.tracking.mlflow.quiet import TIMEOUTS, Timeouts, reaching, reason_of
from tuner.tracking.mlflow.records import (
    PARENT_RUN,
    ROLE,
    SystemSample,
    in_order_of_telling,
    told_ms,
)
from tuner.tracking.mlflow.saved_views import WORKFLOW
from tuner.tracking.mlflow.view import Target, open_view
from tuner.tracking.mlflow.writer import TrackingStatus, Writer
from tuner.tracking.uri import (
    absolute,
    check_experiment,
    check_there,
    check_uri,
    mask,
    without_password,
)


class Mlflow:
    """Shows a study in MLflow, in one experiment of the store at ``uri``.

    ``warn`` gets one line when the store is lost and one when it is back, from the writer's thread.
    ``finish`` waits no longer than ``timeouts`` say; ``sync`` completes the view later. The writer
    is a process of its own, or, with ``in_thread``, a thread, which takes Python's lock from the
    evaluations in this process.
    """

    def __init__(
        self,
        uri: str,
        experiment: str,
        *,
        warn: Say | None = None,
        timeouts: Timeouts = TIMEOUTS,
        in_thread: bool = False,
    ) -> None:
        self._uri = absolute(uri)
        self._experiment = experiment
        self._warn = warn or logging.getLogger(__name__).warning
        self._timeouts = timeouts
        self.in_thread = in_thread or not sys.executable
        self._writer: Writer | ProcessWriter | None = None
        self._run_dir = Path()

    @staticmethod
    def check(uri: str, experiment: str = EXPERIMENT) -> None:
        """Check what can be known without opening the store.

        Raises:
            InputError: a URI or a name that MLflow would refuse.
        """
        check_uri(uri)
        check_experiment(experiment)

    @property
    def run_id(self) -> str | None:
        """Return the id of the study's run, or None until it is known."""
        return self._writer.run_id if self._writer else None

    @property
    def run_url(self) -> str | None:
        """Return the address of the study's run; None until it is known, or without a server."""
        writer = self._writer
        if writer is None or writer.run_id is None or not self._uri.startswith("http"):
            return None
        place = f"#/experiments/{writer.experiment_id}/runs/{writer.run_id}?{WORKFLOW}"
        return without_password(f"{self._uri.rstrip('/')}/{place}", self._uri)

    @property
    def status(self) -> TrackingStatus:
        """Return how far the view is."""
        return self._writer.status() if self._writer else TrackingStatus()

    def start(self, header: StudyHeader, run_dir: Path) -> None:
        """Open the study's view in the background; one that exists is completed and continued."""
        self._run_dir = run_dir
        target = self._target(header, run_dir)
        if self.in_thread:
            self._writer = Writer(target, say=self._say)
        else:
            self._writer = ProcessWriter(target, say=self._say)
        with suppress(InputError):  # whoever opens the study says what is wrong with its journal
            told = read_journal(run_dir / JOURNAL_FILE).trials.values()
            for trial in in_order_of_telling(told):
                self._writer.add(trial)
        self._writer.start()

    def record(self, trial: Trial) -> None:
        """Hand one told trial to the writer; takes microseconds."""
        if self._writer is not None and trial.is_told:
            self._writer.add(trial)

    def record_system(self, at: float, values: Mapping[str, float]) -> None:
        """Hand over system metrics (``system/…``) of the study's run; takes microseconds.

        They are in no journal: what MLflow misses while it is long out of reach stays missing.
        """
        if self._writer is not None:
            self._writer.add_system(SystemSample(at, values))

    def finish(self, summary: StudySummary, *, advance: Advance = unheard) -> None:
        """Hand over the study's end and wait, for a bounded time, until everything is written.

        ``advance`` is told, from a thread, how many of the trials are.
        """
        if self._writer is None:
            return
        writer, at_first = self._writer, self._writer.status().written

        def how_far() -> tuple[int, int]:
            status = writer.status()
            # One more for the study's end: its files, its description, its model.
            return status.written - at_first, status.written + status.pending - at_first + 1

        with watched(how_far, advance):
            self._writer.finish(summary)
        status = self._writer.status()
        if status.is_whole:
            return
        reason = f" ({status.error})" if status.error else ""
        missing = f"{status.pending} of {status.written + status.pending} trials"
        if not status.is_complete:
            missing += " and the study's end"
        elif not status.pending:
            missing = "files"
        self._say(f"MLflow lacks {missing}{reason}; add them with: tuner sync {self._run_dir}")

    def sync(
        self,
        header: StudyHeader,
        trials: Iterable[Trial],
        summary: StudySummary | None,
        run_dir: Path,
    ) -> TrackingStatus:
        """Complete the study's view from its journal; what is there already is left alone.

        Without a summary the study was killed: its runs that still count as running are ended.

        Raises:
            TunerError: the store cannot be reached, or refuses what it is given.
        """
        told = in_order_of_telling(trials)
        end_ms = max([round(header.created_at * 1000), *(told_ms(trial) for trial in told)])
        otherwise = f"cannot complete the study in MLflow at {mask(self._uri)}"
        request_s = self._timeouts.request_s
        with reaching(self._uri, otherwise, reason=reason_of, request_s=request_s):
            view = open_view(self._target(header, run_dir), say=self._say)
            for trial in told:
                view.write_trial(trial)
                view.add_to_curve(trial)
            view.write_curves()
            if summary is None:
                view.abandon(end_ms=end_ms)
            else:
                view.close(summary, end_ms=end_ms)
        return TrackingStatus(
            written=len(told),
            error=view.artifact_error,
            added=view.added,
            repaired=view.repaired,
            is_complete=summary is not None,
        )

    @staticmethod
    def study_run(uri: str, run_id: str) -> str:
        """Return the run of the study to which a run belongs: its own, or an arm's or a trial's.

        Raises:
            InputError: the store has no such run, or there is no such store.
            TunerError: the store cannot be reached.
        """
        check_there(uri)
        with reaching(uri, f"cannot get run {run_id} from {mask(uri)}"):
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException

            client = MlflowClient(tracking_uri=uri)
            try:
                run = client.get_run(run_id)
                while run.data.tags.get(ROLE) in ("arm", "trial"):
                    run = client.get_run(run.data.tags[PARENT_RUN])
            except MlflowException as error:
                if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                    raise InputError(f"there is no run {run_id} in {mask(uri)}") from error
                raise
        return str(run.info.run_id)

    @staticmethod
    def fetch(uri: str, run_id: str, name: str, folder: Path) -> Path:
        """Download one of a run's files into a folder, and return its path.

        Raises:
            TunerError: the store cannot be reached, or has no such run or file.
        """
        with reaching(uri, f"cannot get {name} of run {run_id} from {mask(uri)}"):
            from mlflow.artifacts import download_artifacts

            path = download_artifacts(
                run_id=run_id, artifact_path=name, dst_path=str(folder), tracking_uri=uri
            )
        return Path(path)

    def _target(self, header: StudyHeader, run_dir: Path) -> Target:
        return Target(self._uri, self._experiment, header, run_dir.absolute(), self._timeouts)

    def _say(self, message: str) -> None:
        with suppress(Exception):  # a broken callback is no reason to stop writing
            self._warn(without_password(message, self._uri))
