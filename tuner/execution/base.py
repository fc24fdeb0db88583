"""What an execution is: trials in, outcomes out, as they finish."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable
from typing import Protocol, runtime_checkable

from tuner.core.trial import Outcome, Trial

KINDS = {
    "auto": "tuner.execution.local.auto:Auto",
    "dask": "tuner.execution.cluster.dask:Dask",
    "inline": "tuner.execution.local.inline:Inline",
    "processes": "tuner.execution.local.processes:Processes",
    "ray": "tuner.execution.cluster.ray:Ray",
    "threads": "tuner.execution.local.threads:Threads",
}
"""Each way to run evaluations by its name in a configuration."""

# Takes parameters (``Params``), and ``rival=`` as well where a trial has one: see ``Trial.rival``.
Evaluate = Callable[..., Outcome]
Outcomes = Generator[tuple[Trial, Outcome], None, None]


class Execution(Protocol):
    """Runs evaluations. A failure of whatever kind costs its own trial and is an Outcome.

    Constructed as ``Kind(workers=…, trial_timeout_s=…, **options)``, cheaply.
    """

    @property
    def slots(self) -> int:
        """Return how many trials can be under way at once."""
        ...

    @property
    def choice(self) -> str:
        """Say in one sentence where evaluations run, and why; may change while running."""
        ...

    def run(
        self, evaluate: Evaluate, trials: Iterable[Trial], *, suspects: Container[int] = ()
    ) -> Outcomes:
        """Yield every trial with its outcome, in the order in which they end.

        Trials are pulled one by one, as workers become free, perhaps from other threads but never
        from two at once. Which trial comes next does not depend on that, and where it depends on
        the outcomes of trials under way, the pull waits until the consumer has taken them in. So
        the consumer's own thread pulls only while nothing is under way. Closing the iterator
        abandons the evaluations that are under way.
        ``suspects`` are numbers of trials that were under way when an earlier run died; a kind
        that can choose evaluates them where a crash does no harm.
        """
        ...


@runtime_checkable
class NeedsCluster(Protocol):
    """An execution that needs something beyond this machine."""

    def check(self) -> None:
        """See whether it is there.

        Raises:
            InputError: it is not.
        """
        ...
