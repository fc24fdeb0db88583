"""Trials and outcomes: what was asked, what was observed, and what it is worth."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from tuner.core.json_text import read_as
from tuner.core.money import total
from tuner.core.profile import Profile
from tuner.core.profile import Scalar as Scalar  # the address by which all know it
from tuner.core.rankings import FloatArray

Params = dict[str, Scalar]


class TrialState(StrEnum):
    """Where a trial stands.

    ``SHARED`` took its result from an equal trial of another arm. ``RACED_OUT`` was stopped after
    some of the queries, since it fell behind the best trial.
    """

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    SHARED = "shared"
    RACED_OUT = "raced_out"


class Blame(StrEnum):
    """What a failed evaluation is to be blamed on, as far as that is known where it happens.

    ``PARAMS``: on its parameters, or on anything else that asking again would not cure. ``SYSTEM``:
    the system gave no answer (no connection, no answer in time, an answer that it is out of order);
    it may be there again later. ``EITHER``: the evaluation took longer than one may.
    """

    PARAMS = "params"
    SYSTEM = "system"
    EITHER = "either"


@dataclass(frozen=True)
class Race:
    """How far behind an evaluation was when it was stopped.

    Attributes:
        queries: how many were asked.
        estimate: the objective of the trial to beat plus the mean difference to it on the queries
            that were asked: paired, so that an easy sample of queries does not flatter.
        low, high: the 95 % interval of the estimate.
    """

    queries: int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class IndexUse:
    """The index that an evaluation asked, and what building it took.

    Attributes:
        name: tells it from others; equal index parameters have equal names within a study.
        seconds: what building it took, whenever that was.
        megabytes: 10^6 bytes on the disk.
        documents: how many it holds.
        tokens: those that a model embedded or read for it; None where the system does not tell.
        money: what that cost, in the user's currency; None where the system does not tell.
        is_new: whether it was built for this evaluation.
        folder: where it lies on this machine; not recorded.
        parts: each of several, as a policy asks them; the other figures are then sums.
    """

    name: str
    seconds: float
    megabytes: float
    documents: int
    tokens: int | None = None
    money: float | None = None
    is_new: bool = False
    folder: str = field(default="", compare=False)
    parts: tuple[IndexUse, ...] = ()

    @property
    def each(self) -> tuple[IndexUse, ...]:
        """Return the indexes one by one."""
        return self.parts or (self,)


def together(uses: Iterable[IndexUse | None]) -> IndexUse | None:
    """Return what several indexes took together, each once; None where there is none."""
    each: dict[str, IndexUse] = {}
    for use in uses:
        if use is not None and (use.is_new or use.name not in each):
            each[use.name] = use
    if len(each) < 2:
        return next(iter(each.values()), None)
    parts = tuple(each[name] for name in sorted(each))
    tokens = [use.tokens for use in parts if use.tokens is not None]
    money = [use.money for use in parts if use.money is not None]
    return IndexUse(
        "+".join(use.name for use in parts),
        seconds=sum(use.seconds for use in parts),
        megabytes=sum(use.megabytes for use in parts),
        documents=max(use.documents for use in parts),
        tokens=sum(tokens) if tokens else None,
        money=total(money) if money else None,
        is_new=any(use.is_new for use in parts),
        parts=parts,
    )


@dataclass(frozen=True)
class Outcome:
    """What one evaluation observed, before it is worth anything.

    Attributes:
        metrics: means by name, such as ``{"recall@10": 0.71, "context_tokens": 640.0}``.
        per_query: values by metric, each of shape (queries,); empty for evaluate functions that
            report means only. NaN marks a query for which the metric is undefined.
        seconds: wall time by stage; ``"total"`` is always there.
        error: why it failed, in one line, or None.
        race: how it was stopped early, or None; metrics are then means over the queries asked, and
            values of the others are NaN.
        blame: what an error is to be blamed on.
        index: which index was asked; None where the system has one only, or does not tell.
        params: all parameters, where free ones were chosen from the answer; None: as asked.
        profile: how they were chosen; None likewise.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    per_query: Mapping[str, FloatArray] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None
    race: Race | None = None
    blame: Blame = Blame.PARAMS
    index: IndexUse | None = None
    params: Params | None = None
    profile: Profile | None = None


@dataclass(frozen=True)
class Trial:
    """One set of parameters that an arm asked for, and its result once told.

    ``number`` is unique in the study and counts from 0 in the order of asking. ``objective`` is
    higher-is-better and None unless the trial is scored. ``violation`` adds up by how much the
    objective's constraints are broken (0: feasible). Times are seconds since the epoch. ``rival``
    is not recorded: the ``standing`` by query, shape (2, queries), of the trial that this one has
    to beat; an evaluation that races ends early where it cannot. ``goals``, not recorded either,
    are several objectives, each higher is better, where a search is told of them.

    Where some parameters are free, a trial is asked without them, and told with those that its
    answer chose: ``params`` are then complete, and ``profile`` holds what was asked.
    """

    number: int
    arm: str
    params: Params
    state: TrialState = TrialState.RUNNING
    objective: float | None = None
    violation: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None
    shared_from: int | None = None
    asked_at: float = 0.0
    told_at: float | None = None
    race: Race | None = None
    index: IndexUse | None = None
    rival: FloatArray | None = field(default=None, repr=False, compare=False)
    goals: tuple[float, ...] = ()
    profile: Profile | None = None

    @property
    def asked(self) -> Params:
        """Return the parameters that the trial was asked with."""
        return self.params if self.profile is None else dict(self.profile.asked)

    @property
    def is_told(self) -> bool:
        """Say whether the trial has ended, in whatever way."""
        return self.state is not TrialState.RUNNING

    @property
    def is_scored(self) -> bool:
        """Say whether the trial has an objective to compare by."""
        return self.objective is not None

    @property
    def evaluated_as(self) -> int:
        """Return the number of the trial whose evaluation gave the result."""
        return self.number if self.shared_from is None else self.shared_from

    @property
    def worth(self) -> float | None:
        """Return what a search can learn from: the objective, or its estimate after a race."""
        return self.race.estimate if self.race is not None else self.objective

    @property
    def is_feasible(self) -> bool:
        """Say whether the trial is scored and breaks no constraint."""
        return self.is_scored and self.violation <= 0.0

    def told(self, **changes: Any) -> Trial:
        """Return this trial with its result filled in."""
        return replace(self, **changes)

    def reopened(self) -> Trial:
        """Return this trial as it was asked, without its result."""
        return Trial(self.number, self.arm, self.asked, asked_at=self.asked_at)

    def to_record(self) -> dict[str, Any]:
        """Return the trial as a JSON-ready mapping, the form that the journal holds."""
        record = {name: value for name, value in vars(self).items() if name not in _UNRECORDED}
        record |= {"metrics": dict(self.metrics), "seconds": dict(self.seconds)}
        for name in ("race", "index", "profile"):
            part = record.pop(name)
            if part is not None:
                record[name] = asdict(part)
        if "index" in record:
            record["index"] = _index_record(record["index"])
        return {"trial": self.number, **record, "state": self.state.value}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Trial:
        """Read a trial back from its journal form; a metric that was undefined is so again.

        Raises:
            ValueError: a part that is missing or of another type, by its name; also KeyError.
        """
        trial: Trial = read_as(cls, {**record, "number": record["trial"]})
        return trial


def _index_record(record: Mapping[str, Any]) -> dict[str, Any]:
    parts = {"parts": [_index_record(part) for part in record["parts"]]} if record["parts"] else {}
    return {name: v for name, v in record.items() if name not in ("folder", "parts")} | parts


_UNRECORDED = ("number", "rival", "goals")


def params_key(params: Params) -> str:
    """Return what equal parameters have in common, and no others."""
    return json.dumps(params, sort_keys=True)


def best_trial(trials: list[Trial]) -> Trial | None:
    """Return the feasible trial with the highest objective; the earliest of equals; None if none.

    Where no scored trial is feasible, the one with the smallest violation is returned.
    """
    scored = [trial for trial in trials if trial.is_scored]
    if not scored:
        return None
    return max(scored, key=_rank)


def _rank(trial: Trial) -> tuple[float, float, int]:
    objective = -float("inf") if trial.objective is None else trial.objective
    return (-max(trial.violation, 0.0), objective, -trial.number)
