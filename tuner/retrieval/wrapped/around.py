"""What every retriever around a retriever passes on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from copy import copy
from pathlib import Path
from typing import Self

from tuner.core.corpus import Query
from tuner.core.feature_rule import Seen
from tuner.core.steps import Advance, unheard
from tuner.core.trial import IndexUse, Params
from tuner.retrieval.base import (
    Explains,
    Retriever,
    at_once_of,
    features_of,
    free_knobs,
    holding,
    identity,
    pin,
    prepare,
    ready,
    telling_legs,
    tells_each_query,
)
from tuner.retrieval.free import FreeKnobs
from tuner.retrieval.knobs import Knob


class Around:
    """All of a retriever but its answers: those are what the retrievers around it differ in.

    A base class, against the house's habit: it holds nothing, and saves each the same members.
    """

    retriever: Retriever

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

    @property
    def tells_each_query(self) -> bool:
        """Say whether the retriever tells of each query as it is sent."""
        return tells_each_query(self.retriever)

    def free_knobs(self, fixed: Params, searched: Collection[str]) -> FreeKnobs:
        """Return those of the retriever, where it tells."""
        return free_knobs(self.retriever, fixed, searched)

    def telling_legs(self) -> Self:
        """Return the same around the retriever whose answers carry their legs, where they can."""
        same = copy(self)
        object.__setattr__(same, "retriever", telling_legs(self.retriever))  # some are frozen
        return same

    def handed_on(
        self,
        query: Query,  # noqa: ARG002  # as in HandsOn
        params: Params,
    ) -> tuple[Retriever, Params]:
        """Return the retriever, which answers with the same parameters."""
        return self.retriever, params

    def features_of(self, queries: Sequence[Query], params: Params) -> Seen:
        """Return what the retriever tells of queries before it answers them."""
        return features_of(self.retriever, queries, params)

    def prepare(self, queries: Sequence[Query], advance: Advance = unheard) -> None:
        """Let the retriever prepare."""
        prepare(self.retriever, queries, advance)

    def ready(self, params: Params, advance: Advance = unheard) -> IndexUse | None:
        """Let the retriever have the index of these parameters built."""
        return ready(self.retriever, params, advance)

    def holding(self, params: Params) -> AbstractContextManager[IndexUse | None]:
        """Let the retriever keep it while the block runs."""
        return holding(self.retriever, params)

    def pin(self, params: Params, *, holder: Path, why: str) -> None:
        """Let the retriever keep it as long as ``holder`` exists."""
        pin(self.retriever, params, holder=holder, why=why)

    def identity(self, params: Params) -> str:
        """Return what the retriever's index of these parameters is made from."""
        return identity(self.retriever, params)


def tells_spans(retriever: object) -> bool:
    """Say whether answers may tell which part of a document was retrieved.

    They may unless the kind says ``tells_spans = False``.
    """
    while isinstance(retriever, Around):
        retriever = retriever.retriever
    return getattr(retriever, "tells_spans", True) is not False


def is_engine(retriever: object) -> bool:
    """Say whether answers come from memory, as the built-in engine's do, within milliseconds.

    Of a retriever over several indexes, the first tells.
    """
    while isinstance(retriever, Around):
        retriever = retriever.retriever
    return isinstance(retriever, Explains)
