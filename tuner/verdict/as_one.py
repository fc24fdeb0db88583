"""Queries that depend on each other count as one: their values become one value.

Copies of a query, or several on one document, are no evidence of their own: a test that takes them
as independent finds too narrow an interval, and deploys what is no better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.rankings import FloatArray
from tuner.stats import GroupComparison, per_group
from tuner.verdict.by_judge import ByJudge
from tuner.verdict.measured import Measured
from tuner.verdict.ruling import Caveat, CaveatKind

# Shape (queries,): the same number for queries that count as one.
Together = npt.NDArray[np.intp]


def totals(
    values: Sequence[FloatArray],
    together: Together,
    strata: npt.NDArray[np.intp] | None = None,
) -> tuple[list[FloatArray], npt.NDArray[np.intp]]:
    """Return one value for each set of queries that count as one, and the row of its first query.

    Each of ``values`` has shape (…, queries). A set's value is the total over its queries, in units
    of the mean size: total * sets / queries. So the mean over sets is the mean over queries, while
    the spread is that of sets, as in a cluster-robust standard error of a mean. Where one of
    ``values`` is undefined, the query counts in none; a set without any query is undefined.
    ``strata``, shape (queries,), are apart from each other, each with a mean of its own.

    1, 1, 4 and 0, of which the first two count as one: 2 * 3/4, 4 * 3/4, 0 * 3/4, of mean 1.5.

    >>> (found,), _ = totals([np.array([1.0, 1.0, 4.0, 0.0])], np.array([0, 0, 2, 3]))
    >>> found.tolist()
    [1.5, 3.0, 0.0]
    """
    apart = np.zeros(len(together), dtype=np.intp) if strata is None else strata
    keys = np.stack([apart, together])
    (stratum, _), first, set_of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    stacked = np.stack([np.asarray(one, dtype=np.float64) for one in values])
    is_known = ~np.isnan(stacked).any(axis=tuple(range(stacked.ndim - 1)))
    order = np.argsort(set_of.ravel(), kind="stable")
    starts = np.searchsorted(set_of.ravel()[order], np.arange(first.size))

    def summed(by_query: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(by_query[..., order], starts, axis=-1))

    sizes = summed(np.asarray(is_known, dtype=np.float64))
    has_some = sizes > 0.0
    queries = np.bincount(stratum, weights=sizes)[stratum]
    scale = np.bincount(stratum, weights=has_some)[stratum] / np.maximum(queries, 1.0)
    found = summed(np.asarray(np.where(is_known, stacked, 0.0))) * scale
    return list(np.where(has_some, found, np.nan)), first


def as_one(winner: Measured, baseline: Measured, together: Together) -> tuple[Measured, Measured]:
    """Return both with one value for each set of queries that count as one.

    People's queries and those that a judge alone graded stay apart. What is not known by query, or
    of other queries, as latencies are, stays as it is.
    """
    by_judge = (winner.judge, baseline.judge)
    judges = None if by_judge[0] is None or by_judge[1] is None else (by_judge[0], by_judge[1])
    strata = None if judges is None else (~judges[0].is_people).astype(np.intp)

    def both(first: FloatArray, second: FloatArray, *judged: FloatArray | None) -> list[FloatArray]:
        known = [first, second, *(one for one in judged if one is not None)]
        return totals(known, together, strata)[0]

    composite = both(winner.composite, baseline.composite, *(one.composite for one in judges or ()))
    objective: list[FloatArray] = []
    if winner.objective is not None and baseline.objective is not None:
        objective = both(
            winner.objective, baseline.objective, *(one.objective for one in judges or ())
        )
    metrics = {
        name: both(values, baseline.metrics[name], *(one.metrics.get(name) for one in judges or ()))
        for name, values in winner.metrics.items()
        if name in baseline.metrics
        and len(values) == len(together)
        and not name.startswith("latency_")
    }
    is_people = np.zeros(0, dtype=bool)
    if judges is not None:
        rows = totals([winner.composite], together, strata)[1]
        is_people = judges[0].is_people[rows]

    def of(side: int, one: Measured) -> Measured:
        return replace(
            one,
            composite=composite[side],
            objective=objective[side] if objective else one.objective,
            metrics={**one.metrics, **{name: found[side] for name, found in metrics.items()}},
            judge=None
            if judges is None
            else ByJudge(
                is_people,
                composite[side + 2],
                objective[side + 2] if len(objective) > 2 else None,
                {name: found[side + 2] for name, found in metrics.items() if len(found) > 2},
            ),
        )

    return of(0, winner), of(1, baseline)


def gains_as_one(gains: FloatArray, together: Together) -> FloatArray:
    """Return gains of shape (trials, queries) with one value for each set of queries.

    A trial without any value keeps none; where another lacks a query, it counts for nobody.
    """
    is_known = ~np.isnan(gains).all(axis=1)
    found = np.full((len(gains), np.unique(together).size), np.nan)
    if is_known.any():
        found[is_known] = totals([gains[is_known]], together)[0][0]
    return found


def by_type(
    winner: Measured,
    baseline: Measured,
    query_types: Sequence[str],
    together: Together | None,
    **drawn: Any,
) -> tuple[GroupComparison, ...]:
    """Compare within each query type, where there are several; people's queries answer alone."""
    own = slice(None) if winner.judge is None else winner.judge.is_people
    types = np.asarray(query_types, dtype=object)[own] if len(query_types) else np.empty(0, object)
    names, number = np.unique(types.astype(str), return_inverse=True)
    if names.size < 2:
        return ()
    first, second = winner.composite[own], baseline.composite[own]
    if together is not None:
        (first, second), rows = totals([first, second], together[own], number)
        types = types[rows]
    return per_group(first, second, types.tolist(), **drawn)


def caveat_of(together: Together, called: str) -> list[Caveat]:
    """Say that queries count as one, where some do; ``called`` is what the queries are called."""
    count = int(np.unique(together).size)
    if count == together.size:
        return []
    figures = {"queries": int(together.size), "count": count, "called": called}
    return [Caveat(CaveatKind.AS_ONE, figures)]
