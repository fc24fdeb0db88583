"""Facts and passages from folders of Microsoft GraphRAG and LightRAG, and questions of these."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.evalset.corpus import open_corpus
from tuner.evalset.graph_folders import read_graph_folder

FIXTURE = Path(__file__).resolve().parents[1] / "retrieval" / "data" / "ms_graphrag"
GRAPH = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="source_id" attr.type="string"/>
<key id="d1" for="edge" attr.name="description" attr.type="string"/>
<key id="d2" for="edge" attr.name="keywords" attr.type="string"/>
<key id="d3" for="edge" attr.name="source_id" attr.type="string"/>
<graph edgedefault="undirected">
<node id="Ada Holm"><data key="d0">c1</data></node>
<node id="Kvarnby"><data key="d0">c1&lt;SEP&gt;c2</data></node>
<node id="Norrland"><data key="d0">c2</data></node>
<edge source="Kvarnby" target="Ada Holm"><data key="d1">Ada Holm was born in Kvarnby.</data>
<data key="d2">birthplace,origin</data><data key="d3">c1</data></edge>
<edge source="Kvarnby" target="Norrland"><data key="d1">Kvarnby lies in Norrland.</data>
<data key="d2"></data><data key="d3">c2&lt;SEP&gt;gone</data></edge>
</graph></graphml>"""


@pytest.fixture
def lightrag(tmp_path: Path) -> Path:
    folder = tmp_path / "rag"
    folder.mkdir()
    chunks = {
        "c1": {"content": "Ada Holm was born in Kvarnby.", "full_doc_id": "x"},
        "c2": {"content": "Kvarnby lies in Norrland.", "full_doc_id": "x"},
    }
    (folder / "kv_store_text_chunks.json").write_text(json.dumps(chunks), encoding="utf-8")
    graph = folder / "graph_chunk_entity_relation.graphml"
    graph.write_text(GRAPH, encoding="utf-8")
    return folder


def test_facts_of_lightrag_have_keywords_or_what_stands_between_the_names(lightrag):
    corpus = open_corpus(lightrag)
    assert [document.id for document in corpus.documents] == ["c1", "c2"]
    facts = [(t.document_id, t.subject, t.relation, t.object) for t in corpus.triples]
    assert facts == [
        ("c1", "Ada Holm", "birthplace", "Kvarnby"),  # its description tells which comes first
        ("c2", "Kvarnby", "lies in", "Norrland"),
    ]
    assert corpus.entities == {"c1": ("Ada Holm", "Kvarnby"), "c2": ("Kvarnby", "Norrland")}


def test_questions_of_lightrags_graph_are_answered_by_its_chunks(lightrag, run_here):
    build = ("dataset", "build", "from-graph", "rag", "made", "--kind", "2hop", "--count", "1")
    done = run_here(lightrag.parent, *build)
    assert done.returncode == 0, done.stderr
    made = open_dataset(lightrag.parent / "made")
    (query,) = made.queries
    assert "Ada Holm" in query.text
    assert made.answers[query.id] == ("Norrland",)
    assert set(made.qrels[query.id]) == {"c1", "c2"}


def test_questions_of_graphrags_output_are_tuned_on_by_text_unit(tmp_path, run_here, monkeypatch):
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    shutil.copytree(FIXTURE, tmp_path / "project")
    build = ("dataset", "build", "from-graph", "project/output", "made", "--count", "10")
    done = run_here(tmp_path, *build)
    assert done.returncode == 0, done.stderr
    made = open_dataset(tmp_path / "made")
    assert len(made.queries) >= 3
    corpus = read_graph_folder(tmp_path / "project")  # the folder above the output will do
    assert corpus is not None
    assert all(len(triple.relation.split()) <= 10 for triple in corpus.triples)
    assert {d.id for d in made.corpus.documents} == {d.id for d in corpus.documents}
    given = ("--retriever", "project", "--set", "judge=text_unit")
    assert run_here(tmp_path, "init", "--yes", "--dataset", "made", *given).returncode == 0
    assert run_here(tmp_path, "check", "tuner.yaml").returncode == 0


def test_a_broken_folder_is_told_by_its_file_and_another_is_no_graph(lightrag):
    assert read_graph_folder(lightrag.parent) is None
    (lightrag / "graph_chunk_entity_relation.graphml").write_text("<graphml", encoding="utf-8")
    with pytest.raises(InputError, match=r"graphml: is no graph"):
        open_corpus(lightrag)
    (lightrag / "kv_store_text_chunks.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match=r"chunks\.json"):
        open_corpus(lightrag)
