"""What a study says of its system: nothing found, dead knobs, a graph that is silent."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from tuner.core.corpus import Query
from tuner.core.ledger import Ledger
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Trial
from tuner.retrieval.wrapped.counted import Counted
from tuner.run.inspection import NothingFound, dead_knobs, is_alive_elsewhere, query_ms

QUERIES = [Query(f"q{n}", "") for n in range(30)]
SPACE = SearchSpace.from_mapping(
    {
        "top_k": {"type": "integer", "low": 1, "high": 9},
        "decoration": {"type": "real", "low": 0.0, "high": 1.0},
        "mode": {"type": "categorical", "choices": ["plain", "graph", "text"]},
        "hops": {"type": "integer", "low": 1, "high": 3, "when": {"mode": "graph"}},
        "only": {"type": "categorical", "choices": [1]},
    }
)


class System:
    def __init__(self) -> None:
        self.asked = 0

    def retrieve(self, queries, params):
        self.asked += len(queries)
        order = range(9, 0, -1) if params["mode"] == "text" else range(1, 10)
        answers = [[f"d{n}" for n in order][: params["top_k"]] for _ in queries]
        return Rankings.from_ids([query.id for query in queries], answers)


def test_a_knob_that_changes_no_ranking_is_found() -> None:
    system = System()
    at = {"top_k": 5, "decoration": 0.3, "mode": "graph", "hops": 2, "only": 1}
    # top_k cuts, and the last mode turns round; the others do nothing, and one has no other value.
    assert dead_knobs(system.retrieve, QUERIES, SPACE, at) == ["decoration", "hops"]
    assert system.asked <= 10 * (1 + 3 * 4)


def test_a_knob_that_is_not_active_is_not_called_dead() -> None:
    at = {"top_k": 5, "decoration": 0.3, "mode": "plain", "only": 1}
    # Turning the mode to graph alone would leave hops open, so only text is tried.
    assert dead_knobs(System().retrieve, QUERIES, SPACE, at) == ["decoration"]


def test_constraints_are_kept_while_knobs_are_turned() -> None:
    space = SearchSpace.from_mapping(
        {
            "start": {"type": "integer", "low": 1, "high": 4},
            "end": {"type": "integer", "low": 1, "high": 4},
        },
        ["start <= end"],
    )

    def retrieve(queries, params):
        assert params["start"] <= params["end"]
        return Rankings.from_ids([query.id for query in queries], [["a"] for _ in queries])

    assert dead_knobs(retrieve, QUERIES, space, {"start": 2, "end": 2}) == ["start", "end"]


def test_values_with_which_no_trial_was_scored_are_not_tried() -> None:
    at = {"top_k": 5, "decoration": 0.3, "mode": "graph", "hops": 2, "only": 1}
    scored = [{**at, "top_k": top_k, "decoration": top_k / 10} for top_k in (2, 5, 7, 8)]
    trials = [Trial(n, "tpe", params, objective=0.5) for n, params in enumerate(scored)]
    trials += [Trial(9, "tpe", {**at, "mode": "text", "top_k": 1}, error="it crashed")]
    asked = []

    def retrieve(queries, params):
        asked.append(params)
        return System().retrieve(queries, params)

    assert dead_knobs(retrieve, QUERIES, SPACE, at, trials=trials) == ["decoration"]
    assert {params["mode"] for params in asked} == {"graph"}
    assert {params["top_k"] for params in asked} == {2, 5}  # one that changes something is enough
    assert {params["decoration"] for params in asked} == {0.2, 0.3, 0.7, 0.8}


def test_a_knob_may_be_dead_around_the_chosen_configuration_only() -> None:
    space = SearchSpace.from_mapping(
        {name: {"type": "real", "low": 0.0, "high": 1.0} for name in ("graph", "text", "dead")}
    )

    def retrieve(queries, params):  # two legs: with the graph's weight 0, the text's does nothing
        order = ["a", "b"] if params["graph"] > params["text"] else ["b", "a"]
        return Rankings.from_ids([query.id for query in queries], [order for _ in queries])

    chosen = {"graph": 0.0, "text": 0.7, "dead": 0.1}
    given = [
        chosen,
        {"graph": 0.5, "text": 0.9, "dead": 0.4},
        {"graph": 0.8, "text": 0.2, "dead": 0.9},
    ]
    trials = [Trial(n, "tpe", params, objective=0.5) for n, params in enumerate(given)]
    assert dead_knobs(retrieve, QUERIES, space, chosen, trials=trials) == ["text", "dead"]
    assert is_alive_elsewhere(retrieve, QUERIES, space, "text", chosen, trials)
    assert not is_alive_elsewhere(retrieve, QUERIES, space, "dead", chosen, trials)
    assert not is_alive_elsewhere(retrieve, QUERIES, space, "text", chosen, trials[:1])


@pytest.mark.parametrize("queries", [QUERIES[:1], QUERIES[:3]])
def test_fewer_queries_than_are_looked_at(queries: list[Query]) -> None:
    at = {"top_k": 5, "decoration": 0.3, "mode": "graph", "hops": 2, "only": 1}
    assert dead_knobs(System().retrieve, queries, SPACE, at) == ["decoration", "hops"]


def barren(ids: list[str]) -> Any:
    """A system that returns ids of which none is relevant; the data set has d0 to d9."""
    assembly = SimpleNamespace(
        plan=SimpleNamespace(objective=SimpleNamespace(weights={"mrr": 1.0})),
        config=SimpleNamespace(objective=SimpleNamespace(budget_tokens=None)),
        dataset=SimpleNamespace(
            qrels={"q0": {"d9": 1}},
            corpus=SimpleNamespace(documents=[SimpleNamespace(id=f"d{n}") for n in range(10)]),
        ),
        tune_queries=QUERIES,
        fixed={},
        retriever=SimpleNamespace(
            retrieve=lambda queries, params: Rankings.from_ids([q.id for q in queries], [ids])
        ),
    )
    assembly.counting = lambda purpose: assembly
    return assembly


def zeros(*numbers: int) -> list[Trial]:
    return [Trial(n, "tpe", {}, objective=0.0, metrics={"mrr": 0.0}) for n in numbers]


@pytest.mark.parametrize("killed_after", [0, 1, 4, 9])
def test_ten_trials_without_a_hit_are_ten_of_the_study_also_where_a_run_was_killed(
    killed_after: int,
) -> None:
    trials = zeros(*range(10))
    doubt = NothingFound(barren(["d1"]), trials[:killed_after])
    *before, last = (doubt(trial) for trial in trials[killed_after:])
    assert before == [None] * (9 - killed_after)
    assert last is not None
    assert last.startswith("the first 10 evaluations found no relevant document for any of the 30")


def test_a_study_that_ended_for_want_of_hits_is_given_ten_more() -> None:
    doubt = NothingFound(barren(["d1"]), zeros(*range(10)))
    assert [doubt(trial) is None for trial in zeros(*range(10, 20))] == [True] * 9 + [False]


def test_a_resumed_study_whose_system_returns_strange_ids_ends_at_once() -> None:
    reason = NothingFound(barren(["x1"]), zeros(0, 1))(zeros(2)[0])
    assert reason is not None
    assert "the first 3 evaluations found no relevant document" in reason
    assert "it returned 'x1', …, and judged are 'd9'" in reason


@dataclass
class Timed:
    """Answers a query after so many seconds, ``queries_at_once`` side by side."""

    queries_at_once: int
    seconds: float
    knobs = ()
    fingerprint = "timed"

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        time.sleep(self.seconds)
        return Rankings.from_ids([query.id for query in queries], [["a"] for _ in queries])


def timed_ms(at_once: int, workers: int, *, trial_s: float, query_s: float) -> tuple[float, int]:
    """Return how long a query is said to take, and how many were asked to know that."""
    ledger = Ledger()
    retriever = Timed(at_once, query_s)
    assembly: Any = SimpleNamespace(
        retriever=retriever,
        counting=lambda purpose: SimpleNamespace(retriever=Counted(retriever, purpose, ledger)),
        tune_queries=QUERIES,
        fixed={},
        plan=SimpleNamespace(execution=SimpleNamespace(slots=workers)),
    )
    trials = [Trial(n, "tpe", {}, objective=0.5, seconds={"retrieve": trial_s}) for n in range(3)]
    return query_ms(assembly, {}, trials), ledger.calls.get("query_time", 0)


@pytest.mark.parametrize(("at_once", "workers"), [(1, 4), (4, 1), (4, 4), (16, 1), (16, 8)])
def test_a_query_that_waited_for_others_does_not_take_that_long(at_once: int, workers: int) -> None:
    # The trials say at least 10 s a query; by itself it is answered in a thousandth of that.
    took_ms, asked = timed_ms(at_once, workers, trial_s=300.0, query_s=0.01)
    assert 10.0 <= took_ms < 10_000.0
    assert asked in (1, 2)
    # A slow one is slow by itself as well, and no more than two are asked to know it.
    took_ms, asked = timed_ms(at_once, workers, trial_s=300.0, query_s=0.06)
    assert 60.0 <= took_ms < 10_000.0
    assert asked == 2
    # Where even with the waiting it is quick, nothing is asked.
    assert timed_ms(at_once, workers, trial_s=0.03, query_s=0.06)[1] == 0


def test_one_query_after_the_other_in_one_worker_is_timed_by_the_trials() -> None:
    assert timed_ms(1, 1, trial_s=18.0, query_s=9.0) == (600.0, 0)


def test_to_look_at_a_knob_no_index_is_built() -> None:
    space = SearchSpace.from_mapping(
        {name: {"type": "integer", "low": 1, "high": 3} for name in ("chunk", "depth")}
    )
    asked = []

    def retrieve(queries, params):
        asked.append(params["chunk"])
        return Rankings.from_ids([query.id for query in queries], [["a"] for _ in queries])

    def is_there(params):
        return params["chunk"] == 2

    chosen = {"chunk": 2, "depth": 1}
    others = [{"chunk": chunk, "depth": 2} for chunk in (1, 3)]
    trials = [Trial(n, "tpe", p, objective=0.5) for n, p in enumerate([chosen, *others])]
    found = dead_knobs(retrieve, QUERIES, space, chosen, trials=trials, is_there=is_there)
    assert found == ["depth"]
    assert not is_alive_elsewhere(
        retrieve, QUERIES, space, "depth", chosen, trials, is_there=is_there
    )
    assert set(asked) == {2}
