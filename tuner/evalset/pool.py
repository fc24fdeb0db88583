"""Pool what several retrievers return: the passages that annotators judge, blind and shuffled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.rankings import Rankings
from tuner.evalset.sheets import Row


def pooled(
    rankings: Iterable[Rankings], *, depth: int, also: Mapping[str, Sequence[str]] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return query id -> the union of all rankings' first ``depth`` documents, in order of id.

    This is the depth-k pooling of TREC: every system has its best documents judged, so that none
    is measured by another one's finds. ``also`` adds documents from elsewhere, such as clicks.

    Raises:
        InputError: a depth below 1.
    """
    if depth < 1:
        raise InputError(f"a pool of depth {depth}; must be at least 1")
    found: dict[str, set[str]] = {}
    for ranking in rankings:
        for row, query_id in enumerate(ranking.query_ids):
            found.setdefault(query_id, set()).update(ranking.ids(row)[:depth])
    for query_id, documents in (also or {}).items():
        found.setdefault(query_id, set()).update(documents)
    return {query_id: tuple(sorted(documents)) for query_id, documents in found.items()}


def sheet_rows(
    queries: Sequence[Query],
    pool: Mapping[str, Sequence[str]],
    documents: Sequence[Document],
    *,
    seed: int = 0,
) -> list[Row]:
    """Return the rows of an annotation sheet: query after query, each one's passages shuffled.

    The order depends on the seed and the ids alone, so that it tells nothing about which system
    found a passage, or how many did.

    Raises:
        InputError: a pooled document that is not among ``documents``.
    """
    by_id = {document.id: document for document in documents}
    rows = []
    for query in queries:
        pooled_ids = pool.get(query.id, ())
        for id_ in sorted(pooled_ids, key=lambda id_: _draw(seed, query.id, id_)):
            if id_ not in by_id:
                raise InputError(f"query {query.id!r}: document {id_!r} is not in the corpus")
            document = by_id[id_]
            rows.append(Row(query.id, query.text, id_, document.title, document.text))
    return rows


def _draw(seed: int, query_id: str, document_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{query_id}\n{document_id}".encode()).digest()
