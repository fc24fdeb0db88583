"""Each system that is wrapped, tuned by two backends to more than its defaults."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from pyarrow import parquet

from tuner.config import load_config
from tuner.core.study_record import StudySummary
from tuner.datasets import open_dataset
from tuner.run.assembly import Assembly, assemble
from tuner.run.planning import make_plan
from tuner.run.session import begin

pytestmark = pytest.mark.slow

FIXTURE = Path(__file__).with_name("data") / "ms_graphrag"
PACKAGES = {
    "lightrag": "lightrag",
    "graph_retriever": "graph_retriever",
    "ms_graphrag_local": "graphrag",
}
ON_FILMS = {
    "lightrag": """\
space:
  mode: {type: categorical, choices: [naive, local, hybrid]}
  cosine_better_than_threshold: {type: real, low: 0.0, high: 0.6}
  top_k: {type: integer, low: 1, high: 40, scale: log, when: {mode: [local, hybrid]}}
baseline: {mode: mix}
backends: [{kind: gp, trials: 24}, {kind: tpe, trials: 24}]
""",
    "graph_retriever": """\
space:
  strategy: {type: categorical, choices: [eager, mmr, scored]}
  select_k: {type: integer, low: 5, high: 20, scale: log}
  start_k: {type: integer, low: 1, high: 20, scale: log}
  adjacent_k: {type: integer, low: 1, high: 40, scale: log}
  lambda_mult: {type: real, low: 0.0, high: 0.99, when: {strategy: mmr}}
space_constraints: ["start_k <= select_k"]
baseline: {strategy: eager}
backends: [{kind: gp, trials: 12}, {kind: tpe, trials: 12}]
""",
}
# Over an output folder of GraphRAG's, where a context has its price.
ON_GRAPHRAG = {
    "ms_graphrag": """\
space:
  graph_weight: {type: real, low: 0.0, high: 1.0}
  max_hops: {type: integer, low: 1, high: 4}
  temperature: {type: real, low: 0.01, high: 1.0, scale: log}
  top_k: {type: integer, low: 3, high: 12}
objective: {maximize: {ndcg@10: 1.0}, price: {context_tokens_per_1000: 0.05}}
baseline: {graph_weight: 0.0, top_k: 10}
backends: [{kind: gp, trials: 12}, {kind: tpe, trials: 20}]
""",
    "ms_graphrag_local": """\
space:
  text_unit_prop: {type: real, low: 0.1, high: 1.0}
  community_prop: {type: real, low: 0.0, high: 0.5}
  top_k_mapped_entities: {type: integer, low: 1, high: 12}
  max_context_tokens: {type: integer, low: 200, high: 2000, scale: log}
space_constraints: ["text_unit_prop + community_prop <= 1"]
objective: {maximize: {recall@5: 1.0}, price: {context_tokens_per_1000: 0.2}}
baseline: {max_context_tokens: 1000}
backends: [{kind: gp, trials: 10}, {kind: tpe, trials: 14}]
""",
}


PAGES = Path(__file__).resolve().parents[2] / "docs" / "your-system"
# The example of a page that tunes an index, and what leaves room above the baseline on little data.
EXAMPLES = {
    "lightrag": ("my_chunks.yaml", ()),
    "graph_retriever": ("my_links.yaml", ()),
    "ms_graphrag": ("my_outputs.yaml", ("baseline.graph_weight=0.0",)),
    "ms_graphrag_local": ("my_local_outputs.yaml", ()),
    "runs": ("my_choices.yaml", ()),
}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 24 questions of the built-in data set, and a tenth of its passages."""
    data = tmp_path_factory.mktemp("films") / "data"
    atlas = open_dataset("builtin:atlas")
    queries = atlas.queries[::17][:24]
    wanted = {document for query in queries for document in atlas.qrels[query.id]}
    documents = [d for n, d in enumerate(atlas.corpus.documents) if n % 10 == 0 or d.id in wanted]
    (data / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": d.id, "title": d.title, "text": d.text}) for d in documents]
    (data / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    lines = [json.dumps({"_id": q.id, "text": q.text}) for q in queries]
    (data / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    lines = [f"{q.id}\t{d}\t{g:g}" for q in queries for d, g in atlas.qrels[q.id].items()]
    text = "query-id\tcorpus-id\tscore\n" + "\n".join(lines)
    (data / "qrels" / "test.tsv").write_text(text, encoding="utf-8")
    return data


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the studies of a kind share its index."""
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "wrapped-cache"))


def check_installed(kind: str) -> None:
    if kind in PACKAGES:
        pytest.importorskip(PACKAGES[kind], reason=f"the package of {kind!r} is not installed")


def open_study(folder: Path, text: str) -> Assembly:
    path = folder / "config.yaml"
    text = f"study: {{name: wrapped, seed: 1, runs_dir: {folder}/runs}}\ntracking: null\n{text}"
    path.write_text(text, encoding="utf-8")
    config, source = load_config(path, ())
    return assemble(config, source, make_plan(config, source), say=lambda message: None)


def example(kind: str, name: str) -> str:
    """Return a file as the page of a kind shows it."""
    page = (PAGES / f"{kind}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:yaml|python)\n(.*?)```", page, flags=re.DOTALL)
    (block,) = [block for block in blocks if block.startswith(f"# {name}\n")]
    return str(block)


def fewer_entities(folder: Path) -> Path:
    """Write a second output folder of GraphRAG's: the first with a third of its entities."""
    shutil.copytree(FIXTURE / "output", folder)
    entities = parquet.read_table(folder / "entities.parquet")
    few = entities.take(list(range(0, len(entities), 3)))
    parquet.write_table(few, folder / "entities.parquet")
    return folder


def tuned(assembly: Assembly) -> StudySummary:
    return begin(assembly).run(on_event=lambda event: None, say=lambda message: None).summary


@pytest.mark.parametrize("execution", ["inline", "processes"])
@pytest.mark.parametrize("kind", [*ON_FILMS])
def test_two_backends_do_better_than_the_defaults(
    films: Path, tmp_path: Path, kind: str, execution: str
) -> None:
    check_installed(kind)
    text = f"""\
dataset: {{path: {films}, split: {{holdout: 0.5}}}}
retriever: {{kind: {kind}}}
objective: {{maximize: {{ndcg@10: 1.0}}}}
metrics: [graph_used]
execution: {{kind: {execution}, workers: 2}}
"""
    assembly = open_study(tmp_path, text + ON_FILMS[kind])
    today = assembly.evaluate(assembly.params({}), assembly.tune_queries).metrics
    assert today["ndcg@10"] > 0.1
    assert today["graph_used"] > 0.5
    summary = tuned(assembly)
    assert {arm.arm for arm in summary.arms} == {"gp", "tpe"}
    for arm in summary.arms:
        assert arm.tune_objective > today["ndcg@10"]


@pytest.mark.parametrize("kind", [*ON_GRAPHRAG])
def test_two_backends_make_more_of_a_graphrag_index(tmp_path: Path, kind: str) -> None:
    check_installed(kind)
    text = f"""\
dataset: {{path: {FIXTURE / "data"}, split: {{holdout: 0}}}}
retriever: {{kind: {kind}, path: {FIXTURE / "output"}}}
execution: {{kind: inline}}
"""
    summary = tuned(open_study(tmp_path, text + ON_GRAPHRAG[kind]))
    assert summary.failed_trials == 0
    assert summary.baseline is not None
    assert {arm.arm for arm in summary.arms} == {"gp", "tpe"}
    for arm in summary.arms:
        assert arm.tune_objective > summary.baseline.tune_objective


@pytest.mark.parametrize("kind", [*EXAMPLES])
def test_the_example_of_a_page_tunes_the_index(
    films: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_installed(kind)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.yaml"
    name, more = EXAMPLES[kind]
    text = example(kind, name)
    if "wordllama" in text:
        pytest.importorskip("wordllama", reason="wordllama is not installed: .[wordllama]")
    path.write_text(text, encoding="utf-8")
    if kind == "runs":
        exec(example(kind, "make_runs.py"), {})
    few = fewer_entities(tmp_path / "few")
    of_graphrag = kind.startswith("ms_")
    settings = [
        f"study.runs_dir={tmp_path}/runs",
        *([f"dataset.path={FIXTURE / 'data' if of_graphrag else films}"] if kind != "runs" else []),
        "dataset.split.holdout=0",
        "backends.0.trials=12",
        "execution.kind=inline",
        *more,
    ]
    if of_graphrag:
        outputs = {"small": str(few), "large": str(FIXTURE / "output")}
        settings.append(f"retriever.outputs={json.dumps(outputs)}")
    config, source = load_config(path, settings)
    assembly = assemble(config, source, make_plan(config, source), say=lambda message: None)
    summary = tuned(assembly)
    assert summary.failed_trials == 0
    assert summary.baseline is not None
    assert max(arm.tune_objective for arm in summary.arms) > summary.baseline.tune_objective
    assert summary.indexes is not None
    assert summary.indexes.failed == 0
    assert summary.indexes.built + summary.indexes.found == summary.indexes.count > 1
