"""What an execution is: trials in, outcomes out, as they finish."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Container, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tuner.core import registry
from tuner.core.checks import is_number, is_whole
from tuner.core.errors import InputError
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
# It may have a method ``holding(params)``: a context in which what they need is there, such as an
# index, and that gives an ``IndexUse`` or None. Kinds enter it through ``execution.call.readied``,
# around each evaluation, in the process of the run and perhaps in several threads; where one does
# not, the evaluation itself makes it ready.
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


def make_execution(
    name: str,
    options: Mapping[str, Any],
    *,
    workers: int | None,
    otherwise: int,
    trial_timeout_s: float | None,
) -> Execution:
    """Make the execution called ``name``, with options of its own such as a cluster's address.

    ``workers`` None: as many as a cluster has, and ``otherwise`` where there is none to ask.

    Raises:
        InputError: no such execution, or options that are missing or wrong.
    """
    try:
        kind = registry.load("execution", name)
    except InputError as error:
        raise InputError(str(error), key=("kind",)) from error
    given: dict[str, Any] = {"trial_timeout_s": trial_timeout_s}
    if workers is not None:
        given["workers"] = workers
    elif not _counts_workers(kind):
        given["workers"] = otherwise
    execution: Execution = registry.construct(kind, options, **given)
    run = (("evaluate", "trials"), ("suspects",))
    called = f"the execution {name!r}"
    registry.check_can(execution, called, {"run": run}, see="tuner/execution/base.py")
    return execution


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _counts_workers(kind: Callable[..., Any]) -> bool:
    """Say whether an execution finds out by itself how many workers there are, as a cluster can."""
    workers = inspect.signature(kind).parameters.get("workers") if callable(kind) else None
    return workers is not None and workers.default is None
