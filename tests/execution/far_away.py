"""A retriever that is copied to a folder of its own, and seen from there by the tests' clusters.

It writes down which process evaluated what, and does what a file ``order-x`` beside it says.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuner.core.corpus import Corpus, Query
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.retrieval.base import Knob

FOLDER = Path(__file__).parent


class FarAway:
    """Finds ``d11`` first where x is 11, and later the further x is from that."""

    knobs = (Knob("x", "integer", 0, 0, 23),)
    fingerprint = "far away"

    @classmethod
    def build(cls, corpus: Corpus, *, cache_dir: Path) -> FarAway:
        return cls()

    def prepare(self, queries: Sequence[Query]) -> None:
        pass

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        x: Any = params["x"]
        with (FOLDER / "evaluated").open("a") as log:
            log.write(f"{x} {os.getppid()} {os.getpid()}\n")
        order = FOLDER / f"order-{x}"
        obey(order.read_text() if order.exists() else "")
        time.sleep(0.05)
        found = [f"d{n}" for n in sorted(range(24), key=lambda n: abs(n - x))]
        return Rankings.from_ids([query.id for query in queries], [found] * len(queries))


def obey(order: str) -> None:
    match order:
        case "kill the worker":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case "die":
            os._exit(7)
        case "wait":
            while not (FOLDER / "go").exists():
                time.sleep(0.02)
