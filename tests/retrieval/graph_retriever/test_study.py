"""graph-retriever on a part of the built-in data set, tuned by two backends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip(
    "graph_retriever", reason="graph-retriever is not installed: pip install '.[graph_retriever]'"
)

from tuner.assemble import assemble
from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.planning import make_plan
from tuner.systems import declared_knobs
from tuner.tuning import begin

CONFIG = """\
study: {{name: links, seed: 1, runs_dir: {folder}/runs}}
dataset: {{path: {folder}/data, split: {{holdout: 0.5}}}}
retriever: {{kind: graph_retriever}}
space:
  strategy: {{type: categorical, choices: [eager, mmr, scored]}}
  select_k: {{type: integer, low: 5, high: 20, scale: log}}
  start_k: {{type: integer, low: 1, high: 20, scale: log}}
  adjacent_k: {{type: integer, low: 1, high: 40, scale: log}}
  lambda_mult: {{type: real, low: 0.0, high: 0.99, when: {{strategy: mmr}}}}
space_constraints: ["start_k <= select_k"]
objective: {{maximize: {{ndcg@10: 1.0}}}}
metrics: [graph_used]
baseline: {{strategy: eager}}
backends: [{{kind: gp, trials: 12}}, {{kind: tpe, trials: 12}}]
execution: {{kind: {execution}, workers: 2}}
tracking: null
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 24 questions of the built-in data set, and a tenth of its passages."""
    place = tmp_path_factory.mktemp("links")
    atlas = open_dataset("builtin:atlas")
    queries = atlas.queries[::17][:24]
    wanted = {document for query in queries for document in atlas.qrels[query.id]}
    documents = [d for n, d in enumerate(atlas.corpus.documents) if n % 10 == 0 or d.id in wanted]
    data = place / "data"
    (data / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": d.id, "title": d.title, "text": d.text}) for d in documents]
    (data / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    lines = [json.dumps({"_id": q.id, "text": q.text}) for q in queries]
    (data / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    lines = [f"{q.id}\t{d}\t{g:g}" for q in queries for d, g in atlas.qrels[q.id].items()]
    text = "query-id\tcorpus-id\tscore\n" + "\n".join(lines)
    (data / "qrels" / "test.tsv").write_text(text, encoding="utf-8")
    return place


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "links-cache"))


@pytest.mark.parametrize("execution", ["inline", "processes"])
def test_two_backends_do_better_than_the_defaults(folder: Path, execution: str) -> None:
    path = folder / f"{execution}.yaml"
    path.write_text(CONFIG.format(folder=folder, execution=execution), encoding="utf-8")
    config, source = load_config(path, ())
    assembly = assemble(config, source, make_plan(config, source), say=lambda message: None)
    today = assembly.evaluate(assembly.params({}), assembly.tune_queries).metrics
    assert today["ndcg@10"] > 0.1
    assert today["graph_used"] > 0.5
    tuned = begin(assembly).run(on_event=lambda event: None, say=lambda message: None)
    best = {arm.arm: arm.tune_objective for arm in tuned.summary.arms}
    assert best["gp"] > today["ndcg@10"]
    assert best["tpe"] > today["ndcg@10"]


def test_knobs_are_told_without_an_index() -> None:
    assert [knob.name for knob in declared_knobs("graph_retriever", {})][:2] == [
        "strategy",
        "select_k",
    ]
    with pytest.raises(InputError, match="did you mean 'embedder'"):
        declared_knobs("graph_retriever", {"embeder": "x:y"})
