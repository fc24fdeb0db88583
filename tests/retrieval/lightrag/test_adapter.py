"""LightRAG itself, on a small corpus: what it answers, and what must not happen silently."""

from __future__ import annotations

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("lightrag", reason="LightRAG is not installed: pip install '.[lightrag]'")

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, TunerError
from tuner.retrieval.adapters.lightrag import runtime

EASY = {"cosine_better_than_threshold": 0.0}


def rows(rankings):
    return [rankings.ids(row) for row in range(len(rankings.query_ids))]


@pytest.mark.slow
def test_the_graph_finds_what_the_words_do_not(build, corpus, queries):
    retriever = build(corpus)
    local = retriever.retrieve(queries, {"mode": "local", "top_k": 2, "chunk_top_k": 3})
    assert "11" in local.ids(0)  # Kvarnby, the birthplace of Night Ferry's director, is in it
    assert local.graph_used[0]
    assert "Night Ferry" in local.entities[0]
    assert [("Night Ferry", "directed by", "Ada Holm")] in local.paths[0]
    naive = retriever.retrieve(queries, {"mode": "naive"})
    assert not naive.graph_used.any()
    assert not any(naive.entities)
    assert not any(naive.paths)


def test_every_knob_can_change_the_answer(build, corpus, queries):
    retriever = build(corpus)
    changes = [
        ({}, {"mode": "naive"}),
        ({}, {"top_k": 1}),
        ({}, {"chunk_top_k": 1}),
        ({"mode": "local", **EASY}, {"max_entity_tokens": 50}),
        ({"mode": "global", "max_entity_tokens": 50, **EASY}, {"max_relation_tokens": 50}),
        ({}, {"max_total_tokens": 1200}),
        ({"mode": "naive"}, EASY),
        ({"mode": "local", "top_k": 1, **EASY}, {"related_chunk_number": 1}),
        ({"mode": "local", **EASY}, {"kg_chunk_pick_method": "WEIGHT"}),
    ]
    assert {name for _, change in changes for name in change} == {k.name for k in retriever.knobs}
    for params, change in changes:
        before = retriever.retrieve(queries, params)
        after = retriever.retrieve(queries, {**params, **change})
        assert rows(before) != rows(after), change


@pytest.mark.parametrize("end", ["low", "high"])
def test_the_ends_of_every_range_are_answered(build, corpus, queries, end):
    retriever = build(corpus)
    for knob in retriever.knobs:
        if knob.kind != "categorical":
            for mode in ("naive", "local", "global", "hybrid", "mix"):
                rankings = retriever.retrieve(
                    queries, {"mode": mode, knob.name: getattr(knob, end)}
                )
                assert len(rankings.query_ids) == len(queries)


def test_context_tokens_count_passages_entities_and_relations(build, corpus, queries):
    retriever = build(corpus)
    naive = retriever.retrieve(queries[:1], {"mode": "naive", "chunk_top_k": 1, **EASY})
    (found,) = naive.ids(0)
    (document,) = [d for d in corpus.documents if d.id == found]
    words = len(f"{document.title} {document.text}".replace(".", "").split())
    assert naive.context_tokens.tolist() == [words]
    mix = retriever.retrieve(queries[:1], {"chunk_top_k": 1, **EASY})
    assert mix.context_tokens[0] > words


def test_an_answer_that_the_budget_empties_is_counted_and_explained(build, corpus, queries, caplog):
    with caplog.at_level(logging.WARNING, logger="tuner"):
        rankings = build(corpus).retrieve(queries, {"max_total_tokens": 1000})
    assert rows(rankings) == [[]] * len(queries)
    assert "max_total_tokens=1000 leaves no room" in caplog.text
    # "f" is too short a query for LightRAG, so that nothing was found for it.
    assert f"of {len(queries)} queries" in caplog.text


def test_a_query_that_is_too_short_or_like_nothing_has_an_empty_answer(build, corpus):
    odd = [Query("1", "?"), Query("2", "  "), Query("3", "qqq zzz"), Query("4", "北京")]
    rankings = build(corpus).retrieve(odd, {"cosine_better_than_threshold": 0.5})
    assert rows(rankings) == [[]] * 4


def test_no_language_model_is_ever_asked(build, corpus, queries, monkeypatch):
    asked = []

    async def listen(*args, **kwargs):
        asked.append(args)
        return ""

    monkeypatch.setattr(runtime, "_no_language_model", listen)
    retriever = build(corpus)
    for mode in ("naive", "local", "global", "hybrid", "mix"):
        retriever.retrieve(queries, {"mode": mode})
    assert asked == []


def test_two_indexes_in_one_process_do_not_mix(build, corpus, queries):
    half = Corpus(corpus.documents[:4], corpus.triples[:4])
    whole, part = build(corpus), build(half)
    before = rows(whole.retrieve(queries, EASY))
    assert {id_ for row in rows(part.retrieve(queries, EASY)) for id_ in row} <= {
        document.id for document in half.documents
    }
    assert rows(whole.retrieve(queries, EASY)) == before
    assert whole.fingerprint != part.fingerprint


def test_documents_with_one_text_are_found_together(build, corpus, queries):
    twin = replace(corpus.documents[0], id="99")
    retriever = build(Corpus((*corpus.documents, twin), corpus.triples))
    found = retriever.retrieve(queries[:1], {"mode": "naive", **EASY}).ids(0)
    assert found.index("99") == found.index("10") + 1


def test_an_index_is_built_once_and_not_written_to(build, corpus, queries):
    first = build(corpus)
    first.retrieve(queries, {})
    first.prepare(queries)
    files = {path: path.stat().st_mtime_ns for path in first.directory.iterdir()}
    second = build(corpus)
    second.prepare(queries[::-1])
    second.retrieve(queries, {})
    assert second.directory == first.directory
    assert {path: path.stat().st_mtime_ns for path in first.directory.iterdir()} == files


def test_threads_of_one_process_answer_with_their_own_parameters(build, corpus, queries):
    retriever = build(corpus)
    settings = [
        {"mode": mode, "chunk_top_k": k, **EASY} for mode in ("naive", "mix") for k in (1, 3)
    ]
    wanted = [rows(retriever.retrieve(queries, params)) for params in settings]
    with ThreadPoolExecutor(4) as pool:
        got = pool.map(lambda params: rows(retriever.retrieve(queries, params)), settings * 4)
    assert list(got) == wanted * 4


def test_it_leaves_logging_as_it_was(build, corpus, queries, capfd):
    handlers = list(logging.getLogger().handlers)
    build(corpus).retrieve(queries, {})
    assert logging.getLogger().handlers == handlers
    assert capfd.readouterr() == ("", "")


def test_a_query_that_lightrag_fails_on_is_named(build, corpus, queries, monkeypatch):
    from lightrag import LightRAG

    retriever = build(corpus)
    usual = LightRAG.aquery_data

    async def fail(self, query, param):
        if "streams" in query:
            raise KeyError("node")
        return await usual(self, query, param)

    monkeypatch.setattr(LightRAG, "aquery_data", fail)
    with pytest.raises(TunerError, match=r"failed on 'Which streams of water .*: KeyError: 'node'"):
        retriever.retrieve(queries, {})
    assert rows(retriever.retrieve(queries[:3], EASY))[0]


def test_another_model_behind_the_same_name_is_another_index(build, corpus, embedders, monkeypatch):
    first = build(corpus, embedder="odd_embedders:letters")
    module = sys.modules["odd_embedders"]
    letters = module.letters
    monkeypatch.setattr(module, "letters", lambda texts: letters([text[::-1] for text in texts]))
    assert build(corpus, embedder="odd_embedders:letters").fingerprint != first.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embedder": "nowhere"}, "sentence-transformers"),
        ({"embedder": "no_such_module:embed"}, "cannot import the embedder"),
        ({"embedder": "odd_embedders:missing"}, "has no 'missing'"),
        ({"embedder": "odd_embedders:NOT_A_FUNCTION"}, "which cannot be called"),
        ({"working_dir": "somewhere"}, "needs the embedder"),
        (
            {"working_dir": "x", "embedder": "odd_embedders:letters", "chunk_token_size": 50},
            "chunks of a working directory are made",
        ),
        ({"chunk_token_size": 0}, "must be a whole number from 1, got 0"),
        ({"chunk_overlap_token_size": 1.5}, r"must be a whole number from 0, got 1\.5"),
        ({"chunk_token_size": 100}, "100 must be less than chunk_token_size, 100; where both"),
    ],
)
def test_impossible_options(build, corpus, embedders, options, message):
    with pytest.raises(InputError, match=message):
        build(corpus, **options)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"topk": 3}, "did you mean 'top_k'"),
        ({"mode": "bypass"}, "is not one of"),
        ({"top_k": 0}, "outside"),
        ({"cosine_better_than_threshold": float("nan")}, "finite"),
    ],
)
def test_impossible_parameters(build, corpus, queries, params, message):
    with pytest.raises(InputError, match=message):
        build(corpus).retrieve(queries, params)


def test_a_damaged_index_is_made_again(build, corpus, queries):
    first = build(corpus)
    wanted = rows(first.retrieve(queries, EASY))
    (first.directory / "vdb_chunks.json").write_text("{", encoding="utf-8")
    again = build(corpus)
    assert rows(again.retrieve(queries, EASY)) == wanted
    assert np.isfinite(again.retrieve(queries, EASY).context_tokens).all()
