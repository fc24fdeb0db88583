"""Search over indexes: few of them, each asked a lot, and none beyond what may be built."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.backends import by_index
from tuner.backends.base import Backend, learns
from tuner.backends.grid import Grid
from tuner.backends.index_levels import Levels, moved
from tuner.backends.points import Point, point_of
from tuner.backends.random import Random
from tuner.backends.tpe import Tpe
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.trial import Params, Trial, TrialState

SPACE = SearchSpace(
    {
        "embedder": Categorical(("none", "lsa")),
        "dim": Integer(2, 64, when={"embedder": ("lsa",)}),
        "k1": Real(0.5, 3.0),
        "dense": Real(0.0, 1.0, when={"embedder": ("lsa",)}),
        "hops": Integer(1, 5),
        "weight": Real(0.0, 1.0),
    },
    ("weight + dense <= 1.5", "k1 * hops <= 12"),
).with_index(("embedder", "dim", "k1"))
LEVELS = Levels.of(SPACE)


def worth(params: Params) -> float:
    """Be best with lsa, k1 of 1.5 and a weight of .7."""
    k1, weight = float(params["k1"]), float(params["weight"])  # type: ignore[arg-type]
    return 0.1 * (params["embedder"] == "lsa") - (k1 - 1.5) ** 2 - (weight - 0.7) ** 2


def told(number: int, params: Params, value: float | None = None) -> Trial:
    objective = worth(params) if value is None else value
    return Trial(number, "arm", params, TrialState.FINISHED, objective)


def searched(
    backend: Backend,
    trials: int,
    *,
    space: SearchSpace = SPACE,
    most: int | None = None,
    history: Sequence[Trial] = (),
) -> list[Trial]:
    found = list(history)
    while len(found) < trials and (
        picks := by_index.suggest(backend, space, found, most=most, count=1, seed=3)
    ):
        found.append(told(len(found), picks[0]))
    return found


def indexes(trials: Sequence[Trial]) -> list[Point]:
    """Return the index of each trial."""
    return [LEVELS.key(trial.params) for trial in trials]


def test_a_space_without_parameters_of_the_index_is_asked_as_ever() -> None:
    space = SearchSpace(SPACE.parameters, SPACE.constraints)
    history = searched(Random(9), 5, space=space)
    direct = Tpe(9, initial=3).suggest(space, history, count=2, seed=1)
    assert by_index.suggest(Tpe(9, initial=3), space, history, count=2, seed=1) == direct


@pytest.mark.parametrize("backend", [Tpe(40, initial=4), Random(40)], ids=["tpe", "random"])
def test_few_indexes_are_asked_a_lot(backend: Backend) -> None:
    trials = searched(backend, 24)
    assert len({point_of(trial.params) for trial in trials}) == 24
    # tpe: 3 + 4 + 5 + 6 trials and the fifth index; random: 24 trials, 6 an index.
    assert len(set(indexes(trials))) == (5 if isinstance(backend, Tpe) else 4)


@given(
    most=st.integers(1, 4),
    kind=st.sampled_from([Random(12), Grid(12), Tpe(12, initial=3)]),
    others=st.integers(0, 3),
)
@settings(max_examples=15, deadline=None)
def test_no_more_indexes_than_the_budget(most: int, kind: Backend, others: int) -> None:
    asked = [trial.params for trial in searched(Random(30), 6 * others, most=others or None)]
    found: list[Trial] = []
    for number in range(12):
        known = [*asked, *(trial.params for trial in found)]
        picks = by_index.suggest(kind, SPACE, found, asked=known, most=most, count=1, seed=2)
        if not picks:
            break
        assert SPACE.contains(picks[0])
        found.append(told(number, picks[0]))
    before = {LEVELS.key(params) for params in asked}
    assert len(before | set(indexes(found))) <= max(most, len(before))


@pytest.mark.parametrize("backend", [Tpe(30, initial=4), Random(30)], ids=["tpe", "random"])
def test_the_number_of_indexes_is_known_before(backend: Backend) -> None:
    space = SearchSpace(
        {"k1": Real(0.5, 3.0), "embedder": Categorical(("none", "lsa")), "weight": Real(0.0, 1.0)}
    ).with_index(["k1"])
    for trials in (1, 6, 7, 18, 19):
        asked = {trial.params["k1"] for trial in searched(backend, trials, space=space)}
        most = by_index.most_asked(backend, space, trials)
        # 3 + 4 + 5 + 6 = 18 trials of 4 indexes; random may begin within a block.
        assert len(asked) == most - (not learns(backend) and trials > 1)
    assert by_index.most_asked(backend, SPACE, 30) == 30  # constraints may leave nothing


def test_an_index_of_another_arm_is_taken_before_one_is_built() -> None:
    theirs = LEVELS.joined({"embedder": "none", "k1": 1.0}, {"hops": 2, "weight": 0.5})
    (first,) = by_index.suggest(Tpe(9), SPACE, [], asked=[theirs], count=1, seed=0)
    assert LEVELS.key(first) == LEVELS.key(theirs)


def test_a_baseline_outside_the_space_counts_as_an_index() -> None:
    baseline: Params = {"embedder": "none", "k1": 9.0, "hops": 2, "weight": 0.5, "other": 1}
    assert by_index.suggest(Tpe(9), SPACE, [], asked=[baseline], most=1, count=1, seed=0) == []
    assert by_index.suggest(Tpe(9), SPACE, [], asked=[baseline], most=2, count=1, seed=0)


def test_a_new_index_is_first_asked_what_was_best() -> None:
    trials = searched(Tpe(40, initial=4), 24)
    keys = indexes(trials)
    for number in range(1, 24):
        if keys[number] in keys[:number]:
            continue
        best = max(trials[:number], key=lambda trial: trial.worth or 0.0)
        inner = LEVELS.inside(LEVELS.setting(trials[number].params) or {})
        assert inner is not None
        lent = moved(best.params, inner)
        assert lent.items() <= trials[number].params.items()


def test_an_index_that_is_behind_is_left() -> None:
    # Two indexes that were tuned by .02, and a third that is .3 behind on the best's settings.
    setting = {"embedder": "none"}
    history = []
    for k1, start in ((1.0, 0.5), (1.5, 0.6), (2.5, 0.3)):
        for step in range(3):
            query: Params = {"hops": 2, "weight": 0.5 + step / 10}
            params = LEVELS.joined({**setting, "k1": k1}, query)
            history.append(told(len(history), params, start + step / 100))
    best = LEVELS.key(history[3].params)
    for _ in range(2):  # Else every other trial is the newest's.
        picks = by_index.suggest(Random(9), SPACE, history, count=1, seed=0)
        (pick,) = by_index.suggest(Tpe(9, initial=3), SPACE, history, count=1, seed=0)
        assert picks
        assert LEVELS.key(pick) == best
        history.append(told(len(history), pick, 0.5))


def test_an_index_that_failed_is_left() -> None:
    history = searched(Tpe(40, initial=4), 8)
    newest = indexes(history)[-1]
    failed = [
        trial.told(state=TrialState.FAILED, objective=None, error="no index")
        if LEVELS.key(trial.params) == newest
        else trial
        for trial in history
    ]
    while newest not in (keys := indexes(failed))[:-1] or keys.count(newest) < 2:
        setting = LEVELS.setting(history[-1].params)
        assert setting is not None
        params = LEVELS.joined(setting, {"hops": 1, "weight": 0.123, "dense": 0.1})
        trial = told(len(failed), SPACE.canonical(params))
        failed.append(trial.told(state=TrialState.FAILED, objective=None, error="no index"))
    (pick,) = by_index.suggest(Tpe(40, initial=4), SPACE, failed, count=1, seed=3)
    assert LEVELS.key(pick) != newest


def test_a_resumed_search_goes_on_as_one_long_one() -> None:
    long = searched(Tpe(40, initial=4), 18, most=3)
    read = [Trial.from_record(trial.to_record()) for trial in long[:9]]
    resumed = searched(Tpe(40, initial=4), 18, most=3, history=read)
    assert [trial.params for trial in resumed] == [trial.params for trial in long]


def test_points_asked_together_are_those_asked_one_by_one_under_way() -> None:
    history = searched(Tpe(40, initial=4), 11)
    together = by_index.suggest(Tpe(40, initial=4), SPACE, history, count=3, seed=3)
    for params in together:
        (pick,) = by_index.suggest(Tpe(40, initial=4), SPACE, history, count=1, seed=3)
        assert pick == params
        history.append(Trial(len(history), "arm", pick))


def test_a_grid_has_the_points_of_one_index_together() -> None:
    trials = searched(Grid(40), 60)
    keys = indexes(trials)
    changes = sum(one != other for one, other in pairwise(keys))
    assert changes == len(set(keys)) - 1
    plain = SearchSpace(SPACE.parameters, SPACE.constraints)
    points = {point_of(params) for params in plain.grid(40)}
    assert {point_of(trial.params) for trial in trials} == points


def test_conditions_on_the_index_are_decided_inside() -> None:
    without = LEVELS.inside({"embedder": "none", "k1": 1.0})
    with_dense = LEVELS.inside({"embedder": "lsa", "dim": 8, "k1": 1.0})
    assert without is not None
    assert with_dense is not None
    assert without.names == ("hops", "weight")
    assert with_dense.names == ("dense", "hops", "weight")
    assert with_dense.constraints == ("weight + dense <= 1.5",)
    assert not with_dense.parameters["dense"].when


def test_an_index_parameter_that_depends_on_a_query_parameter_takes_it_outside() -> None:
    space = SearchSpace(
        {
            "mode": Categorical(("text", "dense")),
            "dim": Integer(2, 64, when={"mode": ("dense",)}),
            "top_k": Integer(1, 30),
        }
    ).with_index(["dim"])
    assert Levels.of(space).outer.names == ("mode", "dim")
    found: list[Trial] = []
    for number in range(12):
        picks = by_index.suggest(Tpe(30, initial=3), space, found, most=2, count=1, seed=0)
        found.append(told(number, picks[0], float(number)))
    assert len({trial.params.get("dim") for trial in found}) == 2


def test_where_only_the_index_is_searched_its_budget_ends_the_search() -> None:
    space = SearchSpace({"k1": Real(0.5, 3.0), "weight": Real(0.7, 0.7)}).with_index(["k1"])
    alone = SearchSpace({"k1": Real(0.5, 3.0)}).with_index(["k1"])
    value = {"embedder": "none", "weight": 0.7}
    for searched_space in (space, alone):
        found: list[Trial] = []
        while picks := by_index.suggest(
            Tpe(30, initial=2), searched_space, found, most=4, count=1, seed=0
        ):
            found.append(told(len(found), picks[0], worth({**value, **picks[0]})))
        assert len(found) == 4


@pytest.mark.slow
def test_few_indexes_are_enough() -> None:
    found = searched(Tpe(60), 60)
    best = max(trial.worth or -math.inf for trial in found)
    # The optimum is .1; plain search has used 60 indexes by then.
    assert best > 0.08
    assert len(set(indexes(found))) <= 10
