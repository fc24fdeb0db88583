"""Which queries stay together, and count as one: those of a group, and those with the same text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Query
from tuner.core.words import compare_key

Key = tuple[str, str]


def together(queries: Sequence[Query]) -> npt.NDArray[np.intp]:
    """Return a number for each query, shape (queries,): the same for queries that stay together.

    These have the same non-empty ``group``, or the same text as `compare_key` compares; and what
    stays together with the same query does so with each other. Numbers are those of first queries:
    q1, q2 in group g, q3 with q1's text, q4: 0, 0, 0, 3. A query without a text of its own (its
    text is its id, as with judgements alone) has none to share.
    """
    root = list(range(len(queries)))

    def first_of(place: int) -> int:
        while root[place] != place:
            root[place] = root[root[place]]
            place = root[place]
        return place

    seen: dict[Key, int] = {}
    for place, query in enumerate(queries):
        for key in _keys(query):
            other, own = first_of(seen.setdefault(key, place)), first_of(place)
            root[max(other, own)] = min(other, own)
    return np.array([first_of(place) for place in range(len(queries))], dtype=np.intp)


def _keys(query: Query) -> Iterator[Key]:
    if query.group:
        yield "group", query.group
    if query.text != query.id and (text := compare_key(query.text)):
        yield "text", text
