"""The reach that `tuner dataset stats` tells is what the built-in engine can find, and no less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tuner.core.corpus import Document, Query, Triple
from tuner.datasets import Dataset, open_dataset
from tuner.evalset.reach import graph_hops, reach_of
from tuner.evalset.statistics import relevant_documents
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.hybrid.index import Index
from tuner.retrieval.hybrid.knobs import knobs_of, read_params
from tuner.retrieval.hybrid.options import HybridOptions

SHARED_DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def recall_at_100(engine: Hybrid, dataset: Dataset, **params: float) -> float:
    rankings = engine.retrieve(dataset.queries, {"top_k": 100, **params})
    shares = [
        len(set(rankings.ids(row)) & set(ids)) / len(ids)
        for row, ids in enumerate(relevant_documents(dataset).values())
        if ids
    ]
    return sum(shares) / len(shares)


PUBLISHED = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("musique", "2wiki", "hotpotqa")
]


@pytest.mark.parametrize("name", ["builtin:atlas", *PUBLISHED])
def test_no_setting_of_the_engine_has_a_higher_recall(name: str, index_dir: Path) -> None:
    if not name.startswith("builtin:") and not SHARED_DATA.is_dir():
        pytest.skip("the shared data sets are not beside this checkout (../shared/data)")
    dataset = open_dataset(name if name.startswith("builtin:") else SHARED_DATA / name)
    reach = reach_of(dataset)
    engine = Hybrid.build(dataset.corpus, cache_dir=index_dir)
    words = recall_at_100(engine, dataset, graph_weight=0.0)
    assert 0.5 < words <= reach.by_words
    # A walk of 1 hop from the default seeds; queries without any seed are answered by text.
    for hops in (1, 2, 6):
        both = recall_at_100(engine, dataset, graph_weight=0.5, max_hops=hops, temperature=1.0)
        assert both <= reach.by_either[hops] + 1e-12
    assert reach.in_corpus == 1.0


def test_hops_are_where_the_engine_gives_a_score() -> None:
    dataset = open_dataset("builtin:atlas")
    queries = dataset.queries[::9]
    index = Index.build(dataset.corpus, HybridOptions())
    pairs = [(query.id, id_) for query in queries for id_ in index.document_ids]
    hops = graph_hops(dataset, pairs)
    shape = (len(queries), len(index.document_ids))
    told = np.array([99 if found is None else found for found in hops]).reshape(shape)
    texts = [query.text for query in queries]
    for most in (1, 2, 3):
        settings = read_params({"temperature": 10.0, "max_hops": most}, knobs_of(index.options))
        scores = index.graph_scores(texts, settings)
        np.testing.assert_array_equal(scores > 0, told <= most)


def test_names_from_triples_lead_on() -> None:
    dataset = Dataset.create(
        "small",
        "here",
        documents=[
            Document("d1", "红楼梦", "小说"),
            Document("d2", "Babbage", "born in London"),
            Document("d3", "", "by the river"),
            Document("d4", "", "not linked to anything"),
        ],
        queries=[Query("q1", "Where was Babbage born?"), Query("q2", "红楼梦是谁写的？")],
        qrels={"q1": {"d2": 1}, "q2": {"d1": 1}},
        triples=[
            Triple("d2", "Babbage", "born in", "London"),
            Triple("d3", "London", "lies on", "Thames"),
        ],
    )
    pairs = [("q1", "d2"), ("q1", "d3"), ("q1", "d4"), ("q1", "gone"), ("q2", "d1"), ("q2", "d2")]
    # Babbage is d2's own; d2 and d3 share London; 红楼梦 is d1's own, and leads nowhere else.
    assert graph_hops(dataset, pairs) == [1, 2, None, None, 1, None]


def test_a_corpus_without_names_has_no_hops() -> None:
    dataset = Dataset.create(
        "plain",
        "here",
        documents=[Document("d1", "", "all in lower case")],
        queries=[Query("q1", "lower case?")],
        qrels={"q1": {"d1": 1}},
    )
    assert graph_hops(dataset, [("q1", "d1")]) == [None]
