"""How many of a study's trials failed, mostly of what, and what that means for its result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.shown import shortened
from tuner.core.study_record import UNNOTICED_SHARE
from tuner.core.trial import Trial, TrialState

# A study that failed more often than this has not searched its space.
LARGEST_FAILED_SHARE = 0.5
LONGEST_REASON = 200
# What differs between two failures of one cause: addresses, paths, ids and numbers.
_VARYING = re.compile(
    r"""\b[a-z][a-z+]{1,14}://[^\s'"<>]+         # an address of the network
    | (?<![\w.])[.~]{0,2}(?:/[\w.@%+=-]+)+/?      # a path
    | \b[A-Za-z]:\\[^\s'"<>]+                    # a path of Windows
    | \b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b
    | \b0x[0-9a-f]+\b                            # an address in memory
    | \b(?=[a-f]*[0-9])[0-9a-f]{8,}\b            # a hash
    | (?<!\d)(?<!http\s)(?<!status\s)(?<!code\s)(?<!errno\s)  # those numbers are causes
      [-+−]?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?""",
    re.IGNORECASE | re.VERBOSE,
)


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
        failed = [trial for trial in told if trial.state is TrialState.FAILED]
        reason = reason_of(by_cause(failed)[0][0]) if failed else ""
        return cls(len(failed), len(told), reason)

    @property
    def is_too_many(self) -> bool:
        """Say whether so many failed that the study as a whole has."""
        return self.failed > LARGEST_FAILED_SHARE * self.told

    @property
    def is_noticed(self) -> bool:
        """Say whether enough failed to be told beside a verdict."""
        return self.failed > UNNOTICED_SHARE * self.told

    @property
    def short_reason(self) -> str:
        """Return the most common reason, as long as a sentence bears."""
        return shortened(self.reason, LONGEST_REASON)

    @property
    def sentence(self) -> str:
        """Say that the study failed, in place of a verdict.

        >>> Failures(28, 41, "RuntimeError: no index").sentence
        'Failed: 28 of 41 trials could not be evaluated, most often by: RuntimeError: no index'
        """
        return f"Failed: {self.most}"

    @property
    def most(self) -> str:
        """Say how many failed, and mostly of what."""
        return (
            f"{self.failed:,} of {self.told:,} trials could not be evaluated, "
            f"most often by: {self.short_reason}"
        )


def by_cause(failed: Sequence[Trial]) -> list[list[Trial]]:
    """Group failed trials by their reasons, apart from numbers, ids, paths and addresses in them.

    The most frequent cause first, trials in their order.
    """
    causes: dict[str, list[Trial]] = {}
    for trial in failed:
        causes.setdefault(_VARYING.sub("…", reason_of(trial)), []).append(trial)
    return sorted(causes.values(), key=lambda trials: -len(trials))


def reason_of(trial: Trial) -> str:
    """Return why a trial failed."""
    return trial.error or "no reason was given"
