"""The shipped contracts pass what keeps them, and name what breaks them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.backends.base import check_budget
from tuner.backends.random import Random
from tuner.core import registry
from tuner.core.trial import Outcome
from tuner.datasets.beir import Beir
from tuner.execution.local.inline import Inline
from tuner.metrics.names import FILES
from tuner.metrics.ranking import METRICS
from tuner.testing import (
    BackendCase,
    ExecutionCase,
    ExecutionContract,
    FormatCase,
    FormatContract,
    MetricCase,
    MetricContract,
    check_backend,
    check_execution,
    check_format,
    check_metric,
)

DATA = Path(__file__).resolve().parents[1] / "data"


def broken_by(check: Callable[[Any], None], case: Any) -> set[str]:
    """Return the names of the checks that a case breaks."""
    with pytest.raises(AssertionError) as caught:
        check(case)
    return {line.partition(": ")[0] for line in str(caught.value).splitlines()}


class Wrong:
    """A backend that goes wrong in one way."""

    def __init__(self, way: str, budget: Any) -> None:
        self.way, self.made, self.count = way, Random(5), itertools.count()
        if way != "takes any budget":
            check_budget(budget)

    def suggest(self, space: Any, history: Any, *, count: int, seed: int) -> Any:
        match self.way:
            case "remembers":
                seed += next(self.count)
            case "forgets the seed":
                seed = 0
            case "forgets the history":
                history = ()
            case "numpy":
                found = self.made.suggest(space, history, count=count, seed=seed)
                types = {float: np.float64, int: np.int64}
                return [
                    {k: types.get(type(v), lambda x: x)(v) for k, v in one.items()} for one in found
                ]
            case "one at a time":
                count = min(count, 1)
            case "gives what is not asked":
                count = max(count, 1)
            case "changes the history":
                history = list(history)
                if history:
                    history[0].params.clear()
        return self.made.suggest(space, history, count=count, seed=seed)


@pytest.mark.parametrize(
    ("way", "check"),
    [
        ("remembers", "check_no_memory"),
        ("forgets the seed", "check_seed_and_count"),
        ("forgets the history", "check_every_state"),
        ("numpy", "check_points_lie_in_the_space"),
        ("one at a time", "check_several_at_once"),
        ("gives what is not asked", "check_seed_and_count"),
        ("changes the history", "check_every_state"),
        ("takes any budget", "check_budget"),
    ],
)
def test_a_wrong_backend_is_named(way: str, check: str) -> None:
    assert check in broken_by(check_backend, BackendCase(lambda budget: Wrong(way, budget)))


def ranking_metrics() -> dict[str, Any]:
    import importlib

    tables = [getattr(importlib.import_module(name), "METRICS", {}) for name in FILES]
    found = {name: family for table in tables for name, family in table.items()}
    # One takes weights of one's own, and has no value without them.
    return {n: f for n, f in found.items() if f.kind == "ranking" and f.takes != "discount"}


@pytest.mark.parametrize("name", ranking_metrics())
def test_every_ranking_metric_keeps_its_contract(name: str) -> None:
    check_metric(MetricCase(ranking_metrics()[name]))


class TestRecall(MetricContract):
    case = MetricCase(METRICS["recall"])


def spoiled(change: Callable[[Any, int | None], Any]) -> MetricCase:
    return MetricCase(replace(METRICS["recall"], function=change))


def test_a_wrong_metric_is_named() -> None:
    recall = METRICS["recall"].function
    wrong: dict[str, Callable[..., Any]] = {
        "check_one_value_a_query": lambda judged, k=None: np.nan_to_num(recall(judged, k or 10)),
        "check_nothing_found": lambda judged, k=None: np.where(
            judged.hits.any(axis=1), recall(judged, k or 10), np.nan
        ),
        "check_queries_stand_alone": lambda judged, k=None: (
            recall(judged, k or 10) / len(judged.gains)
        ),
        "check_depth": lambda judged, k=None: recall(judged, (k or 10) + 1),
        "check_relevant_from": lambda judged, k=None: recall(
            replace(judged, relevant_from=1.0), k or 10
        ),
    }
    for check, function in wrong.items():
        assert check in broken_by(check_metric, spoiled(function)), check

    def writes(judged: Any, k: int = 10) -> Any:
        values = recall(judged, k)
        judged.gains[:] = 0.0
        return values

    assert "check_arguments_are_left_alone" in broken_by(check_metric, spoiled(writes))


def what_is_broken(case: MetricCase) -> str:
    with pytest.raises(AssertionError) as broken:
        check_metric(case)
    return str(broken.value)


def test_an_author_of_a_metric_is_told_the_way_out() -> None:
    recall = METRICS["recall"].function
    too_large = what_is_broken(spoiled(lambda judged, k=None: 100 * recall(judged, k or 10)))
    assert "values lie from 0 to `highest`, which is 1, got [" in too_large
    assert "write MetricFamily(…, highest=…)" in too_large
    waste = what_is_broken(spoiled(lambda judged, k=None: 1.0 - recall(judged, k or 10)))
    assert "an empty result of a judged query is 0, got 1.0" in waste
    assert "write MetricFamily(…, lower_is_better=True)" in waste

    def first(judged: Any, k: int = 10) -> Any:
        hit = judged.hits[:, 0]
        return np.where(judged.is_defined, hit / 1.0, np.nan)

    empty = what_is_broken(spoiled(first))
    assert "IndexError" in empty
    assert "had 0 columns here: an empty result has 0 columns" in empty


class TestBeir(FormatContract):
    case = FormatCase(Beir, DATA / "musique")


@pytest.mark.parametrize(
    ("kind", "sample"),
    [
        ("samples", "samples"),
        ("trec", "trec"),
        ("hotpotqa", "formats/hotpotqa.json"),
        ("wiki2", "formats/2wiki.json"),
        ("musique", "formats/musique.jsonl"),
    ],
)
def test_readers_keep_their_contract(kind: str, sample: str) -> None:
    check_format(FormatCase(registry.load("datasets", kind), DATA / sample))


def test_a_wrong_reader_is_named() -> None:
    class Careless(Beir):
        layout = ""

        @staticmethod
        def detect(path: Path) -> bool:
            return True

        @staticmethod
        def read(path: Path, *, split: Any = None, relevant_from: float = 1.0) -> Any:
            text = (path / "queries.jsonl").read_text()  # not for every file is this UTF-8
            assert text
            return Beir.read(path, relevant_from=relevant_from)

    assert broken_by(check_format, FormatCase(Careless, DATA / "musique")) == {
        "check_interface",
        "check_detect",
        "check_damaged_files",
        "check_unknown_split",
    }


class TestThreads(ExecutionContract):
    case = ExecutionCase(registry.load("execution", "threads"), can_stop=False)


def test_a_wrong_execution_is_named() -> None:
    class Careless(Inline):
        def run(self, evaluate: Any, trials: Any, **options: Any) -> Any:
            for trial in list(trials):
                if trial.params["x"] != 2:
                    yield trial, Outcome({"double": 2.0 * evaluate(trial.params).metrics["double"]})

    broken = broken_by(check_execution, ExecutionCase(Careless, can_stop=False))
    assert {"check_every_trial_once", "check_failures_are_outcomes"} <= broken
    assert "check_trials_are_pulled_as_they_are_needed" in broken
