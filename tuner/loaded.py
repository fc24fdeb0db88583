"""A study read back, from its run directory or from MLflow: ``tuner.load_study(…)``."""

from __future__ import annotations

import copy
import os
import re
import warnings
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from tuner.core.errors import InputError, did_you_mean
from tuner.core.files import read_lines
from tuner.core.journal import JournalContent, read_journal, read_per_query
from tuner.core.rankings import FloatArray
from tuner.core.run_files import ASKED_FILE, JOURNAL_FILE
from tuner.core.spent import Cost
from tuner.core.study_facts import study_facts, whole_params
from tuner.core.study_record import Standing, StudyHeader, StudySummary
from tuner.core.trial import Params, Trial
from tuner.evaluation.objective import COMPOSITE, composite_values
from tuner.report.frames import by_query_frame, curves_frame, side_by_side_frame, trials_frame
from tuner.report.review import fetch_study, summary_so_far
from tuner.run.folder import journal_in
from tuner.run.side_by_side import read_side_by_side

if TYPE_CHECKING:
    import pandas

STORE = "sqlite:///mlflow.db"
_RUN_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, eq=False)
class LoadedStudy:
    """A study as it stood when it was loaded; one that goes on is loaded again to see more.

    Attributes:
        name: of the study.
        state: ``"finished"``, ``"failed"``, ``"interrupted"``; or ``"unfinished"``: it goes on, or
            was killed.
        headline: the verdict's sentence, or what there is to say in place of a verdict.
        trials: all of them, in the order of asking; those under way are among them.
        best: the trial with the highest objective; None where none was scored.
        winner: the configuration to use, which ``best.yaml`` holds: the cheapest of those that
            cannot be told from the best. None where the study did not come to choose one.
        baseline: what is run today; None where there is none, or it could not be evaluated.
        header, summary: all that identifies the study, and all that was summed up.
        run_dir: where its files are; of a study from MLflow a folder that lasts as long as this.
        source: where it was loaded from, in words.
    """

    header: StudyHeader
    summary: StudySummary
    trials: tuple[Trial, ...]
    run_dir: Path
    source: str

    def __repr__(self) -> str:
        return (
            f"LoadedStudy({self.name!r}, {self.state}, {len(self.trials)} trials, from "
            f"{self.source}: {self.headline})"
        )

    @property
    def name(self) -> str:
        """Return the study's name."""
        return self.header.name

    @property
    def state(self) -> str:
        """Return how it ended, or ``"unfinished"``."""
        return self.summary.state

    @property
    def headline(self) -> str:
        """Return the verdict's sentence, or what there is to say in place of a verdict."""
        return study_facts(self.header, self.summary).headline

    @property
    def best(self) -> Standing | None:
        """Return the trial with the highest objective."""
        return self.summary.best

    @property
    def winner(self) -> Standing | None:
        """Return the configuration to use."""
        return self.summary.winner

    @property
    def baseline(self) -> Standing | None:
        """Return what is run today."""
        return self.summary.baseline

    @property
    def verdict(self) -> dict[str, Any] | None:
        """Return the verdict as plain data; None where there is none.

        ``outcome`` is ``"deploy"``, ``"keep the baseline"`` or ``"not enough queries"``;
        ``sentence``, ``reason``, ``figures`` and ``caveats`` say why, ``comparison`` holds the
        difference with its interval, ``by_type`` the same by query type.
        """
        return copy.deepcopy(None if (found := self.summary.verdict) is None else dict(found))

    @property
    def best_params(self) -> Params:
        """Return the parameters of the winner, or of the best trial where none was chosen.

        With those that are not tuned, as far as the configuration names them. What is approved for
        a service is ``tuner.best_params``.

        Raises:
            InputError: no trial succeeded.
        """
        chosen = self.summary.chosen
        if chosen is None:
            raise InputError(f"no trial succeeded, so there is no best one; {self.headline}")
        return whole_params(self.header, self.summary, chosen)

    def frame(self) -> pandas.DataFrame:
        """Return the trials as a DataFrame, one a row, by their numbers.

        Parameters are called ``params.…`` and metrics ``metrics.…``. ``queries`` is how many were
        answered for the trial, and ``cost`` what these cost by the configuration's ``cost:``. What
        is undefined, or not set in a trial, is NaN; ``error`` says why a trial failed.
        """
        queries = self.header.dataset.get("tune_queries")
        return trials_frame(self.trials, queries=queries, cost=_cost(self.header.config))

    def per_query(self, metric: str = COMPOSITE) -> pandas.DataFrame:
        """Return a metric's values on the tune queries as a DataFrame, queries × trials.

        Its columns are the numbers of the trials whose values were kept; NaN is where the metric is
        undefined, or a race stopped before that query. ``.to_numpy()`` is the array. ``composite``
        is the objective before any price. A file that is damaged is named in a warning, and its
        trial left out.

        Raises:
            InputError: a metric of which no trial has values, or nothing was kept by query.
        """
        kept = self._kept()
        known = {name for values in kept.values() for name in values}
        if not known:
            raise InputError(f"no values by query were kept of {self.source}")
        if metric not in known:
            raise InputError(f"unknown metric {metric!r}{did_you_mean(metric, known)}")
        found = {number: values[metric] for number, values in kept.items() if metric in values}
        count = max(map(len, found.values()))
        found = {number: row for number, row in found.items() if len(row) == count}
        return by_query_frame(found, self._query_ids(count))

    def compared(self) -> pandas.DataFrame:
        """Return winner and baseline query by query, on the held-out queries, as a DataFrame.

        Each has its ``change`` (winner less baseline in the composite), every metric of both
        (``winner.recall@10``), the ids that each retrieved and those that are relevant. Empty where
        the two were not compared.

        Raises:
            InputError: the file is damaged, by its line.
        """
        return side_by_side_frame(read_side_by_side(self.run_dir))

    def curves(self, trial: int | None = None) -> pandas.DataFrame:
        """Return the objective against each free parameter; empty where none is free.

        As the answer of a trial tells it: by default the winner's, or the best one's.

        Raises:
            InputError: there is no such trial.
        """
        chosen = self.summary.chosen
        number = trial if trial is not None or chosen is None else chosen.trial
        if number is not None and not 0 <= number < len(self.trials):
            raise InputError(f"there is no trial {number}; there are {len(self.trials)}")
        return curves_frame(None if number is None else self.trials[number])

    def _kept(self) -> dict[int, dict[str, FloatArray]]:
        """Return the values by query, by trial and metric, as far as their files are whole."""
        weights = self.header.objective.get("maximize", {})
        journal = self.run_dir / JOURNAL_FILE
        read: dict[int, dict[str, FloatArray]] = {}
        for number in dict.fromkeys(trial.evaluated_as for trial in self.trials if trial.is_told):
            try:
                values = read_per_query(journal, number)
            except InputError as error:
                warnings.warn(str(error), stacklevel=3)
                continue
            if values and weights and all(name in values for name in weights):
                values = {COMPOSITE: composite_values(values, weights), **values}
            if values:
                read[number] = values
        return {
            trial.number: read[trial.evaluated_as]
            for trial in self.trials
            if trial.is_told and trial.evaluated_as in read
        }

    def _query_ids(self, count: int) -> list[str] | None:
        """Return whose the values are; None where the study does not tell."""
        file = self.run_dir / ASKED_FILE
        try:
            ids = list(read_lines(file, lambda line: str(line["query_id"]), "query"))
        except InputError as error:
            warnings.warn(f"{error}; queries are numbered instead", stacklevel=3)
            return None
        return ids if len(ids) == count else None


def load_study(run: str | Path, *, tracking: str | None = None) -> LoadedStudy:
    """Load a study in any state from its run directory, or from MLflow by the id of its run.

    ``tracking`` is the store's URI; without it ``MLFLOW_TRACKING_URI`` holds, which
    ``mlflow.set_tracking_uri`` sets, else ``sqlite:///mlflow.db``. The run of an arm or of a trial
    leads to its study. Neither data nor system are opened.

    Raises:
        InputError: not a run directory, one whose journal is damaged (with its line), or the store
            has no such run.
        TunerError: the store cannot be reached, or the study there has not ended.

    Example:
        ``load_study("runs/mine").frame()``
    """
    if Path(run).is_dir() or not _RUN_ID.fullmatch(str(run)):
        found = Path(run).expanduser()
        return _read(found, f"run directory {found}")
    folder = Path(mkdtemp(prefix="tuner-study-"))
    remove = partial(rmtree, folder, ignore_errors=True)
    try:
        uri = store_uri(tracking)
        study = _read(fetch_study(uri, str(run), folder / str(run)), f"MLflow run {run}")
    except BaseException:
        remove()
        raise
    weakref.finalize(study, remove)
    return study


def store_uri(given: str | None) -> str:
    """Return the URI of the MLflow store to use: what is given, else MLflow's setting."""
    return given or os.environ.get("MLFLOW_TRACKING_URI") or STORE


def _read(run_dir: Path, source: str) -> LoadedStudy:
    content: JournalContent = read_journal(journal_in(run_dir))
    trials = tuple(content.trials.values())
    return LoadedStudy(content.header, summary_so_far(content), trials, run_dir, source)


def _cost(config: Mapping[str, Any]) -> Cost | None:
    """Return what the system costs, where the configuration says it in a way that is known."""
    section = config.get("cost")
    if not isinstance(section, Mapping):
        return None
    names = ("per_query", "per_1000_tokens", "per_index")
    try:
        return Cost(**{name: float(section.get(name) or 0.0) for name in names})
    except (TypeError, ValueError):
        return None
