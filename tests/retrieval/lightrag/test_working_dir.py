"""A working directory that LightRAG itself has written, whole and damaged."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lightrag", reason="LightRAG is not installed: pip install '.[lightrag]'")

from tuner.core.corpus import Corpus, Document
from tuner.core.errors import InputError, TunerError
from tuner.retrieval.adapters.lightrag import Lightrag
from tuner.retrieval.adapters.lightrag.working_dir import FILES, match_documents, read_working_dir

EMBEDDER = "odd_embedders:letters"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Let LightRAG index two documents by its own pipeline, with a language model of two lines."""
    from lightrag import LightRAG
    from lightrag.utils import EmbeddingFunc, Tokenizer, logger

    logger.setLevel("CRITICAL")

    class Letters:
        def encode(self, text):
            return [ord(letter) for letter in text]

        def decode(self, tokens):
            return "".join(map(chr, tokens))

    async def vectors(texts, **_):
        vectors = np.full((len(texts), 64), 0.01)
        for vector, text in zip(vectors, texts, strict=True):
            for first, second in zip(text.lower(), text.lower()[1:], strict=False):
                vector[(ord(first) * 31 + ord(second)) % 64] += 1
        return vectors

    async def model(prompt, **_):
        if "Ada Holm was a director" in prompt:
            return (
                "entity<|#|>Ada Holm<|#|>person<|#|>Ada Holm is a director.\n"
                "entity<|#|>Kvarnby<|#|>location<|#|>Kvarnby is a town.\n"
                "relation<|#|>Ada Holm<|#|>Kvarnby<|#|>birthplace<|#|>Ada Holm was born there.\n"
                "<|COMPLETE|>"
            )
        return "entity<|#|>Lissa<|#|>location<|#|>Lissa is a river.\n<|COMPLETE|>"

    async def index(folder):
        rag = LightRAG(
            working_dir=str(folder),
            workspace="",
            tokenizer=Tokenizer("letters", Letters()),
            embedding_func=EmbeddingFunc(embedding_dim=64, func=vectors),
            llm_model_func=model,
            chunk_token_size=60,
            chunk_overlap_token_size=0,
        )
        await rag.initialize_storages()
        await rag.ainsert(
            ["Ada Holm was a director. She was born in Kvarnby.", "The Lissa flows " + "on " * 40],
            ids=["11", "13"],
            file_paths=["wiki/11.txt", "wiki/13.txt"],
        )
        await rag.finalize_storages()

    folder = tmp_path_factory.mktemp("working_dir")
    asyncio.run(index(folder))
    return folder


@pytest.fixture
def working_dir(written, tmp_path):
    shutil.copytree(written, tmp_path / "working_dir")
    return tmp_path / "working_dir"


def test_a_directory_of_lightrags_own_pipeline_is_taken_up(
    build, corpus, queries, working_dir, embedders
):
    before = {path: path.read_bytes() for path in working_dir.rglob("*") if path.is_file()}
    retriever = build(corpus, working_dir=str(working_dir), embedder=EMBEDDER)
    rankings = retriever.retrieve(queries, {"cosine_better_than_threshold": 0.0})
    # The second document has several chunks, and stands once in the ranking.
    assert sorted(rankings.ids(0)) == ["11", "13"]
    assert "Ada Holm" in rankings.entities[0]
    assert [("Ada Holm", "birthplace", "Kvarnby")] in rankings.paths[0]
    assert {path: path.read_bytes() for path in working_dir.rglob("*") if path.is_file()} == before


def test_documents_that_the_index_lacks_are_counted(build, corpus, working_dir, embedders, caplog):
    for _ in range(2):  # the second time the copy is there already
        caplog.clear()
        build(corpus, working_dir=str(working_dir), embedder=EMBEDDER)
        assert "holds no chunk of 6 of the corpus's 8 documents, such as '10'" in caplog.text


def test_a_relative_path_starts_at_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Lightrag.resolve_options({"working_dir": "index", "embedder": "a:b"}, Path("/configs"))
    assert found == {"working_dir": str(tmp_path / "index"), "embedder": "a:b"}
    assert Lightrag.resolve_options({}, Path("/configs")) == {}


def test_another_content_is_another_index(build, corpus, working_dir, embedders):
    first = build(corpus, working_dir=str(working_dir), embedder=EMBEDDER)
    chunks = read(working_dir / FILES[0])
    next(iter(chunks.values()))["tokens"] = 1
    write(working_dir / FILES[0], chunks)
    second = build(corpus, working_dir=str(working_dir), embedder=EMBEDDER)
    assert second.fingerprint != first.fingerprint


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(build, corpus, working_dir, embedders, name):
    (working_dir / name).unlink()
    with pytest.raises(InputError, match=f"is no LightRAG working directory: {name} missing"):
        build(corpus, working_dir=str(working_dir), embedder=EMBEDDER)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", ["", "{", "[]", "<graphml>"])
def test_a_broken_file_is_named(build, corpus, working_dir, embedders, name, content):
    (working_dir / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=name):
        build(corpus, working_dir=str(working_dir), embedder=EMBEDDER)


def spoil_vector(content):
    matrix = np.frombuffer(base64.b64decode(content["matrix"]), dtype=np.float32).copy()
    matrix[: content["embedding_dim"]] = np.nan
    content["matrix"] = base64.b64encode(matrix.tobytes()).decode()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_vector, "zero or NaN vectors: 11-chunk-000"),
        (lambda content: content["data"].pop(), "is no vector file"),
        (lambda content: content.pop("matrix"), "is no vector file"),
        (lambda content: content["data"][0].pop("content"), "written by an older LightRAG"),
        (lambda content: content["data"][0].update(__id__="chunk-x"), "do not hold the same"),
    ],
)
def test_broken_vectors_are_refused(build, corpus, working_dir, embedders, spoil, message):
    content = read(working_dir / "vdb_chunks.json")
    spoil(content)
    write(working_dir / "vdb_chunks.json", content)
    with pytest.raises(InputError, match=message):
        build(corpus, working_dir=str(working_dir), embedder=EMBEDDER)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", "the embedder is not the one that made"),
        ("wide", "vectors of 128 numbers, but those of the index have 64"),
    ],
)
def test_another_embedder_than_the_indexs_is_refused(
    build, corpus, working_dir, embedders, name, message
):
    with pytest.raises(TunerError, match=message):
        build(corpus, working_dir=str(working_dir), embedder=f"odd_embedders:{name}")


def test_chunks_of_no_document_are_named(build, corpus, working_dir, embedders):
    rest = Corpus(tuple(document for document in corpus.documents if document.id != "11"))
    with pytest.raises(InputError, match=r"1 of 4 chunks .* by full_doc_id: .*'11'"):
        build(rest, working_dir=str(working_dir), embedder=EMBEDDER)


DOCUMENTS = (Document("a", "Lima", "Lima is in Peru."), Document("b", "Oslo", "Oslo is in Norway."))


@pytest.mark.parametrize(
    "chunks",
    [
        {"c1": {"full_doc_id": "a"}, "c2": {"full_doc_id": "b"}},
        {"c1": {"full_doc_id": "doc-1", "file_path": "a"}, "c2": {"file_path": "/data/b.md"}},
        {"a": {"full_doc_id": "doc-1"}, "b": {"full_doc_id": "doc-2"}},
        {
            "c1": {"full_doc_id": "doc-to be filled in"},
            "c2": {"full_doc_id": "doc-to be filled in"},
        },
        {"c1": {"content": "Lima  is in Peru.\n"}, "c2": {"content": "Oslo Oslo is in Norway."}},
    ],
    ids=["full_doc_id", "file_path", "own id", "hash", "text"],
)
def test_each_rule_for_a_chunks_document(chunks):
    if "filled in" in str(chunks):  # LightRAG's id for a text that came without one
        from lightrag.utils import compute_mdhash_id

        texts = ("Lima is in Peru.", "Oslo\nOslo is in Norway.")
        for chunk, text in zip(chunks.values(), texts, strict=True):
            chunk["full_doc_id"] = compute_mdhash_id(text, prefix="doc-")
    found = match_documents(chunks, Corpus(DOCUMENTS))
    assert list(found.values()) == [("a",), ("b",)]


def test_one_rule_holds_for_all_chunks():
    chunks = {"c1": {"full_doc_id": "a"}, "c2": {"file_path": "b"}}
    with pytest.raises(InputError, match=r"1 of 2 chunks .* by full_doc_id"):
        match_documents(chunks, Corpus(DOCUMENTS))
    with pytest.raises(InputError, match=r"2 of 2 chunks .* by any of full_doc_id, file_path"):
        match_documents({"c1": {}, "c2": {}}, Corpus(DOCUMENTS))


def test_documents_with_one_text_share_a_chunk():
    twins = (*DOCUMENTS, replace(DOCUMENTS[0], id="c"))
    chunks = {"c1": {"content": "Lima is in Peru."}, "c2": {"content": "Oslo is in Norway."}}
    assert match_documents(chunks, Corpus(twins)) == {"c1": ("a", "c"), "c2": ("b",)}


def test_what_is_read(working_dir):
    found = read_working_dir(Path(working_dir))
    assert {chunk["full_doc_id"] for chunk in found.chunks.values()} == {"11", "13"}
    assert found.vectors.shape == (len(found.chunks), 64)
