"""What it costs to record one call, beside an empty call.

    pip install . && python experiments/benchmarks/recording.py [--json]

Processor time of one thread, so that a busy machine changes little; each figure is the best of
several repetitions over the same 1,000 made-up times. "exact" keeps every time (as up to 10,000
calls), "sketch" is far beyond that, where times go into a DDSketch 1,000 at once; the figure holds
that work too.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Callable
from typing import Any

from tuner.monitoring import LatencyTracker, ThroughputTracker

TIMES = 1_000
LOOPS = 20
REPETITIONS = 9
TARGET_US = 2.0


def empty(value: float) -> None:
    pass


def cost_us(loop: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPETITIONS):
        begin = time.thread_time()
        for _ in range(LOOPS):
            loop()
        best = min(best, (time.thread_time() - begin) / LOOPS / TIMES)
    return best * 1e6


def each(call: Callable[[float], Any], values: list[float]) -> Callable[[], None]:
    def loop() -> None:
        for value in values:
            call(value)

    return loop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    generator = random.Random(7)
    values = [generator.lognormvariate(-4.0, 1.0) for _ in range(TIMES)]
    found = {"an empty call": cost_us(each(empty, values))}
    for kind, exact_samples in (("exact", 10**9), ("sketch", 1)):
        tracker = LatencyTracker(exact_samples=exact_samples)
        for _ in range(5):  # the stage is there, and the sketch has its buckets
            each(tracker.record, values)()

        def block(_: float, tracker: LatencyTracker = tracker) -> None:
            with tracker.time():
                pass

        found[f"record, {kind}"] = cost_us(each(tracker.record, values))
        found[f"with tracker.time(), {kind}"] = cost_us(each(block, values))
        found[f"@tracker.time(), {kind}"] = cost_us(each(tracker.time()(empty), values))
    throughput = ThroughputTracker()
    found["ThroughputTracker.record"] = cost_us(each(lambda _: throughput.record(), values))
    ratio = {name: figure / found["an empty call"] for name, figure in found.items()}
    if arguments.json:
        record = {"python": platform.python_version(), "us": found, "ratio": ratio}
        print(json.dumps(record, indent=2))
        return
    print(f"{'':<32}{'us':>8}{'times an empty call':>22}")
    for name, figure in found.items():
        print(f"{name:<32}{figure:>8.3f}{ratio[name]:>22.0f}")
    slow = [name for name, figure in found.items() if figure > TARGET_US]
    print(f"over {TARGET_US:g} us: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
