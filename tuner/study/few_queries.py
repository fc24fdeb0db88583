"""The verdict where the queries were too few to hold any out: the gain less the search's luck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tuner.core.rankings import FloatArray
from tuner.stats import CorrectedEstimate, NonInferiority, bootstrap_corrected
from tuner.study.verdict import MIN_EFFECT, Outcome


@dataclass(frozen=True)
class FewQueriesVerdict:
    """What to do where the queries were too few to hold any out; see ``decide_without_holdout``."""

    outcome: Outcome
    sentence: str
    corrected: CorrectedEstimate | None = None
    guardrails: Mapping[str, NonInferiority] = field(default_factory=dict)

    def to_record(self) -> dict[str, Any]:
        """Return the verdict as a JSON-ready mapping."""
        return asdict(self)


def decide_without_holdout(
    gains: FloatArray,
    guardrails: Mapping[str, NonInferiority],
    *,
    is_baseline: bool,
    min_effect: float = MIN_EFFECT,
    seed: int = 0,
) -> FewQueriesVerdict:
    """Decide by the gain over the baseline that the search would have on new queries.

    ``gains`` has shape (trials, queries): each trial less the baseline. The gain of the best is
    corrected for having been chosen (BBC-CV, Tsamardinos, Greasidou and Borboudakis 2018).
    Guard-rails were tested on the queries that were tuned on, which flatters the winner.
    """
    if is_baseline:
        return FewQueriesVerdict(
            "keep the baseline", "Keep the baseline: no configuration did better than it."
        )
    corrected = bootstrap_corrected(gains, seed=seed)
    low, high = corrected.interval
    seen = (
        f"with only {corrected.queries} queries none was held out; corrected for the search's luck "
        f"the gain over the baseline is {corrected.estimate:+.3f} (95 % interval {low:+.3f} to "
        f"{high:+.3f}; uncorrected {corrected.naive:+.3f})"
    )
    failed = [name for name, test in guardrails.items() if not test.is_non_inferior]
    if failed:
        outcome: Outcome = "keep the baseline"
        seen += f", but {' and '.join(failed)} could not be shown to stay within the guard-rail"
    elif high < min_effect:
        outcome = "keep the baseline"
        seen += f", less than the {min_effect:g} that would matter"
    else:
        outcome = "deploy" if low > 0 else "not enough queries"
    return FewQueriesVerdict(
        outcome, f"{outcome.capitalize()}: {seen}.", corrected, dict(guardrails)
    )
