"""Files that no crash and no full disk spoils: written whole, or grown by whole lines.

And the one way to open a file that a user names: one of a size that can be, and no pipe.
"""

from __future__ import annotations

import csv
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from tuner.core.errors import InputError
from tuner.core.shown import csv_cell

if sys.platform != "win32":
    import fcntl

Item = TypeVar("Item")

# Half of a surrogate pair, which UTF-8 has no bytes for, is written as ``\udc80``, as in JSON.
_HALF_CHARACTERS = "backslashreplace"


def write_whole(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Write a text as ``whole`` does.

    Raises:
        OSError: the disk refuses; what stood there before is as it was.
    """
    with whole(path, mode=mode) as stream:
        stream.write(text.encode(errors=_HALF_CHARACTERS))


def read_lines(
    path: Path, read: Callable[[Any], Item], what: str, way_out: str = ""
) -> Iterator[Item]:
    """Read a JSON value a line; nothing where there is no file.

    Raises:
        InputError: a line that holds no ``what``, with its number, and the ``way_out``.
    """
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield read(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"this line holds no {what} ({type(error).__name__}: {error}){way_out}"
            raise InputError(message, file=str(path), line=number) from error


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write a table as ``whole`` does, in cells that a spreadsheet only shows.

    Raises:
        OSError: the disk refuses; what stood there before is as it was.
    """
    table = StringIO(newline="")
    csv.writer(table).writerows(map(csv_cell, row) for row in rows)
    write_whole(path, table.getvalue())


def save_plot(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib where ``--plot`` says.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"--plot {path}: cannot be written: {error.strerror}") from error


@contextmanager
def whole(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file that is on the disk, whole, when the block ends; nothing changes on an error.

    A link is followed. What is no file, such as ``/dev/stdout``, is written to directly.

    Raises:
        OSError: the disk refuses.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    # A name of its own, and a short one: the file's may be as long as the disk allows.
    unfinished = target.with_name(f".{os.urandom(6).hex()}.unfinished")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(target)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink()
        _name(error, path)
        raise


def append_lines(path: Path, lines: str, *, waits: bool = True) -> None:
    """Add whole lines to a file, which is made where it is missing; on the disk on return.

    They stand on lines of their own even after one that a crash has torn, and among those of other
    processes that write to the file at the same time. Where it does not wait for the disk, a killed
    process loses none of them, but a machine without power may, until lines are waited for.

    Raises:
        OSError: the disk refuses; the file is as it was before.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        with _alone(descriptor):
            size = os.fstat(descriptor).st_size
            is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            begin, end = "\n" if is_torn else "", "" if lines.endswith("\n") else "\n"
            append_bytes(descriptor, f"{begin}{lines}{end}".encode(errors=_HALF_CHARACTERS))
            try:
                if waits:
                    os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
    except OSError as error:
        _name(error, path)
        raise
    finally:
        os.close(descriptor)


def append_bytes(descriptor: int, content: bytes) -> None:
    """Add all of a content at the end of an open file that nobody else writes to.

    Raises:
        OSError: the disk refuses; the file is as it was before.
    """
    size = os.fstat(descriptor).st_size
    try:
        left = memoryview(content)
        while left:  # a disk that is nearly full takes a part, then refuses
            left = left[os.write(descriptor, left) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def sync_folder(folder: Path) -> None:
    """Bring the name of a new file to the disk, where the system can do that for a folder."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name(error: BaseException, path: Path) -> None:
    """Let an error of writing say which file: the system says none, or that of the unfinished."""
    if isinstance(error, OSError):
        error.filename = str(path)
        del error.filename2  # "old -> new" of a file that was to be renamed


@contextmanager
def _alone(descriptor: int) -> Iterator[None]:
    """Keep other writers waiting: to undo a write must not undo theirs."""
    if sys.platform == "win32":
        yield
        return
    # Some network file systems know no locks; the lines are then written without.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield


MOST_BYTES = 8_000_000_000
"""Of a data set's file, as it is on the disk and unpacked: a corpus is held in memory."""
_BLOCK_BYTES = 1 << 20


@contextmanager
def open_input(
    path: str | Path, *, most: int = MOST_BYTES, is_what: str = ""
) -> Iterator[BinaryIO]:
    """Open a file to read its bytes.

    What is no file is refused before a byte is read: a pipe may never end, nor ``/dev/zero``.
    ``is_what`` ends the message about a file that is too large, such as "is this a configuration?".

    Raises:
        OSError: the file cannot be opened.
        InputError: it is a pipe or a device, or says that it is larger than ``most`` bytes.
    """
    # A pipe without a writer would wait for one.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(21, "Is a directory", str(path))
        if not stat.S_ISREG(status.st_mode):
            message = "is a pipe or a device, which may never end; give a file"
            raise InputError(message, file=str(path))
        if status.st_size > most:
            raise InputError(too_large(most, is_what), file=str(path))
        yield stream


def read_input(path: str | Path, *, most: int = MOST_BYTES, is_what: str = "") -> bytes:
    """Return the content of a file; see ``open_input``.

    Raises:
        OSError: the file cannot be opened.
        InputError: it is a pipe or a device, or is larger than ``most`` bytes.
    """
    with open_input(path, most=most, is_what=is_what) as stream:
        content = stream.read(os.fstat(stream.fileno()).st_size + 1)
        # Some files of the system say that they are empty.
        while len(content) <= most and (block := stream.read(_BLOCK_BYTES)):
            content += block
    if len(content) > most:
        raise InputError(too_large(most, is_what), file=str(path))
    return content


def too_large(most: int, is_what: str = "") -> str:
    """Say that a file is larger than what is read."""
    return f"larger than {most:,} bytes" + (f"; {is_what}" if is_what else "")
