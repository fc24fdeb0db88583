"""The options that every execution has, checked and in words; and what follows from them alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tuner.core.errors import InputError


def check_options(workers: object, trial_timeout_s: object) -> None:
    """Check the number of workers and the time limit.

    Raises:
        InputError: a number of workers below 1, or a time limit that is not above 0.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError(f"workers is {workers!r}; it must be 1 or more", key=("workers",))
    if trial_timeout_s is None:
        return
    is_number = isinstance(trial_timeout_s, int | float) and not isinstance(trial_timeout_s, bool)
    if not is_number or not 0 < trial_timeout_s < math.inf:  # type: ignore[operator]  # a number
        message = f"trial_timeout_s is {trial_timeout_s!r}; write seconds above 0, or null for none"
        raise InputError(message, key=("trial_timeout_s",))


@dataclass(frozen=True)
class FixedWorkers:
    """An execution on this machine, with as many slots as it has workers.

    A base class, against the house's habit: it holds the two options, and nothing of how trials
    are run.
    """

    workers: int
    trial_timeout_s: float | None = None

    def __post_init__(self) -> None:
        check_options(self.workers, self.trial_timeout_s)

    @property
    def slots(self) -> int:
        """Return the number of workers."""
        return self.workers


def counted(number: int, noun: str) -> str:
    """Return ``"1 thread"`` or ``"2 worker processes"``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}es" if noun.endswith("s") else f"{number} {noun}s"
