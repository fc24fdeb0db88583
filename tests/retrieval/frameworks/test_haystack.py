"""Haystack's pipelines: what they can be set to, what each trial asks, what is refused."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.retrieval.frameworks.cities import CORPUS, DOCUMENTS, IDS, QUERIES
from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError, TunerError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.retrieval.adapters import options
from tuner.retrieval.adapters.frameworks.haystack import Haystack
from tuner.retrieval.adapters.frameworks.retriever import Framework
from tuner.retrieval.adapters.function import Function
from tuner.run.systems import declared_knobs
from tuner.testing import IndexCase, IndexContract, RetrieverCase, RetrieverContract

pytest.importorskip("haystack", reason="haystack-ai is not installed: pip install '.[haystack]'")

FOLDER = str(Path(__file__).parent)
MODE = "join.join_mode"


def built(make: str, **given: Any) -> Framework:
    given = {"cache_dir": Path(mkdtemp()), "search_path": [FOLDER], **given}
    return Haystack.build(given.pop("corpus", CORPUS), make=f"haystack_apps:{make}", **given)


def found(retriever: Framework, query: str, **params: Any) -> list[str]:
    params = {name.replace("__", "."): value for name, value in params.items()}
    return retriever.retrieve([Query("q", query)], params).ids(0)


class TestHaystackPipeline(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_pipeline"),
        QUERIES,
        ({}, {"bm25.top_k": 1}, {"bm25.top_k": 2, "bm25.scale_score": True}),
        document_ids=IDS,
    )


class TestHaystackJoiner(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_joined"),
        QUERIES,
        (
            {},
            {MODE: "merge", "join.weights_0": 0.1, "join.top_k": 2},
            {MODE: "concatenate", "bm25.top_k": 1},
            {"join.weights_1": 1.0},
        ),
        document_ids=IDS,
    )


class TestHaystackInThreads(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_retriever", concurrency=3),
        QUERIES,
        ({}, {"top_k": 1}),
        document_ids=IDS,
    )


class TestHaystackAwaited(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_pipeline", concurrency=2, timeout_s=60),
        QUERIES,
        ({}, {"bm25.top_k": 1}),
        document_ids=IDS,
    )


@pytest.mark.slow
class TestHaystackIndexes(IndexContract):
    case = IndexCase(
        Haystack,
        CORPUS,
        QUERIES,
        first={"keeps": "all"},
        other={"keeps": "long"},
        options={
            "make": "haystack_apps:make_indexed",
            "search_path": [FOLDER],
            "id": "meta.doc_id",
        },
        space=SearchSpace({"keeps": Categorical(("all", "long"))}),
    )


def test_inputs_constructors_and_the_factory_are_knobs_with_the_values_of_today() -> None:
    knobs = {knob.name: knob for knob in built("make_joined").knobs}
    assert {name: knob.default for name, knob in knobs.items()} == {
        "bm25.top_k": 3,
        "bm25.scale_score": False,
        "back.top_k": 2,
        "back.scale_score": False,
        "join.top_k": None,
        "join.join_mode": "reciprocal_rank_fusion",
        "join.weights_0": 0.5,
        "join.weights_1": 0.5,
        "join.sort_by_score": True,
    }
    assert knobs["bm25.top_k"].suggested == (1, 100)
    assert len(knobs["join.join_mode"].choices) == 4
    assert dict(knobs["join.weights_0"].when) == {MODE: ("merge", "reciprocal_rank_fusion")}
    assert "bm25" in knobs["join.weights_0"].description
    assert "back" in knobs["join.weights_1"].description


def test_the_knobs_are_told_without_a_data_set() -> None:
    options = {"make": "haystack_apps:make_pipeline", "search_path": [FOLDER]}
    knobs = {knob.name: (knob.default, knob.stage) for knob in declared_knobs("haystack", options)}
    assert knobs == {
        "bm25.top_k": (3, "query"),
        "bm25.scale_score": (False, "query"),
        "k1": (1.5, "index"),
        "b": (0.75, "index"),
    }


def test_a_weight_changes_the_order_and_not_the_pipeline_that_was_made() -> None:
    retriever = built("make_joined")
    before = found(retriever, "Rome or Cairo")
    made = retriever.factory.made({}, None)
    assert made.get_component("join").weights is None
    first = found(retriever, "Lima", join__weights_0=1.0, join__weights_1=0.0)
    other = found(retriever, "Lima", join__weights_0=0.0, join__weights_1=1.0)
    assert (first[0], other[0]) == ("d0", "d3")
    assert made.get_component("join").weights is None
    assert found(retriever, "Rome or Cairo") == before


def test_threads_with_other_values_do_not_disturb_each_other() -> None:
    retriever = built("make_joined")
    asked = [{"bm25__top_k": k, "back__top_k": k, "join__top_k": k} for k in (1, 2, 3, 4)] * 5

    with ThreadPoolExecutor(4) as threads:
        lengths = list(threads.map(lambda p: len(found(retriever, "river", **p)), asked))
    assert lengths == [1, 2, 3, 4] * 5


def test_a_store_that_is_empty_is_refused() -> None:
    with pytest.raises(InputError, match=r"the store of bm25 .* is empty: a store in memory"):
        built("make_empty")


def test_a_store_that_is_empty_in_another_process_is_an_error_and_no_score() -> None:
    retriever = built("make_pipeline")
    elsewhere = type(retriever)(**{**vars(retriever), "counts": {"bm25": 9}})
    with pytest.raises(TunerError, match="holds 4 documents here, and held 9"):
        elsewhere.retrieve(QUERIES, {})


def test_a_joiner_cannot_return_more_than_the_retrievers_before_it() -> None:
    # 3 of one, 2 of the other.
    deep = SearchSpace({"join.top_k": Integer(1, 9)})
    with pytest.raises(InputError, match=r"above bm25.top_k \+ back.top_k has no effect"):
        built("make_joined", space=deep, baseline={"join.top_k": 3})
    built("make_joined", space=deep, baseline={"join.top_k": 3, "back.top_k": 6})
    rules = {knob.name: knob.constraint for knob in built("make_ranked").knobs if knob.constraint}
    assert rules == {"rank.top_k": "rank.top_k <= bm25.top_k"}


def test_weights_that_leave_nothing_or_make_no_difference_are_refused() -> None:
    none = {MODE: "merge", "join.weights_0": 0.0, "join.weights_1": 0.0}
    depth = SearchSpace({"bm25.top_k": Integer(1, 9)})
    said = "baseline.join.weights_0: join.weights_0, join.weights_1 are all 0"
    with pytest.raises(InputError, match=said):
        built("make_joined", space=depth, baseline=none)
    one = SearchSpace({"join.weights_0": Real(0.0, 1.0)})
    with pytest.raises(InputError, match=r"no effect where join.weights_1 is 0, as only the ratio"):
        built("make_joined", space=one, baseline={"join.weights_1": 0.0})


def test_a_weight_that_a_mode_does_not_read_is_refused() -> None:
    weight = {"join.weights_0": Real(0.0, 1.0)}
    with pytest.raises(InputError, match=r"no effect where join.join_mode is concatenate; leave"):
        built("make_joined", space=SearchSpace(weight), baseline={MODE: "concatenate"})
    both = {MODE: Categorical(("merge", "concatenate")), **weight}
    with pytest.raises(InputError, match=re.escape(f"write when: {{{MODE}: [merge]}}")):
        built("make_joined", space=SearchSpace(both), baseline={})
    alive = {**both, "join.weights_0": Real(0.0, 1.0, when={MODE: ("merge",)})}
    assert built("make_joined", space=SearchSpace(alive), baseline={})
    assert built("make_joined", space=SearchSpace(weight), baseline={MODE: "merge"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ("make_nothing", "returned NoneType: a haystack.Pipeline is needed"),
        ("make_any", r"takes \*\*options.*: name each parameter"),
        ("make_pipelin", "did you mean 'make_pipeline'"),
        ("pipeline", "is of type object, no function. Write one into haystack_apps.py"),
        ("make_dense", "needs dense.query_embedding, and nothing gives it; put a component"),
        ("make_needy", "needs 'k1': name it in the space"),
    ],
)
def test_what_cannot_be_asked_is_refused(make: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(make, space=SearchSpace({"bm25.top_k": Integer(1, 9)}), baseline={})


def test_a_factory_that_fails_says_why() -> None:
    with pytest.raises(TunerError, match="make_failing raised OSError: the disk is full"):
        built("make_failing")


def test_a_name_that_is_no_input_is_refused_with_the_one_that_is_meant() -> None:
    with pytest.raises(InputError, match=r"did you mean 'bm25.top_k'"):
        found(built("make_pipeline"), "Lima", bm25__topk=3)
    with pytest.raises(InputError, match=r"there is no 'bm25.quer'; did you mean 'bm25.query'"):
        built("make_pipeline", query="bm25.quer")
    with pytest.raises(InputError, match=r"there is no 'bm25.docs'"):
        built("make_pipeline", documents="bm25.docs")


def test_documents_are_matched_by_id_metadata_or_content() -> None:
    as_made = built("make_indexed")
    with pytest.raises(TunerError, match="'doc_id' of its metadata is one of a document: write id"):
        found(as_made, "Lima")
    assert found(built("make_indexed", id="meta.doc_id"), "lima")[0] == "d0"
    assert found(built("make_indexed", id="metadata.doc_id"), "lima")[0] == "d0"
    assert found(built("make_indexed", id="content"), "lima")[0] == "d0"
    with pytest.raises(TunerError, match=r"result 1 has no 'name' in its metadata"):
        found(built("make_indexed", id="meta.name"), "lima")
    with pytest.raises(InputError, match=r"none of id, content and metadata.KEY"):
        built("make_indexed", id="doc_id")
    twice = Corpus((*DOCUMENTS, Document("d9", "Lima", DOCUMENTS[0].text)))
    with pytest.raises(InputError, match="'d0' and 'd9' have the same text"):
        built("make_indexed", id="content", corpus=twice)


def test_an_argument_of_the_factory_that_shapes_an_input_is_not_set_back() -> None:
    first, other = (built("make_deep", index_params={"depth": depth}) for depth in (3, 1))
    other = type(other)(**{**vars(other), "knobs": first.knobs})  # as the frame of indexes does
    # All parameters are asked for, with the first one's value where nothing is searched.
    assert len(found(other, "river", bm25__top_k=3)) == 1
    assert len(found(other, "river", bm25__top_k=2)) == 2


def test_components_have_names_that_a_space_takes() -> None:
    retriever = built("make_named", query="by-words 1.query")
    params = {"by_words_1.top_k": 2, "_2nd.sort_by_score": False}
    assert set(params) <= {knob.name for knob in retriever.knobs}
    assert SearchSpace({knob.name: Integer(1, 2) for knob in retriever.knobs})
    assert len(retriever.retrieve(QUERIES, params).ids(0)) == 2


def test_an_outlet_that_is_not_the_only_one_has_to_be_named() -> None:
    with pytest.raises(InputError, match=r"documents come out at bm25.documents, other.documents"):
        built("make_two")
    one = built("make_two", documents="bm25.documents", query=["bm25.query", "other.query"])
    assert found(one, "Lima")[0] == "d0"
    # Whatever the other one is set to, these are the documents.
    assert [knob.name for knob in one.knobs] == ["bm25.top_k", "bm25.scale_score"]


def test_an_answer_that_is_no_list_is_refused() -> None:
    with pytest.raises(TunerError, match=r"a list of Haystack's documents .* is a NoneType"):
        found(built("make_silent"), "Lima")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise options.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(options.metadata, "version", missing)
    with pytest.raises(InputError, match=r"pip install 'graphrag-tuner\[haystack\]'"):
        built("make_pipeline")


@pytest.mark.parametrize("named", ["made", "made.run"])
def test_an_object_that_is_named_as_a_function_leads_to_this_kind(named: str) -> None:
    with pytest.raises(
        InputError, match=r'def make_made.*kind: haystack, make: "haystack_apps:make_made"'
    ):
        Function.build(CORPUS, function=f"haystack_apps:{named}", search_path=[FOLDER])
