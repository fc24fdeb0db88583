"""What is watched for drift: which figures, in which direction they get worse, and until when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from tuner.core.errors import InputError, did_you_mean

if TYPE_CHECKING:  # help is shown without numpy
    from tuner.drift.detection import Measure
    from tuner.drift.observations import Observation

QUERY_MIX = "query_type"
"""The name under which the mix of query types is reported."""
# What is watched where nobody names a measure, in this order: scores, then inputs and costs.
WATCHED = ("score", "objective", "without_graph", "empty", "latency_ms", "latency_p95_ms")
_HIGHER_IS_WORSE = ("without_graph", "empty")
_PERCENTILES = {"latency_ms": 95.0}


def measures_of(
    observations: Sequence[Observation],
    names: Sequence[str],
    higher_is_worse: Sequence[str],
    effects: Mapping[str, float],
) -> list[Measure]:
    """Return what to watch: ``names``, or by default what is there of ``WATCHED``.

    ``effects`` holds the smallest effects by name, that of all others under the empty one.

    Raises:
        InputError: nothing can be watched, or a name that no observation has.
    """
    from tuner.drift.detection import Measure
    from tuner.drift.observations import figures_in
    from tuner.evaluation.system_metrics import is_better_lower

    there = figures_in(observations)
    wanted = [name for name in names if name != QUERY_MIX]
    if not names:
        wanted = [name for name in WATCHED if name in there]
        if not wanted and not any(one.query_type for one in observations):
            listed = f": {', '.join(there)}" if there else "; the source holds none"
            raise InputError(f"name a figure to watch by --metric{listed}")
    for name in [*wanted, *higher_is_worse]:
        if name not in there:
            raise InputError(f"no observation has the figure {name!r}{did_you_mean(name, there)}")
    for name in effects.keys() - {*wanted, "", QUERY_MIX}:
        hint = did_you_mean(name, [*wanted, QUERY_MIX])
        raise InputError(f"--min-effect {name}: this is not watched{hint}")
    costs = {*_HIGHER_IS_WORSE, *higher_is_worse}
    return [
        Measure(
            name,
            "higher" if name in costs or is_better_lower(name) or name.endswith("_ms") else "lower",
            _PERCENTILES.get(name),
            effects.get(name, effects.get("", Measure(name).min_effect)),
        )
        for name in wanted
    ]


def last_day(observations: Sequence[Observation]) -> tuple[date, int]:
    """Return the last day with data, and how many days ago it was.

    Raises:
        InputError: it is still to come.
    """
    last = max(one.day for one in observations)
    age = (datetime.now(UTC).date() - last).days
    # One such line would keep every later look from ever seeing recent days.
    if age < -1:
        raise InputError(
            f"the last data are of {last}, a day that is still to come: correct them, or name the "
            "last recent day by --as-of"
        )
    return last, age
