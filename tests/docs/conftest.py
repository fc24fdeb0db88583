"""What the commands of a page find in their folder: configurations, data, a run, a system."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]
ATLAS = ROOT / "tuner" / "datasets" / "atlas"

# A finished study by this name, with any date, is what pages show reports, resume and export on.
RUN_DIR = re.compile(r"\bruns/graphrag-atlas-\d{8}-\d{6}\b")

MY_SYSTEM = '''
"""Ranks documents by the words that they share with the query."""

from experiments.my_function import overlap


def search(query, title_weight=1.0, top_k=10):
    hits = overlap.search(query, title_weight, 4, top_k)
    return [{"id": id_, "score": score} for id_, score in hits]
'''
MY_MODELS = '''
"""An embedder that needs no download: counts of hashed words."""

import zlib

import numpy as np


def embed(texts):
    matrix = np.zeros((len(texts), 64), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            matrix[row, zlib.crc32(word.encode()) % 64] += 1.0
    return matrix
'''


def environment(folder: Path, cache: Path) -> dict[str, str]:
    """Return what commands run with: this code, one thread, no telemetry, no cache of anybody's."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "TUNER_CACHE_DIR": str(cache),
        "COLUMNS": "200",
    }


@pytest.fixture(scope="session")
def once(shared_by_workers: Path, index_dir: Path) -> Callable[..., Path]:
    """Run a command in a folder that all workers share, for the first that asks."""

    def make(name: str, *arguments: str) -> Path:
        folder = shared_by_workers / name
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                folder.mkdir()
                done = subprocess.run(
                    [sys.executable, "-m", "tuner", *arguments],
                    cwd=folder,
                    env=environment(folder, index_dir),
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        return folder

    return make


@pytest.fixture(scope="session")
def finished_run(once: Callable[..., Path]) -> Path:
    """Run a small study of configs/graphrag.yaml once, MLflow and all."""
    few = [f"backends.{arm}.trials=4" for arm in range(3)]
    settings = [word for setting in [*few, "execution.kind=inline"] for word in ("--set", setting)]
    config = str(ROOT / "configs" / "graphrag.yaml")
    folder = once("a-study", "run", config, "--quiet", *settings)
    (run_dir,) = (folder / "runs").glob("graphrag-atlas-*")
    return run_dir


@pytest.fixture(scope="session")
def beir_folder(once: Callable[..., Path]) -> Path:
    """Write the data set that ships as a folder in the BEIR layout."""
    return once("a-beir", "dataset", "convert", "builtin:atlas", "beir", "--to", "beir") / "beir"


def _write_triples(corpus: Path) -> None:
    """Write a few triples beside a corpus."""
    ids = [json.loads(line)["_id"] for line in corpus.read_text(encoding="utf-8").splitlines()]
    facts = [
        *(("Lima", "capital of", "Peru"), ("Peru", "lies in", "South America")),
        *(("Cairo", "capital of", "Egypt"), ("Egypt", "lies in", "Africa")),
        *(("Rome", "capital of", "Italy"), ("Italy", "lies in", "Europe")),
    ]
    lines = [
        json.dumps({"doc_id": id_, "subject": subject, "relation": relation, "object": other})
        for id_, (subject, relation, other) in zip(ids, facts, strict=False)
    ]
    (corpus.parent / "triples.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _queries() -> list[dict[str, str]]:
    with (ATLAS / "queries.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _judged() -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for line in (ATLAS / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        judged.setdefault(query, {})[document] = int(grade)
    return judged


def _write_qrels(path: Path) -> None:
    lines = [f"{query} 0 {id_} 1" for query, ids in _judged().items() for id_ in ids]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_run(path: Path) -> None:
    """Write a run file in which each query's judged documents follow one that is wrong."""
    judged = _judged()
    documents = sorted({id_ for ids in judged.values() for id_ in ids})
    lines = []
    for number, (query, ids) in enumerate(judged.items()):
        wrong = documents[(number + len(path.name)) % len(documents)]
        ranked = list(dict.fromkeys([wrong, *ids] if number % 3 else [*ids, wrong]))
        if path.suffix == ".jsonl":
            lines.append(json.dumps({"query_id": query, "docs": ranked}))
        else:
            lines += [f"{query} Q0 {id_} {n} {1 / n} run" for n, id_ in enumerate(ranked, start=1)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_log(path: Path) -> None:
    rows = [
        f'"{query["text"]}",2026-11-{1 + number % 28:02d}T10:00:00,user{number % 7}'
        for number, query in enumerate(_queries())
        if '"' not in query["text"]
    ]
    path.write_text("\n".join(["query,time,user", *rows]) + "\n", encoding="utf-8")


def _made_by(script: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        command = [sys.executable, str(ROOT / "experiments" / script), str(path.parent)]
        subprocess.run(command, check=True, capture_output=True)

    return make


# What a page may name without making it itself. A page that writes such a file keeps its own.
MADE: dict[str, Callable[[Path], None]] = {
    "qrels.txt": _write_qrels,
    **dict.fromkeys(["run.txt", "today.txt", "candidate.txt"], _write_run),
    **dict.fromkeys(["graph.run", "vector.run", "bm25.run"], _write_run),
    **dict.fromkeys(["today.jsonl", "candidate.jsonl"], _write_run),
    "log.csv": _write_log,
    "before.csv": _made_by("abtest/users.py"),
    "results.csv": _made_by("abtest/users.py"),
    "nightly.csv": _made_by("drift/nightly.py"),
    "my_system": lambda path: path.with_suffix(".py").write_text(MY_SYSTEM) and None,
    "my_models": lambda path: path.with_suffix(".py").write_text(MY_MODELS) and None,
}


@pytest.fixture
def stage(
    tmp_path: Path,
    index_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Callable[[str], Path]:
    """Make a page's folder with what its text names, and stand in it."""

    def make(text: str) -> Path:
        for name, value in environment(tmp_path, index_dir).items():
            monkeypatch.setenv(name, value)
        if "mlflow" in text or "configs/nightly" in text:
            shutil.copy(request.getfixturevalue("fresh_store"), tmp_path / "mlflow.db")
        for name in ("configs", "experiments", "notebooks", "tests"):
            (tmp_path / name).symlink_to(ROOT / name)
        for name, write in MADE.items():
            if re.search(rf"(?<![\w/]){re.escape(name)}\b", text):
                write(tmp_path / name)
        if "path/to/" in text:
            folder = shutil.copytree(
                request.getfixturevalue("beir_folder"), tmp_path / "path" / "to" / "folder"
            )
            if not (folder / "triples.jsonl").exists():
                _write_triples(folder / "corpus.jsonl")
            (tmp_path / "path" / "to" / "corpus.jsonl").symlink_to(folder / "corpus.jsonl")
        for name in sorted(set(RUN_DIR.findall(text))):
            shutil.copytree(request.getfixturevalue("finished_run"), tmp_path / name)
        for name in re.findall(r"\$\{(\w+)\}", text):
            monkeypatch.setenv(name, "a-secret")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        return tmp_path

    return make
