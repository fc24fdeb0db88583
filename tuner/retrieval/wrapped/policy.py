"""Any retriever under a policy: each query is answered with the parameters that it says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.corpus import Query
from tuner.core.json_text import digest_of
from tuner.core.policy import POLICY, Policy
from tuner.core.rankings import NO_DOCUMENT, Rankings
from tuner.core.stacked import stacked
from tuner.core.steps import Advance, unheard
from tuner.core.trial import IndexUse, Params, together
from tuner.retrieval.base import (
    Explains,
    Retriever,
    holding,
    identity,
    pin,
    ready,
    serve_one,
    with_reasons,
)
from tuner.retrieval.features import params_for
from tuner.retrieval.knobs import Knob
from tuner.retrieval.wrapped.around import Around

Groups = Sequence[tuple[dict[str, Any], list[int]]]


@dataclass(frozen=True)
class PolicyRetriever(Around):
    """Answers each query with what the policy says for its text; ``params`` are not looked at."""

    retriever: Retriever
    policy: Policy

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return none: the policy decides."""
        return ()

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:  # noqa: ARG002
        """Answer the queries in groups of equal parameters, in the order that they came in."""
        parts = [
            (rows, self.retriever.retrieve([queries[row] for row in rows], chosen))
            for chosen, rows in self._groups(queries)
        ]
        return _merged(queries, parts)

    def explain(
        self,
        queries: Sequence[Query],
        params: Params,  # noqa: ARG002  # as in Explains
        rankings: Rankings,
    ) -> Rankings:
        """Return the rankings with names and paths, where the retriever can tell them."""
        if not isinstance(self.retriever, Explains):
            return rankings
        entities: list[Any] = [()] * len(queries)
        paths: list[Any] = [()] * len(queries)
        for chosen, rows in self._groups(queries):
            asked = [queries[row] for row in rows]
            part = self.retriever.explain(asked, chosen, _rows(rankings, rows))
            if part.entities is None or part.paths is None:
                return rankings
            for place, row in enumerate(rows):
                entities[row], paths[row] = part.entities[place], part.paths[place]
        return replace(rankings, entities=entities, paths=paths)

    def serve(self, query: Query, params: Params) -> Rankings:  # noqa: ARG002  # as in Serves
        """Answer one query as live traffic would: its parameters are chosen first."""
        (chosen,) = params_for(self.policy, self.retriever, [query])
        return serve_one(self.retriever, query, chosen)

    def handed_on(
        self,
        query: Query,
        params: Params,  # noqa: ARG002  # as in HandsOn
    ) -> tuple[Retriever, Params]:
        """Return the retriever, and the parameters that the policy chooses for the query."""
        (chosen,) = params_for(self.policy, self.retriever, [query])
        return self.retriever, chosen

    def ready(self, params: Params, advance: Advance = unheard) -> IndexUse | None:  # noqa: ARG002
        """Have the index of every type built."""
        return together(ready(self.retriever, each, advance) for each in self.policy.choices)

    @contextmanager
    def holding(self, params: Params) -> Iterator[IndexUse | None]:  # noqa: ARG002
        """Have the index of every type built, and keep them while the block runs."""
        with ExitStack() as held:
            uses = [
                held.enter_context(holding(self.retriever, each)) for each in self.policy.choices
            ]
            yield together(uses)

    def pin(self, params: Params, *, holder: Path, why: str) -> None:  # noqa: ARG002
        """Keep the index of every type as long as ``holder`` exists."""
        for number, each in enumerate(self.policy.choices):
            pin(self.retriever, each, holder=holder, why=f"{why} {number}")

    def identity(self, params: Params) -> str:  # noqa: ARG002
        """Return what the indexes of all types are made from."""
        found = [identity(self.retriever, each) for each in self.policy.choices]
        return digest_of(found) if any(found) else ""

    def _groups(self, queries: Sequence[Query]) -> Groups:
        groups: dict[tuple[tuple[str, Any], ...], list[int]] = defaultdict(list)
        for row, params in enumerate(params_for(self.policy, self.retriever, queries)):
            groups[tuple(params.items())].append(row)
        return [(dict(chosen), rows) for chosen, rows in groups.items()]


@dataclass(frozen=True)
class WithPolicy(Around):
    """A retriever that answers by a policy where the parameters name it, else by the parameters.

    So a study's baseline can be a policy, which is a trial like any other.
    """

    retriever: Retriever
    policy: Policy

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer the queries."""
        return self._answering(params).retrieve(queries, params)

    def explain(self, queries: Sequence[Query], params: Params, rankings: Rankings) -> Rankings:
        """Return the rankings with names and paths, where the retriever can tell them."""
        return with_reasons(self._answering(params), queries, params, rankings)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query as live traffic would."""
        return serve_one(self._answering(params), query, params)

    def handed_on(
        self,
        query: Query,  # noqa: ARG002  # as in HandsOn
        params: Params,
    ) -> tuple[Retriever, Params]:
        """Return who answers with these parameters: the policy, where they name it."""
        return self._answering(params), params

    def ready(self, params: Params, advance: Advance = unheard) -> IndexUse | None:
        """Have the index of these parameters, or of every type of the policy, built."""
        return ready(self._answering(params), params, advance)

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Have it built, and keep it while the block runs."""
        return holding(self._answering(params), params)

    def pin(self, params: Params, *, holder: Path, why: str) -> None:
        """Keep it, or that of every type, as long as ``holder`` exists."""
        pin(self._answering(params), params, holder=holder, why=why)

    def identity(self, params: Params) -> str:
        """Return what it is, or those of all types are, made from."""
        return identity(self._answering(params), params)

    def _answering(self, params: Params) -> Retriever:
        return PolicyRetriever(self.retriever, self.policy) if POLICY in params else self.retriever


def _rows(rankings: Rankings, rows: Sequence[int]) -> Rankings:
    """Return some rows, as deep as the longest of them."""
    documents = rankings.documents[rows]
    depth = int((documents != NO_DOCUMENT).sum(axis=1).max(initial=0))
    return Rankings(
        tuple(rankings.query_ids[row] for row in rows), rankings.document_ids, documents[:, :depth]
    )


def _merged(queries: Sequence[Query], parts: Sequence[tuple[list[int], Rankings]]) -> Rankings:
    if not queries:
        return Rankings.from_ids((), ())
    rows = np.concatenate([of_part for of_part, _ in parts])
    return stacked([rankings for _, rankings in parts], np.argsort(rows))
