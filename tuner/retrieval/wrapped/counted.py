"""Any retriever whose queries are counted, by what they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import AnswersOneByOne, Explains, Knob, Retriever, Serves


@dataclass(frozen=True)
class Counted:
    """Answers as the retriever does; ``calls`` adds up the answered queries, under ``purpose``."""

    retriever: Retriever
    purpose: str
    calls: Counter[str]

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return those of the retriever."""
        return self.retriever.knobs

    @property
    def fingerprint(self) -> str:
        """Return that of the retriever."""
        return self.retriever.fingerprint

    @property
    def queries_at_once(self) -> int | None:
        """Return how many queries the retriever answers side by side, where it tells."""
        return at_once_of(self.retriever)

    def prepare(self, queries: Sequence[Query]) -> None:
        """Let the retriever prepare."""
        self.retriever.prepare(queries)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Ask the retriever, and count the queries that it answered, also where it then failed."""
        try:
            rankings = self.retriever.retrieve(queries, params)
        except TunerError as error:
            if isinstance(error.answered, Rankings):
                self.calls[self.purpose] += len(error.answered.query_ids)
            raise
        self.calls[self.purpose] += len(queries)
        return rankings

    def explain(self, queries: Sequence[Query], params: Params, rankings: Rankings) -> Rankings:
        """Return the rankings with names and paths, where the retriever can tell them."""
        if not isinstance(self.retriever, Explains):
            return rankings
        return self.retriever.explain(queries, params, rankings)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Ask the retriever as live traffic would, and count the query once it is answered."""
        if isinstance(self.retriever, Serves):
            rankings = self.retriever.serve(query, params)
        else:
            rankings = self.retriever.retrieve([query], params)
        self.calls[self.purpose] += 1
        return rankings


def at_once_of(retriever: Retriever) -> int | None:
    """Return how many queries a retriever answers side by side; None where it does not tell."""
    return retriever.queries_at_once if isinstance(retriever, AnswersOneByOne) else None


def counted(retriever: Retriever, purpose: str, calls: Counter[str]) -> Counted:
    """Return a retriever whose queries count for one purpose, and for no other."""
    inner = retriever.retriever if isinstance(retriever, Counted) else retriever
    return Counted(inner, purpose, calls)
