"""Stratified samples: shares, seeds, and files that read back."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.evalset.distinct import DistinctQuery
from tuner.evalset.sampling import (
    SampledQuery,
    draw_some,
    read_sample,
    sample_log,
    sample_queries,
    write_sample,
)


def by_first_letter(text):
    return text[0], "easy"


def queries(**sizes):
    return [DistinctQuery(f"{name}{i}", 1) for name, size in sizes.items() for i in range(size)]


def draw(given, size, **options):
    return sample_queries(given, size, classify=by_first_letter, **options)


def types(sample):
    return Counter(item.query.query_type for item in sample)


def test_a_corpus_is_no_list_of_queries(tmp_path):
    file = tmp_path / "corpus.jsonl"
    file.write_text('{"_id": "d1", "title": "Ada", "text": "Ada studied."}\n', encoding="utf-8")
    with pytest.raises(InputError, match="holds documents with titles; queries are needed here"):
        read_sample(file)


def test_each_type_gets_its_share_by_largest_remainder():
    # 10 of 100: exact shares 5.5, 3.3, 1.2; whole parts 5, 3, 1; the one left goes to the .5
    assert types(draw(queries(a=55, b=33, c=12), 10)) == {"a": 6, "b": 3, "c": 1}


def test_the_same_seed_draws_the_same_in_any_order_and_another_seed_does_not():
    given = queries(a=30, b=30)
    assert draw(given, 10, seed=4) == draw(given[::-1], 10, seed=4)
    assert draw(given, 10, seed=4) != draw(given, 10, seed=5)


def test_by_traffic_the_frequent_are_drawn():
    given = [DistinctQuery(f"a{i}", 1) for i in range(200)]
    given += [DistinctQuery(f"a-often{i}", 1000, users=1000) for i in range(5)]
    drawn = draw(given, 5, by_traffic=True)
    assert sum("often" in item.query.text for item in drawn) == 5
    assert sum("often" in item.query.text for item in draw(given, 5)) < 5


def test_what_a_type_is_too_small_for_goes_to_the_others():
    given = [DistinctQuery("a1", 1000), *queries(b=10)]
    assert types(draw(given, 6, by_traffic=True)) == {"a": 1, "b": 5}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 12), min_size=1),
    st.integers(1, 40),
    st.booleans(),
)
def test_as_many_are_drawn_as_asked_for_or_there_are_and_none_twice(sizes, size, by_traffic):
    given = queries(**sizes)
    drawn = draw(given, size, by_traffic=by_traffic)
    assert len(drawn) == min(size, len(given))
    assert len({item.query.id for item in drawn}) == len(drawn)
    share = len(drawn) / len(given)
    for name, count in types(drawn).items():
        assert abs(count - share * sizes[name]) < 1


def test_ids_stay_from_one_sample_to_the_next():
    small, large = draw(queries(a=40), 5), draw(queries(a=40), 20)
    ids = {item.query.text: item.query.id for item in large}
    assert {item.query.text: item.query.id for item in small}.items() <= ids.items()


def test_a_sample_below_one_is_refused():
    with pytest.raises(InputError, match="a sample of 0 queries"):
        draw(queries(a=3), 0)


def test_the_file_reads_back(tmp_path):
    file = tmp_path / "queries.jsonl"
    sample = draw([DistinctQuery("在哪里", 3, users=2, clicked=("d1", "d2"))], 1)
    write_sample(file, sample)
    assert "在哪里" in file.read_text(encoding="utf-8")
    (read,) = read_sample(file)
    assert (read.query, read.clicked) == (sample[0].query, ("d1", "d2"))
    file.write_text(json.dumps({"_id": "q1", "text": "x", "clicked": "d1"}) + "\n{}\n")
    with pytest.raises(InputError, match=r"queries\.jsonl:2: '_id' is missing"):
        read_sample(file)
    with pytest.raises(InputError, match="cannot be written"):
        write_sample(tmp_path / "no" / "folder.jsonl", sample)


LOG = """\
query,user,time
new town,u1,2026-01-01T10:00
New town,u2,2026-02-01T10:00
new towns,u1,2026-02-02T10:00
old river,u1,2026-02-03T10:00
old river,u3,2026-02-04T10:00
?!,u3,2026-02-05T10:00
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return path


def drawn_from(log, **options):
    return sample_log(log, 5, classify=by_first_letter, say=print, **options)


def test_a_log_is_sampled_without_its_near_duplicates(log):
    found = drawn_from(log, threshold=0.5)
    assert [item.query.text for item in found.drawn] == ["New town", "old river"]
    assert (found.entries, found.distinct) == (5, 3)
    assert [pair.dropped.text for pair in found.near] == ["new towns"]


def test_only_what_was_asked_since_and_by_enough_users_is_drawn(log):
    assert [i.query.text for i in drawn_from(log, min_users=2, since="2026-02-01").drawn] == [
        "old river"
    ]
    with pytest.raises(InputError, match="no query is left"):
        drawn_from(log, since="2027-01-01")
    nameless = log.with_name("nameless.csv")
    nameless.write_text("query\nnew town\n")
    with pytest.raises(InputError, match="--min-users needs a column of users"):
        drawn_from(nameless, min_users=2)


def test_some_queries_are_drawn_at_random_and_keep_their_order():
    every = [SampledQuery(Query(f"q{number}", "text")) for number in range(100)]
    found = [item.query.id for item in draw_some(every, 30, seed=0)]
    assert len(found) == 30
    assert found == sorted(found, key=lambda id_: int(id_[1:]))
    assert found != [f"q{number}" for number in range(30)]
    assert found == [item.query.id for item in draw_some(every, 30, seed=0)]
    assert found != [item.query.id for item in draw_some(every, 30, seed=1)]
    with pytest.raises(InputError, match="there are 100"):
        draw_some(every, 101, seed=0)
