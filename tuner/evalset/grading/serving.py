"""From the start of the page to its end: one program a sheet, sheets written as people grade."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tuner.core.ending import ended_by_signals
from tuner.core.errors import InputError, one_line
from tuner.core.shown import counted
from tuner.core.steps import Say
from tuner.evalset.grading.given import Grading
from tuner.evalset.grading.page import make_page
from tuner.evalset.grading.scale import meanings
from tuner.evalset.grading.server import Server
from tuner.evalset.grading.written import write_sheets

WRITE_EVERY_S = 5.0


def serve(
    grading: Grading,
    *,
    port: int,
    annotator: str = "",
    say: Say,
    open_page: Callable[[str], bool] | None = None,
) -> list[Path]:
    """Serve the page until Ctrl-C or SIGTERM; return the sheets that hold what was given.

    ``say`` gets the address, and what else is to be known. ``open_page`` gets an address that
    leads to the page once, and says whether it could be opened; None opens nothing.

    Raises:
        InputError: one of the sheets was edited and cannot be read.
        TunerError: the port is taken.
        OSError: the disk refuses.
    """
    write_sheets(grading)  # what a program that was killed had not; and edits are taken over
    page = make_page(grading.sheet.file, meanings(grading.grades), annotator=annotator)
    with (
        ended_by_signals(),
        suppress(KeyboardInterrupt),
        Server(grading, page, port) as server,
    ):
        say(f"grade at {server.address}  (Ctrl-C ends it)")
        if open_page is not None and not open_page(server.first_address):
            say("no browser could be opened: open this address in one")
        _serve_until_ended(server, grading, say)
    return write_sheets(grading)


def what_is_known(grading: Grading) -> Iterator[str]:
    """Yield what is to be said of a sheet and its journal before people grade."""
    queries = counted(len(grading.starts), "query", "queries")
    yield f"{counted(len(grading.rows), 'passage')} to grade for {queries}: {grading.sheet.file}"
    for one in grading.people():
        graded = sum(one.given[k].grade is not None for k in one.given if k in grading.place)
        yield f"{one.name} has graded {graded:,}"
    if grading.torn:
        torn = counted(grading.torn, "line")
        yield f"note: torn by a crash, and not used: {torn} of {grading.journal}"
    if grading.strange:
        strange = counted(grading.strange, "graded passage")
        kept = f"their grades are kept in {grading.journal}"
        yield f"note: not on the sheet any more: {strange}; {kept}"
    if grading.changed:
        changed = counted(grading.changed, "passage")
        yield f"note: another text than when it was graded: {changed}; look at the grades again"
    filled = sum(bool(row.cells.get("grade")) for row in grading.rows)
    if filled:
        grades = counted(filled, "grade")
        copy = Path(grading.sheet.file).with_suffix(".NAME.csv").name
        yield (
            f"note: the sheet holds {grades} already, of nobody who is named; they are not used. "
            f"To go on with them, copy it to {copy}"
        )


def _serve_until_ended(server: Server, grading: Grading, say: Say) -> None:
    is_over = threading.Event()
    thread = threading.Thread(target=_keep_written, args=(grading, is_over, say), daemon=True)
    thread.start()
    try:
        server.serve_forever(poll_interval=0.2)
    finally:
        is_over.set()
        thread.join()


def _keep_written(grading: Grading, is_over: threading.Event, say: Say) -> None:
    """Write the sheets while people grade; what stops that is shown on the page, and here once."""
    sheet, seen = Path(grading.sheet.file), _seen(Path(grading.sheet.file))
    while not is_over.wait(WRITE_EVERY_S):
        problem = ""
        if _seen(sheet) != seen:
            problem = (
                f"{sheet.name} was changed while it is graded; this page goes on with what it was. "
                "To grade the changed one, end the program and start it again"
            )
        try:
            write_sheets(grading)
        except (InputError, OSError) as error:
            problem = f"grades are saved, but a sheet cannot be written: {one_line(error)}"
        if problem and problem != grading.problem:
            say(f"note: {problem}")
        grading.problem = problem


def _seen(path: Path) -> tuple[int, int] | None:
    """Return what changes where a file is changed; None where it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
