"""Options of adapters: paths that hold from any folder, and numbers in their ranges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tuner.core.errors import Problem


def with_path_from_root(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return options with the path called ``name`` from the root; it starts at the current folder.

    One that is not there, or is no text, is left as it is.
    """
    path = options.get(name)
    if not isinstance(path, str):
        return dict(options)
    return {**options, name: str(Path(path).expanduser().resolve())}


def number_problems(
    given: Mapping[str, Any], lows: Mapping[str, float], whole: tuple[str, ...] = ()
) -> Iterator[Problem]:
    """Yield a problem for each option that is not a finite number from its low up.

    A low of 0 excludes 0 itself unless the number is a ``whole`` one.
    """
    for name, low in lows.items():
        value = given[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_right = is_number and math.isfinite(value) and value >= low
        if name in whole:
            if not is_right or value != int(value):
                yield Problem(f"must be a whole number from {low:g} up, got {value!r}", key=(name,))
        elif not is_right or value <= 0:
            above = "above 0" if low == 0 else f"from {low:g} up"
            yield Problem(f"must be a number {above}, got {value!r}", key=(name,))
