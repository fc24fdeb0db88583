"""LangChain's retrievers: what they can be set to, what each trial asks, what is refused."""

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
from tuner.retrieval.adapters.frameworks.langchain import LangChain
from tuner.retrieval.adapters.frameworks.retriever import Framework
from tuner.retrieval.adapters.function import Function
from tuner.run.systems import declared_knobs
from tuner.testing import RetrieverCase, RetrieverContract

pytest.importorskip(
    "langchain_core", reason="langchain-core is not installed: pip install '.[langchain]'"
)

FOLDER = str(Path(__file__).parent)


def built(make: str, **given: Any) -> Framework:
    given = {"cache_dir": Path(mkdtemp()), "search_path": [FOLDER], **given}
    return LangChain.build(given.pop("corpus", CORPUS), make=f"langchain_apps:{make}", **given)


def found(retriever: Framework, query: str, **params: Any) -> list[str]:
    params = {name.replace("__", "."): value for name, value in params.items()}
    return retriever.retrieve([Query("q", query)], params).ids(0)


bm25 = pytest.mark.skipif(
    find_spec("rank_bm25") is None or find_spec("langchain_community") is None,
    reason="the packages of the examples are not installed: pip install '.[frameworks]'",
)
graphs = pytest.mark.skipif(
    find_spec("langchain_graph_retriever") is None, reason="pip install '.[frameworks]'"
)
quiet = pytest.mark.filterwarnings("ignore")  # langchain-community says that it is being sunset


class TestLangChainVectors(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_vectors"),
        QUERIES,
        (
            {},
            {"search_kwargs.k": 1},
            {"search_type": "mmr", "search_kwargs.lambda_mult": 0.1, "search_kwargs.fetch_k": 4},
        ),
        document_ids=IDS,
    )


@bm25
@quiet
class TestLangChainBm25(RetrieverContract):
    case = RetrieverCase(lambda: built("make_bm25"), QUERIES, ({}, {"k": 1}), document_ids=IDS)


@bm25
@quiet
class TestLangChainEnsemble(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_ensemble", concurrency=2),
        QUERIES,
        (
            {},
            {"weights_0": 0.0, "retrievers_1.k": 1},
            {"c": 1, "at_most": 1},
            {"retrievers_0.search_type": "mmr"},
        ),
        document_ids=IDS,
    )


class TestLangChainAwaited(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_vectors", concurrency=2, timeout_s=60),
        QUERIES,
        ({}, {"search_kwargs.k": 1}),
        document_ids=IDS,
    )


@graphs
class TestLangChainGraph(RetrieverContract):
    case = RetrieverCase(
        lambda: built("make_graph"),
        QUERIES,
        ({}, {"strategy.select_k": 1, "strategy.start_k": 1}, {"strategy.max_depth": 0}),
        document_ids=IDS,
    )


def test_fields_keywords_of_the_store_and_the_factory_are_knobs_with_todays_values() -> None:
    knobs = {knob.name: knob for knob in built("make_vectors").knobs}
    assert {name: knob.default for name, knob in knobs.items()} == {
        "search_type": "similarity",
        "search_kwargs.k": 3,
        "search_kwargs.fetch_k": 20,
        "search_kwargs.lambda_mult": 0.5,
    }
    # The store in memory has no relevance scores, so a threshold is no way to ask it.
    assert knobs["search_type"].choices == ("similarity", "mmr")
    assert dict(knobs["search_kwargs.lambda_mult"].when) == {"search_type": ("mmr",)}
    assert knobs["search_kwargs.fetch_k"].constraint == "search_kwargs.k <= search_kwargs.fetch_k"


@bm25
@quiet
def test_the_knobs_are_told_without_a_data_set() -> None:
    options = {"make": "langchain_apps:make_bm25", "search_path": [FOLDER]}
    knobs = {knob.name: (knob.default, knob.stage) for knob in declared_knobs("langchain", options)}
    assert knobs == {"k": (3, "query"), "k1": (1.5, "index"), "b": (0.75, "index")}


@bm25
@quiet
def test_parts_have_names_and_are_set_in_a_copy() -> None:
    retriever = built("make_ensemble")
    names = [knob.name for knob in retriever.knobs]
    assert names[:4] == ["weights_0", "weights_1", "c", "retrievers_0.search_type"]
    assert names[-2:] == ["retrievers_1.k", "at_most"]
    made = retriever.factory.made({}, None)
    first = found(retriever, "Lima", weights_0=1.0, weights_1=0.0)
    other = found(retriever, "Lima", weights_0=0.0, weights_1=1.0)
    assert (first[0], other[0]) == ("d0", "d3")
    assert (made.weights, made.retrievers[1].k) == ([0.5, 0.5], 2)
    assert len(found(retriever, "Lima", at_most=1)) == 1


@bm25
@quiet
def test_weights_that_leave_nothing_or_make_no_difference_are_refused() -> None:
    with pytest.raises(InputError, match="-1 is outside what 'c' can be: 0 to inf"):
        found(built("make_ensemble"), "Lima", c=-1)
    with pytest.raises(InputError, match="weights_0, weights_1 are all 0, which leaves nothing"):
        found(built("make_ensemble"), "Lima", weights_0=0.0, weights_1=0.0)
    one = SearchSpace({"weights_0": Real(0.0, 1.0)})
    with pytest.raises(InputError, match="no effect where weights_1 is 0, as only the ratio"):
        built("make_ensemble", space=one, baseline={"weights_1": 0.0})


def test_threads_with_other_values_do_not_disturb_each_other() -> None:
    retriever = built("make_vectors")
    asked = [1, 2, 3, 4] * 10

    with ThreadPoolExecutor(4) as threads:
        lengths = threads.map(lambda k: len(found(retriever, "river", search_kwargs__k=k)), asked)
    assert list(lengths) == asked


def test_a_keyword_that_the_store_would_swallow_is_refused() -> None:
    with pytest.raises(InputError, match=r"no parameter .*did you mean 'search_kwargs.k'"):
        found(built("make_vectors"), "Lima", search_kwargs__kk=2)


def test_a_keyword_that_the_way_of_searching_ignores_is_refused_and_not_sent() -> None:
    space = SearchSpace({"search_kwargs.lambda_mult": Real(0.0, 1.0)})
    with pytest.raises(InputError, match="no effect where search_type is similarity; leave it out"):
        built("make_vectors", space=space, baseline={})
    both = {"search_type": Categorical(("similarity", "mmr")), **space.parameters}
    with pytest.raises(InputError, match=re.escape("write when: {search_type: [mmr]}")):
        built("make_vectors", space=SearchSpace(both), baseline={})
    assert found(built("make_strict"), "Lima", search_kwargs__fetch_k=4)[0] == "d0"


def test_a_space_in_which_fewer_are_fetched_than_asked_for_is_refused() -> None:
    depths = {"search_kwargs.k": Integer(1, 50), "search_kwargs.fetch_k": Integer(10, 99)}
    rule = "search_kwargs.k <= search_kwargs.fetch_k"
    mmr = {"search_type": "mmr"}
    with pytest.raises(InputError, match=re.escape(f'write space_constraints: ["{rule}"]')):
        built("make_vectors", space=SearchSpace(depths), baseline=mmr)
    built("make_vectors", space=SearchSpace(depths, (rule,)), baseline=mmr)
    alone = SearchSpace({"search_kwargs.k": Integer(1, 50)})
    with pytest.raises(InputError, match=r"'search_kwargs.k' can be 50 where .*fetch_k is 20"):
        built("make_vectors", space=alone, baseline=mmr)
    built("make_vectors", space=alone, baseline={})


@graphs
def test_a_space_in_which_a_traversal_begins_with_more_than_it_returns_is_refused() -> None:
    depths = {"strategy.start_k": Integer(1, 9), "strategy.select_k": Integer(5, 9)}
    rule = "strategy.start_k <= strategy.select_k"
    with pytest.raises(InputError, match=re.escape(f'write space_constraints: ["{rule}"]')):
        built("make_graph", space=SearchSpace(depths), baseline={})
    # Mmr chooses among those that it begins with: the more, the more there is to choose from.
    built("make_mmr_graph", space=SearchSpace(depths), baseline={})


@graphs
def test_a_strategy_set_to_the_packages_default_does_not_keep_its_old_value() -> None:
    retriever = built("make_graph")
    bound = retriever.seam.bound(retriever.factory.made({}, None), {"strategy.select_k": 5})
    assert bound.strategy.select_k == 5
    lengths = [
        len(found(retriever, "Lima", strategy__select_k=k, strategy__start_k=4)) for k in (3, 5)
    ]
    assert lengths == [3, 4]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ("make_nothing", "returned NoneType: a retriever is needed"),
        (
            "make_misspelt",
            "gives search_kwargs 'lambda_mul', which InMemoryVectorStore does not read; "
            "did you mean 'lambda_mult'",
        ),
        ("make_empty", "the store of VectorStoreRetriever .* is empty"),
    ],
)
def test_what_cannot_be_asked_is_refused(make: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(make, space=SearchSpace({"search_kwargs.k": Integer(1, 9)}), baseline={})


def test_a_keyword_that_the_code_of_a_store_names_or_that_is_like_none_is_left_alone() -> None:
    assert found(built("make_own"), "Lima")[0] == "d0"


def test_what_is_no_document_fails_the_trial() -> None:
    with pytest.raises(TunerError, match="'q': a list of LangChain's documents is needed"):
        found(built("make_words"), "Lima")


def test_documents_are_matched_by_id_metadata_or_content() -> None:
    for way in ("id", "metadata.doc_id", "content"):
        assert found(built("make_vectors", id=way), "Lima")[0] == "d0"
    with pytest.raises(TunerError, match=r"has no id .*write id: metadata.doc_id"):
        found(built("make_bare"), "Lima")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise options.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(options.metadata, "version", missing)
    with pytest.raises(InputError, match=r"pip install 'graphrag-tuner\[langchain\]'"):
        built("make_vectors")


@pytest.mark.parametrize("named", ["made", "made.invoke"])
def test_an_object_that_is_named_as_a_function_leads_to_this_kind(named: str) -> None:
    with pytest.raises(
        InputError, match=r'def make_made.*kind: langchain, make: "langchain_apps:make_made"'
    ):
        Function.build(CORPUS, function=f"langchain_apps:{named}", search_path=[FOLDER])
