"""What a process has once: the event loop of all trials, and whatever else it builds."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Built = TypeVar("Built")


def once(*, kept: int) -> Callable[[Callable[Given, Built]], Callable[Given, Built]]:
    """Keep what a function returned for its last ``kept`` arguments; one thread builds at a time.

    ``functools.lru_cache`` alone lets threads that come together build the same thing twice.
    """

    def decorate(build: Callable[Given, Built]) -> Callable[Given, Built]:
        remembered = lru_cache(maxsize=kept)(build)
        lock = threading.RLock()

        @wraps(build)
        def find(*arguments: Given.args, **options: Given.kwargs) -> Built:
            with lock:
                return remembered(*arguments, **options)  # type: ignore[arg-type]

        return find

    return decorate


Result = TypeVar("Result")


def run_concurrently(
    calls: Sequence[Callable[[], Awaitable[Result]]], *, limit: int, shared_by: str
) -> list[Result]:
    """Run coroutines in this process's loop and return their results in order.

    At most ``limit`` run at once among all threads of the process that give the same ``shared_by``.
    The first failure cancels the others, and is raised.
    """
    loop = _loop_of(os.getpid())
    future = asyncio.run_coroutine_threadsafe(loop.gather(calls, limit, shared_by), loop.loop)
    try:
        return future.result()
    except BaseException:  # Ctrl-C while waiting: nobody will take the results
        future.cancel()
        raise


class _Loop:
    """An event loop in a thread of its own, which ends with the process."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._limits: dict[tuple[str, int], asyncio.Semaphore] = {}
        threading.Thread(target=self.loop.run_forever, name="event loop", daemon=True).start()

    async def gather(
        self, calls: Sequence[Callable[[], Awaitable[Any]]], limit: int, shared_by: str
    ) -> list[Any]:
        semaphore = self._limits.setdefault((shared_by, limit), asyncio.Semaphore(limit))

        async def within_limit(call: Callable[[], Awaitable[Any]]) -> Any:
            async with semaphore:
                return await call()

        tasks = [asyncio.ensure_future(within_limit(call)) for call in calls]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@once(kept=1)  # clients and limits belong to a loop, so threads must not get two
def _loop_of(process_id: int) -> _Loop:  # noqa: ARG001  # a forked process needs one of its own
    return _Loop()
