"""A system under several loads, one after another: a row for each, and what weakens its figures.

And the picture of that: throughput and latency by load.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Literal

from tuner.bench.load import (
    MOST_AT_ONCE,
    WAITING,
    Ask,
    Load,
    arrivals,
    closed_loop,
    open_loop,
)
from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.files import save_plot
from tuner.core.rankings import TRIED_AGAIN
from tuner.core.steps import Say
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, serve_one

Loop = Literal["closed", "open"]

# A call that takes this much longer than the load may be one that never ends.
_LATE_AFTER_S = 5.0
# Fewer calls than this leave p99 to the slowest nine or less.
_FEW_FOR_P99 = 1_000


@dataclass(frozen=True, eq=False)
class Level:
    """One row: a load and what came of it. ``at`` is a number of workers, or queries a second."""

    kind: Loop
    at: float
    load: Load

    @property
    def label(self) -> str:
        """Return what the row is called."""
        if self.kind == "open":
            return f"rate {self.at:g}/s"
        return f"{self.at:g} worker{'s' if self.at > 1 else ''}"

    def to_record(self) -> dict[str, Any]:
        """Return the row as a JSON-ready mapping."""
        name = "workers" if self.kind == "closed" else "rate_qps"
        return {
            "loop": self.kind,
            name: self.at,
            "qps": self.load.qps,
            "seconds": self.load.seconds,
            "latency": self.load.latencies.to_record(),
            "failures": dict(self.load.failures),
            "not_started": self.load.not_started,
        }


def asking(retriever: Retriever, params: Params, queries: Sequence[Query], *, seed: int) -> Ask:
    """Return what asks query after query in random order, and starts anew after the last.

    A short run must not be of the first type of queries alone.
    """
    shuffled = list(queries)
    random.Random(seed).shuffle(shuffled)

    def ask(number: int) -> Mapping[str, float]:
        return serve_one(retriever, shuffled[number % len(shuffled)], params).seconds

    return ask


def measured(
    ask: Ask,
    loads: Sequence[tuple[Loop, float]],
    *,
    duration_s: float,
    warmup_s: float,
    seed: int,
    say: Say,
) -> Iterator[Level]:
    """Put one load after another on a system, each after a time to warm up.

    Raises:
        TunerError: no query is answered while it warms up for the first.
    """
    for number, (kind, at) in enumerate(loads):
        warm = measure(kind, ask, at, duration_s=warmup_s, seed=seed, say=say)
        if not number and not warm.qps:
            reason, times = next(iter(warm.failures.items()))
            raise TunerError(f"no query is answered: {reason} ({times} times)")
        load = measure(kind, ask, at, duration_s=duration_s, seed=seed + 1, say=say)
        yield Level(kind, at, load)


def measure(kind: Loop, ask: Ask, at: float, *, duration_s: float, seed: int, say: Say) -> Load:
    """Put a load on a system for so long; ``say`` is told where calls do not end."""
    schedule = arrivals(at, duration_s, seed=seed) if kind == "open" else []
    late = Timer(
        duration_s + _LATE_AFTER_S,
        say,
        [f"calls have not ended {_LATE_AFTER_S:g} s after their load; they are waited for, as they "
         "count (Ctrl-C ends it)"],
    )  # fmt: skip
    late.daemon = True
    late.start()
    try:
        if kind == "closed":
            return closed_loop(ask, workers=int(at), duration_s=duration_s)
        return open_loop(ask, schedule)
    finally:
        late.cancel()


def remarks(levels: Sequence[Level]) -> list[str]:
    """Return what a reader must know before believing a row."""
    lines = []
    for level in levels:
        summary = level.load.latencies.summary()
        for reason, times in level.load.failures.items():
            lines.append(
                f"note: {level.label}: {times} of {summary.count} failed, such as: {reason}"
            )
        again = level.load.latencies.summary(TRIED_AGAIN)
        if again.count:
            lines.append(
                f"note: {level.label}: {again.count} of {summary.count} queries were asked again "
                f"after an error or a busy answer, which took {again.mean_ms:.0f} ms each on "
                "average and is part of their latency"
            )
        if level.load.has_slow_start:
            lines.append(
                f"note: {level.label}: the slowest call of the first fifth took "
                f"{level.load.start_max_ms:.0f} ms, of the rest {level.load.later_max_ms:.0f} ms: "
                "the system was still waking up, and that is in these figures; give a longer "
                "--warmup"
            )
        if level.load.not_started:
            lines.append(f"note: {level.label}: too much for the system; latencies are too low")
        elif (waiting := level.load.latencies.summary(WAITING)).p99_ms > 10.0:
            lines.append(
                f"note: {level.label}: arrivals waited {waiting.p99_ms:.0f} ms (p99) to be sent, "
                f"since this process was busy or {MOST_AT_ONCE} calls were under way; it counts"
            )
    few = {level.label: level.load.latencies.summary().count for level in levels}
    few = {label: count for label, count in few.items() if count < _FEW_FOR_P99}
    if few:
        shown = ", ".join(f"{label} {count}" for label, count in few.items())
        lines.append(
            f"note: p99 rests on the slowest hundredth of few queries ({shown}); a longer "
            "--duration makes it steadier"
        )
    return lines


def draw(levels: Sequence[Level], path: Path, *, title: str) -> None:
    """Draw throughput and latency by load; closed and open loops have axes of their own.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    kinds = [kind for kind in ("closed", "open") if any(row.kind == kind for row in levels)]
    figure = Figure(figsize=(9, 3.6 * len(kinds)), layout="constrained")
    figure.suptitle(title)
    for row, kind in enumerate(kinds):
        chosen = sorted((level for level in levels if level.kind == kind), key=lambda row: row.at)
        left = figure.add_subplot(len(kinds), 2, 2 * row + 1)
        right = figure.add_subplot(len(kinds), 2, 2 * row + 2)
        at = [level.at for level in chosen]
        left.plot(at, [level.load.qps for level in chosen], marker="o")
        left.set_ylabel("answered queries a second")
        for name in ("p50", "p95", "p99"):
            values = [getattr(row.load.latencies.summary(), f"{name}_ms") for row in chosen]
            right.plot(at, values, marker="o", label=name)
        right.set_ylabel("latency, ms")
        right.legend()
        for axes in (left, right):
            axes.set_xlabel("workers" if kind == "closed" else "queries a second that arrive")
            axes.set_ylim(bottom=0)
            if kind == "closed":
                axes.set_xticks(at)
            axes.grid(alpha=0.3)
    save_plot(figure, path)
