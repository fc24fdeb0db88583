"""Answers on the disk: what is asked again, what is not, and what a torn file costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.ledger import hearer
from tuner.core.rankings import ByCount, Legs, Rankings
from tuner.retrieval.wrapped import remembered as memory
from tuner.retrieval.wrapped.remembered import Remembered

QUERIES = [Query(f"q{n}", f"text {n}") for n in range(10)]
PARAMS = {"top_k": 2}


class Counting:
    knobs = ()
    fingerprint = "one"

    def __init__(self, fail_at: str | None = None) -> None:
        self.asked: list[str] = []
        self.fail_at = fail_at

    def prepare(self, queries):
        self.prepared = list(queries)

    def retrieve(self, queries, params):
        if any(query.id == self.fail_at for query in queries):
            raise RuntimeError("the system is gone")
        self.asked += [query.id for query in queries]
        answers = [[f"d{q.id}", "shared"][: params["top_k"]] for q in queries]
        return Rankings.from_ids(
            [query.id for query in queries],
            answers,
            scores=np.array([[2.0, 1.0][: params["top_k"]] for _ in queries]),
            seconds={"graph": 1.0},
            context_tokens=np.array([float(q.id[1:]) for q in queries]),
            spans=np.array(
                [
                    [(n, int(q.id[1:]) + n) for n in range(len(a))]
                    for q, a in zip(queries, answers, strict=True)
                ]
            ),
            graph_used=np.array([q.id != "q3" for q in queries]),
            entities=[[q.id, "Café"] for q in queries],
            paths=[[[("a", "b", q.id)]] for q in queries],
        )


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "QUICK_S", -1.0)
    monkeypatch.setattr(memory, "BATCH", 3)


def assert_equal(first: Rankings, second: Rankings) -> None:
    assert first.query_ids == second.query_ids
    assert [first.ids(row) for row in range(len(first.query_ids))] == [
        second.ids(row) for row in range(len(second.query_ids))
    ]
    for name in ("scores", "context_tokens", "spans", "graph_used"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.entities, first.paths) == (second.entities, second.paths)


def test_an_answer_is_asked_for_once(tmp_path: Path) -> None:
    inner = Counting()
    plain = inner.retrieve(QUERIES, PARAMS)
    inner.asked.clear()
    first = Remembered(inner, tmp_path).retrieve(QUERIES, PARAMS)
    assert inner.asked == [query.id for query in QUERIES]
    again = Remembered(inner, tmp_path).retrieve(QUERIES, PARAMS)
    assert len(inner.asked) == 10
    assert_equal(first, plain)
    assert_equal(again, plain)
    assert (first.seconds, again.seconds) == ({"graph": 4.0}, {})


def test_only_what_is_missing_is_asked(tmp_path: Path) -> None:
    inner = Counting()
    remembered = Remembered(inner, tmp_path)
    remembered.retrieve(QUERIES[2:6], PARAMS)
    inner.asked.clear()
    found = remembered.retrieve(QUERIES, PARAMS)
    assert inner.asked == ["q0", "q1", "q6", "q7", "q8", "q9"]
    assert found.query_ids == tuple(query.id for query in QUERIES)


@pytest.mark.parametrize("other", ["params", "fingerprint"])
def test_other_parameters_or_another_index_are_another_answer(tmp_path: Path, other: str) -> None:
    inner = Counting()
    Remembered(inner, tmp_path).retrieve(QUERIES, PARAMS)
    if other == "fingerprint":
        inner.fingerprint = "two"
    found = Remembered(inner, tmp_path).retrieve(QUERIES, {"top_k": 1 if other == "params" else 2})
    assert len(inner.asked) == 20
    assert found.depth == (1 if other == "params" else 2)


class OverIndexes(Counting):
    """Has an index for each ``top_k``; the code of each can change by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.code = {1: "a", 2: "b"}

    def identity(self, params):
        return self.code[params["top_k"]]

    def ready(self, params, advance=None):
        return None

    holding = pin = ready


def test_answers_of_an_index_go_with_what_it_is_made_from(tmp_path: Path) -> None:
    inner = OverIndexes()
    remembered = Remembered(inner, tmp_path)
    for top_k in (1, 2):
        remembered.retrieve(QUERIES, {"top_k": top_k})
    inner.code[2] = "c"
    inner.asked.clear()
    for top_k in (1, 2):
        remembered.retrieve(QUERIES, {"top_k": top_k})
    assert inner.asked == [query.id for query in QUERIES]  # those of one index


def test_what_was_answered_before_a_failure_is_not_lost(tmp_path: Path) -> None:
    failing = Counting(fail_at="q7")
    with pytest.raises(RuntimeError, match="the system is gone"):
        Remembered(failing, tmp_path).retrieve(QUERIES, PARAMS)
    assert failing.asked == ["q0", "q1", "q2", "q3", "q4", "q5"]
    mended = Counting()
    assert_equal(
        Remembered(mended, tmp_path).retrieve(QUERIES, PARAMS),
        Counting().retrieve(QUERIES, PARAMS),
    )
    assert mended.asked == ["q6", "q7", "q8", "q9"]


class Telling(Counting):
    """Tells of each answer, and is killed before the seventh."""

    def retrieve(self, queries, params):
        hear = hearer()
        for query in queries:
            if query.id == "q6":
                raise KeyboardInterrupt
            hear(super().retrieve([query], params))
        return super().retrieve(queries, params)


@pytest.mark.parametrize(("is_paid", "kept"), [(True, 6), (False, 0)])
def test_paid_answers_are_kept_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_paid: bool, kept: int
) -> None:
    monkeypatch.setattr(memory, "BATCH", 64)
    with pytest.raises(KeyboardInterrupt):
        Remembered(Telling(), tmp_path, is_paid=is_paid).retrieve(QUERIES, PARAMS)
    again = Counting()
    Remembered(again, tmp_path).retrieve(QUERIES, PARAMS)
    assert len(again.asked) == len(QUERIES) - kept


def test_answers_that_were_kept_as_they_came_are_not_written_twice(tmp_path: Path) -> None:
    Remembered(Telling(), tmp_path, is_paid=True).retrieve(QUERIES[:6], PARAMS)
    (file,) = tmp_path.iterdir()
    assert len(file.read_text(encoding="utf-8").splitlines()) == 6


class OneByOne(Counting):
    queries_at_once: int | None = 2

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def retrieve(self, queries, params):
        self.calls.append(len(queries))
        return super().retrieve(queries, params)


@pytest.mark.parametrize(
    ("call_s", "at_once", "calls"),
    [
        (0.0, 2, [4, 4, 2]),  # slow: two rounds of what it answers side by side
        (1e9, 2, [4, 6]),  # fast, as the first call shows: as many as there are
        (0.0, 1, [2, 2, 2, 2, 2]),
        (0.0, None, [10]),
    ],
)
def test_where_a_batch_is_no_cheaper_it_is_as_small_as_its_time_demands(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call_s: float,
    at_once: int | None,
    calls: list[int],
) -> None:
    monkeypatch.setattr(memory, "BATCH", 64)
    monkeypatch.setattr(memory, "CALL_S", call_s)
    inner = OneByOne()
    inner.queries_at_once = at_once
    found = Remembered(inner, tmp_path).retrieve(QUERIES, PARAMS)
    assert inner.calls == calls
    assert_equal(found, Counting().retrieve(QUERIES, PARAMS))


def test_a_torn_line_costs_its_own_answer_only(tmp_path: Path) -> None:
    Remembered(Counting(), tmp_path).retrieve(QUERIES, PARAMS)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    inner = Counting()
    expected = Counting().retrieve(QUERIES, PARAMS)
    assert_equal(Remembered(inner, tmp_path).retrieve(QUERIES, PARAMS), expected)
    assert inner.asked == ["q9"]
    inner.asked.clear()
    assert_equal(Remembered(inner, tmp_path).retrieve(QUERIES, PARAMS), expected)
    assert inner.asked == []


def test_quick_answers_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "QUICK_S", 1e9)
    inner = Counting()
    remembered = Remembered(inner, tmp_path)
    for _ in range(2):
        remembered.retrieve(QUERIES, PARAMS)
    assert len(inner.asked) == 20
    assert not list(tmp_path.iterdir())


def test_without_the_folder_nothing_is_kept(tmp_path: Path) -> None:
    inner = Counting()
    Remembered(inner, tmp_path / "elsewhere").retrieve(QUERIES, PARAMS)
    assert len(inner.asked) == 10
    assert not list(tmp_path.iterdir())


def test_latency_is_that_of_the_system(tmp_path: Path) -> None:
    inner = Counting()
    remembered = Remembered(inner, tmp_path)
    remembered.retrieve(QUERIES, PARAMS)
    remembered.serve(QUERIES[0], PARAMS)
    assert len(inner.asked) == 11


def test_what_is_asked_a_second_time_is_kept_apart(tmp_path):
    inner = Counting()
    remembered = Remembered(inner, tmp_path)
    first = remembered.retrieve(QUERIES, PARAMS)
    again = remembered.asked_again().retrieve(QUERIES, PARAMS)
    assert len(inner.asked) == 20
    assert_equal(first, again)
    # a resumed study has both answers
    resumed = Remembered(inner, tmp_path)
    resumed.retrieve(QUERIES, PARAMS)
    resumed.asked_again().retrieve(QUERIES, PARAMS)
    assert len(inner.asked) == 20


class OfPassages(Counting):
    def retrieve(self, queries, params):
        self.asked += [query.id for query in queries]
        ranks = [[1, 3 + int(query.id[1:])] for query in queries]
        contexts = [[1.0, 2.0, *[3.0] * (1 + int(query.id[1:]))] for query in queries]
        ids = [query.id for query in queries]
        by_count = ByCount.of(ranks, contexts)
        return Rankings.from_ids(ids, [["x", "y"]] * len(ids), by_count=by_count)


def test_how_answers_grow_with_passages_is_kept(tmp_path):
    retriever = OfPassages()
    kept = Remembered(retriever, tmp_path)
    asked = kept.retrieve(QUERIES[:4], PARAMS)
    again = kept.retrieve(QUERIES[:4], PARAMS)
    assert len(retriever.asked) == 4
    for count in range(7):
        first, second = asked.first(count), again.first(count)
        assert [first.ids(row) for row in range(4)] == [second.ids(row) for row in range(4)]
        assert first.context_tokens.tolist() == second.context_tokens.tolist()


class WithLegs(Counting):
    def retrieve(self, queries, params):
        self.asked += [query.id for query in queries]
        n = len(queries)
        scores = np.arange(2.0 * n * 3).reshape(2, n, 3) / 7
        return Rankings(
            [q.id for q in queries],
            ("a", "b", "c"),
            np.tile([2, 0], (n, 1)),
            tokens=np.tile([5.0, 6.0], (n, 1)),
            legs=Legs(
                ("graph", "text"),
                np.tile([1, 2, -1], (n, 1)),
                scores,
                scores[0] + 1,
                np.array([[(int(q.id[1:]), 40), (7, 9), (0, 0)] for q in queries]),
            ),
        )


def test_legs_and_tokens_are_kept(tmp_path):
    system = WithLegs()
    first = Remembered(system, tmp_path).telling_legs().retrieve(QUERIES, PARAMS)
    again = Remembered(system, tmp_path).telling_legs().retrieve(QUERIES[::-1], PARAMS)
    assert len(system.asked) == len(QUERIES)
    for row, back in zip(range(10), reversed(range(10)), strict=True):
        for one, at in ((first, row), (again, back)):
            legs = one.legs
            assert legs.names == ("graph", "text")
            assert [one.document_ids[place] for place in legs.documents[at]] == ["b", "c"]
            np.testing.assert_array_equal(legs.tokens[at], legs.scores[0, at] + 1)
            assert one.tokens[at].tolist() == [5.0, 6.0]
            assert legs.spans[at, :2].tolist() == [[row, 40], [7, 9]]
        np.testing.assert_array_equal(first.legs.scores[:, row], again.legs.scores[:, back])


def test_legs_that_nobody_wants_are_not_kept(tmp_path):
    system = WithLegs()
    found = Remembered(system, tmp_path).retrieve(QUERIES, PARAMS)
    (file,) = tmp_path.glob("*.jsonl")
    assert found.legs is None
    assert "legs" not in file.read_text(encoding="utf-8")
    # Where they are wanted, an answer without them is none; and with them it is one for all.
    again = Remembered(system, tmp_path).telling_legs().retrieve(QUERIES, PARAMS)
    assert again.legs is not None
    assert len(system.asked) == 2 * len(QUERIES)
    assert Remembered(system, tmp_path).retrieve(QUERIES, PARAMS).legs is None
    assert len(system.asked) == 2 * len(QUERIES)


def test_a_line_with_too_few_scores_of_a_leg_is_asked_again(tmp_path):
    system = WithLegs()
    Remembered(system, tmp_path).telling_legs().retrieve(QUERIES, PARAMS)
    (file,) = tmp_path.glob("*.jsonl")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"ids": ["b", "c"]', '"ids": ["b"]', 1), encoding="utf-8")
    Remembered(system, tmp_path).telling_legs().retrieve(QUERIES, PARAMS)
    assert len(system.asked) == len(QUERIES) + 1
