"""What an execution is: trials in, outcomes out, as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from tuner.core.trial import Outcome, Params, Trial

Evaluate = Callable[[Params], Outcome]


class Execution(Protocol):
    """Runs evaluations. A failure of whatever kind costs its own trial and is an Outcome."""

    @property
    def slots(self) -> int:
        """Return how many trials should be under way at once to keep every worker busy."""
        ...

    def run(
        self, evaluate: Evaluate, trials: Iterable[Trial]
    ) -> Iterator[tuple[Trial, Outcome]]:
        """Yield every trial with its outcome, in the order in which they end."""
        ...
