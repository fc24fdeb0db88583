"""How a study's queries are divided: those to tune on, those held out, or parts that all decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.config.dataset import DatasetSection
from tuner.core.errors import InputError
from tuner.core.steps import Say
from tuner.datasets import Dataset, cut_queries, split_queries
from tuner.datasets.dataset import duplicate_queries
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
    """Divide a data set's queries as its section says, and warn of copies on several sides.

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
        if len(queries) < FEWEST_IN_PARTS:
            message = (
                f"{len(queries)} queries are too few to decide part by part: at least "
                f"{FEWEST_IN_PARTS} are needed; leave it out, and the gain is corrected for the "
                "search's luck"
            )
            raise InputError(message, key=("split", "parts"))
        parts = cut_queries(queries, split.parts, stratify_by=split.stratify_by, seed=seed)
    for warning in (*dataset.warnings, *_on_several_sides(dataset, parts or (held_out,))):
        say(f"note: {warning}")
    return Division(tune, held_out, parts)


def _on_several_sides(dataset: Dataset, sides: Sequence[Ids]) -> Iterator[str]:
    """Yield a warning of queries that are tuned on and held out as well, under another id."""
    side_of = {id_: number for number, ids in enumerate(sides, start=1) for id_ in ids}
    split = [
        ", ".join(map(repr, ids))
        for ids in (duplicate_queries(dataset) if side_of else ())
        if len({side_of.get(id_, 0) for id_ in ids}) > 1
    ]
    if not split:
        return
    rest = f"; and {len(split) - SHOWN_COPIES} more like this" if split[SHOWN_COPIES:] else ""
    yield (
        f"queries with the same text stand on both sides of the split, so the held-out ones are "
        f"not all fresh: {'; '.join(split[:SHOWN_COPIES])}{rest}; remove one of each, or give them "
        "the same `group` in queries.jsonl"
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
