"""One loop a process, whoever asks for it first."""

from __future__ import annotations

import asyncio
import threading

from tuner.retrieval.adapters import event_loop

WAIT_S = 900.0


def test_threads_that_ask_first_at_once_share_one_loop_and_its_limit(monkeypatch) -> None:
    threads, limit = 8, 2
    barrier = threading.Barrier(threads)
    loops: list[asyncio.AbstractEventLoop] = []
    running, most = 0, 0

    class Slow(event_loop._Loop):
        def __init__(self) -> None:
            for _ in range(1000):  # gives other threads a chance to come in between
                threading.Event().wait(0)
            super().__init__()

    monkeypatch.setattr(event_loop, "_Loop", Slow)
    monkeypatch.setattr(event_loop.os, "getpid", lambda: -1)  # as a process that has none yet

    async def call() -> int:
        nonlocal running, most
        loops.append(asyncio.get_running_loop())
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return 1

    def ask() -> None:
        barrier.wait(WAIT_S)
        assert event_loop.run_concurrently([call] * 5, limit=limit, shared_by="x") == [1] * 5

    workers = [threading.Thread(target=ask) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(WAIT_S)
    assert len(loops) == 5 * threads
    assert len(set(map(id, loops))) == 1
    assert most <= limit
