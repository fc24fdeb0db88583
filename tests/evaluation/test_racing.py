"""Racing by hand: rungs, paired differences, and what is left when a trial is stopped."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.rankings import Rankings
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective
from tuner.evaluation.racing import Racing, paired_z

QUERIES = tuple(
    Query(f"q{n:02}", "", query_type="odd" if n % 2 else "even", difficulty=None) for n in range(50)
)
JUDGEMENTS = {query.id: {"right": 1} for query in QUERIES}
OBJECTIVE = Objective({"recall@1": 1.0}, {"retrieved": 0.1})


class Answering:
    """Answers ``good`` of the queries, in the order of their ids, with the right document."""

    knobs = ()
    fingerprint = "f"

    def __init__(self):
        self.asked = []

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        self.asked.append([query.id for query in queries])
        answers = [["right" if int(q.id[1:]) < params["good"] else "wrong"] for q in queries]
        return Rankings.from_ids([query.id for query in queries], answers)


def race(shares=(0.2, 0.5), objective=OBJECTIVE, metrics=("recall@1", "retrieved"), **options):
    retriever = Answering()

    def make(queries):
        return Evaluator.build(retriever, queries, JUDGEMENTS, list(metrics))

    options = {"stratify_by": ["query_type"], "seed": 3, **options}
    return retriever, Racing.build(make, QUERIES, objective, shares=shares, **options)


def values(good):
    """The objective by query: right or wrong, less the price of one passage."""
    return np.array([float(n < good) for n in range(50)]) - 0.1


def test_rungs_are_stratified_and_hold_every_query_once():
    _, racing = race()
    sizes = [len(rows) for _, rows in racing.rungs]
    assert sizes == [10, 15, 25]
    assert sorted(np.concatenate([rows for _, rows in racing.rungs])) == list(range(50))
    for evaluator, rows in racing.rungs:
        assert [query.id for query in evaluator.queries] == [QUERIES[row].id for row in rows]
        assert abs(2 * sum(row % 2 for row in rows) - len(rows)) <= 1
    _, again = race()
    assert all((a == b).all() for (_, a), (_, b) in zip(racing.rungs, again.rungs, strict=True))
    _, other = race(seed=4)
    assert (other.rungs[0][1] != racing.rungs[0][1]).any()


def test_a_rung_of_fewer_than_ten_queries_is_left_out():
    _, racing = race(shares=(0.1, 0.5))
    assert [len(rows) for _, rows in racing.rungs] == [25, 25]
    retriever, racing = race(shares=(0.1,))
    assert racing({"good": 0}, rival=values(50)).race is None
    assert [len(asked) for asked in retriever.asked] == [50]


def test_without_a_rival_all_queries_are_asked_at_once():
    retriever, racing = race()
    outcome = racing({"good": 20})
    assert outcome.metrics == {"recall@1": 0.4, "retrieved": 1.0}
    assert [len(asked) for asked in retriever.asked] == [50]


def test_who_keeps_up_is_evaluated_whole_with_the_same_result():
    retriever, racing = race()
    outcome = racing({"good": 40}, rival=values(38))
    whole = racing.whole({"good": 40})
    assert outcome.race is None
    assert outcome.metrics == whole.metrics
    for name, found in whole.per_query.items():
        np.testing.assert_array_equal(outcome.per_query[name], found)
    assert [len(asked) for asked in retriever.asked] == [10, 15, 25, 50]


def test_who_falls_behind_is_stopped_after_the_first_rung():
    retriever, racing = race()
    outcome = racing({"good": 0}, rival=values(45))
    rows = racing.rungs[0][1]
    assert [len(asked) for asked in retriever.asked] == [10]
    assert outcome.race is not None
    assert outcome.race.queries == 10
    # By hand: -1 where the rival is right, and the rival's mean is .9 - .1.
    difference = -(rows < 45).astype(float)
    assert outcome.race.estimate == pytest.approx(0.8 + difference.mean())
    error = difference.std(ddof=1) / math.sqrt(10)
    margin = stats.t.ppf(0.975, 9) * error
    assert outcome.race.high - outcome.race.estimate == pytest.approx(margin)
    assert outcome.race.estimate - outcome.race.low == pytest.approx(margin)
    # Means are over what was asked, and what was not asked has no value.
    assert outcome.metrics == {"recall@1": 0.0, "retrieved": 1.0}
    assert np.isnan(outcome.per_query["recall@1"]).sum() == 40
    assert not np.isnan(outcome.per_query["recall@1"][rows]).any()


def test_a_trial_is_never_stopped_by_unpaired_means():
    # The first rung is hard for everybody: the mean there is far below the rival's mean over all
    # queries, but the trial answers exactly what the rival answers.
    _, racing = race()
    rows = racing.rungs[0][1]
    rival = np.ones(50)
    rival[rows] = 0.0

    class Same(Answering):
        def retrieve(self, queries, params):
            ids = [query.id for query in queries]
            return Rankings.from_ids(ids, [["right" if rival[int(i[1:])] else "no"] for i in ids])

    def make(queries):
        return Evaluator.build(Same(), queries, JUDGEMENTS, ["recall@1"])

    objective = Objective({"recall@1": 1.0})
    racing = Racing.build(make, QUERIES, objective, stratify_by=["query_type"], seed=3)
    assert racing({}, rival=rival).race is None


def test_latency_is_measured_once_and_at_the_end():
    retriever, racing = race(metrics=("recall@1", "retrieved", "latency_p50_ms"))
    outcome = racing({"good": 50}, rival=values(50))
    assert outcome.race is None
    assert outcome.metrics["latency_p50_ms"] > 0
    assert [len(asked) for asked in retriever.asked[:3]] == [10, 15, 25]
    assert {len(asked) for asked in retriever.asked[3:]} == {1}
    retriever.asked.clear()
    stopped = racing({"good": 0}, rival=values(50))
    assert "latency_p50_ms" not in stopped.metrics
    assert [len(asked) for asked in retriever.asked] == [10]


@pytest.mark.parametrize(
    ("shares", "stop_below", "key"),
    [([], -1, "rungs"), ([0.5, 0.2], -1, "rungs"), ([0.2, 1.0], -1, "rungs"), ([0.0], -1, "rungs"),
     ([0.2], 0.5, "stop_below"), ([0.2], -math.inf, "stop_below")],
)  # fmt: skip
def test_what_no_race_can_be(shares, stop_below, key):
    with pytest.raises(InputError) as caught:
        race(shares=shares, stop_below=stop_below)
    assert caught.value.problems[0].key == (key,)


def test_the_z_value_by_hand():
    # mean -.1, standard deviation .0816, four pairs: -.1 / .0408
    z, mean, error = paired_z(np.array([-0.2, 0.0, -0.1, -0.1]))
    assert (z, mean, error) == pytest.approx((-2.4495, -0.1, 0.040825), rel=1e-4)
    assert paired_z(np.zeros(5))[0] == 0.0
    assert paired_z(np.full(5, -0.5))[0] == -math.inf
    assert paired_z(np.array([-1.0]))[0] == 0.0


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=30))
def test_the_z_value_is_that_of_the_paired_t_test(differences):
    difference = np.array(differences)
    if difference.std() < 1e-6:
        return
    expected = stats.ttest_1samp(difference, 0.0).statistic
    assert paired_z(difference)[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)
