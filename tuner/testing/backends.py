"""The contract of search backends: pure suggestions, new points, and an end."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tuner.backends.base import Backend
from tuner.core.errors import InputError
from tuner.core.rankings import FloatArray
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.trial import Params, Race, Trial, TrialState
from tuner.testing.contract import Contract, check_all, checks_in, need

PLAIN = SearchSpace(
    {
        "graph_weight": Real(0.0, 1.0),
        "max_hops": Integer(1, 5),
        "top_k": Integer(3, 30),
        "temperature": Real(0.01, 1.0, scale="log"),
    }
)
MIXED = SearchSpace(
    {
        "mode": Categorical(("text", "graph", "hybrid")),
        "weight": Real(0.0, 1.0, step=0.05, when={"mode": ("hybrid",)}),
        "hops": Integer(1, 4, when={"mode": ("graph", "hybrid")}),
        "decay": Real(0.1, 0.9, when={"hops": (2, 3, 4)}),
        "flag": Categorical((True, False)),
        "prior": Categorical((None, 0.5, 1, True, "1")),
        "pool": Integer(10, 1000, scale="log", step=10),
        "fixed": Real(0.3, 0.3),
    }
)
CONSTRAINED = SearchSpace(
    {"start": Integer(1, 20), "select": Integer(1, 20), "a": Real(0.0, 1.0), "b": Real(0.0, 1.0)},
    ("start <= select", "a + b <= 1.0"),
)
# 21 points: 3 flags x (2 without hops + 3 x 2 with, less hops == 2 and x == 1) = 3 x 7.
TINY = SearchSpace(
    {
        "mode": Categorical(("text", "graph")),
        "hops": Integer(1, 3, when={"mode": ("graph",)}),
        "flag": Categorical((True, False, None)),
        "x": Integer(0, 1),
    },
    ("x == 0 or hops != 2",),
)
SPACES = {"plain": PLAIN, "mixed": MIXED, "constrained": CONSTRAINED, "tiny": TINY}
_NATIVE = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class BackendCase:
    """One backend to check.

    Attributes:
        make: ``make(budget)`` constructs it, as a configuration would. One that first draws at
            random should be told to do so for few trials, or its model is hardly reached.
        spaces: the spaces that it is tried in, by name.
    """

    make: Callable[[Any], Backend] = field(repr=False)
    spaces: dict[str, SearchSpace] = field(default_factory=lambda: dict(SPACES))


def finished(space: SearchSpace, number: int, params: Params) -> Trial:
    """Return a told trial of a smooth objective with its best inside the space."""
    objective = 1.0 - float(((space.encode(params) - 0.3) ** 2).mean())
    return Trial(number, "arm", params, TrialState.FINISHED, objective)


def searched(
    backend: Backend,
    space: SearchSpace,
    trials: int,
    *,
    seed: int = 5,
    history: Sequence[Trial] = (),
) -> list[Trial]:
    """Ask a backend for one trial after another, each of which is told; return them all."""
    told = list(history)
    while len(told) < trials and (got := backend.suggest(space, told, count=1, seed=seed)):
        told.append(finished(space, len(told), got[0]))
    return told


def drawn(space: SearchSpace, trials: int) -> list[Trial]:
    """Return told trials of points that were drawn at random, each once."""
    rng = np.random.default_rng(3)
    points = {space.key(params): params for params in (space.sample(rng) for _ in range(trials))}
    return [finished(space, number, params) for number, params in enumerate(points.values())]


def check_points_lie_in_the_space(case: BackendCase) -> None:
    """Check that points satisfy the space, in canonical form, as Python's own numbers and texts."""
    for name, space in case.spaces.items():
        for trial in searched(case.make(40), space, 12):
            same = space.canonical(trial.params)
            is_canonical = same == trial.params and list(same) == list(trial.params)
            need(is_canonical, f"{trial.params} is not in canonical form ({name})")
            need(space.satisfies(trial.params), f"{trial.params} breaks the space ({name})")
            kinds = {type(value).__name__ for value in trial.params.values()}
            is_native = all(type(value) in _NATIVE for value in trial.params.values())
            need(is_native, f"values must be of Python's own types, not {sorted(kinds)} ({name})")


def check_no_memory(case: BackendCase) -> None:
    """Check that a fresh instance suggests what one suggests that has run for a while."""
    for name, space in case.spaces.items():
        history = searched(case.make(40), space, 9)
        for length, trial in enumerate(history):
            again = case.make(40).suggest(space, history[:length], count=1, seed=5)
            need(
                again == [trial.params],
                f"after {length} trials a fresh instance suggests {again}, a warm one "
                f"{trial.params} ({name}): everything must come from the arguments",
            )


def check_resuming(case: BackendCase) -> None:
    """Check that a history read back from its records goes on as one long run."""
    for name, space in case.spaces.items():
        long = searched(case.make(40), space, 10)
        read = [Trial.from_record(trial.to_record()) for trial in long[:5]]
        resumed = searched(case.make(40), space, 10, history=read)
        is_same = [trial.params for trial in resumed] == [trial.params for trial in long]
        need(is_same, f"a resumed search goes another way than one long one ({name})")


def check_every_state(case: BackendCase) -> None:
    """Check that trials in every state are taken, left alone, and not suggested again."""
    changes: dict[int, dict[str, Any]] = {
        1: {"state": TrialState.FAILED, "objective": None, "error": "broke"},
        3: {"state": TrialState.RUNNING, "objective": None},
        4: {"state": TrialState.SHARED, "shared_from": 0},
        5: {"violation": 2.5},
        6: {"objective": math.nan},
        7: {"state": TrialState.RUNNING, "objective": None},
    }
    for name, space in case.spaces.items():
        history = [trial.told(**changes.get(trial.number, {})) for trial in drawn(space, 12)]
        before = copy.deepcopy(history)
        picks = case.make(40).suggest(space, history, count=3, seed=1)
        need(history == before, f"the history was changed ({name})")
        keys = {space.key(params) for params in picks}
        need(len(picks) == len(keys) == 3, f"3 different points were asked, got {picks} ({name})")
        seen = keys & {space.key(trial.params) for trial in history}
        need(not seen, f"points of the history were suggested again ({name})")
        again = case.make(40).suggest(space, history, count=3, seed=1)
        need(again == picks, f"the same arguments gave other points ({name})")


def check_several_goals(case: BackendCase) -> None:
    """Check that trials with several goals are taken, whatever these are, and in every state."""
    steps: dict[str, Callable[[FloatArray], list[float]]] = {
        "two": lambda at: [float(at[0]), float(-at[1])],
        "three": lambda at: [float(at[0]), float(-at[1]), float(at.mean())],
        "in steps": lambda at: [round(float(at[0])), round(2 * float(at[1]))],
        "of which one says nothing": lambda at: [float(at[0]), 0.5],
        "all equal": lambda at: [0.5] * len(at),
        "huge and tiny": lambda at: [1e300 * float(at[0]), -1e-300 * float(at[1])],
    }
    changes: dict[int, dict[str, Any]] = {
        1: {"state": TrialState.FAILED, "objective": None, "error": "broke", "goals": ()},
        3: {"state": TrialState.RUNNING, "objective": None, "goals": ()},
        5: {"violation": 2.5},
        6: {"state": TrialState.RACED_OUT, "objective": None, "goals": ()}
        | {"race": Race(10, 0.2, 0.1, 0.3)},
    }
    for space in (PLAIN, MIXED):
        for name, goals in steps.items():
            trials = [
                trial.told(goals=tuple(goals(space.encode(trial.params))))
                for trial in drawn(space, 12)
            ]
            for history in (
                [trial.told(**changes.get(trial.number, {})) for trial in trials],
                [trial.told(violation=1.0) for trial in trials],
            ):
                before = copy.deepcopy(history)
                picks = case.make(40).suggest(space, history, count=2, seed=1)
                need(history == before, f"the history was changed, with goals {name}")
                keys = {space.key(params) for params in picks}
                need(len(keys) == 2, f"2 points were asked, with goals {name}, got {picks}")
                seen = keys & {space.key(trial.params) for trial in history}
                need(not seen, f"points were suggested again, with goals {name}")
                again = case.make(40).suggest(space, history, count=2, seed=1)
                need(again == picks, f"the same arguments gave other points, with goals {name}")


def check_hopeless_histories(case: BackendCase) -> None:
    """Check that a search goes on where all failed, all are equal, or all break a constraint."""
    trials = drawn(PLAIN, 8)
    histories = {
        "all failed": [
            trial.told(state=TrialState.FAILED, objective=None, error="broke") for trial in trials
        ],
        **{
            f"all at {same:g}": [trial.told(objective=same) for trial in trials]
            for same in (0.0, -3.0e9, 1e-12)
        },
        "all infeasible": [trial.told(violation=1.0 + trial.number) for trial in trials],
    }
    for name, history in histories.items():
        picks = case.make(40).suggest(PLAIN, history, count=2, seed=0)
        need(len(picks) == 2, f"2 points were asked where trials {name}, got {picks}")


def check_exhaustion(case: BackendCase) -> None:
    """Check that a small space is searched whole, without a point twice, and then ends."""
    size = 21
    for count in (1, 4):
        backend = case.make(30)
        history: list[Trial] = []
        while picks := backend.suggest(TINY, history, count=count, seed=2):
            wanted = min(count, size - len(history))
            need(len(picks) == wanted, f"{wanted} points were left and asked, got {picks}")
            history += [finished(TINY, len(history) + i, params) for i, params in enumerate(picks)]
        different = len({TINY.key(trial.params) for trial in history})
        need(different == len(history) == size, f"{different} of {size} points were suggested")


def check_spaces_without_points(case: BackendCase) -> None:
    """Check that a space in which nothing, or hardly anything, can be found is no error."""
    empty = SearchSpace({"a": Real(0.0, 1.0), "b": Real(1.0, 2.0)}, ("a > b",))
    got = case.make(40).suggest(empty, [], count=2, seed=0)
    need(got == [], f"a space without any point gave {got}; [] says that there is none")
    corner = SearchSpace({"a": Real(0.0, 1.0), "b": Real(0.0, 1.0)}, ("a + b < 0.0001",))
    history = [finished(corner, i, {"a": i * 1e-5, "b": i * 1e-5}) for i in range(1, 5)]
    for params in case.make(40).suggest(corner, history, count=1, seed=0):
        need(corner.contains(params), f"{params} lies outside of the space")


def check_several_at_once(case: BackendCase) -> None:
    """Check that points asked together, or while others are under way, are all different."""
    for trials in (0, 5):
        history = drawn(PLAIN, trials)
        keys = {PLAIN.key(p) for p in case.make(40).suggest(PLAIN, history, count=6, seed=0)}
        need(len(keys) == 6, "6 points were asked together, and some are the same or missing")
        need(not keys & {PLAIN.key(t.params) for t in history}, "a point was suggested again")
    asked = drawn(PLAIN, 8)
    for _ in range(4):
        (params,) = case.make(40).suggest(PLAIN, asked, count=1, seed=0)
        asked.append(Trial(len(asked), "arm", params))
    keys = {PLAIN.key(trial.params) for trial in asked}
    need(len(keys) == len(asked), "a point that is under way was suggested again")


def check_one_point(case: BackendCase) -> None:
    """Check that a space of one point has one suggestion, and no second."""
    space = SearchSpace({"k": Integer(4, 4), "w": Real(0.5, 0.5), "m": Categorical((None,))})
    only: Params = {"k": 4, "w": 0.5, "m": None}
    got = case.make(40).suggest(space, [], count=3, seed=0)
    need(got == [only], f"the only point is {only}, got {got}")
    got = case.make(40).suggest(space, [finished(space, 0, only)], count=3, seed=0)
    need(got == [], f"the only point is told; got {got}")


def check_seed_and_count(case: BackendCase) -> None:
    """Check that the seed decides the order of the points, and that 0 points are none."""
    first, again, other = (
        [trial.params for trial in searched(case.make(40), PLAIN, 6, seed=seed)]
        for seed in (1, 1, 2)
    )
    need(first == again, "the same seed gave other points")
    need(first != other, "another seed gave the same points")
    got = case.make(40).suggest(PLAIN, [], count=0, seed=0)
    need(got == [], f"no point was asked, got {got}")


def check_budget(case: BackendCase) -> None:
    """Check that a budget which is no number of trials is refused by its key, ``trials``."""
    for budget in (0, -1, 2.5, True, "many"):
        try:
            case.make(budget)
        except InputError as error:
            named = error.problems[0].key
            need(named == ("trials",), f"a budget of {budget!r} is refused by the key {named}")
        else:
            raise AssertionError(
                f"a budget of {budget!r} was taken; see tuner.backends.base.check_budget"
            )


CHECKS = checks_in(__name__)
"""Every check of a backend."""


def check_backend(case: BackendCase) -> None:
    """Run every check of the contract of backends, as ``check_all`` does."""
    check_all(CHECKS, case)


class BackendContract(Contract):
    """The contract of backends as tests of pytest's; ``case`` is a ``BackendCase``."""

    checks = CHECKS
