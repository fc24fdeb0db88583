"""Held-out queries that have decided before are remembered, whatever they are called."""

from __future__ import annotations

import json
import time

from tuner.core.corpus import Query
from tuner.study.looks import LOOKS_FILE, count_look


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


def test_the_same_decision_again_is_no_further_look(tmp_path):
    asked = queries(*range(50))

    def decided(decision):
        return count_look(
            tmp_path, asked, study="s", dataset="d", fingerprint="f", decision=decision
        )  # fmt: skip

    assert decided("study 1/7").count == 0
    assert decided("study 1/7").count == 0  # a finished study, resumed
    assert decided("study 1/9").count == 1  # it went on, and another trial won


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
