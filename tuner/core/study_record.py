"""The header and the summary of a study: what was run, on what, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tuner.core.index_costs import IndexCosts
from tuner.core.json_text import read_as
from tuner.core.shown import as_percent
from tuner.core.spent import Spent
from tuner.core.steps import SEARCH, duration, where_it_went
from tuner.core.trial import Params

# How far trials are asked ahead of results, where the configuration does not say.
AHEAD = 4
# By Holm's correction over the query types.
_CLEAR = 0.05


def is_clear(adjusted_p: float | None) -> bool:
    """Say whether a query type's difference is clear although all the types were looked at.

    ``adjusted_p`` is corrected for their number; None, for a type that was not tested, is not.
    """
    return adjusted_p is not None and adjusted_p < _CLEAR


# Where more than this failed, part of the space may not have been searched: worth a word.
UNNOTICED_SHARE = 0.05


@dataclass(frozen=True)
class ArmRecord:
    """One arm: a backend and its budget. ``name`` is unique in the study."""

    name: str
    kind: str
    budget: int


@dataclass(frozen=True)
class StudyHeader:
    """Everything that identifies a study; the first line of its journal.

    Attributes:
        study_id: a random id, unique for ever; the key by which trackers find the study.
        created_at: seconds since the epoch.
        ahead: a trial is suggested without the results of so many before it, told or not; arms
            that learn from their own trials share that number.
        space, objective, baseline, config: JSON-ready mappings as configured.
        dataset: name, path, fingerprint, and counts such as ``tune_queries``, ``holdout_queries``.
        fingerprints: by subject (space, objective, dataset, retriever, ...); compared on resume.
        versions: package name -> version.
        index: the names of the ``parameters`` of the index that are searched, and how many indexes
            there may be, their ``budget``; empty where there are none, and in journals of old.
    """

    study_id: str
    name: str
    created_at: float
    seed: int
    arms: tuple[ArmRecord, ...]
    space: Mapping[str, Any]
    objective: Mapping[str, Any]
    baseline: Params | None = None
    dataset: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    ahead: int = AHEAD
    index: Mapping[str, Any] = field(default_factory=dict)

    def to_record(self) -> dict[str, Any]:
        """Return the header as a JSON-ready mapping."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> StudyHeader:
        """Read a header back; unknown keys, from a later version, are left out.

        Raises:
            ValueError: a part that is missing or of another type, by its name.
        """
        header: StudyHeader = read_as(cls, record)
        return header


@dataclass(frozen=True)
class Standing:
    """How one configuration did: its trial, and its metrics on the tune and holdout queries.

    ``violation`` is above 0 where it breaks a constraint of the objective.
    """

    arm: str
    trial: int
    params: Params
    tune_objective: float
    tune_metrics: Mapping[str, float]
    holdout_objective: float | None = None
    holdout_metrics: Mapping[str, float] = field(default_factory=dict)
    violation: float = 0.0


@dataclass(frozen=True)
class Savings:
    """What racing saved: of how many query evaluations, and a note where it could save none.

    An evaluation is one query answered for one trial. Trials that failed, or that took the result
    of an equal one, do not count.
    """

    saved: int
    of: int
    note: str = ""

    @property
    def sentence(self) -> str:
        """Return it for people."""
        share = f" ({as_percent(self.saved / self.of)})" if self.of else ""
        return f"{self.saved:,} of {self.of:,} query evaluations{share} saved by racing"


@dataclass(frozen=True)
class _Said:
    """What every record of a verdict holds."""

    outcome: str
    sentence: str


@dataclass(frozen=True)
class _Point:
    """What every point of a recorded front holds."""

    trial: int
    arm: str
    params: Params
    goals: Mapping[str, float]
    is_knee: bool


@dataclass(frozen=True)
class StudySummary:
    """How a study ended.

    ``best`` has the highest objective of all; ``arms`` holds each arm's own best. ``winner`` is the
    configuration to use, which ``best.yaml`` holds: the cheapest of those that cannot be told from
    the best; None where the study did not come to choose one. Every view of a study has these two
    words for these two things. ``verdict`` says
    whether it is better than the baseline, as ``verdict.words`` records it. ``remarks`` are
    sentences on the system that was tuned, such as a parameter that changes nothing. ``front``
    lists the trials of the Pareto front, where one was sought: trial, arm, params, goals, is_knee;
    ``front_notes`` say why the winner is that point of it; ``goals`` lists each goal of winner and
    baseline: goal, winner, baseline, difference, interval, part, reading, sentence.
    ``racing`` is what racing saved, or None where the trials did not race. ``reason`` says why the
    study failed, or what interrupted it but a signal; ``ended_by`` which limit ended a search
    before its arms were done. ``queries_asked`` counts the queries that the system was asked, by
    what for (``core.calls``), and ``spent`` what that and all else came to; None where an earlier
    version counted what was answered alone.

    ``seconds`` is what the user waited for in the last session, from the start of the command, and
    ``seconds_by_phase`` where it went (``core.steps``); ``seconds_in_all`` adds the sessions before
    that the study was resumed from. ``index_wait_s`` is the part of the last session's search
    during which an index was being built. ``indexes`` is what those of the trials cost; None where
    the system tells of none.
    """

    state: str  # "finished", "failed" or "interrupted"
    best: Standing | None
    baseline: Standing | None
    arms: tuple[Standing, ...]
    finished_trials: int
    failed_trials: int
    shared_trials: int
    seconds: float
    winner: Standing | None = None
    verdict: Mapping[str, Any] | None = None
    raced_out_trials: int = 0
    remarks: tuple[str, ...] = ()
    front: tuple[Mapping[str, Any], ...] = ()
    front_notes: tuple[str, ...] = ()
    goals: tuple[Mapping[str, Any], ...] = ()
    racing: Savings | None = None
    reason: str = ""
    ended_by: str = ""
    queries_asked: Mapping[str, int] = field(default_factory=dict)
    spent: Spent | None = None
    seconds_by_phase: Mapping[str, float] = field(default_factory=dict)
    seconds_in_all: float | None = None
    indexes: IndexCosts | None = None
    index_wait_s: float = 0.0

    @property
    def told_trials(self) -> int:
        """Return how many trials have ended, in whatever way."""
        evaluated = self.finished_trials + self.raced_out_trials
        return evaluated + self.failed_trials + self.shared_trials

    @property
    def failed_share(self) -> float:
        """Return which share of the trials that have ended failed."""
        return self.failed_trials / self.told_trials if self.told_trials else 0.0

    @property
    def is_worth_retrying(self) -> bool:
        """Say whether so many trials failed that it pays to evaluate them again."""
        return self.failed_share > UNNOTICED_SHARE

    @property
    def with_earlier_sessions(self) -> str:
        """Return how long all sessions took, in words; empty where there was one."""
        in_all = self.seconds_in_all or 0.0
        is_more = in_all > 1.001 * self.seconds
        return f"{duration(in_all)} with the sessions before" if is_more else ""

    @property
    def where_it_went(self) -> str:
        """Return the parts of the last session that took long, in words."""
        waits = {SEARCH: (self.index_wait_s, "for indexes")}
        return where_it_went(self.seconds_by_phase, self.seconds, of_it=waits)

    @property
    def chosen(self) -> Standing | None:
        """Return the configuration to use: the winner, or the best where none was chosen."""
        return self.winner or self.best

    @property
    def called(self) -> str:
        """Return what to call ``chosen``."""
        return "winner" if self.winner is not None else "best so far"

    def to_record(self) -> dict[str, Any]:
        """Return the summary as a JSON-ready mapping."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> StudySummary:
        """Read a summary back from its journal form; a metric that was undefined is so again.

        Raises:
            ValueError: a part that is missing or of another type, by its name.
        """
        summary: StudySummary = read_as(cls, record)
        if summary.verdict is not None:
            read_as(_Said, summary.verdict, "verdict")
        read_as(tuple[_Point, ...], list(summary.front), "front")
        return summary
