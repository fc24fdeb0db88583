"""What is watched for drift, in which direction it gets worse, and until when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tuner.core.errors import InputError
from tuner.drift.observations import Observation
from tuner.drift.watched import last_day, measures_of

TODAY = datetime.now(UTC).date()


def observed(*names, query_type=""):
    return [Observation(TODAY, dict.fromkeys(names, 0.5), query_type=query_type)]


def test_by_default_what_is_there_of_the_usual_figures_is_watched():
    there = observed("latency_ms", "empty", "clicks", "score")
    measures = measures_of(there, (), (), {})
    assert [(one.name, one.worse, one.percentile, one.min_effect) for one in measures] == [
        ("score", "lower", None, 0.05),
        ("empty", "higher", None, 0.05),
        ("latency_ms", "higher", 95.0, 0.05),
    ]


def test_costs_and_times_are_worse_when_they_are_higher():
    there = observed("ndcg@10", "context_tokens", "queue_ms", "complaints")
    names = ("ndcg@10", "context_tokens", "queue_ms", "complaints", "query_type")
    measures = measures_of(there, names, ("complaints",), {})
    assert [one.worse for one in measures] == ["lower", "higher", "higher", "higher"]


def test_a_smallest_effect_by_name_goes_before_that_of_all():
    there = observed("score", "empty")
    measures = measures_of(there, (), (), {"": 0.1, "score": 0.2, "query_type": 0.3})
    assert [one.min_effect for one in measures] == [0.2, 0.1]


def test_query_types_alone_are_enough():
    assert measures_of(observed("clicks", query_type="hop"), (), (), {}) == []


@pytest.mark.parametrize(
    ("names", "costs", "effects", "message"),
    [
        ((), (), {}, "name a figure to watch by --metric: clicks"),
        (("click",), (), {}, "no observation has the figure 'click'; did you mean 'clicks'"),
        (("clicks",), ("other",), {}, "no observation has the figure 'other'"),
        (("clicks",), (), {"click": 0.1}, "--min-effect click: this is not watched"),
    ],
)
def test_what_cannot_be_watched_is_named(names, costs, effects, message):
    with pytest.raises(InputError, match=message):
        measures_of(observed("clicks"), names, costs, effects)


def test_without_figures_none_are_listed():
    with pytest.raises(InputError, match="by --metric; the source holds none"):
        measures_of(observed(), (), (), {})


@pytest.mark.parametrize("ahead", [-3, 0, 1])
def test_the_last_day_may_be_tomorrow_where_it_is_tomorrow_already(ahead):
    last = TODAY + timedelta(days=ahead)
    earlier = Observation(TODAY - timedelta(days=9), {})
    day, age = last_day([Observation(last, {}), earlier])
    assert day == last
    assert age in (-ahead, -ahead + 1)  # midnight may have passed


def test_a_day_that_is_still_to_come_is_refused():
    with pytest.raises(InputError, match="a day that is still to come"):
        last_day([Observation(TODAY + timedelta(days=3), {})])
