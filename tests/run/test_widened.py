"""By how much a verdict by parts is widened, from what the trials kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tuner.core.corpus import Query
from tuner.core.trial import Trial, TrialState
from tuner.run.parts import _widened


def test_a_trial_without_any_value_leaves_the_others_theirs() -> None:
    queries = [Query(f"q{n}", f"which one is {n}?") for n in range(40)]
    assembly: Any = SimpleNamespace(
        parts=(queries[:20], queries[20:]),
        tune_queries=queries,
        plan=SimpleNamespace(objective=SimpleNamespace(price={})),
        config=SimpleNamespace(
            verdict=SimpleNamespace(alpha=0.05, min_effect=0.01), study=SimpleNamespace(seed=1)
        ),
    )
    random = np.random.default_rng(3)
    values = {number: random.normal(0.5, 0.1, 40) for number in range(4)}
    trials = [
        Trial(number, "baseline" if number == 0 else "tpe", {"x": number}).told(
            state=TrialState.FINISHED, objective=0.5, metrics={}
        )
        for number in range(5)
    ]
    whole = _widened(assembly, Path(), trials[0], trials[:4], values, has_second_way=False)
    values[4] = np.full(40, np.nan)
    found = _widened(assembly, Path(), trials[0], trials, values, has_second_way=False)
    assert found == whole
