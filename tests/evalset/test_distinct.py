"""Distinct queries of a log, and which near duplicates are dropped for which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.core.words import compare_key
from tuner.evalset.distinct import (
    DistinctQuery,
    distinct_queries,
    drop_near_duplicates,
    write_near_duplicates,
)
from tuner.evalset.query_log import LogEntry


def texts(queries):
    return [query.text for query in queries]


def test_spellings_of_one_query_are_joined_under_the_most_frequent():
    entries = [
        LogEntry("Who is Ada?", user="u1", clicked=("d2",)),
        LogEntry("who is ada", user="u1", clicked=("d1", "d2")),
        LogEntry("who is ada", user="u2"),
        LogEntry("Bab?"),
    ]
    first, second = distinct_queries(entries)
    assert first == DistinctQuery("who is ada", count=3, users=2, clicked=("d2", "d1"))
    assert second == DistinctQuery("Bab?", count=1)


def test_one_user_who_repeats_a_query_is_less_traffic_than_two_users():
    script = [LogEntry("ping", user="script")] * 500
    people = [LogEntry("opening hours", user=name) for name in "ab"]
    assert texts(distinct_queries([*script, *people])) == ["opening hours", "ping"]


def test_near_duplicates_go_and_the_more_frequent_stays():
    queries = [
        DistinctQuery("What is the population of Paris?", 9, 3, ("d1", "d2")),
        DistinctQuery("what is population of Paris", 2, 2, ("d2", "d3")),
        DistinctQuery("What is the population of London?", 1),
        DistinctQuery("巴黎的人口是多少", 1),
        DistinctQuery("伦敦的人口是多少", 1),
    ]
    kept, dropped = drop_near_duplicates(queries)
    joined = DistinctQuery("What is the population of Paris?", 11, 5, ("d1", "d2", "d3"))
    assert kept == [joined, *queries[2:]]
    (pair,) = dropped
    assert (pair.dropped, pair.kept) == (queries[1], queries[0])
    assert 0.9 <= pair.similarity <= 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("revenue of the company in 2019", "revenue of the company in 2020"),
        ("Is the museum open on sunday?", "Is the museum not open on sunday?"),
        ("Does Google own YouTube?", "Does YouTube own Google?"),
        ("公司2019年的收入是多少", "公司2020年的收入是多少"),
        ("博物馆周日开门", "博物馆周日不开门"),
    ],
)
def test_what_looks_alike_but_asks_something_else_is_kept(first, second):
    queries = [DistinctQuery(first, 1), DistinctQuery(second, 1)]
    # Even at a threshold that takes nearly anything as alike.
    assert drop_near_duplicates(queries, threshold=0.3) == (queries, [])


def test_a_query_is_never_dropped_for_one_that_was_dropped_itself():
    queries = [DistinctQuery(text, 1) for text in ("aaaa bbbb cc", "aaaa bbbb dd", "bbbb dd eeee")]
    kept, dropped = drop_near_duplicates(queries, threshold=0.3)
    assert {pair.kept.text for pair in dropped} <= set(texts(kept))
    assert len(kept) + len(dropped) == 3
    assert dropped


@given(st.lists(st.text("ab 1北不", min_size=1, max_size=8), unique_by=compare_key, max_size=10))
def test_nothing_is_lost_and_each_dropped_query_has_one_that_stands_for_it(written):
    queries = [DistinctQuery(text, 2, 1, (f"d{n}",)) for n, text in enumerate(written)]
    kept, dropped = drop_near_duplicates(queries, threshold=0.5)
    assert sorted([*texts(kept), *(pair.dropped.text for pair in dropped)]) == sorted(written)
    assert sum(query.count for query in kept) == 2 * len(queries)
    assert {id_ for query in kept for id_ in query.clicked} == {
        f"d{n}" for n in range(len(queries))
    }
    order = {query.text: n for n, query in enumerate(queries)}
    for pair in dropped:
        assert pair.similarity >= 0.5 - 1e-9
        assert order[pair.kept.text] < order[pair.dropped.text]
        assert pair.kept.text in texts(kept)


def test_few_queries_and_bad_thresholds():
    assert drop_near_duplicates([]) == ([], [])
    one = [DistinctQuery("one", 1)]
    assert drop_near_duplicates(one) == (one, [])
    for threshold in (0.0, 1.5, float("nan")):
        with pytest.raises(InputError, match="threshold of near duplicates"):
            drop_near_duplicates(one, threshold=threshold)


def test_the_list_of_what_was_dropped_is_safe_to_open(tmp_path):
    queries = [DistinctQuery("=sum(a1) of all", 2), DistinctQuery("=sum(a1) of al", 1)]
    _, dropped = drop_near_duplicates(queries, threshold=0.5)
    write_near_duplicates(tmp_path / "dropped.csv", dropped)
    lines = (tmp_path / "dropped.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "similarity,dropped,count,kept"
    assert lines[1].endswith(",'=sum(a1) of al,1,'=sum(a1) of all")
