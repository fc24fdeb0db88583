"""From an ``execution`` section to the execution that it names, with the workers it is to have."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

from tuner.core import registry
from tuner.core.errors import InputError
from tuner.execution.base import Execution


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
