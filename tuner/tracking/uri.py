"""MLflow tracking URIs: checked and made absolute, without what is secret in them."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from tuner.core.errors import InputError, did_you_mean
from tuner.tracking.secrets import holds_password, mask, without_password

__all__ = [
    "absolute",
    "check_experiment",
    "check_uri",
    "holds_password",
    "mask",
    "sqlite_path",
    "without_password",
]

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
