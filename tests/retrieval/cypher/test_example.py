"""The example of `experiments/cypher`: triples are loaded into ladybug, and a study runs on it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tuner import open_dataset

pytest.importorskip("ladybug", reason="ladybug is not installed: pip install '.[ladybug]'")

ROOT = Path(__file__).resolve().parents[3]
EXPERIMENTS = ROOT / "experiments"
if not (EXPERIMENTS / "cypher").is_dir():
    pytest.skip("experiments/ is not part of this distribution", allow_module_level=True)


def run(*command: object) -> str:
    words = [sys.executable, *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_triples_of_the_atlas_are_facts_that_its_passages_state(tmp_path: Path) -> None:
    run(EXPERIMENTS / "atlas" / "triples.py", tmp_path / "atlas")
    corpus = open_dataset(str(tmp_path / "atlas")).corpus
    assert len(corpus.triples) == 3280
    titles = {document.id: document.title for document in corpus.documents}
    assert all(titles[triple.document_id] == triple.subject for triple in corpus.triples)
    facts = {(triple.subject, triple.relation, triple.object) for triple in corpus.triples}
    assert ("Émile Zola", "birth city", "Paris") in facts


@pytest.mark.slow
def test_a_study_tunes_hops_limits_and_weights_in_worker_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has the database open when it starts its workers, which are no forks of it."""
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    films = EXPERIMENTS / "frameworks" / "data"
    run(EXPERIMENTS / "cypher" / "load.py", films, tmp_path / "films.lbug")
    settings = [
        f"dataset.path={films}",
        "retriever.database=films.lbug",
        "backends=[{kind: random, trials: 4}]",
        "execution={kind: processes, workers: 2}",
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    run("-m", "tuner", "run", EXPERIMENTS / "cypher" / "atlas.yaml", "--quiet", *words)
    (folder,) = (tmp_path / "runs").iterdir()
    lines = (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    (note,) = [record for record in records if record.get("kind") == "free_knobs"]
    assert note["free"] == ["top_k", "weight_graph"]
    assert note["refused"] == {}
    told = [record for record in records if "metrics" in record and "arm" in record]
    assert len(told) >= 5  # the baseline and four
    assert [record["error"] for record in told if record["error"]] == []
