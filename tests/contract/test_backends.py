"""What every search backend promises, tried on each that ships: its contract, and learning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tuner.backends import by_index
from tuner.backends.base import Backend, learns
from tuner.core import registry
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.trial import Params, Trial, TrialState
from tuner.testing import BackendCase
from tuner.testing.backends import CHECKS, searched

KINDS = registry.kinds("backends")
# Model-based backends get a short start-up here, so that few trials reach the model.
SHORT = {"gp": {"initial": 4}, "tpe": {"initial": 4}}


def make(kind: str, budget: Any = 40) -> Any:
    return registry.load("backends", kind)(budget, **SHORT.get(kind, {}))


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind == "gp" else ()) for kind in KINDS]
)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_contract(kind: str, check: Any) -> None:
    check(BackendCase(lambda budget: make(kind, budget)))


@dataclass(frozen=True)
class ByIndex:
    """A backend as a study asks it, in spaces some of whose parameters need another index."""

    backend: Backend

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        shaped = space.with_index(SHAPING)
        return by_index.suggest(self.backend, shaped, history, count=count, seed=seed)


# Of the contract's spaces: numbers, a choice on which others depend, parts of constraints.
SHAPING = ("top_k", "mode", "weight", "pool", "start", "a", "flag", "k")


# What learns fits a model of the indexes too, which takes seconds.
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind, marks=pytest.mark.slow if learns(registry.load("backends", kind)) else ()
        )
        for kind in KINDS
    ],
)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_contract_in_spaces_with_parameters_of_the_index(kind: str, check: Any) -> None:
    check(BackendCase(lambda budget: ByIndex(make(kind, budget))))


# Of fewer than 12 trials, its coarse part, a grid is another one: see ``test_grid``.
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind == "gp" else ())
        for kind in KINDS
        if kind != "grid"
    ],
)
def test_a_larger_budget_changes_nothing_so_that_a_study_can_go_on(kind: str) -> None:
    space, _ = TOYS["tuned"]
    few, many = (searched(make(kind, budget), space, 9) for budget in (9, 90))
    assert [trial.params for trial in few] == [trial.params for trial in many]


def peak(params: Params) -> float:
    """Peak at (.72, .21, .4): one smooth hill."""
    x, y, z = (float(params[name]) for name in "xyz")  # type: ignore[arg-type]
    return -((x - 0.72) ** 2) - 2 * (y - 0.21) ** 2 - 0.5 * (z - 0.4) ** 2


def tuned(params: Params) -> float:
    """Favour graph mode with 3 hops, and a temperature of about .05."""
    temperature = math.log10(float(params["temperature"]))  # type: ignore[arg-type]
    gain = {"text": 0.0, "graph": 0.3, "hybrid": 0.1}[str(params["mode"])]
    return gain - 0.1 * (int(params["hops"]) - 3) ** 2 - 0.5 * (temperature + 1.3) ** 2  # type: ignore[arg-type]


TOYS = {
    "peak": (SearchSpace({name: Real(0.0, 1.0) for name in "xyz"}), peak),
    "tuned": (
        SearchSpace(
            {
                "mode": Categorical(("text", "graph", "hybrid")),
                "hops": Integer(1, 6),
                "temperature": Real(0.001, 1.0, scale="log"),
            }
        ),
        tuned,
    ),
}


# Better than random is not to be promised by what does not learn.
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind == "gp" else ())
        for kind in KINDS
        if learns(registry.load("backends", kind))
    ],
)
@pytest.mark.parametrize("toy", TOYS)
def test_learning_beats_random(kind: str, toy: str) -> None:
    space, objective = TOYS[toy]

    def bests(name: str) -> list[float]:
        found = []
        for seed in range(4):
            history: list[Trial] = []
            backend = registry.load("backends", name)(24)
            for number in range(24):
                (params,) = backend.suggest(space, history, count=1, seed=seed)
                history.append(Trial(number, "arm", params, TrialState.FINISHED, objective(params)))
            found.append(max(objective(trial.params) for trial in history))
        return found

    # 24 trials, 4 fixed seeds; shares measured: tpe .41 and .26, gp .01 and .00.
    top = {"peak": 0.0, "tuned": 0.3}[toy]
    loss, random_loss = top - np.mean(bests(kind)), top - np.mean(bests("random"))
    assert loss < 0.7 * random_loss


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if not learns(registry.load("backends", kind))]
)
def test_without_learning_more_trials_are_not_worse(kind: str) -> None:
    space, objective = TOYS["peak"]
    found = [
        [objective(trial.params) for trial in searched(make(kind, 60), space, 60, seed=seed)]
        for seed in range(4)
    ]
    assert sum(map(max, found)) > sum(max(values[:3]) for values in found)
