"""Rules between knobs: where a space can break one, it is told with the constraint to write."""

from __future__ import annotations

from typing import Any

import pytest

from tuner.core.space import Categorical, Integer, SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.knobs import Knob
from tuner.retrieval.rules import rule_problems

RULE = "k <= fetch_k"
KNOBS = (
    Knob("way", "categorical", "plain", choices=("plain", "mmr")),
    Knob("k", "integer", 4),
    Knob("fetch_k", "integer", 20, constraint=RULE, constraint_when={"way": ("mmr",)}),
)
WAYS = Categorical(("plain", "mmr"))


def told(*constraints: str, baseline: Params | None = None, **parameters: Any) -> list[str]:
    space = SearchSpace(parameters, constraints)
    return [str(problem) for problem in rule_problems(space, baseline, KNOBS)]


def test_a_space_that_can_break_a_rule_is_told_the_constraint():
    assert told(k=Integer(1, 50), fetch_k=Integer(20, 90), baseline={"way": "mmr"}) == [
        "space.k: 'k' can be 50 where fetch_k is 20, and what is above that has no effect; write "
        'space_constraints: ["k <= fetch_k"]'
    ]


def test_beside_values_that_do_not_need_the_rule_the_constraint_leaves_them_alone():
    (one,) = told(way=WAYS, k=Integer(1, 50), fetch_k=Integer(20, 90))
    assert one.endswith("write space_constraints: [\"way not in ['mmr'] or k <= fetch_k\"]")
    rule = "way not in ['mmr'] or k <= fetch_k"
    assert told(rule, way=WAYS, k=Integer(1, 50), fetch_k=Integer(20, 90)) == []


@pytest.mark.parametrize(
    ("constraints", "parameters"),
    [
        ((RULE,), {"k": Integer(1, 50), "fetch_k": Integer(20, 90)}),
        (("2 * k < fetch_k",), {"k": Integer(1, 50), "fetch_k": Integer(20, 90)}),
        ((), {"k": Integer(1, 20), "fetch_k": Integer(20, 90)}),
        ((), {"k": Integer(1, 20)}),
        ((), {"fetch_k": Integer(4, 90)}),
    ],
)
def test_a_space_that_keeps_a_rule_is_left_alone(constraints, parameters):
    assert told(*constraints, baseline={"way": "mmr"}, **parameters) == []


def test_a_constraint_that_does_not_keep_the_rule_is_not_enough():
    # The corners are (1, 20), (1, 90) and (50, 90); in between 25 and 21 are allowed.
    parameters = {"k": Integer(1, 50), "fetch_k": Integer(20, 90)}
    assert len(told("k <= fetch_k + 25", baseline={"way": "mmr"}, **parameters)) == 1


def test_what_is_fixed_counts_as_the_baseline_says_else_as_it_is_made():
    assert "where fetch_k is 20" in told(k=Integer(1, 21), baseline={"way": "mmr"})[0]
    hint = "search values with k <= fetch_k, or name fetch_k in the baseline or space"
    assert hint in told(k=Integer(1, 21), baseline={"way": "mmr"})[0]
    assert told(k=Integer(1, 21), baseline={"way": "mmr", "fetch_k": 21}) == []
    assert told(fetch_k=Integer(3, 9), baseline={"way": "mmr"})[0].startswith("space.fetch_k")


def test_where_the_rule_does_not_count_nothing_is_told():
    assert told(k=Integer(1, 50), fetch_k=Integer(20, 90)) == []
    only = Integer(20, 90, when={"way": ("mmr",)})
    (one,) = told(way=WAYS, k=Integer(1, 50), fetch_k=only)
    assert one.endswith(f'write space_constraints: ["{RULE}"]')
    assert told(RULE, way=WAYS, k=Integer(1, 50), fetch_k=only) == []


def test_todays_system_is_left_alone_where_none_of_both_is_searched():
    assert told(way=WAYS, baseline={"k": 50}) == []


SUM = (
    Knob("top", "integer", 10, constraint="top <= a.top + b.top"),
    Knob("a.top", "integer", 10),
    Knob("b.top", "integer", 10),
)


def told_of_sum(*constraints: str, **parameters: Any) -> list[str]:
    named = {name.replace("_", "."): one for name, one in parameters.items()}
    space = SearchSpace(named, constraints)
    return [str(problem) for problem in rule_problems(space, {}, SUM)]


def test_a_limit_of_several_is_told_whole():
    assert told_of_sum(top=Integer(5, 50)) == [
        "space.top: 'top' can be 50 where a.top is 10 and b.top is 10, and what is above "
        "a.top + b.top has no effect; search values with top <= a.top + b.top, or name a.top in "
        "the baseline or space"
    ]
    assert told_of_sum(top=Integer(5, 20)) == []


@pytest.mark.parametrize(
    ("searched", "rule"),
    [
        (("top", "a_top", "b_top"), "top <= a.top + b.top"),
        (("top", "a_top"), "top <= a.top + 10"),
        (("a_top", "b_top"), "10 <= a.top + b.top"),
    ],
)
def test_the_constraint_of_several_names_what_is_searched_alone(searched, rule):
    parameters = {name: Integer(1, 50) for name in searched}
    (one,) = told_of_sum(**parameters)
    assert one.endswith(f'write space_constraints: ["{rule}"]')
    assert told_of_sum(rule, **parameters) == []
