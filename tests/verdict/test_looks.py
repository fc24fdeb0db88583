"""Held-out queries that have decided before are remembered, whatever they are called."""

from __future__ import annotations

import json
import time

import pytest

from tuner.core.corpus import Query
from tuner.verdict.looks import LOOKS_FILE, count_look


def queries(*numbers):
    return [Query(f"q{number}", f"Where is city {number}?") for number in numbers]


def looked(folder, asked, study="nightly", fingerprint="f1"):
    return count_look(folder, asked, study=study, dataset="cities", fingerprint=fingerprint)


def test_fresh_queries_have_not_decided(tmp_path):
    earlier = looked(tmp_path / "runs", queries(*range(50)))
    assert (earlier.count, earlier.seen, earlier.queries) == (0, 0, 50)


def test_the_same_queries_are_recognised_under_other_ids_and_in_a_new_corpus(tmp_path):
    looked(tmp_path, queries(*range(50)), study="first")
    renamed = [Query(f"new-{query.id}", f" {query.text.upper()} ") for query in queries(*range(50))]
    earlier = looked(tmp_path, renamed, fingerprint="f2")
    assert (earlier.count, earlier.seen, earlier.queries) == (1, 50, 50)
    assert earlier.last_study == "first"
    assert earlier.last_date == time.strftime("%Y-%m-%d")


def test_an_overlap_of_a_tenth_or_more_counts_as_a_look(tmp_path):
    looked(tmp_path, queries(*range(50)))
    # 46 to 95: 4 of 50 in common, 8 %. 45 to 94: 5 of 50, 10 %.
    few = looked(tmp_path / "few", queries(*range(46, 96)))
    assert (few.count, few.seen) == (0, 0)  # another runs_dir knows nothing
    few = looked(tmp_path, queries(*range(46, 96)))
    assert (few.count, few.seen) == (0, 4)
    more = looked(tmp_path, queries(*range(45, 95)))
    # Seen: 45 to 49 by the first, 46 to 94 by the second, which is 49 of 50 in common.
    assert (more.count, more.seen) == (2, 50)


def test_the_latest_look_is_one_that_counts_and_says_how_much_it_shared(tmp_path):
    looked(tmp_path, queries(*range(40)), study="half")
    looked(tmp_path, queries(*range(18), *range(100, 122)), study="fast")
    looked(tmp_path, queries(0, *range(200, 239)), study="elsewhere")  # shares too few to count
    earlier = looked(tmp_path, queries(*range(40)), study="now")
    assert (earlier.count, earlier.seen) == (2, 40)
    assert (earlier.last_study, earlier.last_seen) == ("fast", 18)
    few = looked(tmp_path, queries(238, *range(300, 339)))  # where none counts, it is named still
    assert (few.count, few.last_study, few.last_seen) == (0, "elsewhere", 1)


def test_the_same_configurations_again_are_no_further_look(tmp_path):
    def looked_at(*configurations, asked=range(50)):
        found = count_look(
            tmp_path,
            queries(*asked),
            study="s",
            dataset="d",
            fingerprint="f",
            configurations=configurations,
        )
        return found.count, found.is_new

    assert looked_at("baseline") == (0, True)
    assert looked_at("baseline") == (0, False)
    # The baseline alone chose nothing, so the pair with it is the first real look.
    assert looked_at("winner", "baseline") == (0, True)
    assert looked_at("baseline", "winner") == (0, False)  # a study resumed, or compared again
    assert looked_at("winner") == (1, False)  # the pair told of this one too; the baseline's not
    assert looked_at("other", "baseline") == (1, True)  # the search went on
    assert looked_at("winner", "other") == (3, True)  # never met before
    # The same pair on other queries, half of them known: a new draw of luck.
    assert looked_at("winner", "baseline", asked=range(25, 75)) == (4, True)


def test_looks_at_single_queries_by_one_configuration_are_one_look_together(tmp_path):
    def looked_at(*configurations, asked):
        of = {"study": "s", "dataset": "d", "fingerprint": "f"}
        return count_look(tmp_path, queries(*asked), configurations=configurations, **of)

    for number in range(4):
        looked_at("tried", asked=[number])
    looked_at("other", asked=[4])
    # A tenth of 50 is 5: `tried` was asked 4, and `other` 1.
    assert looked_at("winner", asked=range(50)).count == 0
    looked_at("tried", "beside", asked=[5])
    assert looked_at("another", asked=range(50)).count == 2  # `tried` with 5, and the winner
    for number in range(5):
        looked_at("pair", "of it", asked=[number])
    # `tried`, the pair as one, the winner and `another`.
    assert looked_at("last", asked=range(50)).count == 4
    # Asked one by one, and then at once: the same answers.
    few = looked_at("tried", asked=range(4))
    assert (few.is_new, looked_at("tried", asked=range(5)).is_new) == (False, True)


def test_what_became_of_a_look_is_told(tmp_path):
    def told(*configurations):
        asked, of = queries(1, 2, 3), {"study": "s", "dataset": "d", "fingerprint": "f"}
        looks = count_look(tmp_path, asked, configurations=configurations, **of)
        return looks.remarks(tmp_path)

    path = tmp_path / LOOKS_FILE
    assert told("a", "b") == [f"remembered as a look at the 3 held-out queries, in {path}"]
    assert told("a", "b") == [
        "no further look at the 3 held-out queries: they were asked the same before"
    ]
    first, second = told("a", "c")
    assert first.startswith("remembered")
    today = time.strftime("%Y-%m-%d")
    assert second == (
        "they had been looked at once before for other configurations, last on "
        f"{today}: each look makes a false winner likelier"
    )
    path.unlink()
    path.mkdir()
    (lost,) = told("a", "d")
    assert lost == (
        f"this look at the 3 held-out queries could not be remembered: {path}: Is a directory"
    )


def test_the_dataset_and_its_fingerprint_are_written_and_torn_lines_are_left_out(tmp_path):
    looked(tmp_path, queries(1, 2))
    path = tmp_path / LOOKS_FILE
    record = json.loads(path.read_text())
    assert (record["dataset"], record["fingerprint"]) == ("cities", "f1")
    path.write_text(path.read_text() + '{"time": 1.0, "quer')
    assert looked(tmp_path, queries(1, 2)).count == 1
    assert looked(tmp_path, queries(1, 2)).count == 2


def test_a_torn_line_is_no_damage_and_any_other_is_counted(tmp_path):
    looked(tmp_path, queries(1, 2))
    path = tmp_path / LOOKS_FILE
    whole = path.read_text()
    for torn in ('{"t', '{"time": 1.0, "quer'):
        path.write_text(f"{whole}{torn}")
        assert looked(tmp_path, queries(1, 2)).unreadable == 0  # it was the last
        assert looked(tmp_path, queries(1, 2)).unreadable == 0  # and now stands in the middle
    path.write_text(f"{whole}garbage\n\n{whole}{{}}\n")
    earlier = looked(tmp_path, queries(1, 2))
    assert (earlier.count, earlier.unreadable) == (2, 2)


def test_a_name_may_hold_what_unicode_takes_for_a_line_end(tmp_path):
    looked(tmp_path, queries(1, 2), study="a\u2028b\x85c")
    earlier = looked(tmp_path, queries(1, 2))
    assert (earlier.count, earlier.unreadable, earlier.last_study) == (1, 0, "a\u2028b\x85c")


@pytest.mark.parametrize(
    "line",
    [
        '{"time": 1.0, "queries": [["a"]]}',
        '{"time": 1e300, "queries": []}',
        '{"time": Infinity, "queries": []}',
        '{"time": 1.0, "queries": [], "configurations": 3}',
        '[{"time": 1.0}]',
        "[" * 100_000 + "]",
    ],
)
def test_a_line_of_any_other_shape_is_damaged_and_nothing_else_is_lost(tmp_path, line):
    looked(tmp_path, queries(1, 2))
    path = tmp_path / LOOKS_FILE
    path.write_text(f"{line}\n{path.read_text()}")
    earlier = looked(tmp_path, queries(1, 2))
    assert (earlier.count, earlier.unreadable) == (1, 1)
