"""Searches by other packages, told and asked as a backend of the project is: HEBO's and Optuna's.

Each needs its package beside the project: `pip install optuna torch` for Optuna's Gaussian process; HEBO declares
versions of its own, so it goes without them into an environment of its own:
`pip install --no-deps HEBO gpytorch linear_operator jaxtyping wadler-lindig pymoo moocore disjoint-set catboost`
beside torch, pandas and scikit-learn. A package is imported where it is used.
"""

from __future__ import annotations

import time
import warnings

from tuner.core.space import Categorical, Integer, Real


def hebo(space, value, seed, trials):
    """Return the objective of each trial of HEBO at its defaults, and the seconds it took to suggest.

    It knows no conditions: parameters without effect are left out of what it suggests.
    """
    import numpy as np
    import torch
    from hebo.design_space.design_space import DesignSpace
    from hebo.optimizers.hebo import HEBO

    np.random.seed(seed)  # noqa: NPY002 - what HEBO draws from
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    kinds = DesignSpace().parse([_for_hebo(name, p) for name, p in space.parameters.items()])
    search = HEBO(kinds, scramble_seed=seed)
    found, seconds = [], 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(found) < trials:
            begin = time.process_time()
            asked = search.suggest(n_suggestions=1)
            seconds += time.process_time() - begin
            found.append(value(_canonical(space, asked.iloc[0].to_dict())))
            begin = time.process_time()
            search.observe(asked, np.array([[-found[-1]]]))
            seconds += time.process_time() - begin
    return found, seconds


def _for_hebo(name, parameter):
    if isinstance(parameter, Categorical):
        return {"name": name, "type": "cat", "categories": list(parameter.choices)}
    kind = "int" if isinstance(parameter, Integer) else "num"
    if parameter.scale == "log":
        kind = "pow_int" if kind == "int" else "pow"
    return {"name": name, "type": kind, "lb": parameter.low, "ub": parameter.high, "base": 10}


def _canonical(space, params):
    """Return what HEBO asks for as the space has it, without what has no effect."""
    plain = {
        name: one.item() if hasattr(one := params[name], "item") else one
        for name in space.parameters
    }
    active = {}
    for name, parameter in space.parameters.items():
        when = dict(parameter.when or {})
        if all(name_ in active and active[name_] in values for name_, values in when.items()):
            one = plain[name]
            if isinstance(parameter, Real):
                one = min(max(float(one), parameter.low), parameter.high)
            active[name] = int(one) if isinstance(parameter, Integer) else one
    return space.canonical(active)


def optunas(sampler):
    """Return the same by a sampler of Optuna at its defaults; conditions are asked as they come."""

    def search(space, value, seed, trials):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study = optuna.create_study(
                sampler=getattr(optuna.samplers, sampler)(seed=seed), direction="maximize"
            )
            found, seconds = [], 0.0
            for _ in range(trials):
                begin = time.process_time()
                trial = study.ask()
                params = {}
                for name, parameter in space.parameters.items():
                    when = dict(parameter.when or {})
                    if all(params.get(name_) in values for name_, values in when.items()):
                        params[name] = _by_optuna(trial, name, parameter)
                seconds += time.process_time() - begin
                found.append(value(space.canonical(params)))
                begin = time.process_time()
                study.tell(trial, found[-1])
                seconds += time.process_time() - begin
        return found, seconds

    return search


def _by_optuna(trial, name, parameter):
    if isinstance(parameter, Categorical):
        return trial.suggest_categorical(name, list(parameter.choices))
    suggest = trial.suggest_int if isinstance(parameter, Integer) else trial.suggest_float
    return suggest(name, parameter.low, parameter.high, log=parameter.scale == "log")


PEERS = {
    "hebo": hebo,
    "optuna gp": optunas("GPSampler"),
    "optuna tpe": optunas("TPESampler"),
}
