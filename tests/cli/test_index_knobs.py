"""Studies that tune a system's index, from the command line: costs, commands, failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuner.core.journal import read_journal

RETRIEVER = '''
"""Ranks by the words that a query shares with what was indexed of a passage."""
import json, os, time
from pathlib import Path
import numpy as np
from tuner.core.rankings import Rankings
from tuner.retrieval.base import Knob

class Parts:
    knobs = (Knob("top_k", "integer", 10, 1, 50),)
    fingerprint = "parts-1"

    def __init__(self, folder, field):
        self.folder, self.field = folder, field

    @classmethod
    def declare_knobs(cls, *, field="title", how="well"):
        return (
            Knob("field", "categorical", field, choices=("title", "text", "both"), stage="index"),
            Knob("how", "categorical", how, choices=("well", "raise", "wait"), stage="index"),
        )

    @classmethod
    def build(cls, corpus, *, cache_dir, field="title", how="well"):
        with Path(os.environ["PARTS_LOG"]).open("a") as log:
            log.write(f"{field} {how} {os.getpid()}\\n")
        if how == "raise":
            raise ValueError("no such model")
        if how == "wait":
            time.sleep(1.5)
        texts = {"title": lambda d: d.title, "text": lambda d: d.text,
                 "both": lambda d: f"{d.title} {d.text}"}
        words = {d.id: texts[field](d).lower().split() for d in corpus.documents}
        cache_dir.mkdir(parents=True, exist_ok=True)
        (cache_dir / "words.json").write_text(json.dumps(words))
        return cls(cache_dir, field)

    @property
    def index_cost(self):
        return {"tokens": 100, "money": 0.25}

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        words = json.loads((self.folder / "words.json").read_text())
        answers = []
        for query in queries:
            asked = set(query.text.lower().strip("?").split())
            scored = sorted((-len(asked & set(found)), id_) for id_, found in words.items())
            answers.append([id_ for _, id_ in scored[: params.get("top_k", 10)]])
        tokens = np.array([float(len(answer)) for answer in answers])
        return Rankings.from_ids([q.id for q in queries], answers, context_tokens=tokens)
'''

CONFIG = """\
study: {name: small, seed: 3}
dataset: {path: data, split: {holdout: 0.5, stratify_by: [query_type]}}
retriever: {kind: "parts:Parts"}
space:
  field: {type: categorical, choices: [title, both]}
  top_k: {type: integer, low: 1, high: 2}
objective: {maximize: {recall@5: 1.0}}
baseline: {field: title, how: well, top_k: 2}
backends: [{kind: grid, trials: 4}]
execution: {kind: inline}
tracking: null
"""


@pytest.fixture(autouse=True)
def parts(tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    (tuner.folder / "parts.py").write_text(RETRIEVER, encoding="utf-8")
    (tuner.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    log = str(tuner.folder / "log")
    monkeypatch.setenv("PARTS_LOG", log)
    tuner.environment["PARTS_LOG"] = log


def builds(folder: Path) -> list[str]:
    return [line.rpartition(" ")[0] for line in (folder / "log").read_text().splitlines()]


def test_what_indexes_cost_stands_in_every_view(tuner_here):
    done = tuner_here("run", "config.yaml")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("2 indexes: ")]
    assert line.startswith("2 indexes: 2 built in ")
    assert line.endswith(" kB, 200 tokens, money 0.50")
    (run_dir,) = tuner_here.runs()
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert line.removeprefix("2 indexes: ") in page
    assert builds(tuner_here.folder) == ["title well", "both well"]
    trials = read_journal(run_dir / "journal.jsonl").trials.values()
    assert len({trial.index.name for trial in trials}) == 2
    again = json.loads(tuner_here("run", "config.yaml", "--json").stdout)["indexes"]
    assert (again["built"], again["found"], again["seconds"], again["tokens"]) == (0, 2, 0, None)
