"""What a data set holds twice: queries, or documents, with one and the same text."""

from __future__ import annotations

from collections.abc import Iterable

from tuner.core.words import compare_key
from tuner.datasets.dataset import Dataset


def duplicate_queries(dataset: Dataset) -> tuple[tuple[str, ...], ...]:
    """Return groups of queries that are one, as `compare_key` compares them.

    None where queries have no text but their id, as with judgements alone.
    """
    worded = (query for query in dataset.queries if query.text != query.id)
    return same(((query.id, compare_key(query.text)) for query in worded), fewest=2)


def same(keyed: Iterable[tuple[str, object]], *, fewest: int) -> tuple[tuple[str, ...], ...]:
    """Return the ids that share a key, in groups of at least ``fewest``."""
    groups: dict[object, list[str]] = {}
    for id_, key in keyed:
        groups.setdefault(key, []).append(id_)
    return tuple(tuple(ids) for ids in groups.values() if len(ids) >= fewest)
