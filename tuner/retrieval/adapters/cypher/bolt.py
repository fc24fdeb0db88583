"""Neo4j, Memgraph and whatever else speaks Bolt, through Neo4j's driver, only to read."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

from tuner.retrieval.adapters.cypher.address import Server
from tuner.retrieval.adapters.cypher.database import SlowError, Table

_SLOW = "TransactionTimedOut"
# What a server remarks of a statement, such as that it is old, it remarks each time. The driver can
# ask for silence, but of servers from Bolt 5.2 on only: it raises with older ones.
_REMARKS = logging.getLogger("neo4j.notifications")
_OURS: ContextVar[bool] = ContextVar("whether a statement of ours is being asked", default=False)


@dataclass(frozen=True, eq=False)
class Bolt:
    """One driver with its connections, for all threads of this process."""

    driver: Any
    name: str | None
    timeout_s: float

    @classmethod
    def open(cls, server: Server, timeout_s: float) -> Self:
        """Connect to a server.

        Raises:
            Exception: it is not there, or does not take who comes.
        """
        from neo4j import GraphDatabase

        _REMARKS.addFilter(_is_to_be_seen)  # once, however often it is called
        driver = GraphDatabase.driver(
            server.url,
            auth=(server.user, server.password) if server.user else None,
            connection_timeout=timeout_s,
            connection_acquisition_timeout=timeout_s,
            max_transaction_retry_time=0,  # the study asks again, and counts it
        )
        try:
            driver.verify_connectivity()
        except BaseException:
            driver.close()
            raise
        opened = cls(driver, server.name or None, timeout_s)
        weakref.finalize(opened, _close, driver, os.getpid())
        return opened

    def ask(self, text: str, params: Mapping[str, Any]) -> Table:
        """Return what a statement finds."""
        from neo4j import Query, RoutingControl
        from neo4j.exceptions import Neo4jError

        ours = _OURS.set(True)
        try:
            result = self.driver.execute_query(
                Query(text, timeout=self.timeout_s),
                dict(params),
                routing_=RoutingControl.READ,
                database_=self.name,
            )
        except Neo4jError as error:
            if _SLOW in (error.code or ""):
                raise SlowError(f"no answer within {self.timeout_s:g} s") from error
            raise
        finally:
            _OURS.reset(ours)
        return Table(result.keys, [record.values() for record in result.records])


def _is_to_be_seen(record: logging.LogRecord) -> bool:
    """Say whether a remark is of somebody else's statement, or was asked for by a level."""
    is_remark = record.levelno < logging.ERROR
    return not (_OURS.get() and is_remark and _REMARKS.level == logging.NOTSET)


def _close(driver: Any, process: int) -> None:
    """Close a driver where it was opened: a fork's belongs to who it was forked from."""
    if os.getpid() == process:
        driver.close()
