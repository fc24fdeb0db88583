"""`chunk_top_k` is free in every mode, also where documents have several passages."""

from __future__ import annotations

import pytest

from tuner.testing.free_knobs import need_computed

pytest.importorskip("lightrag", reason="LightRAG is not installed")


@pytest.mark.parametrize("mode", ["naive", "local", "global", "hybrid", "mix"])
def test_answers_with_fewer_passages_are_told_by_one_with_many(build, corpus, queries, mode):
    retriever = build(corpus, chunk_token_size=8, chunk_overlap_token_size=2)
    assert retriever.free_knobs({}, ["mode", "chunk_top_k"]).names == ("chunk_top_k",)
    params = {"mode": mode, "cosine_better_than_threshold": 0.0}
    need_computed(retriever, queries, params)
    need_computed(retriever, queries, {**params, "max_total_tokens": 1250})
    answer = retriever.retrieve(queries, {**params, "chunk_top_k": 100})
    assert answer.by_count.ranks.max() > answer.depth  # some document has several passages
    assert answer.by_count.context_tokens[:, -1].tolist() == answer.context_tokens.tolist()
