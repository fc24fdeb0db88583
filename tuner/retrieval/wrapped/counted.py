"""Any retriever whose queries are counted, by what they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tuner.core.calls import purpose_alone
from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.ledger import Asked, Hear, Ledger, current_key, heard_by, hearing
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
        with self._counting(self.purpose, len(queries)) as answered:
            try:
                rankings = self.retriever.retrieve(queries, params)
            except TunerError as error:
                if isinstance(error.answered, Rankings):
                    answered(error.answered)
                raise
            answered(rankings)
        return rankings

    def explain(self, queries: Sequence[Query], params: Params, rankings: Rankings) -> Rankings:
        """Return the rankings with names and paths, where the retriever can tell them."""
        return with_reasons(self.retriever, queries, params, rankings)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Ask the retriever as live traffic would, and count the query.

        It counts as one to be timed, unless the purpose asks queries alone for its own sake.
        """
        purpose = purpose_alone(self.purpose)
        with self._counting(purpose, 1) as answered:
            rankings = serve_one(self.retriever, query, params)
            answered(rankings)
        return rankings

    def tell_kept(self, queries: int) -> None:
        """Count queries that need not be asked, since their answers were kept."""
        if queries:
            self.ledger.add(self.purpose, Asked(kept=queries), current_key())

    @contextmanager
    def _counting(self, purpose: str, queries: int) -> Iterator[Hear]:
        """Count what is sent in the block; what is yielded counts answers nobody told of by then.

        A retriever that tells of answers as they come tells of all that it has.
        """
        ledger, key, heard = self.ledger, current_key(), list[Rankings]()

        def tell(sent: int) -> None:
            ledger.add(purpose, Asked(sent=sent), key)

        def hear(rankings: Rankings) -> None:
            heard.append(rankings)
            ledger.add(purpose, self._answered(rankings), key)

        def answered(rankings: Rankings) -> None:
            if not heard:
                hear(rankings)

        if not tells_each_query(self.retriever):
            tell(queries)
        with heard_by(tell), hearing(hear):
            yield answered

    def _answered(self, rankings: Rankings) -> Asked:
        tokens = rankings.context_tokens
        if self.count_tokens is not None:
            tokens = self.count_tokens(rankings)
        known = 0.0 if tokens is None else float(np.nansum(tokens))
        return Asked(answered=len(rankings.query_ids), tokens=known)


def counted(
    retriever: Retriever, purpose: str, ledger: Ledger, count_tokens: CountTokens | None = None
) -> Counted:
    """Return a retriever whose queries count for one purpose, and for no other."""
    inner = retriever.retriever if isinstance(retriever, Counted) else retriever
    return Counted(inner, purpose, ledger, count_tokens)
