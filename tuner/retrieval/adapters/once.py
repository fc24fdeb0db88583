"""What a process builds once, even where several of its threads ask for it first at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

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
