"""A study as Optuna's own, for its plots and its dashboard."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.errors import InputError
from tuner.core.space import Categorical, Integer, Parameter, Real, SearchSpace
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Params, Scalar, Trial, TrialState
from tuner.evaluation.objective import Bounds, Objective
from tuner.evaluation.system_metrics import is_better_lower
from tuner.tracking.uri import mask, without_password

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

# Optuna's name of the one constraint: by how much those of the objective are broken in total.
VIOLATION = "violation"
# Optuna compares a value with its step to 8 digits: beyond so many steps that says nothing.
MOST_STEPS = 10**6
# A storage without a scheme is a journal file; such a name was meant as a database.
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def optuna_study(
    header: StudyHeader,
    trials: Sequence[Trial],
    *,
    storage: str | None = None,
    name: str | None = None,
) -> optuna.Study:
    """Rebuild a study in Optuna, trial by trial, under the same numbers where none is left out.

    Scored trials are COMPLETE, with the objective as their value, or with every goal of
    ``objective.pareto`` as it was measured, costs minimised. Failed ones are FAIL; those that were
    raced out are PRUNED, with the estimate after so many queries as their intermediate value; those
    under way are RUNNING. Where the objective has constraints, what breaks them is infeasible.
    Choices that Python holds for equal (``1`` and ``True``) are shown as JSON text. A value outside
    the space, as a baseline may have, becomes the user attribute ``params.NAME``.

    User attributes: ``trial``, ``arm``, ``metrics.NAME``, ``seconds``, and where there is one
    ``shared_from``, ``error`` and ``estimate``.

    Args:
        header: what identifies the study.
        trials: its trials, told or not.
        storage: a database such as ``sqlite:///study.db``, or the path of a journal file; None:
            in memory.
        name: the study's name in the storage; None: the name in the header.

    Raises:
        InputError: the storage cannot be opened, or holds a study of that name.
    """
    space = SearchSpace.from_mapping(header.space)
    objective = _objective(header.objective)
    is_constrained = bool(objective.constraints) or any(trial.violation > 0 for trial in trials)
    study = _create_study(
        goals=objective.pareto or ("objective",), storage=storage, name=name or header.name
    )
    for key, value in _study_attributes(header).items():
        study.set_user_attr(key, value)
    distributions = {name: _distribution(found) for name, found in space.parameters.items()}
    try:
        for trial in sorted(trials, key=lambda trial: trial.number):
            study.add_trial(
                _frozen(
                    trial,
                    space,
                    distributions,
                    values=_values(objective, trial) if trial.is_scored else None,
                    is_constrained=is_constrained,
                    has_estimate=not objective.pareto,
                )
            )
    except BaseException:
        # Thousands of trials take a database minutes: what is stopped must not look complete.
        _delete_study(name=study.study_name, storage=storage)
        raise
    return study


def _study_attributes(header: StudyHeader) -> dict[str, Any]:
    known = {
        "study_id": header.study_id,
        "seed": header.seed,
        "objective": header.objective,
        "baseline": header.baseline,
        "dataset": header.dataset,
        "versions": header.versions,
    }
    return {key: value for key, value in known.items() if value not in (None, {})}


def _objective(record: Mapping[str, Any]) -> Objective:
    """Read back what ``Objective.to_mapping`` wrote."""
    bounds = (record.get("constraints") or {}).items()
    return Objective(
        record["maximize"],
        record.get("price") or {},
        {name: Bounds(bound.get("min"), bound.get("max")) for name, bound in bounds},
        tuple(record.get("pareto") or ()),
    )


def _values(objective: Objective, trial: Trial) -> list[float]:
    """Return a trial's goals as they were measured, or its objective where it has but one."""
    if not objective.pareto:
        return [float(trial.objective or 0.0)]
    goals = objective.goals(trial.metrics)
    return [
        -value if is_better_lower(name) else value
        for name, value in zip(objective.pareto, goals, strict=True)
    ]


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna import distributions

    match parameter:
        case Categorical():
            shown = [_shown(parameter, choice) for choice in parameter.choices]
            return distributions.CategoricalDistribution(shown)
        case Integer(scale="log"):
            # Optuna has no steps on a log scale.
            return distributions.IntDistribution(parameter.low, parameter.high, log=True)
        case Integer():
            last = parameter.lattice_value(parameter.count - 1)
            return distributions.IntDistribution(parameter.low, last, step=parameter.step)
        case Real(scale="log"):
            return distributions.FloatDistribution(parameter.low, parameter.high, log=True)
        case Real(low=low, high=high):
            count = parameter.count
            if parameter.step is None or count is None or not 1 < count <= MOST_STEPS:
                return distributions.FloatDistribution(low, high)
            top = parameter.lattice_value(count - 1)
            width, step = Decimal(str(top)) - Decimal(str(low)), Decimal(str(parameter.step))
            if width % step:
                # A step such as 1/3: Optuna, which counts in decimals, would cut the range.
                return distributions.FloatDistribution(low, high)
            return distributions.FloatDistribution(low, top, step=parameter.step)


def _shown(parameter: Parameter, value: Scalar) -> Scalar:
    """Return a value as it can be told apart from the parameter's others by Python's equality."""
    if not isinstance(parameter, Categorical) or len(set(parameter.choices)) == parameter.count:
        return value
    return json.dumps(value)


def _frozen(
    trial: Trial,
    space: SearchSpace,
    distributions: Mapping[str, BaseDistribution],
    *,
    values: list[float] | None,
    is_constrained: bool,
    has_estimate: bool,
) -> optuna.trial.FrozenTrial:
    from optuna.trial import FrozenTrial
    from optuna.trial import TrialState as State

    if values is not None:
        state = State.COMPLETE
    elif trial.state is TrialState.RACED_OUT:
        state = State.PRUNED
    else:
        state = State.FAIL if trial.is_told else State.RUNNING
    inside = _inside(space, trial.params)
    estimates: dict[int, float] = {}
    if has_estimate and trial.race is not None:
        estimates = {trial.race.queries: trial.race.estimate}
    asked_at = datetime.fromtimestamp(trial.asked_at)
    told_at = asked_at if trial.told_at is None else datetime.fromtimestamp(trial.told_at)
    frozen = FrozenTrial(
        number=-1,
        trial_id=-1,
        state=state,
        value=None,
        values=values,
        datetime_start=asked_at,
        datetime_complete=told_at if trial.is_told else None,
        params={name: _shown(space.parameters[name], value) for name, value in inside.items()},
        distributions={name: distributions[name] for name in inside},
        user_attrs=_trial_attributes(trial, inside),
        system_attrs={},
        intermediate_values=estimates,
    )
    if is_constrained and values is not None:
        frozen.set_constraint(VIOLATION, trial.violation)
    return frozen


def _inside(space: SearchSpace, params: Params) -> Params:
    """Return those of a trial's params that lie in the space, each taken by itself."""
    inside: Params = {}
    for name in space.activation_order:
        if name not in params or not space.is_active(space.parameters[name], inside):
            continue
        try:
            inside[name] = space.parameters[name].canonical(params[name])
        except ValueError:
            continue
    return {name: inside[name] for name in space.names if name in inside}


def _trial_attributes(trial: Trial, inside: Params) -> dict[str, Any]:
    others = {
        "seconds": trial.seconds.get("total"),
        "shared_from": trial.shared_from,
        "error": trial.error,
        "estimate": None if trial.race is None else trial.race.estimate,
    }
    return {
        "trial": trial.number,
        "arm": trial.arm,
        **{f"params.{name}": v for name, v in trial.params.items() if name not in inside},
        # An undefined metric is left out: NaN is no JSON, which storages and dashboards speak.
        **{f"metrics.{name}": v for name, v in trial.metrics.items() if math.isfinite(v)},
        **{name: value for name, value in others.items() if value is not None},
    }


def _create_study(*, goals: Sequence[str], name: str, storage: str | None = None) -> optuna.Study:
    """Make an empty study, each goal maximised unless it is a cost.

    ``storage`` is a database's URL or the path of a journal file; None: in memory.

    Raises:
        InputError: the storage cannot be opened, or holds a study of that name.
    """
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # It announces every new study.
    try:
        with warnings.catch_warnings():
            # Names of values, and journal files, are experimental in some versions.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study = optuna.create_study(
                storage=None if storage is None else _opened(storage),
                study_name=name,
                directions=["minimize" if is_better_lower(goal) else "maximize" for goal in goals],
            )
            study.set_metric_names(list(goals))
    except optuna.exceptions.DuplicatedStudyError as error:
        raise InputError(
            f"{mask(storage or '')} holds a study called {name!r} already; give this one another "
            "name (on the command line: --name NAME)"
        ) from error
    finally:
        optuna.logging.set_verbosity(level)
    return study


def _delete_study(*, name: str, storage: str | None) -> None:
    """Delete a study from a storage; one in memory goes by itself."""
    if storage is not None:
        import optuna

        optuna.delete_study(study_name=name, storage=_opened(storage))


def _opened(storage: str) -> optuna.storages.BaseStorage:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    if "://" not in storage and Path(storage).suffix in DATABASE_SUFFIXES:
        raise InputError(
            f"{storage!r} is the path of a journal file; a database is sqlite:///{storage}"
        )
    try:
        if "://" not in storage:
            return optuna.storages.JournalStorage(JournalFileBackend(storage))
        if not _is_of_something_else(storage):
            return optuna.storages.get_storage(storage)
    except Exception as error:  # whatever a database's driver raises
        lines = without_password(str(error), storage).strip().splitlines()
        reason = lines[0] if lines else type(error).__name__
        raise InputError(
            f"cannot open the storage {mask(storage)!r}: {reason}; write for example "
            "sqlite:///study.db"
        ) from error
    raise InputError(
        f"{mask(storage)!r} is the database of something else, as of MLflow; Optuna needs one of "
        "its own: write for example sqlite:///study.db"
    )


def _is_of_something_else(url: str) -> bool:
    """Say whether a database has a history of migrations, but no studies of Optuna.

    Optuna would overwrite that history, whosever it is, and so break MLflow's database.
    """
    import sqlalchemy

    engine = sqlalchemy.create_engine(url)
    try:
        tables = sqlalchemy.inspect(engine).get_table_names()
    finally:
        engine.dispose()
    return "alembic_version" in tables and "studies" not in tables
