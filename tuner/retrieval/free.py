"""Free parameters: what an answer tells of other values of them, without asking again.

A retriever or a configuration declares them as data, and nothing else: from a declaration, an
answer at other values is computed in one place for all retrievers alike, see
``retrieval.computed``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tuner.core.trial import Scalar


@dataclass(frozen=True)
class Share:
    """What a leg's scores are multiplied by: a parameter's value, 1 less it, or the same always.

    >>> Share("graph_weight", is_rest=True).of({"graph_weight": 0.25})
    0.75
    >>> Share(constant=2.0).of({"graph_weight": 0.25})
    2.0
    """

    parameter: str = ""
    is_rest: bool = False
    constant: float = 1.0  # where no parameter is named

    def of(self, params: Mapping[str, Scalar]) -> float:
        """Return it for parameters that have this one."""
        if not self.parameter:
            return self.constant
        value = float(params[self.parameter])  # type: ignore[arg-type]  # a number by its knob
        return 1.0 - value if self.is_rest else value


@dataclass(frozen=True)
class Mixing:
    """How the scores of a system's legs become one: ``score = sum(share * score of the leg)``.

    Attributes:
        shares: leg -> its share; empty: all legs count alike.
        step: scores closer than this count as equal; 0: they do not. Of equal scores the document
            that stands first in ``Legs.documents`` is ranked first.
        least: what scores no more than this is not returned.
        graph: the leg of the graph, where there is one. An answer without it does not count as one
            of the graph; and where its scores are all 0 for a query, the other of two legs counts
            in full.
        normalisation: what is done to each leg's scores, query by query, before they are added up,
            as ``kind: runs`` does it; "": nothing, all legs have scores of all documents.
        rrf_k: the parameter k, where a leg does not count by its scores, but by 1 / (k + rank),
            ranks from 1, and 0 for what it did not find (reciprocal rank fusion); "": by scores.
        needs_share: a document that only legs with a share of 0 found is not returned; else what
            any leg found is.
    """

    shares: Mapping[str, Share]
    step: float = 0.0
    least: float = -inf
    graph: str = ""
    normalisation: str = ""
    rrf_k: str = ""
    needs_share: bool = False

    @property
    def weights(self) -> tuple[str, ...]:
        """Return the names of the parameters that scores are multiplied by, each once."""
        names = [share.parameter for share in self.shares.values() if share.parameter]
        return tuple(dict.fromkeys(names))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of all parameters that mix, each once."""
        return (*([self.rrf_k] if self.rrf_k else []), *self.weights)

    def share(self, leg: str) -> Share:
        """Return the share of a leg."""
        return self.shares.get(leg, Share())


@dataclass(frozen=True)
class FreeKnobs:
    """Which parameters of a retriever are free.

    Attributes:
        prefixes: an answer with a value of these is the beginning of one with a larger value, as
            for ``top_k``. They are asked with their largest value.
        mixing: how parameters mix the legs that the answers carry; None: they carry none.
        cutoffs: an answer with a value of these is what scores at least so much of one with a
            smaller value, as for ``min_score``. They are asked with their smallest value, and the
            answers carry scores.
        branches: what is free with some values of other parameters, where these decide it; else
            empty. Made by ``of_branches``: the fields above then tell of all of them together.
    """

    prefixes: tuple[str, ...] = ()
    mixing: Mixing | None = None
    cutoffs: tuple[str, ...] = ()
    branches: tuple[tuple[Mapping[str, Scalar], FreeKnobs], ...] = ()

    @classmethod
    def of_branches(cls, branches: Sequence[tuple[Mapping[str, Scalar], FreeKnobs]]) -> FreeKnobs:
        """Return what is free where other parameters decide it, in a branch for each of these."""
        each = [free for _, free in branches]
        return cls(
            tuple(dict.fromkeys(name for free in each for name in free.prefixes)),
            next((free.mixing for free in each if free.mixing is not None), None),
            tuple(dict.fromkeys(name for free in each for name in free.cutoffs)),
            tuple(branches),
        )

    def at(self, params: Mapping[str, Scalar]) -> FreeKnobs:
        """Return what is free where the other parameters are these."""
        for values, free in self.branches:
            if all(_is_same(params.get(name), value) for name, value in values.items()):
                return free
        return NOTHING_FREE if self.branches else self

    @property
    def weights(self) -> tuple[str, ...]:
        """Return the parameters that mix legs."""
        if self.branches:
            return tuple(dict.fromkeys(n for _, free in self.branches for n in free.weights))
        return () if self.mixing is None else self.mixing.parameters

    @property
    def names(self) -> tuple[str, ...]:
        """Return all free parameters."""
        return (*self.prefixes, *self.cutoffs, *self.weights)

    def and_those_of(self, other: FreeKnobs) -> FreeKnobs:
        """Return these and the other's; what these say of a parameter holds, and how legs mix."""
        mixing = other.mixing if self.mixing is None else self.mixing
        own = {*self.names, *(() if mixing is None else mixing.parameters)}
        return FreeKnobs(
            (*self.prefixes, *(name for name in other.prefixes if name not in own)),
            mixing,
            (*self.cutoffs, *(name for name in other.cutoffs if name not in own)),
        )

    def only(self, names: Collection[str]) -> FreeKnobs:
        """Return what is left where only these are free; legs are mixed by all or by none.

        Of branches: what is not free in one any more is free in none.
        """
        if self.branches:
            return self._branches_only(set(names))
        mixing = self.mixing
        if mixing is not None and not set(mixing.parameters) <= set(names):
            mixing = None
        return FreeKnobs(
            tuple(name for name in self.prefixes if name in names),
            mixing,
            tuple(name for name in self.cutoffs if name in names),
        )

    def _branches_only(self, left: set[str]) -> FreeKnobs:
        while True:
            branches = [(values, free.only(left)) for values, free in self.branches]
            lost = {
                name
                for (_, before), (_, after) in zip(self.branches, branches, strict=True)
                for name in before.names
                if name in left and name not in after.names
            }
            if not lost:
                return FreeKnobs.of_branches(branches)
            left = left - lost


def _is_same(value: Scalar, other: Scalar) -> bool:
    # 1 and True are equal to Python, and different choices.
    return type(value) is type(other) and value == other


NOTHING_FREE = FreeKnobs()
