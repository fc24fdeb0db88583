"""The example of a page: the whole grid of a handbook is searched, and each index is built once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "index-knobs.md"
# Builds as the page's object does, and writes down each time that it does.
COUNTED = """
built = GraphSearch.build


def build(self, documents, embedding_dim=768):
    with open("builds.txt", "a") as builds:
        builds.write(f"{embedding_dim}\\n")
    return built(self, documents, embedding_dim)


GraphSearch.build = build
"""


def tuner(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tuner", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    text = PAGE.read_text(encoding="utf-8")
    for name in ("my_graph.py", "my_graph.yaml"):
        found = re.search(rf"^# {name}\n.*?(?=^```)", text, re.DOTALL | re.MULTILINE)
        assert found is not None
        code = found[0] + (COUNTED if name.endswith(".py") else "")
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow
def test_the_grid_builds_each_index_once_whoever_asks(folder: Path) -> None:
    assert "embedding_dim" in tuner(
        folder, "knobs", "function", "--set", "function=my_graph:GraphSearch"
    )
    tuner(folder, "check", "my_graph.yaml")
    assert (folder / "builds.txt").read_text().split() == ["768"]
    tuner(folder, "run", "my_graph.yaml", "--quiet")
    assert sorted((folder / "builds.txt").read_text().split()) == ["1536", "768"]

    (journal,) = (folder / "runs").glob("my-graph-*/journal.jsonl")
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    told = [record for record in records if record["event"] == "told"]
    used = [trial for trial in told if trial["state"] == "finished"]
    names = {(trial["params"]["embedding_dim"], trial["index"]["name"]) for trial in used}
    assert len(told) == 55  # 2 x 3 x 3 x 3 = 54, and the baseline, which one of them shares
    assert len(names) == len({name for _, name in names}) == 2
    assert [t["params"]["embedding_dim"] for t in used if t["index"]["is_new"]] == [1536]
