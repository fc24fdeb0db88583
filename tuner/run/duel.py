"""Two configurations on the same queries, by every metric, and the verdict between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.errors import InputError
from tuner.datasets.together import together
from tuner.evaluation.system_metrics import is_better_lower, largest_difference
from tuner.run.assembly import Assembly
from tuner.run.judge import Choice, judge, key_of, look, measured_both
from tuner.stats import PairedComparison, correct_holm
from tuner.verdict.as_one import as_one
from tuner.verdict.by_judge import compared, labels_of
from tuner.verdict.looks import EarlierLooks, TunedOn
from tuner.verdict.ruling import HELD_OUT, Names
from tuner.verdict.verdict import Verdict


@dataclass(frozen=True)
class Duel:
    """Two configurations on the same queries.

    Attributes:
        verdict: of the second (as the winner) against the first (as the baseline).
        metrics: by metric, the second less the first, and the p-value by Holm over the metrics.
        gained, lost: row of the query and its change in the composite, largest change first.
        remarks: what favours one of the two, such as having been tuned on these queries.
        looks: of the held-out queries, where some took part.
    """

    verdict: Verdict
    metrics: Mapping[str, tuple[PairedComparison, float | None]]
    gained: tuple[tuple[int, float], ...]
    lost: tuple[tuple[int, float], ...]
    remarks: tuple[str, ...] = ()
    looks: EarlierLooks | None = None

    def to_record(self) -> dict[str, Any]:
        """Return the duel as a JSON-ready mapping."""
        return {
            "a": self.verdict.baseline,
            "b": self.verdict.winner,
            "verdict": self.verdict.to_record(),
            "metrics": {
                name: {**asdict(comparison), "adjusted_p": adjusted}
                for name, (comparison, adjusted) in self.metrics.items()
            },
            "remarks": list(self.remarks),
            "holdout_looks": None if self.looks is None else asdict(self.looks),
        }


def duel(
    assembly: Assembly,
    first: Choice,
    second: Choice,
    part: str,
    *,
    tuned_on: tuple[TunedOn | None, TunedOn | None] = (None, None),
) -> Duel:
    """Compare two configurations by every metric on a part of the queries, and decide.

    ``tuned_on`` says of each what it was tuned on, where that is known.
    On held-out queries this is a look, and is remembered as one, unless the two are the same or
    have met on them before.

    Raises:
        InputError: there are no such queries.
    """
    queries = assembly.part(part)
    if not queries:
        kind = assembly.config.retriever.kind
        raise InputError(f"{kind!r} measures itself: there are no queries to compare two on")
    is_held_out = part == "holdout"
    called = {"holdout": HELD_OUT, "tune": "tune queries"}.get(part, "queries")
    seed = assembly.config.study.seed
    b, a = both = measured_both(assembly, second, first, queries)
    looks = None  # counted now that there are answers to look at
    if part != "tune" and assembly.holdout_queries and first != second:
        looks = look(
            Path(assembly.config.study.runs_dir),
            assembly,
            [key_of(assembly, one) for one in (first, second)],
        )
    second_by, first_by = as_one(b, a, together(queries))
    comparisons = {
        name: _directed(
            name,
            compared(
                second_by.metrics[name],
                values,
                labels_of(second_by.judge, first_by.judge, name),
                seed=seed,
            ),
        )
        for name, values in first_by.metrics.items()
        if name in second_by.metrics
    }
    adjusted = correct_holm([comparison.p_value for comparison in comparisons.values()])
    change = np.nan_to_num(b.composite - a.composite)
    order = np.argsort(change, kind="stable")
    return Duel(
        judge(
            assembly,
            second,
            first,
            queries,
            look_at=lambda: looks if is_held_out else None,
            both=both,
            names=Names("B", "A", called, "A and B are the same"),
        ),
        {
            name: (comparison, None if np.isnan(p) else float(p))
            for (name, comparison), p in zip(comparisons.items(), adjusted, strict=True)
        },
        tuple((int(row), float(change[row])) for row in order[::-1] if change[row] > 0),
        tuple((int(row), float(change[row])) for row in order if change[row] < 0),
        tuple(
            remark
            for called, origin in zip("AB", tuned_on, strict=True)
            if origin and (remark := origin.remark(called, assembly.dataset, queries))
        ),
        looks,
    )


def _directed(name: str, comparison: PairedComparison) -> PairedComparison:
    directed = comparison.of_a_cost() if is_better_lower(name) else comparison
    return directed.within(largest_difference([name]))
