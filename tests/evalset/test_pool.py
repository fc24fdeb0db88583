"""Pools: the union of several rankings' best, in an order that tells nothing."""

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError
from tuner.core.rankings import Rankings
from tuner.evalset.pool import pool_queries, pooled, sheet_rows
from tuner.evalset.sampling import SampledQuery

QUERIES = [Query("q2", "second?"), Query("q1", "first?")]
DOCUMENTS = [Document(f"d{i}", f"title {i}", f"text {i}") for i in range(40)]


def ranking(*answers):
    return Rankings.from_ids(["q2", "q1"], answers)


def test_the_first_of_each_ranking_are_pooled_once():
    first = ranking(["d3", "d1", "d9"], ["d5"])
    second = ranking(["d1", "d4", "d3"], [])
    assert pooled([first, second], depth=2) == {"q2": ("d1", "d3", "d4"), "q1": ("d5",)}


def test_clicked_documents_are_pooled_at_any_depth():
    pool = pooled([ranking(["d3", "d1"], [])], depth=1, also={"q1": ["d7"], "q2": ["d3"]})
    assert pool == {"q2": ("d3",), "q1": ("d7",)}


def test_rows_come_query_by_query_and_do_not_tell_who_found_what():
    ids = [f"d{i}" for i in range(20)]
    alone = sheet_rows(QUERIES, pooled([ranking(ids, ids)], depth=20), DOCUMENTS)
    # The other way round, by two systems, one of them twice: the sheet is the same.
    halves = [ranking(ids[10:][::-1], ids[::-1]), ranking(ids[:10], ids)] * 2
    assert sheet_rows(QUERIES, pooled(halves, depth=20), DOCUMENTS) == alone
    assert [row.query_id for row in alone] == ["q2"] * 20 + ["q1"] * 20
    shown = [row.document_id for row in alone]
    assert shown[:20] != ids
    assert shown[:20] != shown[20:]  # each query is shuffled by itself
    assert sorted(shown[:20]) == sorted(ids)
    assert (alone[0].query, alone[0].title) == ("second?", f"title {shown[0][1:]}")


def test_another_seed_gives_another_order_of_the_same_rows():
    pool = pooled([ranking([d.id for d in DOCUMENTS], [])], depth=40)
    first, second = (sheet_rows(QUERIES, pool, DOCUMENTS, seed=seed) for seed in (1, 2))
    assert first != second
    assert set(first) == set(second)


def test_what_cannot_be_pooled_is_named():
    with pytest.raises(InputError, match="depth 0"):
        pooled([], depth=0)
    with pytest.raises(InputError, match="query 'q1': document 'x' is not in the corpus"):
        sheet_rows(QUERIES, {"q1": ["x"]}, DOCUMENTS)


class Fixed:
    """Answers every query with documents from the one that its parameter names."""

    def prepare(self, queries):
        self.prepared = list(queries)

    def retrieve(self, queries, params):
        ids = [f"d{params['first'] + place}" for place in range(3)]
        return Rankings.from_ids([query.id for query in queries], [ids] * len(queries))


def test_settings_runs_and_clicks_come_together(tmp_path):
    run = tmp_path / "run.json"
    run.write_text('{"q1": ["d9", "d8"]}')
    sampled = [SampledQuery(QUERIES[0], clicked=("d7", "gone")), SampledQuery(QUERIES[1])]
    settings = [{"first": 0}, {"first": 1}]
    pool = pool_queries(
        sampled, Corpus(tuple(DOCUMENTS)), Fixed(), settings, [str(run)], depth=2, seed=1
    )
    found = {}
    for row in pool.rows:
        found.setdefault(row.query_id, set()).add(row.document_id)
    assert found == {"q2": {"d0", "d1", "d2", "d7"}, "q1": {"d0", "d1", "d2", "d8", "d9"}}
    assert (pool.queries, pool.clicked, pool.unknown_clicks) == (2, 1, 1)


def test_a_run_of_other_queries_is_refused(tmp_path):
    run = tmp_path / "run.json"
    run.write_text('{"other": ["d9"]}')
    sampled = [SampledQuery(query) for query in QUERIES]
    with pytest.raises(InputError, match="answers none of the queries"):
        pool_queries(sampled, Corpus(tuple(DOCUMENTS)), Fixed(), [], [str(run)], depth=2, seed=1)
