"""The cache: prepared and live answers agree, and nothing half-written is ever believed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tuner
from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import TunerError
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.hybrid.cache import ensure, is_whole, read_array, write_array

SETTINGS = [
    {"graph_weight": weight, "max_hops": hops, "top_k": top_k, "temperature": temperature}
    for weight in (0.0, 0.4, 1.0)
    for hops, temperature in ((1, 0.001), (2, 0.1), (6, 10.0))
    for top_k in (1, 5, 100)
]


def rows(rankings):
    return [rankings.ids(row) for row in range(len(rankings.query_ids))]


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_prepared_answers_equal_live_ones(build, corpus, queries, params):
    live = build(corpus).retrieve(queries, params)
    engine = build(corpus)
    engine.prepare(queries)
    prepared = engine.retrieve(queries, params)
    assert rows(prepared) == rows(live)
    np.testing.assert_allclose(prepared.scores, live.scores, atol=2e-6)
    np.testing.assert_array_equal(prepared.context_tokens, live.context_tokens)
    np.testing.assert_array_equal(prepared.graph_used, live.graph_used)


def test_any_selection_of_prepared_queries_is_answered_row_by_row(build, corpus, queries):
    engine = build(corpus)
    engine.prepare(queries)
    everything = rows(engine.retrieve(queries, {}))
    for selection in ([3, 1], [4], [0, 0, 2], []):
        found = engine.retrieve([queries[i] for i in selection], {})
        assert rows(found) == [everything[i] for i in selection]
        assert list(found.query_ids) == [queries[i].id for i in selection]


def test_a_batch_with_an_unprepared_query_is_answered_all_the_same(build, corpus, queries):
    engine = build(corpus)
    engine.prepare(queries[:3])
    assert rows(engine.retrieve(queries, {})) == rows(build(corpus).retrieve(queries, {}))
    engine.prepare(queries[3:])
    assert rows(engine.retrieve(queries[4:], {})) == rows(build(corpus).retrieve(queries[4:], {}))


def test_pools_bound_what_is_kept_and_hold_the_best(build):
    documents = [Document(f"{i:04}", "", f"tea {'cup ' * (i % 7)}") for i in range(1000)]
    query = [Query("q", "tea cup")]
    engine = build(documents, text_pool=100, graph_pool=100)
    live = engine.retrieve(query, {"top_k": 50})
    engine.prepare(query)
    assert rows(engine.retrieve(query, {"top_k": 50})) == rows(live)
    (prepared,) = engine.directory.parent.glob("queries-*/pool.npy")
    pool = np.load(prepared)
    assert pool.shape == (1, 200)
    assert (pool >= 0).sum() == 100  # no name: the graph adds nothing to the text leg's share


def test_the_index_is_written_once_and_then_opened(build, corpus, queries):
    first = build(corpus)
    first.prepare(queries)
    files = {path: path.stat().st_mtime_ns for path in first.directory.parent.rglob("*.npy")}
    second = build(corpus)
    second.prepare(queries[::-1])
    assert second.directory == first.directory
    again = {path: path.stat().st_mtime_ns for path in first.directory.parent.rglob("*.npy")}
    assert again == files


def test_another_corpus_gets_another_index(build, corpus):
    changed = Corpus((*corpus.documents[:-1], Document("17", "Rivers", "A river is water.")))
    with_facts = Corpus(corpus.documents, entities={"17": ("water",)})
    fingerprints = {build(c).fingerprint for c in (corpus, changed, with_facts)}
    assert len(fingerprints) == 3


@pytest.mark.parametrize("part", ["index", "queries"])
@pytest.mark.parametrize("damage", ["cut", "flip", "delete", "manifest"])
def test_a_damaged_cache_is_built_anew(tmp_path, corpus, queries, part, damage):
    engine = Hybrid.build(corpus, cache_dir=tmp_path)
    engine.prepare(queries)
    (directory,) = engine.directory.parent.glob(f"{part}*/")
    expected = {path.name: path.read_bytes() for path in directory.iterdir()}
    victim = directory / ("manifest.json" if damage == "manifest" else "token_counts.npy")
    if part == "queries" and damage != "manifest":
        victim = directory / "graph.npy"
    content = bytearray(victim.read_bytes())
    if damage == "delete":
        victim.unlink()
    else:
        if damage == "flip":
            content[-1] ^= 255
        # A new file: the old one stays mapped in this process.
        victim.unlink()
        victim.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    assert not is_whole(directory)
    Hybrid.build(corpus, cache_dir=tmp_path).prepare(queries)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == expected


def test_a_build_that_fails_leaves_nothing_behind(tmp_path):
    def write(directory: Path) -> None:
        write_array(directory, "half", np.ones(3))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure(tmp_path / "index", write)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_arrays_come_back_as_they_were_and_read_only(tmp_path):
    for array in (np.arange(6.0).reshape(2, 3), np.zeros((0, 4), dtype=np.int32)):
        write_array(tmp_path, "array", array)
        back = read_array(tmp_path, "array")
        assert type(back) is np.ndarray
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
    write_array(tmp_path, "mapped", np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        read_array(tmp_path, "mapped")[0] = 2


def test_an_index_that_was_deleted_is_named(tmp_path, corpus, queries):
    import shutil

    engine = Hybrid.build(corpus, cache_dir=tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(TunerError, match="is gone: build the retriever again"):
        engine.retrieve(queries, {})


TWO_AT_ONCE = """
import sys
from pathlib import Path
from tuner.core.corpus import Corpus, Document, Query
from tuner.retrieval.hybrid import Hybrid
documents = tuple(
    Document(str(i), f"Town {i}", f"Town {i} lies near Town {i * 7 % 300}.") for i in range(300)
)
queries = [Query(str(i), f"What lies near Town {i}?") for i in range(0, 300, 3)]
print("ready", flush=True)
sys.stdin.readline()
engine = Hybrid.build(Corpus(documents), cache_dir=Path(sys.argv[1]))
engine.prepare(queries)
rankings = engine.retrieve(queries, {})
print([rankings.ids(row) for row in range(len(queries))])
"""


def test_two_processes_may_build_one_cache_at_once(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(tuner.__file__).parents[1])}
    command = [sys.executable, "-c", TWO_AT_ONCE, str(tmp_path)]
    pair = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    for process in pair:
        assert process.stdout.readline() == "ready\n"
    for process in pair:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate() for process in pair]
    assert [process.returncode for process in pair] == [0, 0], answers
    assert answers[0] == answers[1]
    (root,) = tmp_path.glob("hybrid-*/")
    directories = [path for path in root.iterdir() if path.is_dir()]
    assert len(directories) == 2  # one index, one set of queries, no left-over
    assert all(is_whole(path) for path in directories)
