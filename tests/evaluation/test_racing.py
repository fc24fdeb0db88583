"""Racing by hand: rungs, paired differences, and what is left when a trial is stopped."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.rankings import Rankings
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import Objective
from tuner.evaluation.racing import Racing, paired_z, standing
from tuner.evaluation.rungs import usable_rungs

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
    """The standing by query: right or wrong, less the price of one passage, and without it."""
    right = np.array([float(n < good) for n in range(50)])
    return np.stack([right - 0.1, right])


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
    # One more query differs in full: size² = (1 + d) / (1 + d) = 1 for all differences of 1.
    error = math.sqrt((np.square(difference - difference.mean()).sum() + 1.0) / (10 * 9))
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
    assert racing({}, rival=np.stack([rival, rival])).race is None


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
    # Mean -.1; squares .01 + .01 = .02; three differ, by .04 + .01 + .01 = .06 squared, so the
    # size of one more is (1 + .06) / 4 = .265 squared; error = sqrt((.02 + .265) / 12) = .1541.
    difference = np.array([-0.2, 0.0, -0.1, -0.1])
    assert paired_z(difference, difference) == pytest.approx((-0.6489, -0.1, 0.15411), rel=1e-4)
    # All four in full: size 1, error = sqrt((0 + 1) / 12) = .2887.
    full = np.full(4, -1.0)
    assert paired_z(full, full) == pytest.approx((-3.4641, -1.0, 0.288675), rel=1e-4)
    assert paired_z(np.zeros(5), np.zeros(5))[0] == 0.0
    assert paired_z(np.array([-1.0]), np.array([-1.0])) == (0.0, 0.0, 0.0)


def test_a_price_alone_weighs_little_while_few_queries_were_asked():
    # All tie, and each costs .02 more: the spread is 0, and its z would be infinite.
    # Of 10: error = sqrt(1 / 90) = .1054, z = -.1897; of 100: error = sqrt(1 / 9900), z = -1.99.
    for queries, z in ((10, -0.18974), (100, -1.98997)):
        found = paired_z(np.full(queries, -0.02), np.zeros(queries))
        assert found[0] == pytest.approx(z, rel=1e-4)
        assert found[1] == pytest.approx(-0.02)


def test_where_nearly_all_tie_a_few_losses_weigh_little():
    # One of 20 is lost by .5: mean -.025, squares .25 - 20 * .000625 = .2375, and one more of
    # size (1 + .25) / 2 = .625: error = sqrt(.8625 / 380) = .04764, z = -.5247.
    difference = np.zeros(20)
    difference[0] = -0.5
    assert paired_z(difference, difference)[0] == pytest.approx(-0.5247, rel=1e-3)
    # Three: mean -.075, squares .75 - .1125 = .6375, one more (1 + .75) / 4 = .4375: z = -1.41.
    difference[:3] = -0.5
    assert paired_z(difference, difference)[0] == pytest.approx(-1.4100, rel=1e-3)


def test_who_ties_at_a_higher_price_is_not_stopped_before_the_queries_that_it_wins():
    """It answers all that the first rung asks as the best does, and others better."""

    class Deep(Answering):
        def retrieve(self, queries, params):
            ids = [query.id for query in queries]
            depth = {"easy": 1, "deep": 3}[params["mode"]]
            found = [["right"] if i in first or depth > 1 else ["wrong"] for i in ids]
            return Rankings.from_ids(ids, [[*f, "a", "b"][:depth] for f in found])

    retriever = Deep()

    def make(queries):
        return Evaluator.build(retriever, queries, JUDGEMENTS, ["recall@3", "retrieved"])

    objective = Objective({"recall@3": 1.0}, {"retrieved": 0.01})
    racing = Racing.build(make, QUERIES, objective, shares=(0.2, 0.5), seed=3)
    first = {QUERIES[row].id for row in racing.rungs[0][1]}
    easy = racing({"mode": "easy"})
    outcome = racing({"mode": "deep"}, rival=standing(objective, easy.per_query))
    # The differences in the first rung are -.02 throughout; over all, 40 of 50 are won.
    assert outcome.race is None
    assert outcome.metrics["recall@3"] == 1.0
    assert easy.metrics["recall@3"] == pytest.approx(0.2)


def test_who_ties_at_a_much_higher_price_is_stopped():
    retriever, racing = race(objective=Objective({"recall@1": 1.0}, {"retrieved": 0.5}))
    rival = np.stack([np.full(50, 1.0), np.ones(50)])  # right without retrieving a thing
    outcome = racing({"good": 50}, rival=rival)
    # Of 10, z = -.5 / .1054 = -4.74.
    assert [len(asked) for asked in retriever.asked] == [10]
    assert outcome.race is not None
    margin = stats.t.ppf(0.975, 9) * math.sqrt(1 / 90)
    assert outcome.race.estimate == pytest.approx(0.5)
    assert outcome.race.high == pytest.approx(0.5 + margin)


def test_a_standing_is_the_objective_and_the_mean_without_prices():
    objective = Objective({"a": 3.0, "b": 1.0}, {"context_tokens_per_1000": 0.02})
    per_query = {
        "a": np.array([1.0, 0.0, np.nan]),
        "b": np.array([0.0, 0.4, 1.0]),
        "context_tokens": np.array([1000.0, 500.0, 10.0]),
    }
    # .75 - .02, .1 - .01
    expected = [[0.73, 0.09, np.nan], [0.75, 0.1, np.nan]]
    np.testing.assert_allclose(standing(objective, per_query), expected)


def test_rungs_that_few_queries_leave():
    assert usable_rungs(203, [0.1, 0.2, 0.5]) == [0.1, 0.2, 0.5]
    assert usable_rungs(25, [0.1, 0.2, 0.5]) == [0.5]  # 12.5 of 25
    assert usable_rungs(12, [0.1, 0.2, 0.5]) == []


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=30), st.floats(0, 1))
def test_the_error_is_never_below_that_of_the_paired_t_test(relevance, price):
    relevance = np.array(relevance)
    difference = relevance - price
    z, mean, error = paired_z(difference, relevance)
    plain = difference.std(ddof=1) / math.sqrt(len(difference))
    assert mean == pytest.approx(difference.mean(), abs=1e-12)
    assert z * error == pytest.approx(mean, abs=1e-12)
    assert plain < error <= math.hypot(plain, 1.0 / (len(difference) - 1) ** 0.5) + 1e-12


def test_with_many_queries_the_z_value_is_that_of_the_paired_t_test():
    difference = np.random.default_rng(1).normal(-0.02, 0.2, 20_000).clip(-1, 1)
    expected = stats.ttest_1samp(difference, 0.0).statistic
    assert paired_z(difference, difference)[0] == pytest.approx(expected, rel=1e-4)
