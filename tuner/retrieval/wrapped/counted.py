"""Any retriever whose queries are counted, by what they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.calls import purpose_alone
from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, serve_one, with_reasons
from tuner.retrieval.wrapped.around import Around


@dataclass(frozen=True)
class Counted(Around):
    """Answers as the retriever does; ``calls`` adds up the answered queries, under ``purpose``."""

    retriever: Retriever
    purpose: str
    calls: Counter[str]

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
        return with_reasons(self.retriever, queries, params, rankings)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Ask the retriever as live traffic would, and count the query once it is answered.

        It counts as one to be timed, unless the purpose asks queries alone for its own sake.
        """
        rankings = serve_one(self.retriever, query, params)
        self.calls[purpose_alone(self.purpose)] += 1
        return rankings


def counted(retriever: Retriever, purpose: str, calls: Counter[str]) -> Counted:
    """Return a retriever whose queries count for one purpose, and for no other."""
    inner = retriever.retriever if isinstance(retriever, Counted) else retriever
    return Counted(inner, purpose, calls)
