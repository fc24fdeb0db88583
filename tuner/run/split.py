"""How a study's queries are divided: those to tune on, those held out, or parts that all decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tuner.config.dataset import DatasetSection
from tuner.core.errors import InputError
from tuner.core.steps import Say
from tuner.datasets import Dataset, cut_queries, split_queries
from tuner.datasets.dataset import duplicate_queries
from tuner.datasets.together import together
from tuner.run.people import PeoplesLabels, people_first
from tuner.verdict.few_queries import FEWEST_TO_SPLIT

# The promise of a verdict by parts was measured from so many queries on
# (experiments/statistics/crossfit.md).
FEWEST_IN_PARTS = 40
# So many groups of queries with the same text are named.
SHOWN_COPIES = 3

Ids = tuple[str, ...]


@dataclass(frozen=True)
class Division:
    """The ids of the queries to tune on, of those held out, and of each part of the former."""

    tune: Ids
    held_out: Ids
    parts: tuple[Ids, ...] = ()


def divide(
    section: DatasetSection, dataset: Dataset, people: PeoplesLabels | None, seed: int, say: Say
) -> Division:
    """Divide a data set's queries as its section says, and tell of copies.

    Where a judge's labels count beside ``people``'s, people's queries are held out first.

    Raises:
        InputError: they cannot be divided so; its key begins at the section's.
    """
    split, queries = section.split, dataset.queries
    share = _holdout(section, len(queries), say)
    given: dict[str, Any] = {"holdout": share, "stratify_by": split.stratify_by, "seed": seed}
    tune, held_out = (
        people_first(dataset, people.queries, **given)
        if people is not None and people.counts
        else split_queries(queries, **given)
    )
    parts: tuple[Ids, ...] = ()
    if split.parts is not None:
        count = len(set(together(queries).tolist()))
        if count < FEWEST_IN_PARTS:
            alike = "" if count == len(queries) else f", which count as {count},"
            message = (
                f"{len(queries)} queries{alike} are too few to decide part by part: at least "
                f"{FEWEST_IN_PARTS} are needed; leave it out, and the gain is corrected for the "
                "search's luck"
            )
            raise InputError(message, key=("split", "parts"))
        parts = cut_queries(queries, split.parts, stratify_by=split.stratify_by, seed=seed)
    for warning in (*dataset.warnings, *_together(dataset)):
        say(f"note: {warning}")
    return Division(tune, held_out, parts)


def _together(dataset: Dataset) -> Iterator[str]:
    """Yield a note on queries with the same text, which count as one."""
    copies = duplicate_queries(dataset)
    if not copies:
        return
    shown = "; ".join(", ".join(map(repr, ids)) for ids in copies[:SHOWN_COPIES])
    rest = f"; and {len(copies) - SHOWN_COPIES} more like this" if copies[SHOWN_COPIES:] else ""
    yield (
        f"queries with the same text stay on one side of the split, and count as one in the "
        f"verdict: {shown}{rest}"
    )


def _holdout(section: DatasetSection, queries: int, say: Say) -> float:
    """Return the share to hold out: none of a few queries, unless the configuration asks for it."""
    split = section.split
    if split.parts is not None:
        return 0.0
    if "holdout" in split.model_fields_set or queries >= FEWEST_TO_SPLIT:
        return float(split.holdout)
    say(
        f"note: {queries} queries are too few to hold some out; all are tuned on, and the gain is "
        "corrected for the search's luck (set dataset.split.holdout to split all the same)"
    )
    return 0.0
