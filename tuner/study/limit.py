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


def no_limit() -> Leave:
    """Let a study go on until its arms are done."""
    return GO
