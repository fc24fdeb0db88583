"""A study over a parameter of the index, from its configuration to what is left on the disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tuner
from tuner.core.index_costs import index_costs
from tuner.core.journal import read_journal
from tuner.retrieval.indexes.record import read_record

HERE = Path(__file__).parent
CONFIG = """
study: {name: toy, seed: 2}
dataset: {path: data, split: {holdout: 0}}
retriever: {kind: "toy_indexes:Toy", log: log}
space:
  size: {type: integer, low: 1, high: 8}
  top_k: {type: integer, low: 1, high: 8}
baseline: {size: 1, top_k: 1}
objective: {maximize: {recall@10: 1.0}}
metrics: [index_seconds, index_mb]
backends: [{kind: random, trials: 10}]
execution: {kind: inline}
tracking: null
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{n}", "title": f"{n}", "text": f"number {n}"} for n in range(8)]
    queries = [{"_id": id_, "text": f"which number is {id_}?"} for id_ in ("q", "r")]
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / "data" / f"{name}.jsonl").write_text(text)
    judged = "".join(f"q\td{n}\t1\nr\td{n}\t1\n" for n in range(6))
    (tmp_path / "data" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    (tmp_path / "toy.yaml").write_text(CONFIG)
    return tmp_path


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    python_path = os.pathsep.join([str(HERE), str(Path(tuner.__file__).parents[1])])
    return subprocess.Popen(
        [sys.executable, "-m", "tuner", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": python_path, "TUNER_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    process = start(folder, *arguments)
    said, _ = process.communicate(timeout=900)
    assert process.returncode == code, said
    return said


def trials(folder: Path) -> list[Any]:
    (journal,) = folder.glob("runs/*/journal.jsonl")
    return list(read_journal(journal).trials.values())


def built(folder: Path) -> list[int]:
    """Return the ``size`` of each index that was built, in order."""
    return [int(line.split()[0]) for line in (folder / "log").read_text().splitlines()]


def kept(folder: Path) -> set[int]:
    records = [read_record(path) for path in (folder / "cache" / "indexes").iterdir()]
    return {int(str(record.settings["size"])) for record in records if record is not None}


def test_each_setting_is_built_once_and_says_what_it_took(folder: Path) -> None:
    run(folder, "run", "toy.yaml")
    told = trials(folder)
    sizes = [trial.params["size"] for trial in told]
    assert sorted(built(folder)) == sorted(set(sizes))
    new = [trial for trial in told if trial.index.is_new]
    assert len(new) == len(set(sizes))
    assert all("index" in trial.seconds for trial in new)
    assert all(trial.metrics["index_seconds"] == trial.index.seconds for trial in told)
    assert len({trial.index.name for trial in told}) == len(set(sizes))
    for trial in told:  # the first `size` documents, `top_k` of them, of 6 that are relevant
        shown = min(trial.params["size"], trial.params["top_k"], 6)
        assert trial.metrics["recall@10"] == pytest.approx(shown / 6)


@pytest.mark.slow
def test_best_and_baseline_outlast_the_limit_of_what_is_kept(folder: Path) -> None:
    many = "backends=[{kind: random, trials: 30}]"
    run(folder, "run", "toy.yaml", "--set", "index.keep.count=1", "--set", many)
    told = trials(folder)
    best = max(told, key=lambda trial: (trial.objective, -trial.number))
    assert {1, best.params["size"]} <= kept(folder)
    assert len(kept(folder)) < len({trial.params["size"] for trial in told})


@pytest.mark.slow
def test_the_same_seed_gives_the_same_study_on_workers(folder: Path) -> None:
    run(folder, "run", "toy.yaml")
    here = [(trial.params, trial.objective) for trial in trials(folder)]
    (journal,) = folder.glob("runs/*/journal.jsonl")
    journal.unlink()
    run(folder, "run", "toy.yaml", "--set", "execution={kind: processes, workers: 2}")
    assert [(trial.params, trial.objective) for trial in trials(folder)] == here
    assert len(built(folder)) == len(set(built(folder)))


@pytest.mark.slow
def test_a_study_killed_while_it_builds_goes_on(folder: Path) -> None:
    process = start(folder, "run", "toy.yaml")
    while not (folder / "log").exists() or len(built(folder)) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (run_dir,) = folder.glob("runs/*")
    run(folder, "resume", str(run_dir))
    told = trials(folder)
    assert len(told) == 11
    assert all(trial.is_scored for trial in told)


@pytest.mark.slow
@pytest.mark.parametrize("is_heard", [True, False], ids=["heard", "unheard"])
def test_what_was_built_before_a_run_was_killed_does_not_count_as_found(
    folder: Path, *, is_heard: bool
) -> None:
    run(folder, "run", "toy.yaml")
    told = trials(folder)
    names = [trial.index.name for trial in told if trial.index.is_new]
    (journal,) = folder.glob("runs/*/journal.jsonl")
    lines = journal.read_text().splitlines(keepends=True)
    # As if it was killed once the last index was there, and before its first trial was told; or
    # before it heard that the index was there.
    end = '"event":"told"' if is_heard else '"kind":"index_built"'
    at = next(n for n, line in enumerate(lines) if end in line and names[-1] in line)
    journal.write_text("".join(lines[:at]))
    run(folder, "resume", str(journal.parent))
    costs = index_costs(trials(folder))
    assert costs is not None
    assert (costs.built, costs.found) == (len(names), 0)
    assert [t.index.name for t in trials(folder) if t.index.is_new] == names
    assert sorted(built(folder)) == sorted({trial.params["size"] for trial in told})
