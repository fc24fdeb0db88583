"""Where tables go: as wide as the terminal, or as wide as they need in a log or a pipe."""

from __future__ import annotations

from rich.console import Console

_LOG_WIDTH = 200


def console() -> Console:
    """Return a console on standard output that never cuts a table in a log."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=_LOG_WIDTH)
