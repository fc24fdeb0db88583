"""An engine's index travels to a machine that does not have it, and only there."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.core import registry
from tuner.core.corpus import Corpus, Document, Query
from tuner.core.trial import Outcome, Params, Trial
from tuner.evaluation.evaluator import Evaluator
from tuner.execution.cluster.folders import archive, here, missing, pack, unpack
from tuner.retrieval.hybrid.engine import Hybrid

PARAMS: Params = {"top_k": 2}


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    names = ["Lima", "Oslo", "Cairo", "Quito"]
    corpus = Corpus(
        tuple(Document(name, name, f"{name} is the capital of a country.") for name in names)
    )
    queries = [Query(name, f"Of which country is {name} the capital?") for name in names]
    engine = Hybrid.build(corpus, cache_dir=tmp_path / "cache")
    engine.prepare(queries)
    judgements = {name: {name: 1.0} for name in names}
    return Evaluator.build(engine, queries, judgements, ["mrr"], documents=corpus.documents)


def test_where_the_folders_are_nothing_travels(evaluator: Evaluator) -> None:
    package = pack(evaluator)
    assert len(package.folders) == 2  # the index, and the prepared queries
    assert missing(package.folders) == []
    there = pickle.loads(package.payload)
    assert there.retriever.directory == evaluator.retriever.directory  # type: ignore[attr-defined]


def test_another_machine_evaluates_with_what_was_brought(
    evaluator: Evaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = pack(evaluator)
    contents = {name: archive(path) for name, path in package.folders.items()}
    (tmp_path / "cache").rename(tmp_path / "elsewhere")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    assert missing(package.folders) == list(contents)
    with pytest.raises(FileNotFoundError, match="is not on this machine"):
        pickle.loads(package.payload)
    for name, content in contents.items():
        unpack(name, content)
        unpack(name, content)  # of another worker of that machine
    assert missing(package.folders) == []
    (brought,) = (tmp_path / "tmp").iterdir()
    assert sorted(path.name for path in brought.iterdir()) == sorted(contents)
    (tmp_path / "package").write_bytes(package.payload)
    script = (
        "import pickle, sys\n"
        "evaluate = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(evaluate({'top_k': 2}).metrics['mrr'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "package")],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "elsewhere").rename(tmp_path / "cache")
    assert float(done.stdout) == evaluator(PARAMS).metrics["mrr"]


def test_a_folder_with_other_content_is_not_taken_for_it(evaluator: Evaluator) -> None:
    package = pack(evaluator)
    name, path = next(iter(package.folders.items()))
    assert here(name, path) == Path(path)
    (Path(path) / "manifest.json").write_text("{}")
    assert name in missing(package.folders)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_a_folder_is_brought_to_a_cluster(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A relative path is there in this process's folder only: as on another machine."""
    address = request.getfixturevalue(f"{kind}_address")
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "manifest.json").write_text(f'{{"made by": "{tmp_path}"}}')
    (folder / "number").write_text("42")
    monkeypatch.chdir(tmp_path)
    evaluate = make_reading(Path("index"))
    execution = registry.load("execution", kind)(2, address=address)
    given = [Trial(number, "arm", {}) for number in range(8)]
    results = list(execution.run(evaluate, given))
    for name in pack(evaluate).folders:
        shutil.rmtree(here(name, "not where it was"))  # this machine is the cluster's too
    assert [outcome.error for _, outcome in results] == [None] * 8
    assert {outcome.metrics["number"] for _, outcome in results} == {42.0}


def make_reading(folder: Path) -> Callable[[Params], Outcome]:
    from tuner.core.trial import Outcome

    def evaluate(params: Any) -> Outcome:
        return Outcome({"number": float((folder / "number").read_text())})

    return evaluate
