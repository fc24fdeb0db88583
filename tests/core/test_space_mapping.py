"""The ``space`` section: what it may hold, and what is said where it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tuner.core.errors import InputError
from tuner.core.space import Categorical, Integer, Real, SearchSpace


def found(raw: Any, constraints: Any = ()) -> dict[tuple[str | int, ...], str]:
    with pytest.raises(InputError) as error:
        SearchSpace.from_mapping(raw, constraints)
    return {problem.key: problem.message for problem in error.value.problems}


def test_every_kind_is_read() -> None:
    raw = {
        "weight": {"type": "real", "low": 0, "high": 1, "when": {"mode": "hybrid"}},
        "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
        "top_k": {"type": "integer", "low": 5, "high": 50, "step": 5},
        "mode": {"type": "categorical", "choices": ["text", "hybrid", None, True]},
        "hops": {"type": "integer", "low": 1, "high": 3, "when": {"mode": ["hybrid", True]}},
    }
    space = SearchSpace.from_mapping(raw, ["hops <= top_k"])
    assert space == SearchSpace(
        {
            "weight": Real(0.0, 1.0, when={"mode": ("hybrid",)}),
            "temperature": Real(0.01, 1.0, scale="log"),
            "top_k": Integer(5, 50, step=5),
            "mode": Categorical(("text", "hybrid", None, True)),
            "hops": Integer(1, 3, when={"mode": ("hybrid", True)}),
        },
        ("hops <= top_k",),
    )
    assert SearchSpace.from_mapping(space.to_mapping(), space.constraints) == space


@pytest.mark.parametrize(
    ("body", "key", "message"),
    [
        ({"type": "real", "low": 1, "high": 0}, ("low",), "low is 1 but high is 0: swap them"),
        ({"type": "real", "low": 0, "high": 1, "scale": "log"}, ("low",), "needs low above 0"),
        ({"type": "real", "low": 0, "high": 1, "step": 0}, ("step",), "step must be above 0"),
        ({"type": "real", "low": 0, "high": 1, "step": 1e-12}, ("step",), "too fine"),
        ({"type": "integer", "low": 0, "high": 9, "step": -2}, ("step",), "step must be above 0"),
        ({"type": "integer", "low": 0, "high": 9, "step": 1.5}, ("step",), "not an integer"),
        ({"type": "integer", "low": 0, "high": 9, "step": None}, ("step",), "null is no step"),
        ({"type": "integer", "low": 0.5, "high": 9}, ("low",), "0.5 is not an integer"),
        ({"type": "integer", "low": 0, "high": 2**60}, ("high",), "too large"),
        ({"type": "real", "low": True, "high": 1}, ("low",), "True is not a number"),
        ({"type": "real", "low": "1e-3", "high": 1}, ("low",), "write 1.0e-3"),
        ({"type": "real", "low": float("nan"), "high": 1}, ("low",), "not a finite number"),
        ({"type": "real", "low": 0, "high": float("inf")}, ("high",), "not a finite number"),
        ({"type": "real", "low": None, "high": 1}, ("low",), "None is not a number"),
        ({"type": "real", "low": 0, "high": 1, "scale": "lgo"}, ("scale",), "did you mean 'log'?"),
        ({"type": "real", "low": 0, "high": 1, "scale": ["log"]}, ("scale",), "unknown scale"),
        ({"type": "real", "low": 0, "hihg": 1}, ("hihg",), "did you mean 'high'?"),
        ({"type": "real", "low": 0, "hihg": 1}, ("high",), "missing"),
        ({"type": "real", "low": 0, "high": 1, "choices": [1]}, ("choices",), "unknown key"),
        ({"type": "float", "low": 0, "high": 1}, ("type",), "unknown type 'float'"),
        ({"type": "itneger", "low": 0, "high": 1}, ("type",), "did you mean 'integer'?"),
        ({"low": 0, "high": 1}, ("type",), "one of real, integer, categorical"),
        ({"type": "categorical", "choices": []}, ("choices",), "empty"),
        ({"type": "categorical", "choices": "abc"}, ("choices",), "must be a list"),
        ({"type": "categorical"}, ("choices",), "missing"),
        ({"type": "categorical", "choices": [1, "a", 1]}, ("choices", 2), "1 is listed twice"),
        ({"type": "categorical", "choices": [1, [2]]}, ("choices", 1), "a choice is a number"),
        ({"type": "categorical", "choices": [float("nan")]}, ("choices", 0), "not a finite"),
        ({"type": "real", "low": 0, "high": 1, "when": "hybrid"}, ("when",), "must map"),
        ({"type": "real", "low": 0, "high": 1, "when": {"m": []}}, ("when", "m"), "no value"),
        ({"type": "real", "low": 0, "high": 1, "when": {"m": 1}}, ("when", "m"), "unknown"),
        ([0, 1], (), "must be a mapping"),
    ],
)
def test_problems_have_their_key(body: Any, key: tuple[str | int, ...], message: str) -> None:
    assert message in found({"x": body})[("space", "x", *key)]


@pytest.mark.parametrize("raw", [None, [], "space", 3])
def test_a_space_is_a_mapping(raw: Any) -> None:
    assert "must map names to parameters" in found(raw)[("space",)]


def test_distinct_types_are_distinct_choices() -> None:
    space = SearchSpace.from_mapping({"x": {"type": "categorical", "choices": [1, 1.0, True, "1"]}})
    assert space.size() == 4


def test_everything_is_reported_at_once() -> None:
    keys = found(
        {
            "a": {"type": "real", "low": "x", "high": 0, "scale": "cube"},
            "b-c": {"type": "integer", "low": 1, "high": 2},
            "d": {"type": "integer", "low": 1, "high": 2, "when": {"a": 1, "e": 2}},
            5: {"type": "integer", "low": 1, "high": 2},
        },
        ["a <= d", "d <= f", "d ** 2 < 3"],
    ).keys()
    assert keys == {
        ("space", "a", "low"),
        ("space", "a", "scale"),
        ("space", "b-c"),
        ("space", "d", "when", "e"),
        ("space", "5"),
        ("space_constraints", 1),
        ("space_constraints", 2),
    }


def test_names_may_lead_to_parts_by_dots() -> None:
    raw = {
        "join.mode": {"type": "categorical", "choices": ["merge", "rank"]},
        "bm25.top_k": {"type": "integer", "low": 1, "high": 9},
        "join.top_k": {"type": "integer", "low": 1, "high": 9, "when": {"join.mode": "merge"}},
    }
    space = SearchSpace.from_mapping(raw, ["join.top_k <= bm25.top_k"])
    assert set(space.parameters) == set(raw)


def test_constraints_between_parts_hold_and_misspelt_parts_are_named() -> None:
    raw = {
        "a.k": {"type": "integer", "low": 1, "high": 9},
        "a.b.k": {"type": "integer", "low": 1, "high": 9},
    }
    space = SearchSpace.from_mapping(raw, ["a.k <= a.b.k"])
    assert space.satisfies({"a.k": 2, "a.b.k": 3})
    assert not space.satisfies({"a.k": 4, "a.b.k": 3})
    (message,) = found(raw, ["a.k <= a.bb.k"]).values()
    assert "unknown parameter 'a.bb.k'; did you mean 'a.b.k'" in message
    for name in ("a.", ".a", "a..b", "a.0", "a.lambda"):
        messages = found({name: {"type": "integer", "low": 1, "high": 9}})
        assert "a dot leads to a part" in messages["space", name]
