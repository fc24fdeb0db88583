"""tuner init over every kind of retriever: what it writes passes the check, and runs."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import CITIES, RETRIEVER
from tuner.core import registry

FIXTURE = Path(__file__).resolve().parents[1] / "retrieval" / "data" / "ms_graphrag"
FEW = ("backends=[{kind: random, trials: 2}]", "tracking=null", "execution.kind=inline")
SEARCH = """
import json, sys
from pathlib import Path
documents = [json.loads(line) for line in Path("data/corpus.jsonl").read_text().splitlines()]


def search(query, top_k: int = 5, exact: bool = True, title_weight: float = 1.0, mode="words"):
    words = set(query.lower().strip("?").split())
    def score(d):
        shared = len(words & set(d["text"].lower().split()))
        return shared + title_weight * len(words & set(d["title"].lower().split()))
    best = sorted(documents, key=lambda d: (-score(d), d["_id"]))
    return [d["_id"] for d in best[:top_k]]


def needs(query, index_name, top_k=5):
    return search(query, top_k)


def unlike(question, top_k=5):
    return search(question, top_k)


class Searcher:
    def build(self, documents, prefix: int = 4):
        texts = {d.id: f"{d.title} {d.text}".lower() for d in documents}
        return [(id_, {w[:prefix] for w in text.split()}) for id_, text in texts.items()]

    def search(self, index, query, top_k: int = 5):
        words = {w[:4] for w in query.lower().strip("?").split()}
        return [i for i, _ in sorted(index, key=lambda one: (-len(one[1] & words), one[0]))[:top_k]]


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        found = search(asked["query"], asked["params"]["top_k"])
        print(json.dumps({"id": asked["id"], "results": found}), flush=True)
"""
LANGCHAIN = """
import zlib
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore


class Words(Embeddings):
    def embed_query(self, text):
        vector = [0.01] * 64
        for word in text.lower().replace("?", "").split():
            vector[zlib.crc32(word.encode()) % 64] += 1.0
        return vector

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


def make_retriever(documents, chars: int = 200):
    store = InMemoryVectorStore(Words())
    store.add_documents(
        [Document(id=d.id, page_content=f"{d.title} {d.text}"[:chars]) for d in documents]
    )
    return store.as_retriever(search_kwargs={"k": 3})


retriever = InMemoryVectorStore(Words()).as_retriever()
"""
# As an app that was there before any data set: the ids of documents are a key of its metadata.
APP = """
import json
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from my_chain import Words


def make_retriever():
    store = InMemoryVectorStore(Words())
    for line in Path("data/corpus.jsonl").read_text().splitlines():
        page = json.loads(line)
        about = {"lang": "en", "page": page["_id"]}
        store.add_documents([Document(page["text"], metadata=about)])
    return store.as_retriever(search_kwargs={"k": 3})
"""
LLAMA = """
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode


def make_retriever(documents):
    nodes = [TextNode(id_=d.id, text=f"{d.title} {d.text}") for d in documents]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    return index.as_retriever(similarity_top_k=3)
"""
HAYSTACK = """
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore


def make_pipeline(documents) -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents([Document(id=d.id, content=f"{d.title} {d.text}") for d in documents])
    pipeline = Pipeline()
    pipeline.add_component("bm25", InMemoryBM25Retriever(store, top_k=3))
    return pipeline
"""
MODELS = """
import zlib
import numpy as np


def embed(texts):
    matrix = np.full((len(texts), 64), 0.01, dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            matrix[row, zlib.crc32(word.encode()) % 64] += 1.0
    return matrix
"""


@dataclass(frozen=True)
class System:
    """What is given to ``--retriever``, and what has to come of it."""

    given: tuple[str, ...]
    kind: str
    searched: set[str]
    package: str = ""
    dataset: str = "data"
    is_slow: bool = False


FUSED = {"weight_graph", "weight_text", "fusion", "normalisation", "rrf_k", "top_k"}
ENGINE = {"graph_weight", "max_hops", "top_k", "temperature"}
SYSTEMS = {
    "hybrid": System(("--retriever", "hybrid"), "hybrid", ENGINE),
    "a function": System(
        ("--retriever", "my_search:search"), "function", {"top_k", "exact", "title_weight"}
    ),
    "an object that builds": System(("--retriever", "my_search:Searcher"), "function", {"top_k"}),
    "a class": System(
        ("--retriever", "word_overlap:WordOverlap"),
        "word_overlap:WordOverlap",
        {"title_weight", "top_k", "mode"},
    ),
    "a command": System(
        ("--retriever", f"{sys.executable} my_search.py", "--baseline", "top_k=5"),
        "command",
        {"top_k"},
    ),
    "run files": System(
        ("--retriever", "graph.run", "--retriever", "text.run"),
        "runs",
        {*FUSED, "depth_graph", "depth_text"},
    ),
    "a folder of run files": System(
        ("--retriever", "runs_of_mine"), "runs", {*FUSED, "depth_graph", "depth_text"}
    ),
    "a GraphRAG project": System(
        ("--retriever", "graphrag"), "ms_graphrag", ENGINE, dataset="graphrag/data"
    ),
    "GraphRAG's local search": System(
        ("--retriever", "ms_graphrag_local", "--set", "path=graphrag/output"),
        "ms_graphrag_local",
        {"text_unit_prop", "community_prop", "top_k_mapped_entities", "max_context_tokens"},
        "graphrag",
        "graphrag/data",
        is_slow=True,
    ),
    "LangChain": System(
        ("--retriever", "my_chain:make_retriever"),
        "langchain",
        {"search_type", "search_kwargs.k"},
        "langchain_core",
    ),
    "LlamaIndex": System(
        ("--retriever", "my_llama:make_retriever"),
        "llama_index",
        {"similarity_top_k"},
        "llama_index",
        is_slow=True,
    ),
    "Haystack": System(("--retriever", "my_stack:make_pipeline"), "haystack", set(), "haystack"),
    "LightRAG": System(
        ("--retriever", "lightrag"),
        "lightrag",
        {"mode", "top_k", "chunk_top_k", "cosine_better_than_threshold"},
        "lightrag",
        is_slow=True,
    ),
    "graph-retriever": System(
        ("--retriever", "graph_retriever"),
        "graph_retriever",
        {"strategy", "select_k", "start_k", "adjacent_k", "max_depth"},
        "graph_retriever",
    ),
}
# Those that need a server or a store are tried where that is: test_services.py, and on their pages.
ELSEWHERE = {"http", "cypher", "neo4j_graphrag"}


def test_every_kind_is_tried():
    tried = {system.kind for system in SYSTEMS.values()} | ELSEWHERE
    assert set(registry.kinds("retrieval")) <= tried


MODULES = {
    "my_search": SEARCH,
    "word_overlap": RETRIEVER,
    "my_chain": LANGCHAIN,
    "my_app": APP,
    "my_llama": LLAMA,
    "my_stack": HAYSTACK,
    "my_models": MODELS,
}


@pytest.fixture
def place(folder: Path) -> Path:
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    shutil.copytree(FIXTURE, folder / "graphrag")
    (folder / "runs_of_mine").mkdir()
    for leg, parts in (("graph", ("river", "market")), ("text", ("market", "river"))):
        rows = [
            f"q{n}-{asked} Q0 {city}-{part} {rank} {9 - rank} {leg}\n"
            for n, city in enumerate(CITIES)
            for asked in ("river", "market")
            for rank, part in enumerate(parts, start=1)
        ]
        for where in (folder, folder / "runs_of_mine"):
            (where / f"{leg}.run").write_text("".join(rows), encoding="utf-8")
    return folder


def configured(folder: Path) -> dict[str, Any]:
    return yaml.safe_load((folder / "tuner.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.filterwarnings("ignore")  # other packages'
def test_what_is_written_passes_the_check_and_runs(name, place, run_here):
    system = SYSTEMS[name]
    if system.package and find_spec(system.package) is None:
        pytest.skip(f"{system.package} is not installed")
    done = run_here(place, "init", "--yes", "--dataset", system.dataset, *system.given)
    assert done.returncode == 0, done.stderr
    config = configured(place)
    assert config["retriever"]["kind"] == system.kind
    assert system.searched <= set(config["space"]), config["space"]
    assert set(config["space"]) - set(config["baseline"]) <= {"depth_graph", "depth_text"}
    checked = run_here(place, "check", "tuner.yaml")
    assert checked.returncode == 0, checked.stderr
    if not system.is_slow:
        run = run_here(place, "run", "tuner.yaml", "-q", *(f"--set={one}" for one in FEW))
        assert run.returncode == 0, run.stderr


def test_defaults_of_a_function_are_the_baseline_and_a_text_stays_as_it_is(place, run_here):
    given = ("--dataset", "data", "--retriever", "my_search:search")
    assert run_here(place, "init", "--yes", *given).returncode == 0
    config = configured(place)
    today = {"top_k": 5, "exact": True, "title_weight": 1.0, "mode": "words"}
    assert config["baseline"] == today
    assert config["space"]["top_k"] == {"type": "integer", "low": 1, "high": 100, "scale": "log"}
    weight = config["space"]["title_weight"]
    assert weight["low"] < today["title_weight"] < weight["high"], "the search can raise it, too"
    assert "its range is a guess (today 1.0)" in (place / "tuner.yaml").read_text("utf-8")
    assert "mode" not in config["space"]
    own = ("--baseline", "top_k=8", "--force")
    assert run_here(place, "init", "--yes", *given, *own).returncode == 0
    assert configured(place)["baseline"]["top_k"] == 8


def test_a_value_that_nobody_tells_is_asked_for_by_its_option(place, run_here):
    given = ("init", "--yes", "--dataset", "data", "--retriever", "my_search:needs")
    done = run_here(place, *given)
    assert done.returncode == 2
    assert "index_name" in done.stderr
    assert "--baseline" in done.stderr
    assert not (place / "tuner.yaml").exists()
    assert run_here(place, *given, "--baseline", "index_name=main").returncode == 0
    assert configured(place)["baseline"] == {"top_k": 5, "index_name": "main"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("my_search:unlike",), "takes (question, top_k)"),
        (("my_search:serch",), "did you mean 'search'?"),
        (("my_search.py",), "my_search:search"),
        (("data",), "text_units.parquet"),
        (("graph.run",), "--retriever for each"),
        (("graph.lbug",), "docs/your-system/cypher.md"),
        (("bolt://localhost:7687",), "docs/your-system/cypher.md"),
        (("cypher",), "docs/your-system/cypher.md"),
        (("hybird",), "tuner knobs"),
        (("hybrid", "--baseline", "top_q=3"), "did you mean 'top_k'?"),
        (("hybrid", "--baseline", "a.b=1"), "--baseline a.b: no such parameter"),
        (("my_search:search", "--baseline", "a.b=1"), "--baseline a.b: no such parameter"),
        (("my_search:search", "--baseline", "top_k"), "write it as name=value"),
        (("my_search:search", "--baseline", "top_k={b: 1}"), "a parameter is a number"),
        (("hybrid", "--set", "bm25=3"), "bm25"),
    ],
)
def test_what_cannot_be_tuned_so_is_told_and_nothing_is_written(given, told, place, run_here):
    done = run_here(place, "init", "--yes", "--dataset", "data", "--retriever", *given)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (place / "tuner.yaml").exists()


def test_a_first_answer_tells_by_what_the_documents_of_an_app_are_known(place, run_here):
    pytest.importorskip("langchain_core", reason="LangChain is not installed")
    given = ("--dataset", "data", "--retriever", "my_app:make_retriever")
    done = run_here(place, "init", "--yes", *given)
    assert done.returncode == 0, done.stderr
    assert "known by metadata.page" in done.stderr
    assert configured(place)["retriever"]["id"] == "metadata.page"
    assert run_here(place, "evaluate", "tuner.yaml").returncode == 0
    own = run_here(place, "init", "--yes", *given, "--set", "id=content", "--force")
    assert own.returncode == 0, own.stderr
    assert configured(place)["retriever"]["id"] == "content", "what a user says stands"


def test_an_object_of_a_framework_is_told_what_to_write(place, run_here):
    pytest.importorskip("langchain_core", reason="LangChain is not installed")
    given = ("--dataset", "data", "--retriever", "my_chain:retriever")
    done = run_here(place, "init", "--yes", *given)
    assert done.returncode == 2
    assert "make_retriever" in done.stderr


def test_a_working_directory_of_lightrag_needs_its_embedder(place, run_here):
    (place / "rag").mkdir()
    (place / "rag" / "kv_store_text_chunks.json").write_text("{}", encoding="utf-8")
    done = run_here(place, "init", "--yes", "--dataset", "data", "--retriever", "rag")
    assert done.returncode == 2
    assert "--set embedder=" in done.stderr
