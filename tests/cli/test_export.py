"""A study that left for Optuna: the same trials, the same best, and nothing overwritten."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import optuna
import pytest

from tuner.core.journal import read_journal

PLOTS = (
    optuna.visualization.plot_optimization_history,
    optuna.visualization.plot_parallel_coordinate,
    optuna.visualization.plot_slice,
    optuna.visualization.plot_contour,
    optuna.visualization.plot_edf,
    optuna.visualization.plot_param_importances,
)


@pytest.fixture
def run_dir(tuner_here) -> Path:
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    return run_dir


def test_the_best_is_the_same_and_optunas_plots_work(tuner_here, run_dir):
    done = tuner_here("export", str(run_dir), "--optuna", "sqlite:///study.db")
    assert "as the study 'small'" in done.stdout
    assert "optuna-dashboard sqlite:///study.db" in done.stdout
    url = f"sqlite:///{tuner_here.folder / 'study.db'}"
    study = optuna.load_study(study_name="small", storage=url)
    trials = read_journal(run_dir / "journal.jsonl").trials
    assert len(study.trials) == len(trials)
    assert study.best_value == max(t.objective for t in trials.values() if t.objective is not None)
    assert study.best_params == trials[study.best_trial.number].params
    for plot in PLOTS:
        assert plot(study).data
    # A second export is told what to write instead.
    again = tuner_here("export", str(run_dir), "--optuna", "sqlite:///study.db", code=2)
    assert "holds a study called 'small' already" in again.stderr
    assert "--name NAME" in again.stderr
    tuner_here("export", str(run_dir), "--optuna", "sqlite:///study.db", "--name", "small-again")
    assert sorted(optuna.get_all_study_names(url)) == ["small", "small-again"]


def test_a_journal_file_and_what_is_no_storage(tuner_here, run_dir):
    tuner_here("export", str(run_dir), "--optuna", "study.log")
    backend = optuna.storages.journal.JournalFileBackend(str(tuner_here.folder / "study.log"))
    storage = optuna.storages.JournalStorage(backend)
    assert optuna.get_all_study_names(storage) == ["small"]
    done = tuner_here("export", str(run_dir), "--optuna", "study.db", code=2)
    assert "a database is sqlite:///study.db" in done.stderr
    # MLflow's database has migrations of its own, which Optuna's would overwrite.
    with sqlite3.connect(tuner_here.folder / "mlflow.db") as database:
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
    database.close()
    done = tuner_here("export", str(run_dir), "--optuna", "sqlite:///mlflow.db", code=2)
    assert "is the database of something else" in done.stderr
    done = tuner_here("export", "nowhere", "--optuna", "sqlite:///study.db", code=2)
    assert "'nowhere' is not a run directory" in done.stderr
