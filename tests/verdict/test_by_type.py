"""Parameters by query type: the choice, and the rule."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.errors import InputError
from tuner.core.policy import Policy, WordRule, features
from tuner.core.trial import Trial, TrialState
from tuner.evaluation.query_rule import learn_rule, rule_accuracy
from tuner.verdict.winner import choose_by_type

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
