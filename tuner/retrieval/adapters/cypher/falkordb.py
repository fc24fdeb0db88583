"""FalkorDB through its own client, by the command that only reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tuner.core.errors import InputError, did_you_mean
from tuner.retrieval.adapters.cypher.address import KEY, Server
from tuner.retrieval.adapters.cypher.database import SlowError, Table

# The server is to end a statement before the client stops listening.
_LATER_S = 5.0
_SLOW = "timed out"


@dataclass(frozen=True, eq=False)
class Falkor:
    """One graph of a server, for all threads of this process."""

    graph: Any
    timeout_s: float

    @classmethod
    def open(cls, server: Server, timeout_s: float) -> Self:
        """Connect to a server.

        Raises:
            InputError: it has no such graph.
            Exception: it is not there, or does not take who comes.
        """
        from falkordb import FalkorDB

        given = {"username": server.user, "password": server.password}
        client = FalkorDB.from_url(
            server.url,
            protocol=2,  # the client's own default, which it forgets where it is given an address
            socket_timeout=timeout_s + _LATER_S,
            socket_connect_timeout=timeout_s,
            **{name: value for name, value in given.items() if value},
        )
        graphs = client.list_graphs()
        if server.name not in graphs:
            hint = did_you_mean(server.name, graphs)
            raise InputError(f"the server has no graph {server.name!r}{hint}", key=KEY)
        return cls(client.select_graph(server.name), timeout_s)

    def ask(self, text: str, params: Mapping[str, Any]) -> Table:
        """Return what a statement finds."""
        from redis.exceptions import ResponseError

        try:
            result = self.graph.ro_query(text, dict(params), timeout=int(1000 * self.timeout_s))
        except ResponseError as error:
            if _SLOW in str(error):
                raise SlowError(f"no answer within {self.timeout_s:g} s") from error
            raise
        return Table([name for _, name in result.header], result.result_set)
