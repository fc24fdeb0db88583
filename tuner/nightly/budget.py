"""What a night may spend, and what it need not search again: budgets, clock, earlier nights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tuner.assemble import Assembly
from tuner.config import Config
from tuner.config.model import BackendSection
from tuner.core.errors import TunerError
from tuner.core.run_files import JOURNAL_FILE
from tuner.nightly.records import Night, Records
from tuner.warm_start import gather

Say = Callable[[str], None]

# So many trials tell a search where to look; the model of a Gaussian process costs their cube.
MOST_EARLIER_TRIALS = 300
_SAME = ("space", "dataset", "split", "fixed", "retriever")


def with_budget(config: Config) -> Config:
    """Return the configuration with the night's trials shared among its backends.

    Each gets the share that its own ``trials`` are of all; one that gets none is left out.
    """
    trials = config.nightly.budget.trials
    if not trials:
        return config
    parts = shares([backend.trials for backend in config.backends], trials)
    backends: list[BackendSection] = [
        backend.model_copy(update={"trials": part})
        for backend, part in zip(config.backends, parts, strict=True)
        if part
    ]
    return config.model_copy(update={"backends": backends})


def shares(weights: list[int], total: int) -> list[int]:
    """Divide a whole number in proportion to weights, by largest remainders, first ones first.

    >>> shares([60, 40, 40], 12)
    [5, 4, 3]
    """
    exact = [total * weight / sum(weights) for weight in weights]
    parts = [int(share) for share in exact]
    order = sorted(range(len(weights)), key=lambda place: parts[place] - exact[place])
    for place in order[: total - sum(parts)]:
        parts[place] += 1
    return parts


def clock(config: Config) -> Callable[[], bool]:
    """Return what says that the time is up, from now on; at once where nothing is to be tuned."""
    budget = config.nightly.budget
    if budget.trials == 0:
        return lambda: True
    if budget.minutes is None:
        return lambda: False
    end = time.monotonic() + 60.0 * float(budget.minutes)
    return lambda: time.monotonic() >= end


def warmed(assembly: Assembly, records: Records, runs_dir: Path, *, say: Say) -> Assembly:
    """Return the assembly with a warm start from the latest nights on the same data and index."""
    found: list[str] = []
    trials = 0
    for night in reversed(records.nights):
        run_dir = str(runs_dir / night.run_dir)
        if run_dir in found or not _fits(assembly, night, runs_dir):
            continue
        try:
            earlier = gather(_from(assembly, [run_dir]), say=_silent)
        except TunerError:  # of other parameters, or a damaged journal: the search begins without
            continue
        if not earlier:
            continue
        found.append(run_dir)
        trials += len(earlier)
        if trials >= MOST_EARLIER_TRIALS:
            break
    if not found:
        return assembly
    nights = "1 earlier night" if len(found) == 1 else f"{len(found)} earlier nights"
    say(f"warm start: {trials} trials of {nights} on the same data")
    return _from(assembly, [*assembly.config.warm_start, *found])


def _fits(assembly: Assembly, night: Night, runs_dir: Path) -> bool:
    then, now = night.data["fingerprints"], assembly.fingerprints()
    is_same = all(then.get(name) == now.get(name) for name in _SAME)
    return is_same and (runs_dir / night.run_dir / JOURNAL_FILE).is_file()


def _from(assembly: Assembly, sources: list[str]) -> Assembly:
    config = assembly.config.model_copy(update={"warm_start": sources})
    return replace(assembly, config=config)


def _silent(message: str) -> None:  # noqa: ARG001  # the form of a listener
    return None
