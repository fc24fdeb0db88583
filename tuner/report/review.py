"""A study as its run directory tells it, or MLflow, with all that the report is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.journal import OPENINGS, JournalContent, read_journal, read_per_query
from tuner.core.rankings import FloatArray
from tuner.core.run_files import CONFIG_FILE, JOURNAL_FILE, TABLE_FILE, TUNE_QUERIES_FILE
from tuner.core.space import SearchSpace
from tuner.core.study_record import Standing, StudyHeader, StudySummary
from tuner.core.trial import Trial
from tuner.evaluation.objective import COMPOSITE, composite_values
from tuner.report.chart import arm_places
from tuner.run.folder import SUMMARY_NOTE, journal_in, last_summary
from tuner.run.side_by_side import Passage, Side, SideBySide, read_side_by_side, write_side_by_side
from tuner.study.results import BASELINE_ARM, summarise
from tuner.tracking.mlflow.kept_values import VALUES_FILE, unpack_values
from tuner.tracking.mlflow.tracker import Mlflow

UNFINISHED = "unfinished"
_RUN_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Review:
    """One study to look at.

    Attributes:
        summary: how it ended; of one without an end, its state is ``"unfinished"``.
        rows: winner and baseline query by query; empty where they were not compared.
        source: where it was read from, in words.
    """

    run_dir: Path
    header: StudyHeader
    trials: tuple[Trial, ...]
    summary: StudySummary
    rows: tuple[SideBySide, ...]
    source: str

    @cached_property
    def space(self) -> SearchSpace:
        """Return the search space, without its constraints."""
        return SearchSpace.from_mapping(self.header.space)

    @cached_property
    def tune_rows(self) -> tuple[SideBySide, ...]:
        """Return winner and baseline on the tune queries, in the order of the trials' values.

        Empty where they were not compared there.
        """
        if not self.rows or self.rows[0].part == "tune":
            return self.rows
        return read_side_by_side(self.run_dir, name=TUNE_QUERIES_FILE)

    @property
    def chosen(self) -> Standing | None:
        """Return the configuration that the report is about: the winner, or the best so far."""
        return self.summary.chosen

    @property
    def baseline(self) -> Standing | None:
        """Return the baseline, where it was evaluated."""
        return self.summary.baseline

    @property
    def is_baseline(self) -> bool:
        """Say whether the baseline itself is what was chosen."""
        chosen, baseline = self.chosen, self.baseline
        return chosen is not None and baseline is not None and chosen.trial == baseline.trial

    @property
    def called(self) -> str:
        """Return what to call ``chosen``."""
        return self.summary.called

    @property
    def verdict(self) -> Mapping[str, Any]:
        """Return the verdict's record; empty where there is none."""
        return self.summary.verdict or {}

    @property
    def confidence(self) -> float:
        """Return the confidence of the intervals: the verdict's, or 0.95."""
        for part in ("comparison", "corrected"):
            found = self.verdict.get(part)
            if found:
                return float(found["confidence"])
        return 0.95

    @property
    def weights(self) -> Mapping[str, float]:
        """Return the metrics that the composite is made of."""
        weights: Mapping[str, float] = self.header.objective.get("maximize", {})
        return weights

    @property
    def is_priced(self) -> bool:
        """Say whether the objective is less than the composite by a price."""
        return any(self.header.objective.get("price", {}).values())

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the arms that asked for trials, in the order of their first; no baseline."""
        names = dict.fromkeys(trial.arm for trial in self.trials)
        return tuple(name for name in names if name != BASELINE_ARM)

    @cached_property
    def arm_places(self) -> Mapping[str, int]:
        """Return the place of each arm among colours and symbols, the same in every report."""
        kinds = {arm.name: arm.kind for arm in self.header.arms}
        return arm_places({name: kinds.get(name, name) for name in self.arms})

    def trial(self, standing: Standing | None) -> Trial | None:
        """Return the trial of a standing."""
        if standing is None or not 0 <= standing.trial < len(self.trials):
            return None
        return self.trials[standing.trial]

    def composite(self, trial: Trial) -> float | None:
        """Return a trial's weighted mean of metrics, before any price; None where one is missing.

        Of a study with metrics of its own alone, such as a single number, it is the objective.
        """
        if not trial.is_scored:
            return None
        if any(name not in trial.metrics for name in self.weights) or not self.weights:
            return trial.objective
        total = sum(self.weights.values())
        return sum(w * trial.metrics[name] for name, w in self.weights.items()) / total

    def tune_values(self, standing: Standing) -> dict[str, FloatArray]:
        """Return a trial's values by query on the tune queries, its composite among them.

        ``{}`` where they were not kept.
        """
        trial = self.trial(standing)
        if trial is None:
            return {}
        values = read_per_query(self.run_dir / JOURNAL_FILE, trial.evaluated_as)
        if not values or any(name not in values for name in self.weights):
            return values
        return {COMPOSITE: composite_values(values, self.weights), **values}


def read_review(run_dir: Path, *, source: str = "") -> Review:
    """Read a study of any state from its run directory; neither its data nor its system is opened.

    ``source`` says where it comes from, if not from that directory.

    Raises:
        InputError: not a run directory, or a broken one.
    """
    content = read_journal(journal_in(run_dir))
    return review_of(run_dir, content, source=source)


def review_of(run_dir: Path, content: JournalContent, *, source: str = "") -> Review:
    """Return the study of a run directory whose journal was read; see ``read_review``."""
    summary = summary_so_far(content)
    trials = tuple(content.trials.values())
    was_compared = summary.winner is not None and summary.baseline is not None
    rows = read_side_by_side(run_dir) if was_compared else ()
    found = source or f"run directory {run_dir}"
    return Review(run_dir, content.header, trials, summary, rows, found)


def summary_so_far(content: JournalContent) -> StudySummary:
    """Return how a study ended; of one without an end, what there is, ``"unfinished"``.

    Raises:
        InputError: the summary is damaged.
    """
    summary = None if _goes_on(content) else last_summary(content)
    if summary is not None:
        return summary
    trials = tuple(content.trials.values())
    times = [trial.told_at for trial in trials if trial.told_at is not None]
    seconds = max([content.header.created_at, *times]) - content.header.created_at
    return summarise(UNFINISHED, content.header, trials, seconds=seconds)


def _goes_on(content: JournalContent) -> bool:
    """Say whether the study was resumed after its last summary, which then tells of the past."""
    kinds = [note.get("kind") for note in content.notes]
    kinds = [kind for kind in kinds if kind == SUMMARY_NOTE or kind in OPENINGS]
    return bool(kinds) and kinds[-1] != SUMMARY_NOTE


def open_review(run: str, uri: str, folder: Path) -> Review:
    """Read a study from its run directory or, by a run's id, from the files in an MLflow store.

    Raises:
        InputError: not a run directory, or the store has no such run.
        TunerError: the store cannot be reached, or the study has not ended.
    """
    if Path(run).is_dir() or not _RUN_ID.fullmatch(run):
        return read_review(Path(run))
    return read_review(fetch_study(uri, run, folder / run), source=f"MLflow run {run}")


def fetch_study(uri: str, run_id: str, folder: Path) -> Path:
    """Download what a report is made of into a folder, and return the folder.

    The run of an arm or of a trial leads to its study.

    Raises:
        InputError: the store has no such run.
        TunerError: the store cannot be reached, or the study has not ended.
    """
    Mlflow.check(uri)
    run_id = Mlflow.study_run(uri, run_id)
    folder.mkdir(parents=True)
    Mlflow.fetch(uri, run_id, JOURNAL_FILE, folder)
    # Not every study has these: no configuration of one from Python, no queries without a baseline.
    with suppress(TunerError):
        Mlflow.fetch(uri, run_id, CONFIG_FILE, folder)
    with suppress(TunerError):
        table = json.loads(Mlflow.fetch(uri, run_id, TABLE_FILE, folder).read_bytes())
        write_side_by_side(folder, rows_of(table))
    with suppress(TunerError):  # nor has one that an earlier version wrote
        unpack_values(Mlflow.fetch(uri, run_id, VALUES_FILE, folder), folder)
    return folder


def rows_of(table: Mapping[str, Any]) -> list[SideBySide]:
    """Return the queries of per_query.jsonl from MLflow's table of them, which has no titles."""
    rows = [dict(zip(table["columns"], values, strict=True)) for values in table["data"]]
    return [
        SideBySide(
            query_id=row["query_id"],
            query=row["query"],
            query_type=row["query_type"],
            part=row["part"],
            relevant=tuple(row["relevant"]),
            winner=_side(row, "winner"),
            baseline=_side(row, "baseline"),
        )
        for row in rows
    ]


def _side(row: Mapping[str, Any], side: str) -> Side:
    """Read ``winner composite``, ``winner recall@10``, …, ``winner retrieved``."""
    own = {
        name.removeprefix(f"{side} "): value
        for name, value in row.items()
        if name.startswith(f"{side} ")
    }
    retrieved = own.pop("retrieved")
    composite = own.pop("composite")
    passages = (Passage(id_, "", id_ in row["relevant"]) for id_ in retrieved)
    return Side(composite, own, tuple(passages))
