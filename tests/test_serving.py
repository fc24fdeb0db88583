"""A registered model answers queries with the tuned retriever, or tells its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.feature_rule import FeatureRule, Line, Scale
from tuner.core.policy import Policy
from tuner.datasets import open_dataset
from tuner.retrieval.features import seen_of
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.wrapped.policy import PolicyRetriever
from tuner.serving import _load_pyfunc

PARAMS = {"graph_weight": 0.6, "max_hops": 2, "top_k": 5, "temperature": 0.2}
CONFIG: dict[str, Any] = {
    "dataset": {"path": "builtin:atlas"},
    "retriever": {"kind": "hybrid"},
    "space": {"max_hops": {"type": "integer", "low": 1, "high": 4}},
    "backends": [{"kind": "tpe", "trials": 4}],
    # A store whose driver is not here, with its password masked: serving needs neither.
    "tracking": {"uri": "mssql+pymssql://me:***@nowhere/mlflow"},
}
TEXTS = ["Who founded the guild that built the bridge of Lisfen?", "Which river is longest?"]


def write_model(folder: Path, *, params: Any = None, **config: Any) -> Path:
    (folder / "config.yaml").write_text(yaml.safe_dump({**CONFIG, **config}))
    (folder / "best.yaml").write_text(
        yaml.safe_dump({"params": PARAMS if params is None else params})
    )
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory, index_dir):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNER_CACHE_DIR", str(index_dir))
        return _load_pyfunc(str(write_model(tmp_path_factory.mktemp("model"))))


@pytest.fixture(scope="module")
def engine(index_dir):
    corpus = open_dataset("builtin:atlas").corpus
    return Hybrid.build(corpus, cache_dir=index_dir)


def test_the_engine_answers_with_the_tuned_parameters(model, engine):
    answers = model.predict(TEXTS)
    assert [answer["query"] for answer in answers] == TEXTS
    for answer, text in zip(answers, TEXTS, strict=True):
        expected = engine.serve(Query("q", text), PARAMS)
        assert answer["params"].items() >= PARAMS.items()
        assert answer["ids"] == expected.ids(0)
        assert len(answer["ids"]) == len(answer["scores"]) == 5
        assert answer["scores"] == sorted(answer["scores"], reverse=True)


def test_queries_come_as_a_list_a_table_or_one_text(model):
    answers = model.predict(TEXTS)
    assert model.predict(pd.DataFrame({"query": TEXTS, "user": [1, 2]})) == answers
    assert model.predict({"query": TEXTS}) == answers
    assert model.predict(pd.Series(TEXTS)) == answers
    assert model.predict(TEXTS[0]) == answers[:1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "no queries"),
        ([" "], "a query is a text, but one is ' '"),
        ([3], "a query is a text, but one is 3"),
        (pd.DataFrame({"text": ["a"]}), "the table has no column 'query'"),
        ({"text": ["a"]}, "the table has no column 'query'"),
    ],
)
def test_what_is_no_query_is_said(model, data, message):
    with pytest.raises(InputError, match=message):
        model.predict(data)


def test_a_policy_answers_each_query_with_the_parameters_of_its_type(tmp_path, engine):
    rule = {"start": {"long": 0.0, "short": 0.0}, "weights": {"river": {"short": 1.0}}}
    short = {**PARAMS, "max_hops": 1, "graph_weight": 0.0}
    policy = {"default": PARAMS, "types": {"short": short}, "rule": rule}
    answers = _load_pyfunc(str(write_model(tmp_path, params=policy))).predict(TEXTS)
    assert [answer["params"] for answer in answers] == [PARAMS, short]
    assert answers[1]["ids"] == engine.serve(Query("q", TEXTS[1]), short).ids(0)


def test_a_policy_by_features_sees_in_service_what_it_saw_where_it_was_learned(tmp_path, engine):
    queries = open_dataset("builtin:atlas").queries[:40]
    seen = seen_of(engine, queries, PARAMS)
    settings = {f"graph_weight={w}": {**PARAMS, "graph_weight": w} for w in (0.0, 0.2, 0.8, 1.0)}
    scales = {
        name: Scale(float(np.nanmean(values)), float(np.nanstd(values)))
        for name, values in seen.items()
        if np.nanstd(values) > 0
    }
    assert {"words", "names_recognised", "best_seed", "rarest_word"} <= set(scales)
    line = Line("graph_weight", 0.5, dict.fromkeys(scales, 0.2))
    policy = Policy(PARAMS, settings, FeatureRule(scales, line=line))
    expected = policy.params_for([query.text for query in queries], seen)
    assert len({params["graph_weight"] for params in expected}) > 3
    model = _load_pyfunc(str(write_model(tmp_path, params=policy.to_record())))
    answers = model.predict([query.text for query in queries])
    assert [answer["params"] for answer in answers] == expected
    # A batch of prepared queries is answered with the same parameters.
    engine.prepare(queries)
    batch = PolicyRetriever(engine, policy).retrieve(queries, {})
    assert [batch.ids(row) for row in range(40)] == [answer["ids"] for answer in answers]


def test_a_policy_by_features_of_a_system_that_is_not_here_goes_by_the_words(tmp_path):
    scales = {"words": Scale(6.0, 2.0), "names_recognised": Scale(1.0, 1.0)}
    line = Line("weight", 0.5, {"words": 0.2, "names_recognised": 9.0})
    policy = Policy({"weight": 0.5}, {"high": {"weight": 0.9}}, FeatureRule(scales, line=line))
    folder = write_model(
        tmp_path, params=policy.to_record(), retriever={"kind": "no_such_package:Thing"}
    )
    answers = _load_pyfunc(str(folder)).predict(TEXTS)
    # 11 words: .5 + .2 * 2.5 = 1.0; 4 words: .5 - .2
    assert [answer["params"] for answer in answers] == [{"weight": 0.9}, {"weight": 0.5}]


def test_a_corpus_that_is_not_here_is_said_and_another_place_can_be_named(tmp_path):
    write_model(tmp_path, dataset={"path": "/nowhere/corpus"})
    with pytest.raises(InputError, match=r"needs its corpus: .*/nowhere/corpus.*model_config"):
        _load_pyfunc(str(tmp_path), {"dataset": "/nowhere/corpus"})
    moved = _load_pyfunc(str(tmp_path), {"dataset": "builtin:atlas"})
    assert len(moved.predict(TEXTS[:1])[0]["ids"]) == 5


@pytest.mark.parametrize(
    "config",
    [
        {"retriever": {"kind": "no_such_package:Thing"}},
        {"retriever": {"kind": "function", "target": "no_such_package:ask"}, "dataset": None},
        {"retriever": {"kind": "no_such_package:Thing"}, "dataset": {"path": "/nowhere"}},
    ],
)
def test_another_system_that_is_not_here_tells_its_parameters(tmp_path, config, caplog):
    params = {"anything": 3, "mode": "local"}
    model = _load_pyfunc(str(write_model(tmp_path, params=params, **config)))
    assert model.predict(TEXTS[:1]) == [
        {"query": TEXTS[0], "params": params, "ids": None, "scores": None}
    ]
    assert "is not to be had here" in caplog.text
