"""A vector store over the corpus in the form that graph-retriever asks: exact and in memory.

Imports graph-retriever; so it is imported only when an index is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from graph_retriever import Content
from graph_retriever.adapters import Adapter

from tuner.core.rankings import Float32Array
from tuner.retrieval.adapters.graph_retriever.options import MENTIONS, TITLE

# Without the library, as most will check the types, its classes are Any.
_Adapter: Any = Adapter


class CorpusStore(_Adapter):  # type: ignore[misc]  # see above
    """Documents with a vector and names each. Equally similar ones come in the order of their ids.

    ``vectors`` has shape (documents, dimensions); ``names`` are those in each document, and
    ``titles`` its own; ``embedding`` gives a query's vector.
    """

    def __init__(
        self,
        document_ids: Sequence[str],
        vectors: Float32Array,
        names: Sequence[Sequence[str]],
        titles: Sequence[Sequence[str]],
        embedding: Callable[[str], Float32Array],
    ) -> None:
        super().__init__()
        order = sorted(range(len(document_ids)), key=lambda row: document_ids[row])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._matrix = np.asarray((vectors / lengths)[order], dtype=np.float32)
        # The text is left out, since traversal does not read it and the caller has it.
        self._contents = [
            Content(
                document_ids[old],
                "",
                vector,
                {MENTIONS: list(names[old]), TITLE: list(titles[old])},
            )
            for old, vector in zip(order, self._matrix, strict=True)
        ]
        self._rows = {content.id: row for row, content in enumerate(self._contents)}
        self._all = frozenset(self._rows.values())
        postings: dict[tuple[str, str], list[int]] = {}
        for row, content in enumerate(self._contents):
            for field, found in content.metadata.items():
                for name in found:
                    postings.setdefault((field, name), []).append(row)
        self._postings = postings
        self._embedding = embedding

    def search_with_embedding(
        self, query: str, k: int = 4, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[list[float], list[Any]]:
        """Return the query's vector and the ``k`` most similar documents."""
        vector = self._embedding(query).tolist()
        return vector, self.search(vector, k, filter, **kwargs)

    def search(
        self,
        embedding: list[float],
        k: int = 4,
        filter: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ARG002  # the library's signature
    ) -> list[Any]:
        """Return the ``k`` documents most similar to a vector."""
        return self._best(sorted(self._matching(filter)), embedding, k)

    def get(
        self,
        ids: Sequence[str],
        filter: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> list[Any]:
        """Return the documents that have these ids; unknown ids are left out."""
        rows = (self._rows.get(id_) for id_ in ids)
        allowed = self._matching(filter)
        return [self._contents[row] for row in rows if row is not None and row in allowed]

    def adjacent(
        self,
        edges: set[Any],
        query_embedding: list[float],
        k: int,
        filter: dict[str, Any] | None,
        **kwargs: Any,  # noqa: ARG002
    ) -> Iterable[Any]:
        """Return the ``k`` documents most similar to the query among those that an edge leads to.

        The base class searches once for each edge and then again among what it found, with the
        same result but for the order of equals, which it leaves to chance.
        """
        places = [(edge.incoming_field, edge.value) for edge in edges]
        rows = {row for place in places for row in self._postings.get(place, ())}
        return self._best(sorted(rows & self._matching(filter)), query_embedding, k)

    def _matching(self, wanted: Mapping[str, Any] | None) -> Set[int]:
        """Return the rows that have a name, ``{"mentions": name}``; all of them without one."""
        if not wanted:
            return self._all
        return set.intersection(*(set(self._postings.get(one, ())) for one in wanted.items()))

    def _best(self, rows: list[int], vector: list[float], k: int) -> list[Any]:
        matrix = self._matrix if len(rows) == len(self._matrix) else self._matrix[rows]
        scores = matrix @ np.asarray(vector, dtype=np.float32)
        best = np.argsort(-scores, kind="stable")[:k]
        return [self._contents[rows[place]] for place in best]
