"""What the adapters of other people's packages promise of indexes: each setting has its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.core.errors import TunerError
from tuner.core.trial import Params
from tuner.retrieval.adapters.graph_retriever import GraphRetriever
from tuner.retrieval.adapters.lightrag import Lightrag
from tuner.retrieval.indexes.pickling import open_pickle
from tuner.retrieval.indexes.record import RETRIEVER
from tuner.testing import IndexCase, IndexContract

DOCUMENTS = (
    Document("10", "Night Ferry", "Night Ferry is a film of 1954. Ada Holm directed it in spring."),
    Document("11", "Ada Holm", "Ada Holm was a director. She was born in Kvarnby in Ostermark."),
    Document("12", "Kvarnby", "Kvarnby is a town on the river Lissa. It has two old bridges."),
    Document("13", "Lissa (river)", "The Lissa flows through Ostermark into the sea at Lund."),
    Document("14", "Day Ferry", "Day Ferry is a film by Per Lund. The sea is seen in it often."),
)
TRIPLES = (
    Triple("10", "Night Ferry", "directed by", "Ada Holm"),
    Triple("11", "Ada Holm", "born in", "Kvarnby"),
    Triple("14", "Day Ferry", "directed by", "Per Lund"),
)
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "old bridges"),
)


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")


def lightrag() -> IndexCase:
    return IndexCase(
        Lightrag,
        Corpus(DOCUMENTS, TRIPLES),
        QUERIES,
        first={
            "chunk_token_size": 1200,
            "chunk_overlap_token_size": 100,
            "embedder": "hashed-words",
        },
        other={"chunk_token_size": 16, "chunk_overlap_token_size": 2, "embedder": "lsa"},
    )


@needs("lightrag")
@pytest.mark.slow
class TestLightrag(IndexContract):
    case = lightrag()


def graph_retriever() -> IndexCase:
    return IndexCase(
        GraphRetriever,
        Corpus(DOCUMENTS, TRIPLES),
        QUERIES,
        first={"names": "triples", "embedder": "hashed-words"},
        other={"names": "titles", "embedder": "wordllama"},
    )


@needs("graph_retriever")
@needs("wordllama")
@pytest.mark.slow
class TestGraphRetriever(IndexContract):
    case = graph_retriever()


each_case = pytest.mark.parametrize(
    "make",
    [
        pytest.param(lightrag, marks=needs("lightrag")),
        pytest.param(graph_retriever, marks=needs("graph_retriever")),
    ],
)


@each_case
def test_an_index_can_be_carried_elsewhere(make: Callable[[], IndexCase], tmp_path: Path) -> None:
    case = make()
    indexed = case.opened(tmp_path / "cache", case.first)
    wanted = indexed.retrieve(QUERIES, {})
    name = indexed.ready({}).name
    shutil.copytree(tmp_path / "cache" / "indexes" / name, tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "cache")
    carried = open_pickle(tmp_path / "elsewhere" / RETRIEVER).retrieve(QUERIES, {})
    assert [carried.ids(row) for row in range(3)] == [wanted.ids(row) for row in range(3)]


def test_an_index_tells_how_many_words_were_embedded(tmp_path: Path) -> None:
    pytest.importorskip("graph_retriever", reason="graph-retriever is not installed")
    indexed = graph_retriever().opened(tmp_path, {})
    words = sum(len(f"{one.title} {one.text}".split()) for one in DOCUMENTS)
    assert indexed.ready({}).tokens == words


def test_an_index_of_chunks_tells_how_many_words_were_embedded(tmp_path: Path) -> None:
    pytest.importorskip("lightrag", reason="LightRAG is not installed")
    whole, cut = (
        Lightrag.build(
            Corpus(DOCUMENTS), cache_dir=tmp_path, chunk_token_size=8, chunk_overlap_token_size=o
        ).index_cost["tokens"]
        for o in (0, 4)
    )
    # Each chunk is embedded, so an overlap is read twice; entities and relations are the same.
    assert whole < cut


@each_case
@pytest.mark.usefixtures("embedders")
def test_another_model_behind_the_same_name_is_another_index(
    make: Callable[[], IndexCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    import odd_embedders

    from tuner.retrieval.adapters.embedding import known_identity

    case = make()
    settings: Params = {knob.name: knob.default for knob in case.knobs}
    own = {**settings, "embedder": "odd_embedders:letters"}
    known_identity.cache_clear()
    before = case.kind.identify_index(own)
    assert before == case.kind.identify_index(own) != case.kind.identify_index(settings)
    letters = odd_embedders.letters
    monkeypatch.setattr(odd_embedders, "letters", lambda texts: letters([t[::-1] for t in texts]))
    known_identity.cache_clear()  # as in another process
    assert case.kind.identify_index(own) != before


@each_case
@pytest.mark.usefixtures("embedders")
@pytest.mark.parametrize("embedder", ["no_such_module:embed", "odd_embedders:broken"])
def test_an_embedder_that_fails_says_why(make: Callable[[], IndexCase], embedder: str) -> None:
    case = make()
    settings = {knob.name: knob.default for knob in case.knobs}
    with pytest.raises(TunerError, match=r"no_such_module|the model is gone"):
        case.kind.identify_index({**settings, "embedder": embedder})
