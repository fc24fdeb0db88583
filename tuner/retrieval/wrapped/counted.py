"""Any retriever whose queries are counted, by what they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.calls import purpose_alone
from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.ledger import Asked, Ledger, Tell, current_key, heard_by
from tuner.core.rankings import FloatArray, Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, serve_one, tells_each_query, with_reasons
from tuner.retrieval.wrapped.around import Around

CountTokens = Callable[[Rankings], FloatArray]
"""Counts the tokens of each query's context, where the retriever does not report them."""


@dataclass(frozen=True)
class Counted(Around):
    """Answers as the retriever does; ``ledger`` adds up what it is asked, under ``purpose``.

    A retriever that tells of each query counts by that: to the query, those that failed and those
    that were tried again included. Any other counts by batches, from when it is asked.
    """

    retriever: Retriever
    purpose: str
    ledger: Ledger
    count_tokens: CountTokens | None = None

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Ask the retriever, and count the queries, also where it then fails."""
        with heard_by(tell := self._tell(self.purpose)):
            if not tells_each_query(self.retriever):
                tell(len(queries))
            try:
                rankings = self.retriever.retrieve(queries, params)
            except TunerError as error:
                if isinstance(error.answered, Rankings):
                    self._answered(self.purpose, error.answered)
                raise
        self._answered(self.purpose, rankings)
        return rankings

    def explain(self, queries: Sequence[Query], params: Params, rankings: Rankings) -> Rankings:
        """Return the rankings with names and paths, where the retriever can tell them."""
        return with_reasons(self.retriever, queries, params, rankings)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Ask the retriever as live traffic would, and count the query.

        It counts as one to be timed, unless the purpose asks queries alone for its own sake.
        """
        purpose = purpose_alone(self.purpose)
        with heard_by(tell := self._tell(purpose)):
            if not tells_each_query(self.retriever):
                tell(1)
            rankings = serve_one(self.retriever, query, params)
        self._answered(purpose, rankings)
        return rankings

    def tell_kept(self, queries: int) -> None:
        """Count queries that need not be asked, since their answers were kept."""
        if queries:
            self.ledger.add(self.purpose, Asked(kept=queries), current_key())

    def _tell(self, purpose: str) -> Tell:
        ledger, key = self.ledger, current_key()

        def tell(queries: int) -> None:
            ledger.add(purpose, Asked(sent=queries), key)

        return tell

    def _answered(self, purpose: str, rankings: Rankings) -> None:
        tokens = rankings.context_tokens
        if self.count_tokens is not None:
            tokens = self.count_tokens(rankings)
        known = 0.0 if tokens is None else float(np.nansum(tokens))
        answered = Asked(answered=len(rankings.query_ids), tokens=known)
        self.ledger.add(purpose, answered, current_key())


def counted(
    retriever: Retriever, purpose: str, ledger: Ledger, count_tokens: CountTokens | None = None
) -> Counted:
    """Return a retriever whose queries count for one purpose, and for no other."""
    inner = retriever.retriever if isinstance(retriever, Counted) else retriever
    return Counted(inner, purpose, ledger, count_tokens)
