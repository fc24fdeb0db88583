"""The table of indexes: best first, each once, with what is known of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tuner.core.index_costs import index_costs
from tuner.core.trial import IndexUse, Trial, TrialState
from tuner.report import indexes
from tuner.report.review import Review, read_review


def use(name: str, **more: object) -> IndexUse:
    return IndexUse(name, 12.5, 1234.0, 1000, **more)


def told(number: int, size: int, objective: float | None, index: IndexUse | None, **more) -> Trial:
    state = TrialState.FAILED if objective is None else TrialState.FINISHED
    params = {"size": size, "top_k": number}
    return Trial(number, "tpe", params, state, objective, index=index, **more)


FAILED = {"error": "the index with size=9 could not be built", "seconds": {"index": 3.0}}
TRIALS = [
    told(0, 1, 0.5, use("one", tokens=7, is_new=True)),
    told(1, 2, 0.6, use("two", money=0.25)),
    told(2, 1, 0.7, use("one", tokens=7)),
    told(3, 3, 0.9, use("three", is_new=True), violation=0.1),
    told(4, 9, None, None, **FAILED),
    told(5, 2, None, use("two", money=0.25), error="no answer"),
    told(6, 9, None, None, **FAILED),
]


def review(study, trials: list[Trial], names: list[str] | None) -> Review:
    read = read_review(
        study(),
    )
    winner = replace(read.summary.winner, trial=2)
    header = replace(
        read.header,
        space={"size": {}, "top_k": {}},
        index={} if names is None else {"parameters": names},
    )
    summary = replace(read.summary, indexes=index_costs(trials), winner=winner)
    return replace(read, header=header, trials=tuple(trials), summary=summary)


@pytest.mark.parametrize("names", [["size"], None], ids=["told", "of a journal of old"])
def test_each_index_stands_there_once_best_first(study, names):
    section = indexes.section(review(study, TRIALS, names))
    (table,) = section.blocks
    assert table.columns == (
        "setting", "came", "seconds", "MB", "documents", "tokens", "money", "trials",
        "best objective",
    )  # fmt: skip
    assert table.rows == (
        ("size 1", "built", "12.5", "1,234", "1,000", "7", "–", "2", "0.7000"),
        ("size 2", "found", "12.5", "1,234", "1,000", "–", "0.2500", "2", "0.6000"),
        # It breaks a constraint.
        ("size 3", "built", "12.5", "1,234", "1,000", "–", "–", "1", "0.9000"),
        ("size 9", "not built", "6.00", "–", "–", "–", "–", "2", "–"),
    )
    assert table.strong == {0}


def test_what_no_system_tells_has_no_column_and_one_index_no_table(study):
    trials = [told(0, 1, 0.5, use("one")), told(1, 2, 0.6, use("two"))]
    (table,) = indexes.section(review(study, trials, ["size"])).blocks
    assert not {"tokens", "money"} & set(table.columns)
    assert indexes.section(review(study, trials[:1], ["size"])) is None
    assert indexes.section(read_review(study())) is None


def test_the_indexes_of_a_policy_stand_there_too(study):
    parts = (use("one", is_new=True), use("four", is_new=True))
    both = use("one+four", parts=parts)
    trials = [told(0, 0, 0.5, both), told(1, 1, 0.6, use("one"))]
    (table,) = indexes.section(review(study, trials, ["size"])).blocks
    assert [(row[0], row[1], row[-2]) for row in table.rows] == [
        ("size 1", "built", "1"),
        ("one of a policy's", "built", "0"),
    ]


def test_of_many_indexes_the_best_are_listed(study):
    trials = [told(n, n, n / 100, use(f"index {n}")) for n in range(indexes.MOST_INDEXES + 2)]
    table, note = indexes.section(review(study, trials, ["size"])).blocks
    assert len(table.rows) == indexes.MOST_INDEXES
    assert table.rows[0][0] == "size 61"
    assert note.text == "2 other indexes: see journal.jsonl."
