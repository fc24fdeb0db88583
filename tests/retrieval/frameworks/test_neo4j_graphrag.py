"""neo4j-graphrag's retrievers, over a stand-in for the driver: what is sent, read and refused."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import yaml

from tests.retrieval.frameworks.cities import CORPUS, IDS
from tuner.core.corpus import Query
from tuner.core.errors import InputError, OutageError, TunerError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.retrieval.adapters import options
from tuner.retrieval.adapters.frameworks.neo4j_graphrag import Neo4jGraphrag, escaped
from tuner.retrieval.adapters.frameworks.retriever import Framework
from tuner.retrieval.adapters.function import Function
from tuner.run.systems import declared_knobs
from tuner.testing import RetrieverCase, RetrieverContract

pytest.importorskip(
    "neo4j_graphrag", reason="neo4j-graphrag is not installed: pip install '.[neo4j-graphrag]'"
)
# The package says so at each search of a server before 2026.1.
pytestmark = pytest.mark.filterwarnings("ignore:The default returned 'id' field:DeprecationWarning")

ROOT = Path(__file__).resolve().parents[3]
FOLDER = str(Path(__file__).parent)
QUERIES = (
    Query("q0", "which river flows through Lima?"),
    Query("q1", "Paris old"),
    Query("q2", "Rome AND (Cairo)"),
)
LEAST = {"query_params.least": 0.0}


def built(make: str, **given: Any) -> Framework:
    given = {"cache_dir": Path(mkdtemp()), "search_path": [FOLDER], **given}
    return Neo4jGraphrag.build(given.pop("corpus", CORPUS), make=f"neo4j_apps:{make}", **given)


def found(retriever: Framework, query: str, **params: Any) -> list[str]:
    params = {name.replace("__", "."): value for name, value in params.items()}
    return retriever.retrieve([Query("q", query)], params).ids(0)


def apps(retriever: Framework) -> Any:
    """Return the module of the factory, which notes what the stand-in is sent."""
    return sys.modules[retriever.factory.function.__module__]


class TestNeo4jVectors(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_vectors"),
        QUERIES,
        ({}, {"top_k": 1}, {"top_k": 2, "effective_search_ratio": 3}),
        document_ids=IDS,
    )


class TestNeo4jHybrid(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_hybrid"),
        QUERIES,
        ({}, {"top_k": 2}, {"ranker": "linear", "alpha": 0.2}, {"ranker": "linear", "alpha": 0.0}),
        document_ids=IDS,
    )


class TestNeo4jInThreads(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_older", concurrency=3, timeout_s=600),
        QUERIES,
        ({}, {"ranker": "linear", "alpha": 0.5, "top_k": 1}),
        document_ids=IDS,
    )


class TestNeo4jOwnQuery(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_hybrid_query", baseline=LEAST),
        QUERIES,
        (LEAST, {**LEAST, "top_k": 2}, {"query_params.least": 0.9, "at_most": 1}),
        document_ids=IDS,
    )


def test_what_a_search_takes_is_a_knob_with_the_bounds_of_its_model() -> None:
    knobs = {knob.name: knob for knob in built("make_hybrid").knobs}
    assert {name: (knob.default, knob.low, knob.high) for name, knob in knobs.items()} == {
        "top_k": (5, 1, None),
        "effective_search_ratio": (5 - 4, 1, None),
        "ranker": ("naive", None, None),
        "alpha": (None, 0.0, 1.0),
    }
    assert knobs["ranker"].choices == ("naive", "linear")
    assert dict(knobs["alpha"].when) == {"ranker": ("linear",)}
    assert [knob.name for knob in built("make_vectors").knobs] == [
        "top_k",
        "effective_search_ratio",
    ]


def test_the_knobs_are_told_without_a_data_set() -> None:
    given = {"make": "neo4j_apps:make_own_query", "search_path": [FOLDER]}
    knobs = {knob.name: knob for knob in declared_knobs("neo4j_graphrag", given)}
    assert list(knobs) == ["top_k", "effective_search_ratio", "at_most", "query_params.least"]


def test_a_question_reaches_the_full_text_index_as_words() -> None:
    assert escaped('a AND "b" (C/D)?') == 'a and \\"b\\" \\(C\\/D\\)\\?'
    assert escaped("Lima") == "Lima"
    retriever = built("make_hybrid")
    assert found(retriever, "Rome AND (Cairo)?")[:2] == ["d3", "d1"]
    texts = [given["query_text"] for _, given in apps(retriever).ASKED if "query_text" in given]
    assert texts[-1] == "Rome and \\(Cairo\\)\\?"


def test_a_question_is_embedded_once_and_as_it_is() -> None:
    retriever = built("make_hybrid")
    embedded = apps(retriever).EMBEDDED
    before = len(embedded)
    for top_k in (1, 2, 3):
        found(retriever, "Is it (Lima)?", top_k=top_k)
    assert embedded[before:] == ["Is it (Lima)?"]


@pytest.mark.parametrize("make", ["make_hybrid", "make_older"])
def test_alpha_is_heeded_down_to_0_and_not_sent_where_it_is_not_read(make: str) -> None:
    retriever = built(make)
    by_text = found(retriever, "Rome old", ranker="linear", alpha=0.0)
    assert by_text[0] == "d3"
    statement, given = apps(retriever).ASKED[-1]
    # At 0 the package takes it for missing: it would rank as "naive", or raise.
    assert "$alpha" in statement
    assert 0 < given["alpha"] < 1e-6
    found(retriever, "Rome old", ranker="naive", alpha=0.3)
    assert "alpha" not in apps(retriever).ASKED[-1][1]


def test_a_weight_without_a_ranker_that_reads_it_and_the_other_way_round_are_refused() -> None:
    alpha = {"alpha": Real(0.0, 1.0)}
    with pytest.raises(InputError, match="'alpha' has no effect where ranker is naive; leave it"):
        built("make_hybrid", space=SearchSpace(alpha), baseline={})
    both = {"ranker": Categorical(("naive", "linear"))}
    with pytest.raises(InputError, match="a linear ranker needs alpha: write alpha:"):
        built("make_hybrid", space=SearchSpace(both), baseline={})
    alive = {**both, "alpha": Real(0.0, 1.0, when={"ranker": ("linear",)})}
    assert built("make_hybrid", space=SearchSpace(alive), baseline={})


def test_parameters_of_your_own_query_are_knobs_of_the_kind_that_a_space_says() -> None:
    space = SearchSpace({"query_params.least": Integer(0, 3)})
    knob = {knob.name: knob for knob in built("make_own_query", space=space).knobs}
    assert knob["query_params.least"].kind == "integer"
    retriever = built("make_own_query", baseline=LEAST)
    assert found(retriever, "Lima", **LEAST)[0] == "d0"
    # Two rows a text: five nodes are up to ten results, and are cut before they are matched.
    assert len(found(retriever, "river", **LEAST)) == 4
    assert len(found(retriever, "river", **LEAST, at_most=2)) == 1
    with pytest.raises(
        InputError, match=r"'query_params.least' has no value: name it in the space"
    ):
        built("make_own_query", space=SearchSpace({"top_k": Integer(1, 9)}), baseline={})


def test_a_document_is_a_property_of_its_node_and_not_what_the_database_calls_it() -> None:
    for way in ("id", "metadata.doc_id", "content"):
        assert found(built("make_hybrid", id=way), "Lima")[0] == "d0"
    with pytest.raises(TunerError, match=r"no 'name' in its metadata .*write id: metadata.doc_id"):
        found(built("make_hybrid", id="metadata.name"), "Lima")


def test_a_name_or_a_value_that_a_search_does_not_take_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'top_k'"):
        found(built("make_vectors"), "Lima", topk=2)
    with pytest.raises(InputError, match="0 is outside what 'top_k' can be"):
        found(built("make_vectors"), "Lima", top_k=0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        ("make_nothing", InputError, "returned NoneType: a retriever of neo4j_graphrag"),
        (
            "make_empty",
            InputError,
            "the index 'chunks' .* is empty: no node with the label 'Chunk'",
        ),
        ("make_without_embedder", InputError, "has no embedder, and a query is a text"),
        ("make_away", OutageError, "make_away raised ServiceUnavailable"),
    ],
)
def test_what_cannot_be_asked_is_refused(make: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        built(make)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise options.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(options.metadata, "version", missing)
    with pytest.raises(InputError, match=r"pip install 'graphrag-tuner\[neo4j_graphrag\]'"):
        built("make_vectors")


def test_the_example_of_the_page_runs_over_the_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "your-system" / "neo4j_graphrag.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:python|yaml)\n# (my_neo4j\.\w+)\n(.*?)^```", page, re.M | re.S)
    files = dict(blocks)
    (tmp_path / "my_neo4j.py").write_text(files["my_neo4j.py"], encoding="utf-8")
    (tmp_path / "my_models.py").write_text("from neo4j_apps import Words as Embedder\n")
    monkeypatch.syspath_prepend(FOLDER)
    neo4j, apps = import_module("neo4j"), import_module("neo4j_apps")
    monkeypatch.setattr(neo4j.GraphDatabase, "driver", lambda address, auth: apps.StandIn())
    config = yaml.safe_load(files["my_neo4j.yaml"])
    retriever = Neo4jGraphrag.build(
        CORPUS,
        make=config["retriever"]["make"],
        search_path=[str(tmp_path)],
        cache_dir=tmp_path,
        space=SearchSpace.from_mapping(config["space"]),
        baseline=config["baseline"],
    )
    assert found(retriever, "Lima", **config["baseline"])[0] == "d0"
    assert set(config["space"]) == {knob.name for knob in retriever.knobs}


@pytest.mark.parametrize("named", ["made", "made.search"])
def test_an_object_that_is_named_as_a_function_leads_to_this_kind(named: str) -> None:
    with pytest.raises(
        InputError, match=r'def make_made.*kind: neo4j_graphrag, make: "neo4j_apps:make_made"'
    ):
        Function.build(CORPUS, function=f"neo4j_apps:{named}", search_path=[FOLDER])
