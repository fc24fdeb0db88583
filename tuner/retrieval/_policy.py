"""Any retriever under a policy: each query is answered with the parameters of its type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.core.corpus import Query
from tuner.core.policy import Policy
from tuner.core.rankings import NO_DOCUMENT, Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Knob, Retriever, Serves


@dataclass(frozen=True)
class PolicyRetriever:
    """Answers each query with what the policy says for its text; ``params`` are not looked at."""

    retriever: Retriever
    policy: Policy

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return none: the policy decides."""
        return ()

    @property
    def fingerprint(self) -> str:
        """Return that of the retriever."""
        return self.retriever.fingerprint

    def prepare(self, queries: Sequence[Query]) -> None:
        """Prepare the retriever."""
        self.retriever.prepare(queries)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:  # noqa: ARG002
        """Answer the queries in groups of equal parameters, in the order that they came in."""
        groups: dict[tuple[tuple[str, Any], ...], list[int]] = defaultdict(list)
        for row, query in enumerate(queries):
            groups[tuple(self.policy.params_for(query.text).items())].append(row)
        parts = [
            (rows, self.retriever.retrieve([queries[row] for row in rows], dict(chosen)))
            for chosen, rows in groups.items()
        ]
        return _merged(queries, parts)

    def serve(self, query: Query, params: Params) -> Rankings:  # noqa: ARG002  # as in Serves
        """Answer one query as live traffic would: its type is told first."""
        chosen = self.policy.params_for(query.text)
        if isinstance(self.retriever, Serves):
            return self.retriever.serve(query, chosen)
        return self.retriever.retrieve([query], chosen)


def _merged(queries: Sequence[Query], parts: Sequence[tuple[list[int], Rankings]]) -> Rankings:
    position: dict[str, int] = {}
    depth = max((rankings.depth for _, rankings in parts), default=0)
    documents = np.full((len(queries), depth), NO_DOCUMENT, dtype=np.int64)
    tokens = np.zeros(len(queries))
    is_used = np.zeros(len(queries), dtype=np.bool_)
    seconds: dict[str, float] = defaultdict(float)
    for rows, rankings in parts:
        for place, row in enumerate(rows):
            ids = rankings.ids(place)
            documents[row, : len(ids)] = [position.setdefault(id_, len(position)) for id_ in ids]
        if rankings.context_tokens is not None:
            tokens[rows] = rankings.context_tokens
        if rankings.graph_used is not None:
            is_used[rows] = rankings.graph_used
        for stage, spent in rankings.seconds.items():
            seconds[stage] += spent
    return Rankings(
        query_ids=tuple(query.id for query in queries),
        document_ids=tuple(position),
        documents=documents,
        seconds=dict(seconds),
        context_tokens=None if any(r.context_tokens is None for _, r in parts) else tokens,
        graph_used=None if any(r.graph_used is None for _, r in parts) else is_used,
    )
