"""Parameters by query type: the choice, the rule, and answering by a policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.policy import Policy, WordRule, features
from tuner.core.rankings import Rankings
from tuner.core.trial import Trial, TrialState
from tuner.evaluation.query_rule import learn_rule, rule_accuracy
from tuner.retrieval.wrapped.policy import PolicyRetriever, WithPolicy
from tuner.verdict.by_type import choose_by_type

NOISE = np.tile([0.01, -0.01], 15)


def trial(number):
    return Trial(number, "tpe", {"n": number}, TrialState.FINISHED, objective=0.5)


def test_each_type_gets_what_is_clearly_better_for_it():
    trials = [trial(0), trial(1)]
    # 30 queries of each type: trial 1 gains .1 on "bridge" and loses .1 on "direct"
    utilities = {0: np.full(60, 0.5), 1: np.r_[0.6 + NOISE, 0.4 + NOISE]}
    types = ["bridge"] * 30 + ["direct"] * 30
    bridge, direct = choose_by_type(trials, utilities, types, trials[0])
    assert (bridge.trial.number, bridge.queries) == (1, 30)
    assert bridge.gain == pytest.approx(0.1)
    assert (direct.trial.number, direct.gain) == (0, 0.0)


def test_a_type_of_few_queries_is_shrunk_towards_all():
    trials = [trial(0), trial(1)]
    # trial 1 is far better on 2 queries and a little worse on 58
    values = np.r_[0.9, 0.92, np.full(58, 0.4)]
    utilities = {0: np.full(60, 0.5), 1: values}
    types = ["rare"] * 2 + ["usual"] * 58
    rare, _ = choose_by_type(trials, utilities, types, trials[0])
    # share 2/22: .09 * .91 + .91 * .417 = .46 < .5
    assert rare.trial.number == 0
    rare, _ = choose_by_type(trials, utilities, types, trials[0], prior_queries=0.0)
    assert rare.trial.number == 1


def test_noise_does_not_replace_the_winner():
    trials = [trial(0), trial(1)]
    loud = np.tile([0.51, -0.49], 15)
    utilities = {0: np.full(60, 0.5), 1: np.r_[0.5 + loud, np.full(30, 0.5)]}
    types = ["bridge"] * 30 + ["direct"] * 30
    bridge, _ = choose_by_type(trials, utilities, types, trials[0])
    assert bridge.trial.number == 0


def test_the_rule_tells_types_by_their_words():
    texts = [f"who wrote book {n}" for n in range(10)] + [
        f"how tall is peak {n}" for n in range(10)
    ]
    types = ["author"] * 10 + ["height"] * 10
    rule = learn_rule(texts, types)
    assert rule.classify("Who wrote Emma?") == "author"
    assert rule.classify("how tall is Elbrus") == "height"
    assert rule_accuracy(texts, types, seed=0) == 1.0


def test_an_empty_query_has_the_commonest_type():
    rule = WordRule({"a": -0.1, "b": -2.0}, {"x": {"a": 0.0, "b": 1.0}})
    assert rule.classify("") == "a"
    assert features("") == set()


def test_a_policy_reads_back_as_it_was_written():
    rule = WordRule({"a": -0.5, "b": -1.0}, {"who": {"a": 0.3, "b": -0.3}})
    policy = Policy({"k": 1}, {"b": {"k": 2}}, rule)
    assert Policy.from_record(policy.to_record()) == policy


@pytest.mark.parametrize(
    "change",
    [
        {"rule": {}},
        {"types": 3},
        {"rule": {"start": {"a": "high"}, "weights": {}}},
        {"rule": {"start": {"a": float("nan")}, "weights": {}}},
        {"rule": {"start": {"a": 0.0}, "weights": {"w": {"b": 1.0}}}},
        {"rule": {"start": {}, "weights": {}}},
    ],
)
def test_a_broken_policy_is_refused(change):
    record = {
        "default": {"k": 1},
        "types": {},
        "rule": {"start": {"a": 0.0}, "weights": {}},
        **change,
    }
    with pytest.raises(InputError, match="policy"):
        Policy.from_record(record)


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
