"""Figures over queries by hand, alone and by group."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.errors import MetricError
from tuner.metrics import aggregate, aggregate_by, listed

VALUES = np.array([1.0, 0.0, np.nan, 0.5, 0.5])


def test_figures_of_the_defined_queries():
    figures = aggregate(VALUES, quantiles=(0.25, 0.9))
    assert figures.mean == pytest.approx(0.5)
    # deviations .5, -.5, 0, 0: sqrt(.5 / 3)
    assert figures.standard_deviation == pytest.approx((0.5 / 3) ** 0.5)
    assert (figures.minimum, figures.maximum) == (0.0, 1.0)
    # 0, .5, .5, 1 at 3 * .25 = .75: .375; at 3 * .9 = 2.7: .85
    assert figures.quantiles == pytest.approx({0.25: 0.375, 0.9: 0.85})
    assert (figures.count, figures.undefined) == (4, 1)


def test_nothing_defined_is_nan_never_0():
    figures = aggregate(np.array([np.nan]))
    assert np.isnan([figures.mean, figures.minimum, figures.maximum]).all()
    assert np.isnan(list(figures.quantiles.values())).all()
    assert np.isnan(aggregate(np.array([1.0])).standard_deviation)


def test_by_query_type():
    groups = aggregate_by(VALUES, ["hop", "hop", "hop", "list", "list"])
    assert list(groups) == ["hop", "list"]
    assert (groups["hop"].mean, groups["hop"].count, groups["hop"].undefined) == (0.5, 2, 1)
    assert groups["list"].standard_deviation == 0.0
    with pytest.raises(MetricError, match="1 labels for 5 values"):
        aggregate_by(VALUES, ["hop"])


def test_quantiles_are_shares():
    with pytest.raises(MetricError, match=r"write 0\.95 for 95 %"):
        aggregate(VALUES, quantiles=[95])


def test_several_cutoffs_at_once():
    assert listed("ndcg@1, 5,10, map,ndcg@5") == ["ndcg@1", "ndcg@5", "ndcg@10", "map"]
    assert listed("map") == ["map"]
