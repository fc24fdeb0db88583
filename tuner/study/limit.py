"""What ends a study before its arms are done: whether another trial may be asked, and why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Leave:
    """Whether another trial may be asked.

    Attributes:
        over: why none may any more; empty where one may.
        waits: whether that depends on what is under way, which has to be told first.
    """

    over: str = ""
    waits: bool = False


GO = Leave()

Limit = Callable[[], Leave]
"""Asked before each trial, perhaps from several threads. It must not change what is suggested."""


def first_of(*limits: Limit) -> Limit:
    """Return the limit that ends a study where the first of these does; it waits for each."""

    def leave() -> Leave:
        left = [limit() for limit in limits]
        over = next((one for one in left if one.over), None)
        return over or Leave(waits=any(one.waits for one in left))

    return leave


def no_limit() -> Leave:
    """Let a study go on until its arms are done."""
    return GO
