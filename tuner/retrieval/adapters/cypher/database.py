"""A database opened once a process, read-only, and what it answers to a statement."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tuner.core.errors import OutageError, TunerError, one_line
from tuner.core.outages import is_outage
from tuner.retrieval.adapters.cypher.address import FALKORDB, NEO4J, Address
from tuner.retrieval.adapters.event_loop import once

_MOST_KEPT = 4
# The least that says whether a graph has anything in it.
ANY_NODE = "MATCH (n) RETURN 1 AS id LIMIT 1"


@dataclass(frozen=True)
class Table:
    """What a statement found: the names of its columns, and its rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class SlowError(TunerError):
    """A statement that did not end within its time limit."""


class Database(Protocol):
    """One open database. Several threads may ask it at once."""

    def ask(self, text: str, params: Mapping[str, Any]) -> Table:
        """Return what one statement finds; it can read and nothing else.

        Raises:
            SlowError: it took longer than its limit.
            Exception: whatever the driver raises.
        """
        ...


def open_database(address: Address, timeout_s: float) -> Database:
    """Return this process's one opening of a database.

    A process that was forked from one with it open opens it anew: what it has inherited of an
    embedded database would never answer.

    Raises:
        OutageError: the server does not answer.
        TunerError: it cannot be opened, or holds no node.
    """
    return _opened(address, timeout_s, os.getpid())


@once(kept=_MOST_KEPT)
def _opened(address: Address, timeout_s: float, process: int) -> Database:  # noqa: ARG001
    try:
        database = _open(address, timeout_s)
        found = database.ask(ANY_NODE, {})
    except TunerError:
        raise
    except Exception as error:
        kind = OutageError if is_outage(error) else TunerError
        reason = address.hidden(one_line(error))
        raise kind(f"the database {address.text} cannot be opened: {reason}") from None
    if not found.rows:
        raise TunerError(
            f"the database {address.text} holds no node: fill it first, or name another one"
        )
    return database


def _open(address: Address, timeout_s: float) -> Database:
    # Each driver is imported where it is needed.
    if address.driver == NEO4J:
        from tuner.retrieval.adapters.cypher.bolt import Bolt

        return Bolt.open(address.server, timeout_s)
    if address.driver == FALKORDB:
        from tuner.retrieval.adapters.cypher.falkordb import Falkor

        return Falkor.open(address.server, timeout_s)
    from tuner.retrieval.adapters.cypher.ladybug import Ladybug

    return Ladybug.open(address.path, timeout_s)
