"""What the adapters of other people's packages have in common: promises, knobs and versions."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.core.errors import InputError, TunerError
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.adapters import options
from tuner.retrieval.adapters.embedding import HASHED_WORDS
from tuner.retrieval.adapters.graph_retriever import GraphRetriever
from tuner.retrieval.adapters.lightrag import Lightrag
from tuner.retrieval.adapters.ms_graphrag_local import MsGraphragLocal
from tuner.run.systems import declared_knobs
from tuner.testing import RetrieverCase, RetrieverContract

DOCUMENTS = (
    Document("10", "Night Ferry", "Night Ferry is a film directed by Ada Holm in 1954."),
    Document("11", "Ada Holm", "Ada Holm was a director. She was born in Kvarnby."),
    Document("12", "Kvarnby", "Kvarnby is a town on the river Lissa."),
    Document("13", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
    Document("14", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
)
TRIPLES = (
    Triple("10", "Night Ferry", "directed by", "Ada Holm"),
    Triple("11", "Ada Holm", "born in", "Kvarnby"),
    Triple("12", "Kvarnby", "lies on", "Lissa"),
    Triple("13", "Day Ferry", "directed by", "Per Lund"),
)
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "who directed day ferry"),
    Query("d", "zymurgy"),
)
IDS = {document.id for document in DOCUMENTS}


def needs(package: str, extra: str) -> pytest.MarkDecorator:
    reason = f"{package} is not installed: pip install '.[{extra}]'"
    return pytest.mark.skipif(find_spec(package) is None, reason=reason)


# Each adapter, and parameters with which it answers; with the first, nearly every query.
EACH = {
    "graph_retriever": (GraphRetriever, [{}, {"strategy": "mmr"}, {"strategy": "scored"}]),
    "lightrag": (Lightrag, [{"cosine_better_than_threshold": 0.0}]),
}
each_adapter = pytest.mark.parametrize(
    ("kind", "settings"),
    [pytest.param(*each, id=name, marks=needs(name, name)) for name, each in EACH.items()],
)


def build_graph_retriever() -> GraphRetriever:
    return GraphRetriever.build(Corpus(DOCUMENTS), cache_dir=Path(mkdtemp()))


@needs("graph_retriever", "graph_retriever")
class TestGraphRetriever(RetrieverContract):
    case = RetrieverCase(
        build_graph_retriever,
        QUERIES,
        (
            {},
            {"strategy": "mmr", "lambda_mult": 0.1, "select_k": 4, "start_k": 1},
            {"strategy": "scored", "select_k": 3, "start_k": 2, "max_depth": 1},
            {"start_k": 1, "max_depth": 0},
            {"select_k": 1, "start_k": 4},
        ),
        document_ids=IDS,
    )


def build_lightrag() -> Lightrag:
    return Lightrag.build(Corpus(DOCUMENTS, TRIPLES), cache_dir=Path(mkdtemp()))


@needs("lightrag", "lightrag")
class TestLightrag(RetrieverContract):
    case = RetrieverCase(
        build_lightrag,
        QUERIES,
        (
            {},
            {"mode": "naive", "chunk_top_k": 2},
            {"mode": "local", "top_k": 2, "kg_chunk_pick_method": "WEIGHT"},
            {"mode": "global", "cosine_better_than_threshold": 0.0, "related_chunk_number": 1},
            {"mode": "hybrid", "max_entity_tokens": 50, "max_relation_tokens": 50},
            {"max_total_tokens": 1000},
        ),
        document_ids=IDS,
    )


@pytest.mark.parametrize(
    ("kind", "first"),
    [("graph_retriever", ["strategy", "select_k"]), ("lightrag", ["mode", "top_k"])],
)
def test_knobs_are_told_without_an_index(kind: str, first: list[str]) -> None:
    assert [knob.name for knob in declared_knobs(kind, {})][:2] == first
    with pytest.raises(InputError, match="did you mean 'embedder'"):
        declared_knobs(kind, {"embeder": "x:y"})


def try_to_build(kind: type, folder: Path) -> None:
    options = {"path": str(folder)} if kind is MsGraphragLocal else {}
    kind.build(Corpus(DOCUMENTS), cache_dir=folder, **options)


@pytest.mark.parametrize(
    ("kind", "version", "message"),
    [
        (GraphRetriever, "0.7.1", r"graph-retriever 0\.7\.1 is installed; 0\.8 or newer"),
        (Lightrag, "1.5.6", r"lightrag-hku 1\.5\.6 is installed; 1\.5\.7 or newer"),
        (Lightrag, "0.1", r"lightrag-hku 0\.1 is installed; 1\.5\.7 or newer"),
        (MsGraphragLocal, "3.2.9", r"graphrag 3\.2\.9 is installed; 3\.3 or newer"),
    ],
)
def test_an_older_package_is_refused(
    kind: type, version: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options.metadata, "version", lambda _: version)
    with pytest.raises(InputError, match=message):
        try_to_build(kind, tmp_path)


@pytest.mark.parametrize(
    ("kind", "extra"),
    [(GraphRetriever, "graph_retriever"), (Lightrag, "lightrag"), (MsGraphragLocal, "graphrag")],
)
def test_without_the_package_the_extra_is_named(
    kind: type, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise options.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(options.metadata, "version", missing)
    with pytest.raises(InputError, match=rf"pip install 'graphrag-tuner\[{extra}\]'"):
        try_to_build(kind, tmp_path)


@pytest.fixture
def asked(queries: list[Query]) -> list[Query]:
    return [*queries, Query("f", " "), Query("g", "?")]


def rows(rankings: Rankings) -> list[list[str]]:
    return [rankings.ids(row) for row in range(len(rankings.query_ids))]


@each_adapter
def test_prepared_served_and_plain_answers_are_equal(
    kind: Any, settings: list[Params], corpus: Corpus, asked: list[Query], tmp_path: Path
) -> None:
    params = settings[0]
    plain = kind.build(corpus, cache_dir=tmp_path).retrieve(asked, params)
    retriever = kind.build(corpus, cache_dir=tmp_path)
    retriever.prepare(asked)
    assert rows(retriever.retrieve(asked, params)) == rows(plain)
    for row, query in enumerate(asked):
        assert retriever.serve(query, params).ids(0) == plain.ids(row)


@pytest.mark.slow
@each_adapter
def test_another_process_answers_the_same_whatever_its_hash_seed(
    kind: Any, settings: list[Params], corpus: Corpus, asked: list[Query], tmp_path: Path
) -> None:
    retriever = kind.build(corpus, cache_dir=tmp_path)
    retriever.prepare(asked)
    wanted = [rows(retriever.retrieve(asked, params)) for params in settings]
    file = tmp_path / "retriever.pickle"
    file.write_bytes(pickle.dumps((retriever, asked, settings)))
    code = (
        "import pathlib, pickle, sys\n"
        "retriever, queries, settings = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "found = [retriever.retrieve(queries, params) for params in settings]\n"
        "print([[one.ids(row) for row in range(len(queries))] for one in found])"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code, str(file)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str(wanted)
        assert done.stderr == ""


@each_adapter
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zero_passage", "vector of passage '12' is all zeros"),
        ("flat", "the embedder returned shape"),
        ("one_short", "one row a text"),
        ("words", "matrix of numbers"),
        ("broken", "the embedder failed: RuntimeError: the model is gone"),
    ],
)
@pytest.mark.usefixtures("embedders")
def test_an_embedder_that_goes_wrong_is_named(
    kind: Any,
    settings: list[Params],  # it does not come to an answer
    corpus: Corpus,
    tmp_path: Path,
    name: str,
    message: str,
) -> None:
    with pytest.raises(TunerError, match=message):
        kind.build(corpus, cache_dir=tmp_path, embedder=f"odd_embedders:{name}")


@each_adapter
@pytest.mark.usefixtures("embedders")
def test_a_query_without_a_vector_is_named(
    kind: Any, settings: list[Params], corpus: Corpus, queries: list[Query], tmp_path: Path
) -> None:
    retriever = kind.build(corpus, cache_dir=tmp_path, embedder="odd_embedders:nan_query")
    with pytest.raises(TunerError, match="vector of query 'd' is not finite"):
        retriever.prepare(queries)
    with pytest.raises(TunerError, match="vector of query 'd' is not finite"):
        retriever.retrieve(queries, {})
    assert rows(retriever.retrieve(queries[:3], settings[0]))[0]


@each_adapter
def test_an_index_that_is_gone_is_said_to_be(
    kind: Any, settings: list[Params], queries: list[Query], tmp_path: Path
) -> None:
    gone = kind(tmp_path / "gone", "x", HASHED_WORDS)
    with pytest.raises(TunerError, match="is gone: build the retriever again"):
        gone.retrieve(queries, settings[0])
