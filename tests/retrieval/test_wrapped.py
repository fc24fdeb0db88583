"""What the adapters of other people's packages have in common: promises, knobs and versions."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.core.errors import InputError
from tuner.retrieval.adapters import installed
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
    monkeypatch.setattr(installed.metadata, "version", lambda _: version)
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
        raise installed.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installed.metadata, "version", missing)
    with pytest.raises(InputError, match=rf"pip install 'graphrag-tuner\[{extra}\]'"):
        try_to_build(kind, tmp_path)
