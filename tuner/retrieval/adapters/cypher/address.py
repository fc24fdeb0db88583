"""Where a graph lies: a file of ladybug's, or a server's address without its secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import SplitResult, unquote, urlsplit

from tuner.core.errors import InputError, Problem, TunerError, refuse
from tuner.retrieval.adapters.http.headers import without_secrets

KEY = ("database",)
LADYBUG, NEO4J, FALKORDB = "ladybug", "neo4j", "falkordb"
BOLT = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
REDIS = ("falkor", "falkors", "redis", "rediss")
_DRIVERS = {**dict.fromkeys(BOLT, NEO4J), **dict.fromkeys(REDIS, FALKORDB)}
_EXAMPLE = (
    "write a file of ladybug's, graph.lbug, neo4j://neo4j:${NEO4J_PASSWORD}@host:7687/database, "
    "bolt://… for Memgraph, or falkor://host:6379/graph"
)
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Address:
    """A database as the configuration writes it, and the driver that reaches it.

    It holds names of environment variables, never their values.
    """

    driver: str
    text: str

    @classmethod
    def read(cls, database: Any) -> Self:
        """Check the option that names a database.

        Raises:
            InputError: it is none, holds a secret, or names a variable that is not set.
        """
        if not isinstance(database, str) or not database.strip():
            raise InputError(f"must name a database, got {database!r}; {_EXAMPLE}", key=KEY)
        if not is_url(database):
            return cls(LADYBUG, str(Path(database).expanduser().absolute()))
        refuse(Problem(message, key=KEY) for message in _url_problems(database))
        return cls(_DRIVERS[urlsplit(_filled(database)).scheme], database)

    @property
    def path(self) -> Path:
        """Return the file of an embedded database."""
        return Path(self.text)

    @property
    def server(self) -> Server:
        """Return a server's parts, with the environment's values.

        Raises:
            TunerError: a variable is not set here.
        """
        if missing := _missing(self.text):
            raise TunerError(f"the environment variable {missing[0]} is not set, or empty")
        parts = urlsplit(_filled(self.text))
        port = "" if parts.port is None else f":{parts.port}"
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return Server(
            f"{parts.scheme}://{host}{port}",
            _value(self.text, "username"),
            _value(self.text, "password"),
            parts.path.strip("/"),
        )

    def hidden(self, text: str) -> str:
        """Return a text with stars for the secrets of the address."""
        return without_secrets(text, (("database", self.text),))


@dataclass(frozen=True, repr=False)
class Server:
    """A server's address and what it asks of who comes; ``name`` is that of the graph in it."""

    url: str
    user: str
    password: str
    name: str


def is_url(database: str) -> bool:
    """Say whether a text names a server, and no file."""
    return "://" in database


def _url_problems(text: str) -> Iterator[str]:
    try:
        parts = urlsplit(_filled(text))
        _ = parts.port
    except ValueError:
        yield f"is no address; {_EXAMPLE}"
        return
    if parts.scheme not in _DRIVERS:
        yield f"{parts.scheme}:// is no database that is known here; {_EXAMPLE}"
    elif not parts.hostname:
        yield f"names no host; {_EXAMPLE}"
    elif _DRIVERS[parts.scheme] == FALKORDB and not parts.path.strip("/"):
        yield "names no graph: write it behind the host, as in falkor://host:6379/graph"
    if parts.query or parts.fragment:
        yield "ends at the name of the database: leave out what stands behind ? or #"
    if "@" in parts.path:
        yield (
            "has an @ behind its first /, so that a password may stand in clear where the name of "
            "the database does: set an environment variable, and write ${ITS_NAME} in its place"
        )
    password = _written(text).password
    if password and not _VARIABLE.fullmatch(password):
        yield (
            "holds a password in clear, which would be written down: set an environment variable, "
            "and write ${ITS_NAME} in its place"
        )
    for name in _missing(text):
        yield f"the environment variable {name} is not set, or empty"


def _written(text: str) -> SplitResult:
    """Return the parts of an address with its variables as they stand there."""
    return urlsplit(text)


def _value(text: str, part: str) -> str:
    """Return who comes, or with which password, with the environment's value."""
    written = getattr(_written(text), part) or ""
    return _VARIABLE.sub(lambda found: os.environ[found[1]], unquote(written))


def _filled(text: str) -> str:
    """Return an address with the environment's values but in what stands before the @."""
    scheme, _, rest = text.partition("://")
    before, at, host = rest.rpartition("@")
    host = _VARIABLE.sub(lambda found: os.environ.get(found[1], "unset"), host)
    return f"{scheme}://{_VARIABLE.sub('x', before)}{at}{host}"


def _missing(text: str) -> list[str]:
    return [name for name in _VARIABLE.findall(text) if not os.environ.get(name)]
