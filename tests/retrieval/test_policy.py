"""Answering by a policy: each query with the parameters of its type."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from tuner.core.corpus import Query
from tuner.core.policy import POLICY, Policy, WordRule
from tuner.core.rankings import Rankings
from tuner.core.trial import IndexUse
from tuner.retrieval.wrapped.policy import PolicyRetriever, WithPolicy


class Echo:
    """Ranks a document named after the parameter that it was asked with."""

    knobs = ()
    fingerprint = "echo"

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        answers = [[f"{query.id}-{params['k']}"] * 1 + ["common"] for query in queries]
        return Rankings.from_ids(
            [query.id for query in queries],
            answers,
            context_tokens=np.full(len(queries), float(params["k"])),
            spans=np.full((len(queries), 2, 2), params["k"]),
            seconds={"text": 1.0},
        )


def test_each_query_is_answered_with_the_parameters_of_its_type_in_order():
    rule = WordRule({"a": 0.0, "b": -1.0}, {"who": {"a": 0.0, "b": 5.0}})
    retriever = PolicyRetriever(Echo(), Policy({"k": 1}, {"b": {"k": 2}}, rule))
    queries = [Query("q1", "who"), Query("q2", "what"), Query("q3", "who else")]
    rankings = retriever.retrieve(queries, {})
    assert rankings.query_ids == ("q1", "q2", "q3")
    assert [rankings.ids(row) for row in range(3)] == [
        ["q1-2", "common"],
        ["q2-1", "common"],
        ["q3-2", "common"],
    ]
    np.testing.assert_array_equal(rankings.context_tokens, [2.0, 1.0, 2.0])
    assert rankings.spans[:, :, 0].tolist() == [[2, 2], [1, 1], [2, 2]]
    assert rankings.seconds == {"text": 2.0}
    assert rankings.graph_used is None
    assert retriever.serve(queries[0], {}).ids(0)[0] == "q1-2"


IDS = ("d0", "d1", "d2")


class Explaining:
    """Retrieves as many documents of its corpus as it is asked for, and tells them as names."""

    knobs = ()
    fingerprint = "explaining"

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        documents = np.tile(np.arange(params["k"]), (len(queries), 1))
        return Rankings([query.id for query in queries], IDS, documents)

    def explain(self, queries, params, rankings):
        assert rankings.document_ids is IDS  # it may know its documents by their places
        assert rankings.documents.shape == (len(queries), params["k"])
        step = ("a", f"k={params['k']}", "b")
        return replace(
            rankings,
            entities=[[query.id, *rankings.ids(row)] for row, query in enumerate(queries)],
            paths=[[(step,)] for _ in queries],
        )


def test_names_and_paths_are_told_with_the_parameters_of_each_type():
    rule = WordRule({"a": 0.0, "b": -1.0}, {"who": {"a": 0.0, "b": 5.0}})
    policy = Policy({"k": 1}, {"b": {"k": 2}}, rule)
    queries = [Query("q1", "who"), Query("q2", "what"), Query("q3", "who else")]
    retriever = PolicyRetriever(Explaining(), policy)
    rankings = retriever.explain(queries, {}, retriever.retrieve(queries, {}))
    assert rankings.entities == [["q1", "d0", "d1"], ["q2", "d0"], ["q3", "d0", "d1"]]
    assert [path[0][0][1] for path in rankings.paths] == ["k=2", "k=1", "k=2"]
    # a retriever that cannot tell is not asked
    silent = PolicyRetriever(Echo(), policy)
    assert silent.explain(queries, {}, silent.retrieve(queries, {})).entities is None


def test_a_retriever_with_a_policy_answers_by_it_where_the_parameters_say_so():
    rule = WordRule({"a": 0.0, "b": -1.0}, {"who": {"a": 0.0, "b": 5.0}})
    policy = Policy({"k": 1}, {"b": {"k": 2}}, rule)
    queries = [Query("q1", "who"), Query("q2", "what")]
    retriever = WithPolicy(Explaining(), policy)
    by_policy, by_params = {"policy": "by query type"}, {"k": 3}
    for params, expected in ((by_policy, [2, 1]), (by_params, [3, 3])):
        rankings = retriever.retrieve(queries, params)
        assert [len(rankings.ids(row)) for row in range(2)] == expected
        told = retriever.explain(queries, params, rankings).entities
        assert [len(names) - 1 for names in told] == expected
        assert len(retriever.serve(queries[0], params).ids(0)) == expected[0]
    silent = WithPolicy(Echo(), policy)
    assert silent.explain(queries, {"k": 3}, silent.retrieve(queries, {"k": 3})).entities is None


class OfManyIndexes(Echo):
    """Has an index for each value of its parameter, and notes which ones are held."""

    def __init__(self):
        self.held = []
        self.pinned = {}

    def ready(self, params, advance=None):
        return IndexUse(f"index-{params['k']}", 10.0, 3.0, 7, tokens=5, is_new=params["k"] == 2)

    @contextmanager
    def holding(self, params):
        self.held.append(params["k"])
        yield self.ready(params)
        self.held.remove(params["k"])

    def pin(self, params, *, holder, why):
        self.pinned[holder, why] = params["k"]

    def identity(self, params):
        return f"made with {params['k']}"


def test_a_policy_needs_the_index_of_each_type_all_at_once():
    rule = WordRule({"a": 0.0, "b": -1.0, "c": -2.0}, {})
    system = OfManyIndexes()
    policy = Policy({"k": 1}, {"b": {"k": 2}, "c": {"k": 1}}, rule)
    for retriever, params in (
        (PolicyRetriever(system, policy), {}),
        (WithPolicy(system, policy), {POLICY: "mine"}),
    ):
        with retriever.holding(params) as use:
            assert sorted(system.held) == [1, 1, 2]
        assert system.held == []
        assert use == retriever.ready(params)
        assert (use.name, use.seconds, use.megabytes, use.documents, use.tokens) == (
            "index-1+index-2", 20.0, 6.0, 7, 10,
        )  # fmt: skip
        assert use.is_new
        assert [part.name for part in use.parts] == ["index-1", "index-2"]
        system.pinned.clear()
        retriever.pin(params, holder="run", why="baseline")
        assert sorted(system.pinned.values()) == [1, 1, 2]
    alone = WithPolicy(system, policy)
    assert alone.ready({"k": 1}).parts == ()
    alone.pin({"k": 5}, holder="run", why="best")
    assert system.pinned["run", "best"] == 5
    of_types = {alone.identity({POLICY: "mine"}), PolicyRetriever(system, policy).identity({})}
    assert len(of_types) == 1
    assert alone.identity({"k": 1}) == "made with 1" not in of_types
    assert WithPolicy(Echo(), policy).identity({POLICY: "mine"}) == ""
