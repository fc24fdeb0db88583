"""Trials as points of a figure: which are shown, what is said of them, what is marked."""

from __future__ import annotations

from collections.abc import Sequence

from tuner.core.shown import shortened
from tuner.core.study_record import Standing
from tuner.core.trial import Trial, TrialState
from tuner.report.chart import Role, Series, spread
from tuner.report.parts import shown, shown_params
from tuner.report.review import Review
from tuner.study.failures import reason_of

# More points than this hide each other; all of them stand in the CSV files.
MOST_POINTS = 500
BEST_POINTS = 100
LONGEST_REASON = 200


def worth(trial: Trial) -> float:
    """Return what a trial is worth, minus infinity where that is not known."""
    return -float("inf") if trial.worth is None else trial.worth


def shown_trials(trials: Sequence[Trial], limit: int = MOST_POINTS) -> list[Trial]:
    """Return all trials, or the best and others evenly spread over the search."""
    if len(trials) <= limit:
        return list(trials)
    best = sorted(trials, key=lambda trial: -worth(trial))[:BEST_POINTS]
    numbers = {trial.number for trial in best}
    rest = [trial for trial in trials if trial.number not in numbers]
    return best + [rest[n] for n in spread(len(rest), limit - len(best))]


def trial_text(trial: Trial) -> str:
    """Describe a trial for those who point at it."""
    if trial.state is TrialState.FAILED:
        reason = shortened(reason_of(trial), LONGEST_REASON)
        return f"{trial.arm} #{trial.number} failed: {reason}; {shown_params(trial.params)}"
    about = f"{trial.arm} #{trial.number}: {shown(trial.worth)}"
    if trial.race is not None:
        about += f" (estimate after {trial.race.queries} queries)"
    return f"{about}; {shown_params(trial.params)}"


def marked(review: Review) -> list[tuple[str, Role, Standing]]:
    """Return what every figure marks, the chosen one last so that it lies on top."""
    found: list[tuple[str, Role, Standing]] = []
    if review.baseline is not None:
        found.append(("baseline", "baseline", review.baseline))
    if review.chosen is not None:
        found.append((review.called, "chosen", review.chosen))
    return found


def crossed(lost: Sequence[tuple[float, Trial]], heights: Sequence[float]) -> list[Series]:
    """Return the failed trials as crosses at these heights, with their reasons."""
    if not lost:
        return []
    kept = spread(len(lost), MOST_POINTS)
    return [
        Series(
            "failed",
            "points",
            "failed",
            tuple(lost[n][0] for n in kept),
            tuple(heights[n] for n in kept),
            tuple(trial_text(lost[n][1]) for n in kept),
        )
    ]
