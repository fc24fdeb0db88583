"""The indexes that a run directory needs for as long as it is there: so nobody deletes them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tuner.core.trial import Params, best_trial
from tuner.retrieval.base import Measures, pin
from tuner.run.assembly import Assembly
from tuner.study.loop import Event
from tuner.study.study import Study

BASELINE = "baseline"
BEST = "best"
WINNER = "winner"


def pin_index(assembly: Assembly, run_dir: Path, params: Params, why: str) -> None:
    """Keep the index of parameters for a reason, instead of what was kept for it before.

    A disk that refuses costs nothing but that: the index is built again where it is missing.
    """
    if not isinstance(assembly.retriever, Measures):
        asked = {**assembly.fixed, **params}
        with suppress(OSError):
            pin(assembly.retriever, asked, holder=run_dir.resolve(), why=why)


def pinning_best(
    assembly: Assembly, study: Study, run_dir: Path, on_event: Callable[[Event], None]
) -> Callable[[Event], None]:
    """Return a listener that keeps the index of the baseline and of the best trial so far."""
    pin_index(assembly, run_dir, assembly.baseline or {}, BASELINE)
    best = study.best

    def hear(event: Event) -> None:
        nonlocal best
        if event.trial is not None:
            before = [] if best is None else [best]
            best = best_trial([*before, event.trial])
            if best is event.trial:
                pin_index(assembly, run_dir, best.params, BEST)
        on_event(event)

    return hear
