"""Options of adapters: paths that hold from any folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def with_path_from_root(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return options with the path called ``name`` from the root; it starts at the current folder.

    One that is not there, or is no text, is left as it is.
    """
    path = options.get(name)
    if not isinstance(path, str):
        return dict(options)
    return {**options, name: str(Path(path).expanduser().resolve())}
