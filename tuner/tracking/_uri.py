"""MLflow tracking URIs: checked, made absolute, and shown without their passwords."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from tuner.core.errors import InputError, did_you_mean

_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_SERVERS = ("http", "https", "databricks", "databricks-uc")
_EXPERIMENT_LIMIT = 500


def check_uri(uri: str) -> None:
    """Check a tracking URI as far as that is possible without opening it.

    Raises:
        InputError: no URI, an unknown scheme, a server without a host, or a sqlite store that is
            in memory or a directory.
    """
    scheme, separator, rest = uri.partition(":")
    if uri == "databricks":
        return
    engine = scheme.split("+")[0]
    if not separator or (engine not in _DATABASES and scheme not in _SERVERS):
        _refuse_scheme(uri, scheme if separator else "")
    if scheme in {"http", "https"} and not _host(uri):
        raise InputError(f"tracking uri {uri!r} has no host; write http://host:5000")
    if engine != "sqlite":
        return
    if not rest.startswith("///") or rest in {"///", "///:memory:"}:
        raise InputError(
            f"tracking uri {uri!r} names no file; write sqlite:///mlflow.db, or "
            "sqlite:////an/absolute/path/mlflow.db"
        )
    path = sqlite_path(uri)
    if path is not None and path.is_dir():
        raise InputError(f"tracking uri {uri!r} is a directory; name a file in it: {uri}/mlflow.db")


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


def without_password(text: str, uri: str) -> str:
    """Return the text with the URI's password, if it has one, replaced by stars."""
    try:
        password = urlsplit(uri).password
    except ValueError:
        return text
    return text.replace(password, "***") if password else text


def _host(uri: str) -> str | None:
    try:
        return urlsplit(uri).hostname
    except ValueError as error:
        raise InputError(f"tracking uri {uri!r} cannot be read: {error}") from error


def _refuse_scheme(uri: str, scheme: str) -> None:
    if scheme in {"", "file"}:
        raise InputError(
            f"tracking uri {uri!r} is a folder, which MLflow has stopped to support as a store; "
            "write sqlite:///mlflow.db or http://host:5000"
        )
    hint = did_you_mean(scheme, (*_DATABASES, *_SERVERS))
    raise InputError(f"tracking uri {uri!r} has the unknown scheme {scheme!r}{hint}")
