"""The one way to open a file that a user names: a file of a size that can be, and no pipe."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tuner.core.errors import InputError

MOST_BYTES = 8_000_000_000
"""Of a data set's file, as it is on the disk and unpacked: a corpus is held in memory."""


def read_input(path: str | Path, *, most: int = MOST_BYTES, is_what: str = "") -> bytes:
    """Return the content of a file.

    What is no file is refused before a byte is read: a pipe may never end, nor ``/dev/zero``.
    ``is_what`` ends the message about a file that is too large, such as "is this a configuration?".

    Raises:
        OSError: the file cannot be opened.
        InputError: it is a pipe or a device, or is larger than ``most`` bytes.
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
        # Some files of the system say that they are empty, so the content is counted too.
        content = b"" if status.st_size > most else stream.read(most + 1)
    if status.st_size > most or len(content) > most:
        raise InputError(too_large(most, is_what), file=str(path))
    return content


def too_large(most: int, is_what: str = "") -> str:
    """Say that a file is larger than what is read."""
    return f"larger than {most:,} bytes" + (f"; {is_what}" if is_what else "")
