"""How many of a study's trials failed, mostly of what, and what that means for its result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.trial import Trial, TrialState
from tuner.study.ruling import Caveat, CaveatKind

# A study that failed more often than this has not searched its space.
LARGEST_FAILED_SHARE = 0.5
# Where more than this failed, part of the space may not have been searched: worth a word.
UNNOTICED_SHARE = 0.05
LONGEST_REASON = 200
# What differs between two failures of one cause: what is quoted, and numbers.
_DETAILS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+(\.\d+)?")


@dataclass(frozen=True)
class Failures:
    """The failures among the trials that have ended; ``reason`` is the first of the most common."""

    failed: int
    told: int
    reason: str

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Failures:
        """Count the failures of a study."""
        told = [trial for trial in trials if trial.is_told]
        reasons = [trial.error or "" for trial in told if trial.state is TrialState.FAILED]
        causes = Counter(_DETAILS.sub("…", reason) for reason in reasons)
        common = causes.most_common(1)[0][0] if causes else ""
        reason = next((r for r in reasons if _DETAILS.sub("…", r) == common), "")
        return cls(len(reasons), len(told), reason)

    @property
    def is_too_many(self) -> bool:
        """Say whether so many failed that the study as a whole has."""
        return self.failed > LARGEST_FAILED_SHARE * self.told

    @property
    def sentence(self) -> str:
        """Say that the study failed, in place of a verdict.

        >>> Failures(28, 41, "RuntimeError: no index").sentence
        'Failed: 28 of 41 trials could not be evaluated, most often by: RuntimeError: no index'
        """
        return (
            f"Failed: {self.failed:,} of {self.told:,} trials could not be evaluated, "
            f"most often by: {_short(self.reason)}"
        )

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Return what this takes from a verdict; nothing where few enough failed."""
        if self.failed <= UNNOTICED_SHARE * self.told:
            return ()
        figures = {"failed": self.failed, "told": self.told, "reason": _short(self.reason)}
        return (Caveat(CaveatKind.FAILED_TRIALS, figures),)


def _short(reason: str) -> str:
    reason = reason or "no reason was given"
    return reason if len(reason) <= LONGEST_REASON else reason[: LONGEST_REASON - 1] + "…"
