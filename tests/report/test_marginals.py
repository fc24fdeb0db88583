"""A parameter's sign is told where the forests agree on it, and how far it moves the objective."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.space import Categorical, Real
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial, TrialState
from tuner.report.importance import importances
from tuner.report.marginals import movement

REAL = Real(0.0, 1.0)
PLACES = np.linspace(0.0, 1.0, 21)


def test_the_sign_is_of_the_shape():
    shapes = {"+": PLACES, "−": -PLACES, "∩": -((PLACES - 0.5) ** 2), "∪": (PLACES - 0.5) ** 2}
    for sign, shape in shapes.items():
        assert movement(REAL, np.array([shape, shape])).sign == sign
    choices = movement(Categorical(("a", "b", "c")), np.array([[0.1, 0.5, 0.2]]))
    assert choices.sign == "b"
    assert choices.words == "best: b"
    assert choices.size == pytest.approx(0.4)  # 0.5 - 0.1


def test_no_sign_where_the_forests_do_not_agree():
    half = movement(REAL, np.array([PLACES, -2 * PLACES]))
    assert half.sign == ""
    assert (half.size, half.low, half.high) == (1.5, 1.0, 2.0)


def test_signs_of_a_known_function():
    space = {name: {"type": "real", "low": 0.0, "high": 1.0} for name in ("more", "less", "hill")}
    rng = np.random.default_rng(3)
    header = StudyHeader("id", "name", 0.0, 0, (), space, {})
    trials = []
    for number in range(200):
        params = {name: float(rng.uniform()) for name in space}
        worth = params["more"] - 0.8 * params["less"] - 4 * (params["hill"] - 0.5) ** 2
        trials.append(Trial(number, "a", params, TrialState.FINISHED, objective=worth))
    found = {name: one.moves for name, one in importances(header, trials).items()}
    assert {name: one.sign for name, one in found.items()} == {
        "more": "+",
        "less": "−",
        "hill": "∩",
    }
    # In truth 1.0, less what a tree of few leaves evens out.
    assert found["more"].low <= found["more"].size <= found["more"].high
    assert 0.6 < found["more"].size < 1.2
