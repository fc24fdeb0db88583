"""Search spaces: canonical params, conditions, constraints, counting, sampling, encoding."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

from tuner.core.errors import InputError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.trial import Params

HYBRID = SearchSpace(
    {
        "weight": Real(0.0, 1.0, when={"mode": ("hybrid",)}),
        "mode": Categorical(("text", "graph", "hybrid")),
        "hops": Integer(1, 3, when={"mode": ("graph", "hybrid")}),
    }
)


def problems(error: pytest.ExceptionInfo[InputError]) -> dict[tuple[str | int, ...], str]:
    return {problem.key: problem.message for problem in error.value.problems}


def test_canonical_orders_converts_and_drops_the_inactive() -> None:
    given = {"mode": "graph", "hops": np.int64(2), "weight": 7.0}
    found = HYBRID.canonical(given)
    assert found == {"mode": "graph", "hops": 2}
    assert type(found["hops"]) is int
    assert list(HYBRID.canonical({"hops": 2.0, "mode": "hybrid", "weight": 1})) == [
        "weight",
        "mode",
        "hops",
    ]
    assert HYBRID.canonical({"mode": "text"}) == {"mode": "text"}


@pytest.mark.parametrize(
    ("parameter", "given", "expected"),
    [
        (Real(0, 1), 1, 1.0),
        (Real(0, 1), 0.1 + 0.2, 0.3),
        (Real(-1, 1), -0.0, 0.0),
        (Real(1 / 3, 2 / 3), 1 / 3, 1 / 3),  # An end of more than 12 digits stays what it is.
        (Real(0, 1, step=0.1), 0.1 * 3, 0.3),
        (Real(0, 1, step=0.3), 0.9, 0.9),
        (Real(0, 1), np.float32(0.5), 0.5),
        (Integer(0, 10, step=5), 5.0, 5),
        # Offsets from low beyond 2**53, which are even numbers as floats.
        (Integer(-(2**53), 2**53), 3, 3),
        (Integer(-(2**53), 2**53, step=3), 2**53 - 1, 2**53 - 1),  # 2**54 is 1 more than 3 i
        (Categorical((True, 1, 1.0)), 1, 1),
        (Categorical((True, 1, 1.0)), True, True),
        (Categorical((0.5, 1)), 1.0, 1),
        (Categorical((None, "a")), None, None),
        (Categorical(("a", "b")), np.str_("b"), "b"),
    ],
)
def test_canonical_values(parameter: Any, given: object, expected: object) -> None:
    found = SearchSpace({"p": parameter}).canonical({"p": given})["p"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("parameter", "given", "message"),
    [
        (Real(0, 1), 1.5, "1.5 is outside 0.0 .. 1.0"),
        (Real(0, 1), True, "True is not a number"),
        (Real(0, 1), "0.5", "is text, a number is wanted; write 0.5 without quotes"),
        (Real(0, 1), "1e-3", "write 1.0e-3"),
        (Real(0, 1), float("nan"), "not a finite number"),
        (Real(0, 1), None, "None is not a number"),
        (Real(0, 1), [1], "is not a number"),
        (Real(0, 1, step=0.25), 0.3, "off the step of 0.25 from 0.0; nearest: 0.25"),
        (Real(0, 1, step=0.3), 1.0, "off the step of 0.3 from 0.0; nearest: 0.9"),
        (Integer(1, 9), 2.5, "2.5 is not an integer"),
        (Integer(1, 9), 0, "0 is outside 1 .. 9"),
        (Integer(1, 9), 10**400, "too large"),
        (Integer(1, 9, step=4), 4, "off the step of 4 from 1; nearest: 5"),
        (Integer(1, 8, step=4), 8, "off the step of 4 from 1; nearest: 5"),
        (Integer(-(2**53), 2**53, step=2), 3, "off the step of 2"),
        (Categorical(("text", "graph")), "grahp", "did you mean 'graph'?"),
        (Categorical((1, 2)), True, "True is not one of the choices; known: 1, 2"),
    ],
)
def test_bad_values_are_explained(parameter: Any, given: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        SearchSpace({"p": parameter}).canonical({"p": given})
    assert message in problems(error)[("params", "p")]


def test_all_bad_params_are_named_at_once() -> None:
    with pytest.raises(InputError) as error:
        HYBRID.canonical({"mode": "hybrid", "hosp": 2, "weight": 3})
    assert problems(error) == {
        ("params", "hosp"): "unknown parameter; did you mean 'hops'?",
        ("params", "weight"): "3 is outside 0.0 .. 1.0",
        ("params", "hops"): "missing",
    }


def test_key_depends_on_type_and_value_and_not_on_order() -> None:
    space = SearchSpace({"a": Categorical((1, True, 1.0, "1")), "b": Real(0, 1)})
    keys = {space.key({"a": a, "b": 0.5}) for a in (1, True, 1.0, "1")}
    assert len(keys) == 4
    assert space.key({"b": 0.5, "a": 1}) == space.key({"a": 1, "b": 0.5})
    assert HYBRID.key({"mode": "text"}) == HYBRID.key({"mode": "text", "hops": 3})
    assert all(len(key) == 16 for key in keys)


def test_fingerprint_tells_spaces_apart() -> None:
    base = {"a": Integer(1, 9), "b": Integer(1, 9)}
    spaces = [
        SearchSpace(base),
        SearchSpace(base, ("a < b",)),
        SearchSpace({"b": base["b"], "a": base["a"]}),
        SearchSpace(base | {"b": Integer(1, 8)}),
        SearchSpace(base | {"b": Integer(1, 9, scale="log")}),
        SearchSpace(base | {"b": Integer(1, 9, when={"a": (1,)})}),
    ]
    assert len({space.fingerprint for space in spaces}) == len(spaces)
    assert SearchSpace(base, ("a  <b",)).fingerprint == spaces[1].fingerprint
    assert len(spaces[0].fingerprint) == 64


def test_conditions_follow_conditions() -> None:
    space = SearchSpace(
        {
            "decay": Real(0, 1, when={"hops": (2, 3)}),
            "hops": Integer(1, 3, when={"mode": "graph"}),  # type: ignore[dict-item]
            "mode": Categorical(("text", "graph")),
        }
    )
    assert space.canonical({"mode": "text", "hops": 2, "decay": 0.1}) == {"mode": "text"}
    assert space.canonical({"mode": "graph", "hops": 1, "decay": 0.1}) == {
        "hops": 1,
        "mode": "graph",
    }
    with pytest.raises(InputError, match=r"params\.decay: missing"):
        space.canonical({"mode": "graph", "hops": 2})


def test_several_conditions_must_all_hold() -> None:
    space = SearchSpace(
        {
            "a": Categorical((True, False)),
            "b": Integer(0, 1),
            "c": Integer(5, 6, when={"a": (True,), "b": (1,)}),
        }
    )
    # a x b, with two values of c in one of the four.
    assert space.size() == 3 + 2


def test_a_condition_on_an_integer_written_as_a_float_holds() -> None:
    space = SearchSpace({"a": Integer(0, 1), "b": Integer(5, 6, when={"a": (1.0,)})})
    assert space.canonical({"a": 1, "b": 5}) == {"a": 1, "b": 5}


@pytest.mark.parametrize(
    ("parameters", "key", "message"),
    [
        ({"a": Integer(0, 1, when={"b": (1,)})}, ("space", "a", "when", "b"), "unknown"),
        ({"a": Integer(0, 1, when={"a": (1,)})}, ("space", "a", "when"), "wait for each other"),
        (
            {"a": Integer(0, 1, when={"b": (1,)}), "b": Integer(0, 1, when={"a": (1,)})},
            ("space", "a", "when"),
            "conditions of a, b wait for each other",
        ),
        (
            {"a": Real(0, 1), "b": Integer(0, 1, when={"a": (1,)})},
            ("space", "b", "when", "a"),
            "needs a categorical or an integer",
        ),
        (
            {"a": Categorical(("x", "yes")), "b": Integer(0, 1, when={"a": ("yse",)})},
            ("space", "b", "when", "a"),
            "did you mean 'yes'?",
        ),
        ({}, ("space",), "empty"),
        ({"top-k": Integer(0, 1)}, ("space", "top-k"), "letters, digits and _"),
        ({"and": Integer(0, 1)}, ("space", "and"), "no name"),
    ],
)
def test_bad_spaces_are_explained(
    parameters: dict[str, Any], key: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError) as error:
        SearchSpace(parameters)
    assert message in problems(error)[key]


def test_constraints_are_met_where_they_mention_the_inactive() -> None:
    space = SearchSpace(HYBRID.parameters, ("hops <= 1 or weight > 0.5",))
    assert space.contains({"mode": "graph", "hops": 3})
    assert space.contains({"mode": "hybrid", "hops": 3, "weight": 0.6})
    assert not space.contains({"mode": "hybrid", "hops": 3, "weight": 0.5})
    assert not space.contains({"mode": "nonsense"})
    assert not space.satisfies({"mode": "hybrid", "hops": 3, "weight": 0.5})


def test_size_counts_distinct_points() -> None:
    assert HYBRID.size() is None
    assert SearchSpace({"a": Real(0.5, 0.5), "b": Integer(1, 10, step=3)}).size() == 4
    assert SearchSpace({"a": Real(0, 1, step=0.1), "b": Categorical(("x", "y"))}).size() == 22
    wide = {name: Integer(1, 10**6) for name in "abc"}
    assert SearchSpace(wide).size() == 10**18
    assert SearchSpace(wide, ("a < b",)).size() is None
    pairs = SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, ("a <= b",))
    assert pairs.size() == 45
    assert len(list(pairs.points())) == 45


def test_an_infinite_space_is_not_enumerated() -> None:
    with pytest.raises(InputError, match="infinitely many"):
        HYBRID.points()


def test_samples_are_feasible_native_and_seeded() -> None:
    space = SearchSpace({"a": Integer(1, 20), "b": Integer(1, 20)}, ("a < b",))
    drawn = [space.sample(np.random.default_rng(seed)) for seed in range(50)]
    assert all(space.contains(params) and type(params["a"]) is int for params in drawn)
    assert drawn == [space.sample(np.random.default_rng(seed)) for seed in range(50)]


def test_the_only_feasible_points_of_a_small_space_are_found() -> None:
    space = SearchSpace({name: Integer(0, 19) for name in "abc"}, ("a + b + c >= 57",))
    assert space.sample(np.random.default_rng(0)) == {"a": 19, "b": 19, "c": 19}


def test_constraints_tell_choices_apart_as_conditions_do() -> None:
    parameters = {
        "m": Categorical((True, 1, 2, "True")),
        "x": Integer(0, 1, when={"m": (True,)}),
    }
    assert list(SearchSpace(parameters, ("m == True",)).points()) == [
        {"m": True, "x": 0},
        {"m": True, "x": 1},
    ]
    (point,) = SearchSpace(parameters, ("m in [1]",)).points()
    assert point["m"] is not True
    assert point == {"m": 1}


def test_a_constraint_is_looked_at_once_its_parameters_are_chosen() -> None:
    looked_at: list[Params] = []

    class Level(int):
        """An integer that notes what is compared with it."""

        def __lt__(self, other: int) -> bool:
            looked_at.append({"a": int(self)})
            return int(self) < other

    space = SearchSpace({name: Integer(1, 9) for name in "abcd"}, ("a < 2", "b < a", "d < 8"))
    levels = {name: [Level(value) for value in range(1, 10)] for name in "abcd"}
    assert list(space.combinations(levels)) == []
    # Of 9 values of a, 1 is left; b < 1 in none of 9: no c or d is ever looked at.
    assert len(looked_at) == 9 + 9


def test_constraints_on_any_parameters_keep_every_feasible_point() -> None:
    parameters = {
        "hops": Integer(1, 3, when={"mode": ("graph",)}),
        "mode": Categorical(("text", "graph")),
        "k": Integer(1, 3),
    }
    for texts in [("hops < k",), ("k > 1", "hops == 2"), ("mode == 'text' or k < 3",), ("2 > 1",)]:
        space = SearchSpace(parameters, texts)
        feasible = [p for p in SearchSpace(parameters).points() if space.satisfies(p)]
        assert list(space.points()) == feasible
    assert list(SearchSpace(parameters, ("1 > 2",)).points()) == []


def test_an_infeasible_space_says_so() -> None:
    space = SearchSpace({"a": Real(0, 1), "b": Integer(1, 10**9)}, ("a > b",))
    with pytest.raises(InputError, match=r"no point that meets 'a > b' in 10,000 draws"):
        space.sample(np.random.default_rng(0))


def test_sampling_is_uniform_on_the_scale() -> None:
    space = SearchSpace(
        {"log": Real(0.001, 1.0, scale="log"), "int": Integer(1, 4), "step": Real(0, 1, step=0.5)}
    )
    rng = np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(3000)]
    below = np.mean([params["log"] < 10**-1.5 for params in drawn])  # type: ignore[operator]
    assert abs(below - 0.5) < 0.05  # five standard errors
    counts = np.unique([params["int"] for params in drawn], return_counts=True)[1] / 3000
    assert np.abs(counts - 1 / 4).max() < 0.04
    counts = np.unique([params["step"] for params in drawn], return_counts=True)[1] / 3000
    assert np.abs(counts - 1 / 3).max() < 0.045


def test_the_unit_cube_reaches_the_exact_ends() -> None:
    space = SearchSpace(
        {
            "a": Real(1e-3, 0.7, scale="log"),
            "b": Real(-0.1, 0.3),
            "c": Integer(1, 300, scale="log"),
            "d": Categorical(("x", "y", "z")),
        }
    )
    assert space.decode([0.0] * 4) == {"a": 1e-3, "b": -0.1, "c": 1, "d": "x"}
    assert space.decode([1.0] * 4) == {"a": 0.7, "b": 0.3, "c": 300, "d": "z"}
    assert space.encode({"a": 0.7, "b": -0.1, "c": 300, "d": "y"})[[0, 1, 3]].tolist() == [
        1.0,
        0.0,
        0.5,
    ]


def test_inactive_parameters_encode_to_the_middle() -> None:
    assert HYBRID.encode({"mode": "text"}).tolist() == [0.5, 1 / 6, 0.5]
    assert HYBRID.decode([0.9, 0.1, 0.9]) == {"mode": "text"}


def test_spaces_survive_pickling_and_json() -> None:
    space = SearchSpace(HYBRID.parameters, ("hops <= 2",))
    again = pickle.loads(pickle.dumps(space))
    assert again == space
    assert again.fingerprint == space.fingerprint
    read = SearchSpace.from_mapping(json.loads(json.dumps(space.to_mapping())), space.constraints)
    assert read == space
