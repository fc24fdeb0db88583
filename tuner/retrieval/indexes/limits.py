"""How much the indexes of a study may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IndexLimits:
    """What one index may take, and what is kept of them all.

    Attributes:
        timeout_s: how long one may take to build; None: for ever.
        keep_gb: what all kept indexes together may take on the disk, in 10^9 bytes; None: no limit.
        keep_count: how many are kept; None: no limit.
    """

    timeout_s: float | None = None
    keep_gb: float | None = None
    keep_count: int | None = None


NO_LIMITS = IndexLimits()
