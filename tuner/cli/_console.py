"""Where tables go: as wide as the terminal, or as wide as they need in a log or a pipe."""

from __future__ import annotations

from rich.console import Console

# Wider than any table, so that nothing is cut where nobody can widen the window.
_LOG_WIDTH = 100_000


def console() -> Console:
    """Return a console on standard output that never cuts a table in a log."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=_LOG_WIDTH)
