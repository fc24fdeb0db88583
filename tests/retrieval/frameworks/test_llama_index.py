"""LlamaIndex's retrievers: what they can be set to, what each trial asks, what is refused."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.retrieval.frameworks.cities import CORPUS, IDS, QUERIES
from tuner.core.corpus import Query
from tuner.core.errors import InputError, TunerError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.retrieval.adapters import options
from tuner.retrieval.adapters.frameworks.llama_index import LlamaIndex
from tuner.retrieval.adapters.frameworks.retriever import Framework
from tuner.retrieval.adapters.function import Function
from tuner.run.systems import declared_knobs
from tuner.testing import RetrieverCase, RetrieverContract

pytest.importorskip(
    "llama_index.core", reason="llama-index-core is not installed: pip install '.[llama_index]'"
)

FOLDER = str(Path(__file__).parent)


def built(make: str, **given: Any) -> Framework:
    given = {"cache_dir": Path(mkdtemp()), "search_path": [FOLDER], **given}
    return LlamaIndex.build(given.pop("corpus", CORPUS), make=f"llama_apps:{make}", **given)


def found(retriever: Framework, query: str, **params: Any) -> list[str]:
    params = {name.replace("__", "."): value for name, value in params.items()}
    return retriever.retrieve([Query("q", query)], params).ids(0)


bm25 = pytest.mark.skipif(
    find_spec("llama_index.retrievers") is None,
    reason="the packages of the examples are not installed: pip install '.[frameworks]'",
)


class TestLlamaIndexVectors(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_vectors"),
        QUERIES,
        (
            {},
            {"similarity_top_k": 1},
            {"vector_store_query_mode": "mmr", "vector_store_kwargs.mmr_threshold": 0.3},
        ),
        document_ids=IDS,
    )


@bm25
class TestLlamaIndexBm25(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_bm25"),
        QUERIES,
        ({}, {"similarity_top_k": 1}, {"similarity_top_k": 9}),
        document_ids=IDS,
    )


class TestLlamaIndexFusion(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_fusion"),
        QUERIES,
        (
            {},
            {"mode": "reciprocal_rerank", "similarity_top_k": 2},
            {"retriever_weights_0": 0.1, "retrievers_1.similarity_top_k": 1},
            {"mode": "dist_based_score", "retrievers_0.vector_store_query_mode": "mmr"},
        ),
        document_ids=IDS,
    )


class TestLlamaIndexAwaited(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_vectors", concurrency=2, timeout_s=60),
        QUERIES,
        ({}, {"similarity_top_k": 1}),
        document_ids=IDS,
    )


class TestLlamaIndexGraph(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_graph"),
        QUERIES,
        ({}, {"similarity_top_k": 1}, {"path_depth": 2, "limit": 5}, {"at_most": 1}),
        document_ids=IDS,
    )


def test_arguments_of_constructors_are_knobs_with_the_values_of_today() -> None:
    knobs = {knob.name: knob for knob in built("make_vectors").knobs}
    assert {name: knob.default for name, knob in knobs.items()} == {
        "similarity_top_k": 3,
        "vector_store_query_mode": "default",
        "vector_store_kwargs.mmr_threshold": 0.5,
    }
    # The store in memory raises at all other ways.
    assert knobs["vector_store_query_mode"].choices == ("default", "mmr")
    knobs = {knob.name: knob for knob in built("make_fusion").knobs}
    assert dict(knobs["retriever_weights_1"].when) == {
        "mode": ("relative_score", "dist_based_score")
    }


def test_the_document_of_a_fact_is_that_of_its_relation() -> None:
    retriever = built("make_shared_name")
    assert set(found(retriever, "Lima")) == {"d0", "d1"}
    made = retriever.factory.made({}, None)
    # By the entity Lima, which both facts begin with, one document is found twice.
    assert {node.node.ref_doc_id for node in made.retrieve("Lima")} == {"d1"}


@pytest.mark.parametrize("make", ["make_graph_index", "make_graph_texts"])
def test_a_chunk_that_a_fact_stands_in_is_matched_by_its_document(make: str) -> None:
    # All names, as the store keeps facts in a set: which of equals it finds is chance.
    names = {"sub_retrievers_0__similarity_top_k": 8}
    for way in ("id", "metadata.doc_id"):
        assert set(found(built(make, id=way), "Lima Rimac", **names)) == IDS


def test_a_graph_has_no_depth_of_its_own_so_its_answers_are_cut() -> None:
    retriever = built("make_graph_index")
    assert [knob.name for knob in retriever.knobs] == [
        "sub_retrievers_0.similarity_top_k",
        "sub_retrievers_0.path_depth",
        "sub_retrievers_0.limit",
        "at_most",
    ]
    assert len(found(retriever, "Lima")) > 1
    assert len(found(retriever, "Lima", at_most=1)) == 1


@bm25
def test_the_knobs_are_told_without_a_data_set() -> None:
    options = {"make": "llama_apps:make_bm25", "search_path": [FOLDER]}
    declared = declared_knobs("llama_index", options)
    assert {knob.name: (knob.default, knob.stage) for knob in declared} == {
        "similarity_top_k": (3, "query"),
        "k1": (1.5, "index"),
        "b": (0.75, "index"),
    }


@bm25
def test_a_depth_that_is_lowered_to_the_documents_is_told_as_it_was_set() -> None:
    options = {"make": "llama_apps:make_bm25_of", "search_path": [FOLDER]}
    (knob,) = declared_knobs("llama_index", options)
    assert (knob.name, knob.default) == ("similarity_top_k", 100)


def test_parts_are_set_in_a_copy() -> None:
    retriever = built("make_fusion")
    made = retriever.factory.made({}, None)
    first = found(retriever, "Lima", retriever_weights_0=1.0, retriever_weights_1=0.0)
    other = found(retriever, "Lima", retriever_weights_0=0.0, retriever_weights_1=1.0)
    assert first != other
    assert made._retriever_weights == [0.5, 0.5]
    assert len(found(retriever, "Lima", retrievers_0__similarity_top_k=1)) <= 3
    assert made._retrievers[0].similarity_top_k == 3


def test_threads_with_other_values_do_not_disturb_each_other() -> None:
    retriever = built("make_vectors")
    asked = [1, 2, 3, 4] * 10

    with ThreadPoolExecutor(4) as threads:
        lengths = threads.map(lambda k: len(found(retriever, "river", similarity_top_k=k)), asked)
    assert list(lengths) == asked


def test_scores_that_rise_are_not_believed() -> None:
    params = {"vector_store_query_mode": "mmr", "vector_store_kwargs.mmr_threshold": 0.1}
    rankings = built("make_vectors").retrieve(QUERIES, params)
    assert rankings.scores is None
    assert len(rankings.ids(0)) == 3


def test_a_name_that_would_be_swallowed_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'similarity_top_k'"):
        found(built("make_vectors"), "Lima", similarity_topk=2)


def test_a_weight_that_a_mode_does_not_read_is_refused() -> None:
    weight = {"retriever_weights_0": Real(0.0, 1.0)}
    with pytest.raises(InputError, match=r"no effect where mode is reciprocal_rerank; leave it"):
        built("make_fusion", space=SearchSpace(weight), baseline={"mode": "reciprocal_rerank"})
    both = {"mode": Categorical(("simple", "relative_score")), **weight}
    with pytest.raises(InputError, match=re.escape("write when: {mode: [relative_score]}")):
        built("make_fusion", space=SearchSpace(both), baseline={})


def test_a_keyword_that_is_dropped_shows_in_the_value_in_force() -> None:
    # Nothing else tells: what is made keeps no trace of the keyword.
    options = {"make": "llama_apps:make_dropped", "search_path": [FOLDER]}
    knobs = {knob.name: knob.default for knob in declared_knobs("llama_index", options)}
    assert knobs["similarity_top_k"] == 2
    made = built("make_dropped").factory.made({}, None)
    assert not any("topk" in name for part in (vars(made), made._kwargs) for name in part)


INNER = "retrievers_{}.similarity_top_k"


def test_a_fusion_cannot_be_deeper_than_those_that_it_asks() -> None:
    # Each of the two is asked for 3.
    deep = SearchSpace({"similarity_top_k": Integer(1, 9)})
    said = "'similarity_top_k' can be 9 where .*_0.similarity_top_k is 3 and .* has no effect"
    with pytest.raises(InputError, match=said):
        built("make_fusion", space=deep, baseline={})
    built("make_fusion", space=deep, baseline={INNER.format(0): 3, INNER.format(1): 6})
    built("make_fusion", space=SearchSpace({"similarity_top_k": Integer(1, 6)}), baseline={})
    every = ["similarity_top_k", INNER.format(0), INNER.format(1)]
    rule = f"{every[0]} <= {every[1]} + {every[2]}"
    ranges = dict.fromkeys(every, Integer(1, 9))
    with pytest.raises(InputError, match=re.escape(f'write space_constraints: ["{rule}"]')):
        built("make_fusion", space=SearchSpace(ranges), baseline={})
    built("make_fusion", space=SearchSpace(ranges, [rule]), baseline={})


def test_where_a_depth_counts_something_else_a_fusion_has_no_rule() -> None:
    knobs = {knob.name: knob for knob in built("make_fusion_of_graph").knobs}
    assert knobs["similarity_top_k"].constraint == ""
    knobs = {knob.name: knob for knob in built("make_more_queries").knobs}
    rule = "similarity_top_k <= num_queries * (retrievers_0.similarity_top_k)"
    assert knobs["similarity_top_k"].constraint == rule


def test_weights_that_leave_nothing_or_make_no_difference_are_refused() -> None:
    both = {"retriever_weights_0": 0.0, "retriever_weights_1": 0.0}
    said = "retriever_weights_0, retriever_weights_1 are all 0, which leaves nothing"
    with pytest.raises(InputError, match=said):
        built("make_fusion", space=SearchSpace({"similarity_top_k": Integer(1, 6)}), baseline=both)
    with pytest.raises(InputError, match=said):
        found(built("make_fusion"), "Lima", **both)
    assert found(built("make_fusion"), "Lima", mode="simple", **both)
    none = SearchSpace({name: Categorical((0.0,)) for name in both})
    with pytest.raises(InputError, match=f"space.retriever_weights_0: {said}"):
        built("make_fusion", space=none)
    one = SearchSpace({"retriever_weights_0": Real(0.0, 1.0)})
    with pytest.raises(InputError, match="no effect where retriever_weights_1 is 0, as only the"):
        built("make_fusion", space=one, baseline={"retriever_weights_1": 0.0})
    built("make_fusion", space=one, baseline={"retriever_weights_0": 0.0})


def test_a_weight_of_the_baseline_that_its_mode_does_not_read_is_refused() -> None:
    fixed = {"mode": "reciprocal_rerank", "retriever_weights_0": 0.9}
    deep = SearchSpace({"similarity_top_k": Integer(1, 6)})
    with pytest.raises(InputError, match=r"baseline.retriever_weights_0: .* no effect where mode"):
        built("make_fusion", space=deep, baseline=fixed)
    # As it is made; or beside a mode that is searched; or what an earlier study chose.
    built("make_fusion", space=deep, baseline={**fixed, "retriever_weights_0": 0.5})
    modes = SearchSpace({"mode": Categorical(("simple", "relative_score"))})
    built("make_fusion", space=modes, baseline={**fixed, "mode": "simple"})
    built("make_fusion", baseline=fixed)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ("make_nothing", "returned NoneType: a retriever is needed"),
        ("make_class", r"returned the class Words itself: .* as in return Words\(…\)"),
        ("make_generator", "returned generator: a retriever is needed"),
        (
            "make_misspelt",
            "gives vector_store_kwargs 'mmr_treshold', which SimpleVectorStore does not read; "
            "did you mean 'mmr_threshold'",
        ),
        ("make_empty", "the store of VectorIndexRetriever .* is empty"),
        ("make_empty_graph", "the store of VectorContextRetriever .* is empty"),
    ],
)
def test_what_cannot_be_asked_is_refused(make: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(make, space=SearchSpace({"similarity_top_k": Integer(1, 9)}), baseline={})


def test_a_retriever_that_can_only_be_awaited_is_told_how_to_be() -> None:
    with pytest.raises(TunerError, match=r"NotImplementedError; .* write concurrency: 2"):
        found(built("make_awaited"), "Lima")
    assert found(built("make_awaited", concurrency=2), "Lima")[0] == "d0"


def test_a_chunk_is_matched_by_its_document_metadata_or_content() -> None:
    for way in ("id", "metadata.doc_id", "content"):
        assert found(built("make_vectors", id=way), "Lima")[0] == "d0"
    with pytest.raises(TunerError, match=r"no document of the data set has the id 'chunk-d"):
        found(built("make_chunks"), "Lima")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise options.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(options.metadata, "version", missing)
    with pytest.raises(InputError, match=r"pip install 'graphrag-tuner\[llama_index\]'"):
        built("make_vectors")


@pytest.mark.parametrize("named", ["made", "made.retrieve"])
def test_an_object_that_is_named_as_a_function_leads_to_this_kind(named: str) -> None:
    with pytest.raises(
        InputError, match=r'def make_made.*kind: llama_index, make: "llama_apps:make_made"'
    ):
        Function.build(CORPUS, function=f"llama_apps:{named}", search_path=[FOLDER])
