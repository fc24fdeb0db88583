"""ladybug, the embedded successor of kuzu: a file, opened read-only in this process."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, local
from typing import Any, Self
from weakref import ReferenceType, WeakSet, ref

from tuner.core.errors import InputError, TunerError
from tuner.retrieval.adapters.cypher.address import KEY
from tuner.retrieval.adapters.cypher.database import SlowError, Table

# By default 8 TB of addresses are reserved, which many limits on memory forbid.
_LEAST_SIZE = 1 << 30
# Which extension a procedure is in.
_EXTENSIONS = {"query_fts_index": "fts", "query_vector_index": "vector"}
_PROCEDURE = re.compile(rf"\b({'|'.join(_EXTENSIONS)})\b", re.IGNORECASE)
_TIMED_OUT = "Interrupted"


@dataclass(eq=False)
class Ladybug:
    """One file; each thread has a connection of its own.

    A connection works in one thread, so that sums of fractions are added in one order: what is
    asked twice is answered the same.
    """

    database: Any
    timeout_s: float
    _mine: local = field(default_factory=local)
    _connections: WeakSet[Any] = field(default_factory=WeakSet)
    _loaded: set[str] = field(default_factory=set)
    _loading: Lock = field(default_factory=Lock)

    @classmethod
    def open(cls, path: Path, timeout_s: float) -> Self:
        """Open a file.

        Raises:
            InputError: there is none.
        """
        import ladybug

        if path.is_dir():
            raise InputError(f"{path} is a folder: name the database's file in it", key=KEY)
        if not path.is_file():
            raise InputError(f"there is no file {path}: make the database first", key=KEY)
        size = max(_LEAST_SIZE, 1 << (4 * path.stat().st_size).bit_length())
        database = ladybug.Database(str(path), read_only=True, max_db_size=size)
        opened = cls(database, timeout_s)
        if hasattr(os, "register_at_fork"):
            mine = ref(opened)
            os.register_at_fork(after_in_child=lambda: _leave(mine))
        return opened

    def ask(self, text: str, params: Mapping[str, Any]) -> Table:
        """Return what a statement finds."""
        connection = self._connection()
        for name in _PROCEDURE.findall(text):
            self._load(_EXTENSIONS[name.lower()], connection)
        try:
            result = connection.execute(text, dict(params))
        except RuntimeError as error:
            if str(error).startswith(_TIMED_OUT):
                raise SlowError(f"no answer within {self.timeout_s:g} s") from error
            raise
        return Table(result.get_column_names(), result.get_all())

    def _connection(self) -> Any:
        import ladybug

        if not hasattr(self._mine, "connection"):
            connection = ladybug.Connection(self.database, num_threads=1)
            connection.set_query_timeout(int(1000 * self.timeout_s))
            self._mine.connection = connection
            self._connections.add(connection)
        return self._mine.connection

    def _load(self, extension: str, connection: Any) -> None:
        """Load an extension that is installed on this machine, once."""
        with self._loading:
            if extension in self._loaded:
                return
            try:
                connection.execute(f"LOAD EXTENSION {extension}")
            except RuntimeError as error:
                raise TunerError(
                    f"ladybug's extension {extension} is not installed on this machine: run "
                    f"INSTALL {extension} once, with a connection to the internet, or take the "
                    "built-in search, {bm25: $starts}, for the search by words"
                ) from error
            self._loaded.add(extension)


def _leave(inherited: ReferenceType[Any]) -> None:
    """Never close, in a fork, what was opened before it: that waits for threads that are not there.

    One more reference that nobody gives back keeps it until the process is gone.
    """
    opened = inherited()
    if opened is not None:
        for thing in (opened.database, *list(opened._connections)):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
