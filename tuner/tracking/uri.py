"""MLflow tracking URIs: checked, made absolute, and shown without what is secret in them."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

from tuner.core.errors import InputError, did_you_mean
from tuner.core.shown import OPEN_VALUE, STARS, starred

_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_SERVERS = ("http", "https", "databricks", "databricks-uc")
_EXPERIMENT_LIMIT = 500

# Of SQLAlchemy: the driver where the scheme names none, and each driver's module and package.
_DEFAULT_DRIVERS = {"postgresql": "psycopg2", "mysql": "mysqldb", "mssql": "pyodbc"}
_DRIVERS = {
    "postgresql": {
        "psycopg2": ("psycopg2", "psycopg2-binary"),
        "psycopg": ("psycopg", "psycopg[binary]"),
        "pg8000": ("pg8000", "pg8000"),
    },
    "mysql": {
        "mysqldb": ("MySQLdb", "mysqlclient"),
        "pymysql": ("pymysql", "PyMySQL"),
        "mysqlconnector": ("mysql.connector", "mysql-connector-python"),
    },
    "mssql": {"pyodbc": ("pyodbc", "pyodbc"), "pymssql": ("pymssql", "pymssql")},
}

# As parameters (?password=…) and within ODBC's own string (PWD=…), which is percent-encoded.
_NAMED = re.compile(
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api_?key)"
    r"(?:=|%3D)(\{.*?\}|%7B.*?%7D|.*?)(?=[&;\s]|%3B|%26|$)",
    re.IGNORECASE,
)
# Of a server's address whatever stands in a parameter, whose name nobody knows, but for numbers;
# and a user without a password, who is a token.
_PARAMETER = re.compile(r"[?&][^=&#\s]+=([^&#\s]+)")
_TOKEN = re.compile(r"://([^:@/?#\s]+)@")
# A shorter password is looked for as a whole word only.
_SHORT = 6


def check_uri(uri: str) -> None:
    """Check a tracking URI as far as that is possible without opening it.

    Raises:
        InputError: no URI, an unknown scheme, a server without a host, a database whose driver is
            not installed, or a sqlite store that is in memory, a directory, or in no directory.
    """
    scheme, separator, rest = uri.partition(":")
    if uri == "databricks":
        return
    engine = scheme.split("+")[0]
    if not separator or (engine not in _DATABASES and scheme not in _SERVERS):
        _refuse_scheme(uri, scheme if separator else "")
    if scheme in {"http", "https"} and not _host(uri):
        raise InputError(f"tracking uri {mask(uri)!r} has no host; write http://host:5000")
    if engine in _DRIVERS:
        _check_driver(engine, scheme)
    if engine != "sqlite":
        return
    if not rest.startswith("///") or rest in {"///", "///:memory:"}:
        raise InputError(
            f"tracking uri {mask(uri)!r} names no file; write sqlite:///mlflow.db, or "
            "sqlite:////an/absolute/path/mlflow.db"
        )
    path = sqlite_path(uri)
    if path is not None and path.is_dir():
        raise InputError(f"tracking uri {uri!r} is a directory; name a file in it: {uri}/mlflow.db")
    if path is not None and not path.parent.is_dir():
        raise InputError(
            f"tracking uri {uri!r}: there is no directory {str(path.parent)!r}; make it, or name "
            "another file"
        )


def check_experiment(name: str) -> None:
    """Check an experiment's name.

    Raises:
        InputError: an empty name or one that is too long for MLflow.
    """
    if not name.strip():
        raise InputError("the MLflow experiment needs a name, such as 'graphrag-tuning'")
    if len(name) > _EXPERIMENT_LIMIT:
        raise InputError(
            f"the MLflow experiment's name has {len(name)} characters; "
            f"MLflow takes at most {_EXPERIMENT_LIMIT}"
        )


def check_there(uri: str) -> None:
    """Check that a store which is a file is there.

    Raises:
        InputError: it is not.
    """
    path = sqlite_path(uri)
    if path is not None and not path.is_file():
        raise InputError(f"tracking uri {mask(uri)!r}: there is no file {str(path)!r}")


def absolute(uri: str) -> str:
    """Return the URI with a sqlite path made absolute, so that a later chdir does not matter."""
    path = sqlite_path(uri)
    if path is None:
        return uri
    query = uri.partition("?")
    return f"{uri.partition(':')[0]}:///{path}{query[1]}{query[2]}"


def sqlite_path(uri: str) -> Path | None:
    """Return the absolute path of a sqlite store's file, or None for any other store."""
    scheme, _, rest = uri.partition(":///")
    name = rest.partition("?")[0]
    if scheme.split("+")[0] != "sqlite" or name in {"", ":memory:"}:
        return None
    return Path(name).absolute()


def _host(uri: str) -> str | None:
    try:
        return urlsplit(uri).hostname
    except ValueError as error:
        # The error may quote the part that holds the password, and so may its traceback.
        reason = without_password(str(error), uri)
        raise InputError(f"tracking uri {mask(uri)!r} cannot be read: {reason}") from None


def _check_driver(engine: str, scheme: str) -> None:
    """Find the driver's module without importing it: SQLAlchemy does so only in the run."""
    known = _DRIVERS[engine]
    driver = scheme.partition("+")[2] or _DEFAULT_DRIVERS[engine]
    if driver not in known:
        outside = entry_points(group="sqlalchemy.dialects", name=f"{engine}.{driver}")
        if not outside:
            hint = did_you_mean(driver, known)
            raise InputError(f"tracking uri: {engine} has no driver {driver!r} here{hint}")
        return
    module, package = known[driver]
    # The outer package first: looking for a.b imports a.
    if find_spec(module.partition(".")[0]) is None:
        others = " or ".join(f"{engine}+{other}://" for other in known if other != driver)
        raise InputError(
            f"tracking uri {scheme}://… needs {module}: pip install '{package}', or write {others}"
        )


def _refuse_scheme(uri: str, scheme: str) -> None:
    if scheme in {"", "file"}:
        raise InputError(
            f"tracking uri {mask(uri)!r} is a folder, which MLflow has stopped to support as a "
            "store; write sqlite:///mlflow.db or http://host:5000"
        )
    hint = did_you_mean(scheme, (*_DATABASES, *_SERVERS))
    raise InputError(f"tracking uri {mask(uri)!r} has the unknown scheme {scheme!r}{hint}")


def holds_password(uri: str) -> bool:
    """Say whether a URI holds a password; in doubt it does.

    >>> holds_password("http://me:word@host:5000"), holds_password("http://host:5000")
    (True, False)
    """
    return bool(_passwords(uri))


def without_password(text: str, uri: str) -> str:
    """Return the text with the URI's passwords, if it has any, replaced by stars.

    So are their beginnings where the text was cut short in the middle of one.

    >>> without_password("no answer from http://me:word@host", "http://me:word@host")
    'no answer from http://me:***@host'
    """
    passwords = _passwords(uri)
    for password in passwords:  # where they stand in a URI
        text = re.sub(rf"(?<=[:=/]){re.escape(password)}(?=@|&|;|$)", STARS, text)
    return starred(text, passwords, whole_word_below=_SHORT)


def mask(uri: str) -> str:
    """Return a URI as it may be shown: with stars for its passwords."""
    return without_password(uri, uri)


def masked(value: Any, uri: str) -> Any:
    """Return a JSON-like value in which every string that holds the URI holds it masked."""
    match value:
        case str():
            return value.replace(uri, mask(uri))
        case dict():
            return {key: masked(item, uri) for key, item in value.items()}
        case list() | tuple():
            return [masked(item, uri) for item in value]
    return value


def _passwords(uri: str) -> list[str]:
    """Return all that may be a password in the URI, as written and decoded, longest first.

    No parser of URIs is asked: a password may hold the characters that mislead it (``/?#[@``), and
    the URI may be one that it refuses.
    """
    found = {match[1] for match in _NAMED.finditer(uri)}
    found |= {match[1] for match in _NAMED.finditer(unquote_plus(uri))}
    if uri.startswith(("http://", "https://")):
        found |= {
            match[1] for match in _PARAMETER.finditer(uri) if not OPEN_VALUE.fullmatch(match[1])
        }
        found |= {match[1] for match in _TOKEN.finditer(uri)}
    scheme, separator, rest = uri.partition("://")
    rest = rest if separator else uri
    if not (scheme.split("+")[0] == "sqlite" and rest.startswith("/")):  # a path holds anything
        ends = [place for place, letter in enumerate(rest) if letter == "@"]
        for start in (place for place, letter in enumerate(rest) if letter == ":"):
            found |= {rest[start + 1 : end] for end in ends if end > start + 1}
    decoded = found | {unquote(password) for password in found}
    every = decoded | {quote(word, safe="") for word in decoded} | set(map(quote_plus, decoded))
    return sorted(every - {"", STARS, "{}"}, key=lambda word: (-len(word), word))
