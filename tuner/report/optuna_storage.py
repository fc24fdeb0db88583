"""Optuna's storages: opened with care, so that nothing of others is overwritten."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.core.errors import InputError
from tuner.evaluation.system_metrics import is_better_lower
from tuner.tracking.uri import mask, without_password

if TYPE_CHECKING:
    import optuna

# A storage without a scheme is a journal file; such a name was meant as a database.
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def create_study(*, goals: Sequence[str], name: str, storage: str | None = None) -> optuna.Study:
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


def delete_study(*, name: str, storage: str | None) -> None:
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
