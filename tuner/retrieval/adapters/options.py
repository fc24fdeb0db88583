"""Options of adapters: paths that hold from any folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def path_from_root(name: str, default: str | None = None) -> Any:
    """Return a ``resolve_options`` that writes the path called ``name`` from the root.

    It starts at the current folder. One that is no text is left as it is.
    """

    def resolve_options(_: type, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:  # noqa: ARG001
        path = options.get(name, default)
        if not isinstance(path, str):
            return dict(options)
        return {**options, name: str(Path(path).expanduser().resolve())}

    return classmethod(resolve_options)
