"""Properties of search spaces, over spaces that hypothesis makes up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.space import Categorical, Integer, Parameter, Real, SearchSpace

# A busy machine is not a failure.

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(-5, 5, allow_nan=False).map(lambda value: value + 0.0),
    st.text("abc1", max_size=2),
)


@st.composite
def reals(draw: Any) -> Real:
    scale = draw(st.sampled_from(["linear", "log"]))
    low = draw(st.floats(1e-4, 10) if scale == "log" else st.floats(-100, 100))
    width = draw(st.one_of(st.just(0.0), st.floats(1e-3, 50)))
    step = draw(st.one_of(st.none(), st.floats(1e-2, 10)))
    return Real(low, low + width, scale, step)


@st.composite
def integers(draw: Any) -> Integer:
    scale = draw(st.sampled_from(["linear", "log"]))
    low = draw(st.integers(1, 50) if scale == "log" else st.integers(-50, 50))
    return Integer(low, low + draw(st.integers(0, 60)), scale, draw(st.integers(1, 9)))


categoricals = st.lists(
    scalars, min_size=1, max_size=4, unique_by=lambda value: (type(value), value)
).map(lambda choices: Categorical(tuple(choices)))
parameters = st.one_of(reals(), integers(), categoricals)


@st.composite
def spaces(draw: Any) -> SearchSpace:
    found: dict[str, Parameter] = {}
    for name in ("a", "b", "c", "d")[: draw(st.integers(1, 4))]:
        parameter = draw(parameters)
        parents = [other for other, p in found.items() if not isinstance(p, Real)]
        if parents and draw(st.booleans()):
            parent = draw(st.sampled_from(parents))
            values = tuple(found[parent].levels(draw(st.integers(1, 2))))
            parameter = type(parameter)(**(vars(parameter) | {"when": {parent: values}}))
        found[name] = parameter
    return SearchSpace(found)


@given(spaces(), st.integers(0, 2**32))
def test_samples_are_canonical(space: SearchSpace, seed: int) -> None:
    params = space.sample(np.random.default_rng(seed))
    again = space.canonical(params)
    assert again == params
    assert [type(value) for value in again.values()] == [type(v) for v in params.values()]
    assert space.contains(params)


@given(spaces(), st.integers(0, 2**32))
def test_decoding_undoes_encoding(space: SearchSpace, seed: int) -> None:
    params = space.sample(np.random.default_rng(seed))
    positions = space.encode(params)
    assert ((positions >= 0) & (positions <= 1)).all()
    decoded = space.decode(positions)
    assert decoded.keys() == params.keys()
    for name, value in params.items():
        if isinstance(value, float) and not isinstance(space.parameters[name], Categorical):
            assert math.isclose(decoded[name], value, rel_tol=1e-9, abs_tol=1e-9)  # type: ignore[arg-type]
        else:
            assert decoded[name] == value
            assert type(decoded[name]) is type(value)


@given(spaces())
def test_a_space_is_read_back_from_its_mapping(space: SearchSpace) -> None:
    again = SearchSpace.from_mapping(space.to_mapping())
    assert again == space
    assert again.fingerprint == space.fingerprint


@given(parameters, st.integers(1, 12), st.booleans())
def test_levels_are_distinct_and_ordered(parameter: Parameter, number: int, edges: bool) -> None:
    levels = parameter.levels(number, edges=edges)
    assert 1 <= len(levels) <= number
    assert len({(type(level), level) for level in levels}) == len(levels)
    assert all(parameter.canonical(level) == level for level in levels)
    if parameter.count is not None:
        assert len(levels) == min(number, parameter.count)
    if not isinstance(parameter, Categorical):
        assert levels == sorted(levels)  # type: ignore[type-var]
        if edges and len(levels) > 1:
            assert levels[0] == parameter.low
            top = parameter.lattice_value(parameter.count - 1) if parameter.count else None
            assert levels[-1] == (parameter.high if top is None else top)


@settings(max_examples=50)
@given(spaces(), st.integers(1, 80))
def test_a_grid_keeps_to_its_budget(space: SearchSpace, budget: int) -> None:
    grid = space.grid(budget)
    assert 1 <= len(grid) <= budget
    assert len({space.key(params) for params in grid}) == len(grid)
    assert all(space.canonical(params) == params for params in grid)
    size = space.size()
    if size is not None and size <= budget:
        assert len(grid) == size


@given(spaces(), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_every_position_is_a_point(space: SearchSpace, positions: list[float]) -> None:
    params = space.decode(positions[: len(space.names)])
    assert space.canonical(params) == params


@given(
    st.integers(-(2**53), -(2**53) + 9),
    st.integers(2**53 - 9, 2**53),
    st.integers(1, 3),
    st.integers(0, 99),
)
def test_large_integers_are_exact(low: int, high: int, step: int, from_the_end: int) -> None:
    parameter = Integer(low, high, step=step)
    index = parameter.count - 1 - from_the_end
    value = parameter.low + index * step
    assert parameter.canonical(value) == value
    assert parameter.lattice_index(value) == index
