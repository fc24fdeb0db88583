"""What the adapters of other people's packages promise of indexes: each setting has its own."""

from __future__ import annotations

import pickle
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tuner.config import load_config
from tuner.core.corpus import Corpus, Query
from tuner.core.errors import TunerError
from tuner.core.trial import Params
from tuner.retrieval.indexes import Indexed
from tuner.retrieval.indexes.pickling import open_retriever
from tuner.run.planning import make_plan
from tuner.run.systems import build_retriever

Open = Callable[..., Indexed]


@dataclass(frozen=True)
class Case:
    """An adapter: its options, and parameters of its index that differ from them.

    ``params`` are those of the queries with which most of them are answered.
    """

    kind: str
    settings: Params
    params: Params = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    package: str | None = None


CASES = (
    Case(
        "lightrag",
        {"chunk_token_size": 16, "chunk_overlap_token_size": 2, "embedder": "lsa"},
        {"mode": "naive", "cosine_better_than_threshold": 0.0, "chunk_top_k": 3},
        package="lightrag",
    ),
    Case(
        "graph_retriever",
        {"names": "titles", "embedder": "wordllama"},
        {"start_k": 1, "select_k": 4},
        package="graph_retriever",
    ),
)


@pytest.fixture(params=CASES, ids=lambda case: case.kind)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    if found.package is not None and find_spec(found.package) is None:
        pytest.skip(f"{found.package} is not installed")
    return found


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def opened(case: Case, corpus: Corpus, queries: list[Query], cache: Path, tmp_path: Path) -> Open:
    """Return what builds the retriever of a configuration, as a run does."""

    # Long enough to be cut.
    longer = tuple(replace(one, text=f"{one.text} {one.text}") for one in corpus.documents)

    def made(**baseline: Any) -> Indexed:
        path = tmp_path / "config.yaml"
        config = {
            "dataset": {"path": "builtin:atlas"},
            "retriever": {"kind": case.kind, **case.options},
            "objective": {"maximize": {"ndcg@10": 1.0}},
            "space": {"embedder": {"type": "categorical", "choices": ["hashed-words", "lsa"]}},
            "baseline": baseline,
            "backends": [{"kind": "grid", "trials": 2}],
            "tracking": None,
        }
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        checked, source = load_config(path, ())
        data = Corpus(longer, corpus.triples)
        retriever = build_retriever(checked, make_plan(checked, source).space, data)
        assert isinstance(retriever, Indexed)
        retriever.prepare(queries)
        return retriever

    return made


def answers(retriever: Any, queries: list[Query], params: Params) -> list[list[str]]:
    rankings = retriever.retrieve(queries, params)
    return [rankings.ids(row) for row in range(len(queries))]


@pytest.mark.slow
def test_each_setting_has_an_index_of_its_own_that_is_built_once(
    case: Case, opened: Open, queries: list[Query], cache: Path
) -> None:
    retriever = opened()
    first, other = retriever.ready(case.params), retriever.ready(case.settings)
    assert (first.is_new, other.is_new) == (True, True)
    assert first.name != other.name
    assert retriever.ready(case.settings).name == other.name
    assert not retriever.ready(case.settings).is_new
    again = opened()
    assert not again.ready({**case.params, **case.settings}).is_new
    both = [answers(again, queries, {**case.params, **own}) for own in ({}, case.settings)]
    assert both[0] != both[1]
    assert {path.name for path in (cache / "indexes").iterdir() if path.is_dir()} == {
        first.name,
        other.name,
    }


@pytest.mark.slow
def test_as_the_baselines_it_answers_the_same(
    case: Case, opened: Open, queries: list[Query]
) -> None:
    params = {**case.params, **case.settings}
    built_apart = answers(opened(), queries, params)
    built_here = answers(opened(**case.settings), queries, case.params)
    assert built_here == built_apart


@pytest.mark.slow
def test_two_that_want_one_index_build_it_once(case: Case, opened: Open) -> None:
    new: list[bool] = []
    threads = [
        threading.Thread(
            target=lambda retriever: new.append(retriever.ready(case.settings).is_new),
            args=(opened(),),
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new) == [False, True]


@pytest.mark.slow
def test_a_copy_answers_and_an_index_can_be_carried_elsewhere(
    case: Case, opened: Open, queries: list[Query], cache: Path, tmp_path: Path
) -> None:
    retriever = opened()
    wanted = answers(retriever, queries, {**case.params, **case.settings})
    copy = pickle.loads(pickle.dumps(retriever))
    assert answers(copy, queries, {**case.params, **case.settings}) == wanted
    name = retriever.ready(case.settings).name
    shutil.copytree(cache / "indexes" / name, tmp_path / "elsewhere")
    shutil.rmtree(cache)
    carried = open_retriever(tmp_path / "elsewhere")
    assert answers(carried, queries, case.params) == wanted


@pytest.mark.parametrize("embedder", ["no_such_module:embed", "odd_embedders:broken"])
@pytest.mark.usefixtures("embedders")
def test_an_embedder_that_fails_costs_its_own_trials_alone(
    case: Case, opened: Open, queries: list[Query], embedder: str
) -> None:
    if "embedder" not in case.settings:
        pytest.skip("it has no embedder")
    retriever = opened()
    for _ in range(2):
        with pytest.raises(TunerError, match=r"no_such_module|the model is gone"):
            retriever.ready({"embedder": embedder})
    assert any(answers(retriever, queries, case.params))
