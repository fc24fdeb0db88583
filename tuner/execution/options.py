"""The options that every execution has, checked and in words; and what follows from them alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tuner.core.checks import is_number, is_whole
from tuner.core.errors import InputError


def check_options(workers: object, trial_timeout_s: object) -> None:
    """Check the number of workers and the time limit.

    Raises:
        InputError: a number of workers below 1, or a time limit that is not above 0.
    """
    if not is_whole(workers) or workers < 1:
        raise InputError(f"workers is {workers!r}; it must be 1 or more", key=("workers",))
    if trial_timeout_s is None:
        return
    if not is_number(trial_timeout_s) or not 0 < trial_timeout_s < math.inf:
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
