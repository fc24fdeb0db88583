"""What each index cost, and what was found with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tuner.core.index_costs import has_failed_index
from tuner.core.shown import counted
from tuner.core.steps import INDEX
from tuner.core.study_facts import indexes_to_tell
from tuner.core.trial import IndexUse, Params, Trial, best_trial
from tuner.report.parts import MISSING, Block, Section, Table, Text, shown, shown_params
from tuner.report.review import Review

MOST_INDEXES = 60

_OF_A_POLICY = "one of a policy's"


@dataclass
class _Index:
    """An index of the study: what is known of it, and the trials that asked it alone.

    ``use`` is None where it could not be built, and ``seconds`` then what was waited for it.
    """

    use: IndexUse | None
    seconds: float = 0.0
    trials: list[Trial] = field(default_factory=list)

    @property
    def best(self) -> Trial | None:
        return best_trial(self.trials)

    @property
    def came(self) -> str:
        if self.use is None:
            return "not built"
        return "built" if self.use.is_new else "found"


def section(review: Review) -> Section | None:
    """List the indexes, best first; None where the system has one only, or tells of none."""
    if indexes_to_tell(review.summary) is None:
        return None
    indexes = sorted(_indexes(review.trials), key=_rank)
    names = _names(review, indexes)
    chosen = review.trial(review.chosen)
    used = {use.name for use in chosen.index.each} if chosen and chosen.index else set()
    listed = indexes[:MOST_INDEXES]
    has_tokens, has_money = (
        any(getattr(one.use, name, None) is not None for one in listed)
        for name in ("tokens", "money")
    )
    columns = {
        "setting": [_setting(one, names) for one in listed],
        "came": [one.came for one in listed],
        "seconds": [shown(one.seconds) for one in listed],
        "MB": [_told(one, "megabytes") for one in listed],
        "documents": [_told(one, "documents") for one in listed],
        **({"tokens": [_told(one, "tokens") for one in listed]} if has_tokens else {}),
        **({"money": [_told(one, "money") for one in listed]} if has_money else {}),
        "trials": [f"{len(one.trials):,}" for one in listed],
        "best objective": [
            MISSING if one.best is None else shown(one.best.objective) for one in listed
        ],
    }
    strong = frozenset(n for n, one in enumerate(listed) if one.use and one.use.name in used)
    caption = (
        "Seconds are what building took, queries prepared included, also where an index was found "
        f"in the cache; bold is the {review.called}'s"
    )
    rows = tuple(zip(*columns.values(), strict=True))
    numeric = frozenset(columns) - {"setting", "came"}
    blocks: list[Block] = [Table(caption, tuple(columns), rows, numeric, strong)]
    if len(indexes) > MOST_INDEXES:
        left = counted(len(indexes) - MOST_INDEXES, "other index", "other indexes")
        blocks.append(Text(f"{left}: see journal.jsonl.", True))
    lead = "What did each index cost, and how good was the best that was asked of it?"
    return Section("indexes", "Indexes", lead, tuple(blocks))


def _indexes(trials: Iterable[Trial]) -> list[_Index]:
    found: dict[str, _Index] = {}
    failed: dict[str, _Index] = {}
    for trial in trials:
        if trial.index is None:
            if has_failed_index(trial):
                index = failed.setdefault(trial.error or "", _Index(None))
                index.seconds += trial.seconds[INDEX]
                index.trials.append(trial)
            continue
        for use in trial.index.each:
            index = found.setdefault(use.name, _Index(use, use.seconds))
            if use.is_new:
                index.use, index.seconds = use, use.seconds
            if not trial.index.parts:
                index.trials.append(trial)
    return [*found.values(), *failed.values()]


def _rank(index: _Index) -> tuple[bool, float, float, int]:
    best = index.best
    first = index.trials[0].number if index.trials else 0
    if best is None:
        return (True, 0.0, 0.0, first)
    return (False, max(best.violation, 0.0), -(best.objective or 0.0), first)


def index_parameters(review: Review) -> list[str]:
    """Return the parameters of the index; none where the system has one index only."""
    indexes = _indexes(review.trials)
    return _names(review, indexes) if indexes else []


def _names(review: Review, indexes: Sequence[_Index]) -> list[str]:
    """Return the parameters of the index.

    Where a journal of old does not say them: those on which all trials of each index agree.
    """
    known = review.header.index.get("parameters")
    if known is not None:
        return list(known)
    several = [index.trials for index in indexes if len(index.trials) > 1]
    return [
        name
        for name in review.header.space
        if all(len({repr(t.params.get(name)) for t in trials}) == 1 for trials in several)
    ]


def _setting(index: _Index, names: Sequence[str]) -> str:
    if not index.trials:
        return _OF_A_POLICY
    params: Params = index.trials[0].params
    return shown_params({name: params[name] for name in names if name in params}) or MISSING


def _told(index: _Index, name: str) -> str:
    value = None if index.use is None else getattr(index.use, name)
    return f"{value:,}" if isinstance(value, int) else shown(value)
