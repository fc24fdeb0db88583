"""Looks at one champion share what they are alike in; what that takes is written down first."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.config import load_config
from tuner.core.corpus import Query
from tuner.core.rankings import FloatArray
from tuner.core.trial import Params
from tuner.nightly.data import part_of
from tuner.nightly.spending import Spending
from tuner.run.assembly import Assembly, assemble
from tuner.run.judge import judge
from tuner.run.planning import make_plan
from tuner.run.side_by_side import read_side_by_side
from tuner.stats import alpha_of_look, levels_of_looks
from tuner.verdict.measured import Measured

DAY = date(2026, 3, 1)
OTHER: Params = {"graph_weight": 0.9, "max_hops": 3}
SHARES = [alpha_of_look(number, alpha=0.05) for number in range(1, 9)]


@pytest.fixture
def assembly(nights: Any) -> Assembly:
    nights.runs_dir.mkdir()
    config, source = load_config(nights.path)
    return assemble(config, source, make_plan(config, source), say=pytest.fail)


def alike(looks: int, queries: int, *, seed: int = 0) -> FloatArray:
    """Differences whose correlation from one look to another is about .9."""
    random = np.random.default_rng(seed)
    common, own = random.standard_normal(queries), random.standard_normal((looks, queries))
    return np.round(0.05 * common + 0.016 * own, 6)


def take(
    nights: Any,
    assembly: Assembly,
    row: FloatArray,
    number: float,
    *,
    champion: Params | None = None,
    priced: FloatArray | None = None,
) -> float:
    """Let the challenger with a number have a look, as a new process would."""
    spending = Spending(nights.records, assembly, DAY)
    zeros = np.zeros_like(row)
    return spending(
        Measured({"graph_weight": number / 100, "max_hops": 2}, row, objective=priced),
        Measured(
            champion or assembly.baseline or {},
            zeros,
            objective=None if priced is None else zeros,
        ),
    )


def joint(rows: Any, shares: list[float]) -> list[float]:
    return list(levels_of_looks(rows, shares))


def test_the_level_is_that_of_the_looks_together(nights: Any, assembly: Assembly) -> None:
    rows = alike(4, len(assembly.holdout_queries))
    rows[1, :5] = np.nan
    levels = [take(nights, assembly, row, number) for number, row in enumerate(rows)]
    assert levels == pytest.approx(joint(rows, SHARES[:4]))
    assert levels[0] == SHARES[0]
    assert levels[3] > 2 * SHARES[3]
    looks = nights.records.looks
    assert [look.share for look in looks] == SHARES[:4]
    assert looks[1].composite[:5] == (None,) * 5
    np.testing.assert_array_equal(np.array(looks[2].composite), rows[2])
    # The same pair again is no look, whatever it measures now.
    assert take(nights, assembly, -rows[2], 2) == levels[2]
    assert len(nights.events("look")) == 4


@pytest.mark.slow
def test_a_night_writes_its_differences_before_the_verdict(
    nights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = nights("2026-03-01")
    (look,) = nights.events("look")
    seen = read_side_by_side(Path(summary["run_dir"]))
    assert look["composite"] == [round(one.change or 0.0, 6) for one in seen]
    assert any(look["composite"])
    assert look["objective"] == []

    def crash(*_: Any, **__: Any) -> None:
        raise RuntimeError("the lights went out")

    monkeypatch.setattr("tuner.run.judge.decide", crash)
    second = nights("2026-03-02", "space.max_hops={type: integer, low: 3, high: 3}")
    assert second["verdict"] is None
    assert [one["number"] for one in nights.events("look")] == [1, 2]


def test_a_night_measures_once(assembly: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    evaluate = type(assembly).evaluate

    def counted(self: Assembly, choice: Any, queries: Any) -> Any:
        asked.append(choice)
        return evaluate(self, choice, queries)

    monkeypatch.setattr(type(assembly), "evaluate", counted)
    champion = assembly.baseline or {}
    levels = []
    for level_of in (None, lambda winner, baseline: 0.001):
        asked.clear()
        verdict = judge(assembly, OTHER, champion, assembly.holdout_queries, level_of=level_of)
        levels.append((len(asked), verdict.comparison.confidence))
    assert levels == [(3, 0.95), (3, 0.999)]  # the third is the baseline's, for the run's shift


def test_looks_without_values_keep_their_shares(nights: Any, assembly: Assembly) -> None:
    rows = alike(3, len(assembly.holdout_queries))
    name, _ = part_of(assembly.holdout_queries)
    old = {"night": "2026-02-01", "part": name}
    nights.records.write("look", pair="a", number=1, alpha=SHARES[0], **old)
    nights.records.write("look", pair="b", number=2, alpha=SHARES[1], **old)
    levels = [take(nights, assembly, row, number) for number, row in enumerate(rows)]
    assert levels == pytest.approx(joint(rows, SHARES[2:5]))
    assert [look.share for look in nights.records.looks] == SHARES[:5]


def test_a_look_whose_queries_are_not_known_any_more_keeps_its_share(
    nights: Any, assembly: Assembly
) -> None:
    rows = alike(2, len(assembly.holdout_queries))
    take(nights, assembly, rows[0], 0)
    path = nights.runs_dir / "nights.jsonl"
    queries, look = path.read_text(encoding="utf-8").splitlines()
    path.write_text(queries[:40] + "\n" + look + "\n", encoding="utf-8")
    fewer = _with(assembly, assembly.holdout_queries[1:])
    assert take(nights, fewer, rows[1, 1:], 1) == SHARES[1]


def test_a_torn_look_never_happened(nights: Any, assembly: Assembly) -> None:
    rows = alike(3, len(assembly.holdout_queries))
    for number, row in enumerate(rows[:2]):
        take(nights, assembly, row, number)
    path = nights.runs_dir / "nights.jsonl"
    path.write_text(path.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    assert nights.records.unreadable == 0
    assert take(nights, assembly, rows[2], 2) == pytest.approx(joint(rows[[0, 2]], SHARES[:2])[1])
    assert [look.number for look in nights.records.looks] == [1, 2]


@pytest.mark.parametrize("value", ["x", math.inf, [0.1]])
def test_values_that_are_none_are_a_broken_line(
    nights: Any, assembly: Assembly, value: Any
) -> None:
    take(nights, assembly, alike(1, len(assembly.holdout_queries))[0], 0)
    path = nights.runs_dir / "nights.jsonl"
    queries, line = path.read_text(encoding="utf-8").splitlines()
    look = json.loads(line)
    look["composite"][3] = value
    path.write_text(f"{queries}\n{json.dumps(look)}\n", encoding="utf-8")
    assert (nights.records.unreadable, nights.records.looks) == (1, [])


def test_a_new_champion_begins_anew_and_the_numbers_go_on(nights: Any, assembly: Assembly) -> None:
    rows = alike(5, len(assembly.holdout_queries))
    for number, row in enumerate(rows[:2]):
        take(nights, assembly, row, number)
    levels = [take(nights, assembly, row, 7, champion=OTHER) for row in rows[2:3]]
    levels += [take(nights, assembly, row, 8, champion=OTHER) for row in rows[3:4]]
    assert levels == pytest.approx(joint(rows[2:4], SHARES[2:4]))
    # Back again: what the search has learned from two promotions is not in the rows.
    assert take(nights, assembly, rows[4], 9) == SHARES[4]


def test_queries_that_come_and_go_are_put_under_one_another(
    nights: Any, assembly: Assembly
) -> None:
    held_out = assembly.holdout_queries
    new = replace(held_out[0], text="is this one new?")
    twin = replace(held_out[3], id="twin")
    later = (new, *held_out[10:], twin)
    assert held_out[3] not in later
    rows = [alike(2, len(held_out))[0], alike(2, len(later), seed=1)[0]]
    rows[1][1:-1] = alike(2, len(held_out))[1, 10:]
    take(nights, assembly, rows[0], 0)
    level = take(nights, _with(assembly, later), rows[1], 1)
    together = np.full((2, len(held_out) + 1), np.nan)
    together[0, :-1] = rows[0]
    together[1, 10:-1] = rows[1][1:-1]
    together[1, -1] = rows[1][0]
    together[1, 3] = rows[1][-1]  # the same words
    assert level == pytest.approx(joint(together, SHARES[:2])[1], rel=1e-4)
    assert level > SHARES[1]


def test_the_same_words_twice_are_two_queries(nights: Any, assembly: Assembly) -> None:
    twice = (*assembly.holdout_queries, replace(assembly.holdout_queries[0], id="again"))
    rows = alike(2, len(twice))
    levels = [take(nights, _with(assembly, twice), row, number) for number, row in enumerate(rows)]
    assert levels == pytest.approx(joint(rows, SHARES[:2]))


def test_queries_that_nobody_looked_at_begin_anew(nights: Any, assembly: Assembly) -> None:
    held_out = assembly.holdout_queries
    row = alike(1, len(held_out))[0]
    take(nights, assembly, row, 0)
    fresh = tuple(replace(query, text=f"new {query.text}") for query in held_out)
    assert take(nights, _with(assembly, fresh), row, 1) == SHARES[0]


def test_with_a_price_the_lower_level_counts(nights: Any, assembly: Assembly) -> None:
    size = len(assembly.holdout_queries)
    rows = alike(3, size)
    unlike = np.round(np.random.default_rng(9).standard_normal((3, size)), 6)
    levels = [
        take(nights, assembly, row, number, priced=priced)
        for number, (row, priced) in enumerate(zip(rows, unlike, strict=True))
    ]
    both = [joint(values, SHARES[:3]) for values in (rows, unlike)]
    assert levels == pytest.approx(np.min(both, axis=0))
    assert levels[2] < both[0][2]


def test_with_nothing_held_out_every_look_has_its_share(nights: Any, assembly: Assembly) -> None:
    queries = assembly.tune_queries
    open_ = replace(assembly, holdout_queries=())
    levels = [take(nights, open_, row, n) for n, row in enumerate(alike(3, len(queries)))]
    assert levels == SHARES[:3]
    assert [look.composite for look in nights.records.looks] == [()] * 3


def _with(assembly: Assembly, queries: tuple[Query, ...]) -> Assembly:
    return replace(assembly, holdout_queries=queries)
