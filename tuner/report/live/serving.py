"""From the start of a watcher to its end: one page, served until somebody ends it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tuner.core.ending import ended_by_signals
from tuner.core.local_server import LocalServer
from tuner.core.steps import Say
from tuner.report.live.watched import Watched

# Who watches must not hold up what is watched: its turn comes when nobody else wants the processor.
NICER_BY = 10
POLL_S = 0.2


def watch(
    run_dir: Path, *, port: int, say: Say, open_page: Callable[[str], bool] | None = None
) -> None:
    """Serve the page of a study until Ctrl-C or SIGTERM.

    ``say`` gets the address. ``open_page`` gets one that leads to the page once, and says whether
    it could be opened; None opens nothing.

    Raises:
        InputError: not a run directory, or its journal cannot be read.
        TunerError: the port is taken.
    """
    with (
        ended_by_signals(),
        suppress(KeyboardInterrupt),
        server_of(run_dir, port) as server,
    ):
        say(f"watch at {server.address}  (Ctrl-C ends it)")
        if open_page is not None and not open_page(server.first_address):
            say("no browser could be opened: open this address in one")
        server.serve_forever(POLL_S)


def server_of(run_dir: Path, port: int) -> LocalServer:
    """Return what serves the page of a study, in a process that gives way to others from then on.

    Raises:
        InputError: not a run directory, or its journal cannot be read.
        TunerError: the port is taken.
    """
    watched = Watched(run_dir)
    watched.news("", 0)  # a journal that cannot be read is told here, and not on the page
    if hasattr(os, "nice"):  # not on every system
        with suppress(OSError):
            os.nice(NICER_BY)
    return LocalServer(watched.answer, port)
