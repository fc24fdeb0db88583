"""A small data set, a small outside retriever, and a way to run the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

RETRIEVER = '''
"""Ranks by the words that a query and a passage share; titles weigh more or less."""
import os, signal, time
import numpy as np
from tuner.core.rankings import Rankings
from tuner.retrieval.base import Knob

class WordOverlap:
    knobs = (
        Knob("title_weight", "real", 1.0, 0.0, 4.0),
        Knob("top_k", "integer", 10, 1, 50),
        Knob("mode", "categorical", "plain", choices=("plain", "crash", "slow")),
    )

    def __init__(self, corpus, fingerprint):
        self.corpus, self.fingerprint = corpus, fingerprint

    @classmethod
    def build(cls, corpus, *, cache_dir, flavour="sweet"):
        return cls(corpus, f"{corpus.fingerprint}-{flavour}")

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        if params.get("mode") == "crash":
            raise RuntimeError("the index is on fire")
        if params.get("mode") == "slow":
            time.sleep(0.05)
        weight, depth = params.get("title_weight", 1.0), params.get("top_k", 10)
        answers = []
        for query in queries:
            words = set(query.text.lower().strip("?").split())
            scored = sorted(
                (
                    -len(words & set(d.text.lower().split()))
                    - weight * len(words & set(d.title.lower().split())),
                    d.id,
                )
                for d in self.corpus.documents
            )
            answers.append([id_ for _, id_ in scored[:depth]])
        tokens = np.array([float(8 * len(answer)) for answer in answers])
        return Rankings.from_ids([q.id for q in queries], answers, context_tokens=tokens)
'''

CONFIG = """\
study: {name: small, seed: 3}
dataset: {path: data, split: {holdout: 0.5, stratify_by: [query_type]}}
retriever: {kind: "word_overlap:WordOverlap"}
space:
  title_weight: {type: real, low: 0.0, high: 4.0}
  top_k: {type: integer, low: 1, high: 12}
objective:
  maximize: {recall@5: 0.5, mrr@10: 0.3, ndcg@10: 0.2}
  price: {context_tokens_per_1000: 0.1}
baseline: {title_weight: 1.0, top_k: 10}
backends:
  - {kind: grid, trials: 6}
  - {kind: random, trials: 6}
execution: {kind: inline}
tracking: null
"""

CITIES = ["Lima", "Oslo", "Cairo", "Quito", "Paris", "Rome", "Delhi", "Hanoi", "Accra", "Dakar"]


def write_data(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    documents, queries, judgements = [], [], ["query-id\tcorpus-id\tscore"]
    for index, city in enumerate(CITIES):
        for part in ("river", "market"):
            documents.append(
                {"_id": f"{city}-{part}", "title": city, "text": f"the {part} of {city} is old"}
            )
            queries.append(
                {
                    "_id": f"q{index}-{part}",
                    "text": f"how old is the {part} of {city}?",
                    "query_type": part,
                }
            )
            judgements.append(f"q{index}-{part}\t{city}-{part}\t1")
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join(judgements) + "\n", encoding="utf-8")


class CommandLine:
    """Runs ``python -m tuner`` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
            "TUNER_CACHE_DIR": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tuner", *arguments]

    def __call__(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        if code is not None:
            assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def configure(self, **replacements: str) -> None:
        text = CONFIG
        for old, new in replacements.items():
            text = text.replace(old, new)
        (self.folder / "config.yaml").write_text(text, encoding="utf-8")

    def edit(self, old: str, new: str) -> None:
        path = self.folder / "config.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def runs(self) -> list[Path]:
        return sorted(path.parent for path in (self.folder / "runs").glob("*/journal.jsonl"))


class InThisProcess(CommandLine):
    """Runs ``tuner`` in this process; for tests in which no process has to die."""

    def __init__(self, folder: Path, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
        super().__init__(folder)
        self.run = run

    def __call__(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = self.run(self.folder, *arguments)
        assert code in (None, done.returncode), f"exit {done.returncode}\n{done}"
        return done


@pytest.fixture
def tuner_here(
    tuner: CommandLine,
    run_here: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> InThisProcess:
    for name, value in tuner.environment.items():
        monkeypatch.setenv(name, value)
    return InThisProcess(tuner.folder, run_here)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every system in this process count as quick, so that a loaded machine asks no less.

    Answers of a slow one are remembered, and it is not asked for what nobody needs.
    """
    monkeypatch.setattr("tuner.retrieval.wrapped.remembered.QUICK_S", float("inf"))
    monkeypatch.setattr("tuner.run.inspection.SLOW_QUERY_MS", float("inf"))


@pytest.fixture
def as_process() -> type[CommandLine]:
    """Return what runs commands in a folder in processes of their own."""
    return CommandLine


@pytest.fixture
def tuner(tmp_path: Path) -> CommandLine:
    write_data(tmp_path / "data")
    (tmp_path / "word_overlap.py").write_text(RETRIEVER, encoding="utf-8")
    command_line = CommandLine(tmp_path)
    command_line.configure()
    return command_line


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with runs that ended, nights and a policy; copy it, and damage the copy."""
    folder = tmp_path_factory.mktemp("finished")
    write_data(folder / "data")
    (folder / "word_overlap.py").write_text(RETRIEVER, encoding="utf-8")
    few = CONFIG.replace("trials: 6", "trials: 2") + "budget: {trials: 2}\nnightly: {}\n"
    (folder / "config.yaml").write_text(few, encoding="utf-8")
    slow = (
        "space.mode={type: categorical, choices: [slow]}", "baseline.mode=slow",
        "backends=[{kind: random, trials: 2}]",
    )  # fmt: skip
    commands = [
        ("run", "config.yaml", "--name", "plain"),
        ("run", "config.yaml", "--name", "warm", "--set", "start_from=[runs/plain]"),
        ("run", "config.yaml", "--name", "slow", *(f"--set={one}" for one in slow)),
        ("policy", "runs/plain"),
        ("nightly", "config.yaml", "--set", "study.runs_dir=nights", "--date", "2026-11-28"),
        ("nightly", "config.yaml", "--set", "study.runs_dir=nights", "--date", "2026-11-29"),
    ]
    from tuner.cli import main

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as said:
        patch.chdir(folder)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        patch.setenv("TUNER_CACHE_DIR", str(folder / "cache"))
        for command in commands:
            with redirect_stderr(said), pytest.raises(SystemExit) as left:
                main(list(command))
            assert left.value.code == 0, said.getvalue()
            for run_dir in (folder / "runs").glob("*-*"):
                run_dir.rename(run_dir.with_name(run_dir.name.partition("-")[0]))
    sys.modules.pop("word_overlap", None)
    return folder
