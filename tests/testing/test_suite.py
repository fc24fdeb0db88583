"""The contract suite lets a right retriever pass and names what is wrong with each other one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Knob
from tuner.retrieval.free import FreeKnobs, Mixing, Share
from tuner.retrieval.knobs import knob_params
from tuner.testing import RetrieverCase, check_retriever
from tuner.testing.retrievers import CHECKS

IDS = ("d1", "d2", "d3", "d4")
QUERIES = (Query("q1", "red apple"), Query("q2", "green pear"), Query("q3", "nothing"))
ANSWERS = {"red apple": ["d1", "d2", "d3"], "green pear": ["d4"], "nothing": []}
KNOBS = (Knob("top_k", "integer", 3, 1, 10),)


@dataclass(frozen=True)
class Table:
    """Answers from a table; the base of all that is broken below."""

    knobs: tuple[Knob, ...] = KNOBS
    fingerprint: str = "table"

    def prepare(self, queries: Sequence[Query]) -> None:
        pass

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        depth = int(knob_params(params, self.knobs)["top_k"])
        answers = [ANSWERS[query.text][:depth] for query in queries]
        rankings = Rankings.from_ids([query.id for query in queries], answers)
        places = np.arange(rankings.depth, dtype=float)
        return replace(rankings, scores=np.tile(-places, (len(queries), 1)))


BATCHES = itertools.count()


class OtherOrder(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        return replace(found, query_ids=tuple(reversed(found.query_ids)))


class RowMissing(Table):
    def retrieve(self, queries, params):
        return super().retrieve(queries[1:], params)


class UnknownId(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        return replace(found, document_ids=tuple(f"x{id_}" for id_ in found.document_ids))


class NumberAsId(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        return replace(found, document_ids=tuple(range(len(found.document_ids))))


class Twice(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        documents = found.documents.copy()
        if documents.shape[1] > 1:
            documents[0, 1] = documents[0, 0]
        return replace(found, documents=documents)


class Hole(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        documents = found.documents.copy()
        if documents.shape[1] > 1:
            documents[0, 0] = -1
        return replace(found, documents=documents)


class NanScore(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        return replace(found, scores=found.scores * np.nan)


class Distance(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        return replace(found, scores=-found.scores)


class HalfTokens(Table):
    def retrieve(self, queries, params):
        return replace(super().retrieve(queries, params), context_tokens=np.array([np.nan]))


class Tires(Table):
    """Answers the first two batches that the process asks, and finds nothing later."""

    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        is_fresh = next(BATCHES) < 2
        return found if is_fresh else replace(found, documents=np.full_like(found.documents, -1))


class ByPlace(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        return replace(found, documents=np.sort(found.documents, axis=0))


class Lenient(Table):
    def retrieve(self, queries, params):
        known = {name: value for name, value in params.items() if name == "top_k"}
        return super().retrieve(queries, known)


class OwnDefault(Table):
    def retrieve(self, queries, params):
        return super().retrieve(queries, {"top_k": 1, **params})


class Pops(Table):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        params.clear()
        return found


class HoldsALock(Table):
    def __reduce__(self) -> Any:
        raise AssertionError("cannot be pickled: it holds a lock")


class Free(Table):
    def free_knobs(self, fixed, searched):
        return FreeKnobs(("top_k",))


class NoPrefix(Free):
    """Has another first document where many are wanted."""

    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        if params.get("top_k", 3) < 9:
            return found
        return replace(found, documents=np.roll(found.documents, 1, axis=1))


class NoLegs(Table):
    def free_knobs(self, fixed, searched):
        return FreeKnobs((), Mixing({"graph": Share("top_k")}))


class CountsContexts(Free):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        return replace(found, context_tokens=(found.documents >= 0).sum(axis=1) * 5.0)


class CountsPassages(CountsContexts):
    def retrieve(self, queries, params):
        found = super().retrieve(queries, params)
        return replace(found, tokens=(found.documents >= 0) * 5.0)


def case(retriever: Any, **changes: Any) -> RetrieverCase:
    params = ({}, {"top_k": 1})
    return RetrieverCase(lambda: retriever, QUERIES, params, document_ids=IDS, **changes)


def broken_checks(retriever: Any, **changes: Any) -> set[str]:
    global BATCHES
    BATCHES = itertools.count()
    try:
        check_retriever(case(retriever, **changes))
    except AssertionError as error:
        return {line.partition(":")[0] for line in str(error).splitlines()}
    return set()


@pytest.mark.parametrize("kind", [Table, Free, CountsPassages])
def test_a_right_retriever_passes(kind):
    check_retriever(case(kind()))


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (OtherOrder, "check_one_row_a_query"),
        (RowMissing, "check_one_row_a_query"),
        (Hole, "check_one_row_a_query"),
        (UnknownId, "check_ids_are_known"),
        (NumberAsId, "check_ids_are_known"),
        (Twice, "check_no_document_twice"),
        (NanScore, "check_scores_fall"),
        (Distance, "check_scores_fall"),
        (HalfTokens, "check_what_is_reported"),
        (Tires, "check_same_answer_twice"),
        (Tires, "check_trials_leave_no_trace"),
        (ByPlace, "check_queries_stand_alone"),
        (Lenient, "check_unknown_knob_is_refused"),
        (OwnDefault, "check_defaults_are_filled_in"),
        (Pops, "check_params_are_left_alone"),
        (NoPrefix, "check_free_knobs"),
        (NoLegs, "check_free_knobs"),
        (CountsContexts, "check_free_knobs"),
        (HoldsALock, "check_pickling"),
        (HoldsALock, "check_fingerprint"),
    ],
)
def test_what_is_broken_is_named(kind, check):
    assert check in broken_checks(kind())


@pytest.mark.parametrize(
    "knob",
    [
        Knob("top_k", "integer", 30, 1, 10),
        Knob("top_k", "integer", 3, 10, 1),
        Knob("top_k", "real", 0.5, 0.0, 1.0, scale="log"),
        Knob("top_k", "categorical", 3),
        Knob("top_k", "categorical", 3, choices=(1, 2)),
        Knob("top_k", "integer", None),
        Knob("", "integer", 3, 1, 10),
    ],
)
def test_knobs_that_mean_nothing_are_named(knob):
    with pytest.raises(AssertionError, match="knob"):
        CHECKS[0](case(Table(knobs=(knob,))))


def test_two_knobs_of_one_name_are_named():
    with pytest.raises(AssertionError, match="two knobs are called 'top_k'"):
        CHECKS[0](case(Table(knobs=KNOBS * 2)))


def test_a_retriever_that_declares_chance_is_let_off_comparisons():
    assert broken_checks(Tires(), is_deterministic=False) == set()


def test_the_retriever_is_made_once():
    made = []

    def make() -> Table:
        made.append(1)
        return Table()

    check_retriever(RetrieverCase(make, QUERIES, document_ids=IDS))
    assert len(made) == 1
