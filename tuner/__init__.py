"""Tune GraphRAG retrieval: define a space, search it in parallel, and keep every trial.

The public names are loaded on first use, so ``import tuner`` itself loads nothing heavy.
"""

from __future__ import annotations

import os
import sys

# `python -m tuner` looks into the working folder first, and would run a numpy.py there for numpy.
# So it is put last, before anything else is imported.
try:
    if sys.argv[:1] == ["-m"] and sys.path and sys.path[0] in ("", os.getcwd()):
        sys.path.append(sys.path.pop(0))
except FileNotFoundError:  # that folder was deleted, so nothing in it is run
    pass

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuner.api import TunedStudy, tune
    from tuner.core.errors import InputError, TunerError
    from tuner.core.space import Categorical, Integer, Real, SearchSpace
    from tuner.core.trial import Outcome, Trial
    from tuner.datasets import Dataset, open_dataset
    from tuner.evaluation.objective import Objective
    from tuner.loaded import LoadedStudy, load_study
    from tuner.scoring.evaluate_run import evaluate_run
    from tuner.served_params import best_params, params_by_query

__all__ = [
    "Categorical",
    "Dataset",
    "InputError",
    "Integer",
    "LoadedStudy",
    "Objective",
    "Outcome",
    "Real",
    "SearchSpace",
    "Trial",
    "TunedStudy",
    "TunerError",
    "best_params",
    "evaluate_run",
    "load_study",
    "open_dataset",
    "params_by_query",
    "tune",
]

_HOMES = {
    "Categorical": "tuner.core.space",
    "Dataset": "tuner.datasets",
    "InputError": "tuner.core.errors",
    "Integer": "tuner.core.space",
    "LoadedStudy": "tuner.loaded",
    "Objective": "tuner.evaluation.objective",
    "Outcome": "tuner.core.trial",
    "Real": "tuner.core.space",
    "SearchSpace": "tuner.core.space",
    "Trial": "tuner.core.trial",
    "TunedStudy": "tuner.api",
    "TunerError": "tuner.core.errors",
    "best_params": "tuner.served_params",
    "evaluate_run": "tuner.scoring.evaluate_run",
    "load_study": "tuner.loaded",
    "open_dataset": "tuner.datasets",
    "params_by_query": "tuner.served_params",
    "tune": "tuner.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tuner' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
