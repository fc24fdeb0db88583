"""Where an answer that was computed is not the one that the system gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tuner.core.corpus import Query
from tuner.core.rankings import Rankings
from tuner.core.trial import Scalar


def difference(
    name: str,
    queries: Sequence[Query],
    pairs: Iterable[tuple[Scalar, Rankings, Rankings]],
    *,
    counts: bool,
) -> str | None:
    """Return where an answer that was computed is not the one that was given; None: nowhere.

    ``pairs`` holds, for values of a parameter, the computed answers and the given ones; ``counts``
    says whether their tokens are compared, too.
    """
    for value, computed, given in pairs:
        for row, query in enumerate(queries):
            found = _first_difference(computed.ids(row), given.ids(row))
            if found is not None:
                rank, expected, got = found
                return (
                    f"with {name}={value} query {query.id!r} was answered with {got} at rank "
                    f"{rank}, where one answer to all values tells of {expected}"
                )
        if not counts or given.context_tokens is None:
            continue
        if computed.context_tokens is None:
            return (
                "the system counts the tokens of a context, and does not tell each passage's "
                "(give each result its tokens, or leave context_tokens out)"
            )
        is_off = ~np.isclose(computed.context_tokens, given.context_tokens)
        if is_off.any():
            row = int(is_off.argmax())
            return (
                f"with {name}={value} the context of query {queries[row].id!r} had "
                f"{given.context_tokens[row]:g} tokens, where one answer to all values tells of "
                f"{computed.context_tokens[row]:g}"
            )
    return None


def _first_difference(computed: list[str], given: list[str]) -> tuple[int, str, str] | None:
    length = max(len(computed), len(given))
    rows = [[*map(repr, ids), *["nothing"] * (length - len(ids))] for ids in (computed, given)]
    for rank, (expected, got) in enumerate(zip(*rows, strict=True), start=1):
        if expected != got:
            return rank, expected, got
    return None
