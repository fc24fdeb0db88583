"""tuner knobs: a table, a space to copy, and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tuner.config import Config
from tuner.core import registry
from tuner.core.errors import TunerError
from tuner.retrieval.base import Knob
from tuner.run.systems import declared_knobs, options_of

OUTSIDE = '''
"""A retriever with every sort of knob."""
from tuner.retrieval.base import Knob

class Outside:
    knobs = (
        Knob("weight", "real", 0.5, 0.0, 1.0, description="share of the graph [0, 1]"),
        Knob("temperature", "real", 0.1, 0.001, 10.0, scale="log"),
        Knob("chunk_tokens", "integer", 300, 100, 1000, stage="index"),
        Knob("answer", "categorical", "no", choices=("no", "yes", None, True, 1.5)),
        Knob("seed", "integer", 7),
        Knob("only", "integer", 1, 1, 1),
        Knob("model", "categorical", "small", choices=("small",)),
    )
    fingerprint = "outside"

    @classmethod
    def build(cls, corpus, *, cache_dir):
        raise AssertionError("knobs are known without building")
'''
KIND = "outside_knobs:Outside"
ODD = (
    OUTSIDE[: OUTSIDE.index("    knobs = (")].replace("Outside", "Odd")
    + """    knobs = (
        Knob("model", "categorical", "small", choices=("small",)),
        Knob("depth", "integer", 5),
        Knob("hops", "integer", 2, 1, 3, when={"model": ("small",)}, constraint="hops <= depth"),
    )
"""
    + OUTSIDE[OUTSIDE.index("    fingerprint = ") :]
)


@pytest.fixture
def tuner(tuner_here):
    return tuner_here


@pytest.fixture
def outside(tuner):
    (tuner.folder / "outside_knobs.py").write_text(OUTSIDE, encoding="utf-8")
    return tuner


def test_the_space_can_be_copied_into_a_configuration(outside):
    printed = outside("knobs", KIND).stdout
    space = printed[printed.index("space:") :]
    assert (
        "chunk_tokens: {type: integer, low: 100, high: 1000}   # an index for each value" in space
    )
    assert "# seed: integer, 7 by default; choose low and high" in space
    assert "# only: integer, 1 by default; it has this value only" in space
    assert "# model: categorical, small by default; it has this value only" in space
    outside.edit(
        "space:\n  title_weight: {type: real, low: 0.0, high: 4.0}\n"
        "  top_k: {type: integer, low: 1, high: 12}\n",
        space,
    )
    outside.edit("baseline: {title_weight: 1.0, top_k: 10}\n", "")
    done = outside("check", "config.yaml", code=2)
    # The space is understood; it is the other retriever that does not have these knobs.
    assert "space.weight: the retriever has no parameter 'weight'" in done.stderr
    names = ["weight", "temperature", "chunk_tokens", "answer"]
    assert [name for name in names if f"space.{name}: the retriever has" in done.stderr] == names


def test_the_table_shows_values_and_stages(outside):
    printed = outside("knobs", KIND).stdout
    rows = {line.split()[0]: line for line in printed.splitlines() if line.strip()}
    assert "0.001 to 10, log" in rows["temperature"]
    assert "index" in rows["chunk_tokens"]
    assert "any to any" in rows["seed"]
    assert "no, yes, None, True, 1.5" in rows["answer"]
    assert "share of the graph [0, 1]" in rows["weight"]


def test_json_holds_knobs_and_space(outside):
    record = json.loads(outside("knobs", KIND, "--json").stdout)
    assert record["kind"] == KIND
    assert [knob["name"] for knob in record["knobs"]][:2] == ["weight", "temperature"]
    assert record["knobs"][2]["stage"] == "index"
    assert record["space"]["answer"] == {
        "type": "categorical",
        "choices": ["no", "yes", None, True, 1.5],
    }
    assert set(record["space"]) == {"weight", "temperature", "chunk_tokens", "answer"}


def test_the_built_in_engine(tuner):
    printed = tuner("knobs", "hybrid").stdout
    assert "graph_weight: {type: real, low: 0.0, high: 1.0}" in printed


def test_options_are_given_as_in_a_configuration(tuner):
    (tuner.folder / "own.py").write_text(
        "def search(query, top_k=10): return []\n", encoding="utf-8"
    )
    printed = tuner("knobs", "function", "--set", "function=own:search").stdout
    assert "  top_k: {type: integer, low: 1, high: 100, scale: log}" in printed
    assert "any parameters" in tuner("knobs", "http").stdout


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("http", ["url=http://h/s", "index={url: 'http://h/i', body: {size: params.chunk_words}}"]),
        ("command", ["command=[cat]", "index={command: [cat, '{chunk_words}', '{folder}']}"]),
    ],
)
def test_the_parameters_of_an_index_are_known_by_their_names(tuner, kind, options):
    given = [part for option in options for part in ("--set", option)]
    printed = tuner("knobs", kind, *given).stdout
    assert re.search(r"chunk_words +any +– +any +index +any values: name them in", printed)
    assert f"besides, {kind} can be tuned by any parameters" in printed
    assert "  # chunk_words: {type: …}   # an index for each value" in printed
    record = json.loads(tuner("knobs", kind, *given, "--json").stdout)
    assert [(knob["name"], knob["stage"]) for knob in record["knobs"]] == [("chunk_words", "index")]
    assert record["space"] == {}
    plain = tuner("knobs", kind).stdout
    assert "those of an index are the ones that `index` names: give it by --set index=…" in plain


FIXTURE = Path(__file__).resolve().parents[1] / "retrieval" / "data" / "ms_graphrag"
GRAPHRAG = f"path={FIXTURE / 'output'}"
SEARCHES = ("function=outside_search:Searches",)
CONFIG = """\
dataset: {path: data}
retriever: {kind: hybrid}
objective: {maximize: {recall@5: 1.0}}
backends: [{kind: grid, trials: 6}, {kind: random, trials: 6}]
execution: {kind: inline}
tracking: null
"""
# Options that a kind cannot do without, and the package that it wraps.
OPENED = {
    "function": (SEARCHES, None),
    "graph_retriever": ((), "graph_retriever"),
    "haystack": (("make=outside_haystack:make_pipeline",), "haystack"),
    "hybrid": ((), None),
    "langchain": (("make=outside_langchain:make_retriever",), "langchain_core"),
    "lightrag": ((), "lightrag"),
    "llama_index": (("make=outside_llama:make_retriever",), "llama_index"),
    "ms_graphrag": ((GRAPHRAG,), None),
    "ms_graphrag_local": ((GRAPHRAG,), "graphrag"),
    "runs": (("legs={graph: graph.run, text: text.run}",), None),
}
SEARCHES_CODE = """
from tuner.retrieval.base import Knob

class Searches:
    knobs = (
        Knob("mode", "categorical", "text", choices=("text", "graph")),
        Knob("hops", "integer", 2, 1, 3, when={"mode": ("graph",)}),
        Knob("passages", "integer", 5, 1, 9, constraint="hops <= passages"),
    )

    def retrieve(self, queries, params):
        return [["Lima-river", "Oslo-river"][: params["passages"]] for _ in queries]
"""


HAYSTACK_CODE = """
from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

def make_pipeline(documents, k1=1.5, lower: bool = True):
    store = InMemoryDocumentStore(bm25_parameters={"k1": k1})
    store.write_documents([Document(id=one.id, content=one.text) for one in documents])
    pipeline = Pipeline()
    pipeline.add_component("join", DocumentJoiner())
    for name in ("one", "other"):
        pipeline.add_component(name, InMemoryBM25Retriever(store))
        pipeline.connect(f"{name}.documents", "join.documents")
    return pipeline
"""

LANGCHAIN_CODE = """
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

def make_retriever(documents, size=16):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=size))
    store.add_documents([Document(id=one.id, page_content=one.text) for one in documents])
    return store.as_retriever(search_type="mmr")
"""
LLAMA_CODE = """
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode

def make_retriever(documents, size=16):
    nodes = [TextNode(id_=one.id, text=one.text) for one in documents]
    model = MockEmbedding(embed_dim=size)
    return VectorStoreIndex(nodes, embed_model=model).as_retriever()
"""


@pytest.mark.parametrize("kind", [*OPENED])
def test_what_is_printed_is_accepted_as_it_stands(tuner, kind):
    options, package = OPENED[kind]
    if package is not None:
        pytest.importorskip(package, reason=f"{package} is not installed")
    data = FIXTURE / "data" if "graphrag" in kind else tuner.folder / "data"
    query, *_ = _ids(data / "queries.jsonl")
    for leg in ("graph", "text"):
        run = [
            f"{query} Q0 {id_} {n} {9 - n} {leg}\n"
            for n, id_ in enumerate(_ids(data / "corpus.jsonl")[:3], 1)
        ]
        (tuner.folder / f"{leg}.run").write_text("".join(run), encoding="utf-8")
    (tuner.folder / "outside_search.py").write_text(SEARCHES_CODE, encoding="utf-8")
    for framework in ("haystack", "langchain", "llama"):
        code = {"haystack": HAYSTACK_CODE, "langchain": LANGCHAIN_CODE, "llama": LLAMA_CODE}
        (tuner.folder / f"outside_{framework}.py").write_text(code[framework], encoding="utf-8")
    printed = tuner("knobs", kind, *[part for one in options for part in ("--set", one)]).stdout
    (tuner.folder / "config.yaml").write_text(
        CONFIG + printed[printed.index("\nspace:") :], encoding="utf-8"
    )
    retriever = (f"retriever.{one}" for one in options)
    settings = [f"dataset.path={data}", f"retriever.kind={kind}", *retriever]
    sets = [part for setting in settings for part in ("--set", setting)]
    checked = json.loads(tuner("check", "config.yaml", "--json", *sets).stdout)
    assert checked["retriever"] == kind
    assert not [knob for knob in checked["parameters"].values() if "not tuned" in knob]


def _ids(path):
    return [json.loads(line)["_id"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_all_kinds_that_have_knobs_are_opened():
    # Those of a service or a store have tests of their own.
    elsewhere = ["command", "cypher", "http", "neo4j_graphrag"]
    assert sorted([*OPENED, *elsewhere]) == sorted(registry.kinds("retrieval"))


def test_conditions_and_constraints_are_printed(tuner):
    printed = tuner("knobs", "graph_retriever").stdout
    (row,) = [line for line in printed.splitlines() if line.startswith(" lambda_mult")]
    assert "strategy: mmr" in row
    space = yaml.safe_load(printed[printed.index("\nspace:") :])
    assert space["space"]["lambda_mult"]["when"] == {"strategy": "mmr"}
    assert space["space_constraints"] == ["start_k <= select_k"]
    assert "only when" in printed
    engine = tuner("knobs", "hybrid").stdout
    (row,) = [
        line for line in engine.splitlines() if "embedding_dim" in line and "integer" in line
    ][:1]
    assert "embedder: lsa, wordllama" in row
    record = json.loads(tuner("knobs", "lightrag", "--json").stdout)
    used = ["local", "global", "hybrid", "mix"]
    assert record["space"]["top_k"]["when"] == {"mode": used}
    (top_k,) = [knob for knob in record["knobs"] if knob["name"] == "top_k"]
    assert top_k["when"] == {"mode": used}
    assert "when" not in record["space"]["chunk_top_k"]
    assert record["space_constraints"] == ["chunk_overlap_token_size < chunk_token_size"]


def test_what_stands_beside_a_knob_that_is_not_searched_is_left_out(tuner):
    (tuner.folder / "odd_knobs.py").write_text(ODD, encoding="utf-8")
    record = json.loads(tuner("knobs", "odd_knobs:Odd", "--json").stdout)
    assert record["space"]["hops"] == {"type": "integer", "low": 1, "high": 3}
    assert record["space_constraints"] == []


@pytest.mark.parametrize("kind", registry.kinds("retrieval"))
def test_every_kind_tells_its_knobs_or_what_it_needs(kind):
    reason, knobs = "", ()
    try:
        knobs = declared_knobs(kind, {})
    except TunerError as error:
        reason = str(error)
    assert not reason or "required" in reason or "pip install" in reason
    assert all(isinstance(knob, Knob) for knob in knobs)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["hybird"], "unknown retriever 'hybird'; did you mean 'hybrid'?"),
        (["hybrid", "--set", "bm25=1"], "bm25: unknown option of the hybrid retriever"),
        (["hybrid", "--set", "kind=runs"], "name the kind before the options"),
        (["function"], "tuner knobs function --set option=value"),
        (["http", "--set", "retrys=3"], "retrys: unknown option; did you mean 'retries'?"),
        (["function", "--set", "function"], "write it as key=value"),
    ],
)
def test_wrong_input_is_explained(tuner, arguments, reason):
    assert reason in tuner("knobs", *arguments, code=2).stderr


def test_without_a_kind_the_kinds_are_listed(tuner):
    done = tuner("knobs")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:-2]] == registry.kinds(
        "retrieval"
    )
    assert "tuner knobs KIND" in done.stdout
    assert list(json.loads(tuner("knobs", "--json").stdout)["kinds"]) == registry.kinds("retrieval")


def test_the_options_of_the_engine_are_shown_with_their_defaults(tuner):
    lines = tuner("knobs", "hybrid").stdout.splitlines()
    knob, option = [line.split() for line in lines if line.startswith(" bm25_k1")]
    assert knob[1:7] == ["real", "1.5", "0.01", "to", "10", "index"]
    assert option[1] == "1.5"
    options = {
        o["name"]: o for o in json.loads(tuner("knobs", "hybrid", "--json").stdout)["options"]
    }
    assert options["seeds"]["default"] == 8
    assert options["dense"]["default"] is None


@pytest.mark.parametrize("kind", registry.kinds("retrieval"))
def test_every_option_says_what_it_is_and_the_schema_knows_it(kind):
    found = options_of(kind)
    assert found
    schema = Config.model_json_schema()["$defs"]["RetrieverSection"]["allOf"]
    (mine,) = [one["then"]["properties"] for one in schema if kind in str(one["if"]["properties"])
               and one["if"]["properties"]["kind"]["const"] == kind]  # fmt: skip
    for option in found:
        assert option.description
        assert mine[option.name]["description"] == option.description
