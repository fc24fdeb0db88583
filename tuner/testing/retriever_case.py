"""What the contract suite is run on: a retriever, queries, and the parameters to try."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tuner.core.corpus import Query
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever


@dataclass(frozen=True)
class RetrieverCase:
    """One retriever to check. ``make`` is called once, when the first check needs it.

    Attributes:
        make: builds the retriever.
        queries: at least two, with different answers; one that finds nothing is a good third.
        params: the parameter sets to try, each with the knobs that differ from their defaults.
        document_ids: every id that the retriever may return.
        is_deterministic: whether the same question must get the same answer again. A retriever
            that cannot promise this is let off the checks that compare two answers.
    """

    make: Callable[[], Retriever] = field(repr=False)
    queries: Sequence[Query]
    params: Sequence[Params] = ({},)
    document_ids: Collection[str] = field(kw_only=True, repr=False)
    is_deterministic: bool = field(default=True, kw_only=True)

    @cached_property
    def retriever(self) -> Retriever:
        """Return the one retriever of this case, with its queries prepared."""
        retriever = self.make()
        retriever.prepare(self.queries)
        return retriever

    @cached_property
    def answers(self) -> tuple[tuple[Params, Rankings], ...]:
        """Return the answer to all queries for each parameter set, in order."""
        return tuple(
            (params, self.retriever.retrieve(self.queries, dict(params))) for params in self.params
        )
