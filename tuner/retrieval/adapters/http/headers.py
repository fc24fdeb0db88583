"""Headers whose secrets come from the environment, and are kept out of all that is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from tuner.core.errors import Problem, TunerError
from tuner.core.shown import OPEN_VALUE, starred

Headers = tuple[tuple[str, str], ...]
"""Name and value of each header; a value holds ``${NAME}`` where the environment's stands."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_NAME = re.compile(
    r"auth|cookie|token|secret|passw|pwd|credential|signature|session|(api|access|private)?[-_]?key$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"(bearer|basic|token|digest)\s+\S", re.IGNORECASE)
# What may stand in clear beside a variable: how it is meant, as in "Bearer ${TOKEN}".
_BESIDE_A_SECRET = re.compile(
    r"(?:bearer|basic|token|digest|apikey|key)?[\s:=;,\"]*", re.IGNORECASE
)
# Names of headers and of a URL's parameters whose values are no secrets. What has another name is
# taken for one, unless it is a number or a date: a configuration is copied into every run.
_OPEN_NAME = re.compile(
    r"(x-)?(accept|content|cache|user-agent|host|origin|referer|connection|pragma|prefer|trace|"
    r"requested)[\w-]*|([\w-]+[-_])?(version|v|tenant|index|namespace|collection|database|region|"
    r"environment|env|lang|language|locale|format|mode|source|stage|client|caller|project|test)",
    re.IGNORECASE,
)
# A shorter secret is part of too many words to be replaced in a message.
_SHORTEST = 4


def read_headers(given: Any) -> tuple[Headers, list[Problem]]:
    """Read the ``headers`` of a configuration: name -> text with ``${NAME}``, or ``{env: NAME}``.

    Returns:
        the headers, without any secret, and what is wrong with them. Messages do not repeat values.
    """
    if not isinstance(given, Mapping):
        example = 'write {Authorization: "Bearer ${MY_TOKEN}"}'
        return (), [Problem(f"must be a mapping; {example}", key=("headers",))]
    headers, problems = [], []
    for name, value in given.items():
        key = ("headers", str(name))
        if isinstance(value, Mapping) and set(value) == {"env"} and isinstance(value["env"], str):
            value = f"${{{value['env']}}}"
        if not isinstance(value, str) or not _NAME.fullmatch(str(name)):
            problems.append(Problem("must be text, or {env: NAME_OF_A_VARIABLE}", key=key))
            continue
        problems += [Problem(message, key=key) for message in _header_problems(str(name), value)]
        headers.append((str(name), value))
    return tuple(headers), problems


def url_problems(url: Any) -> Iterator[Problem]:
    """Yield what is wrong with an URL: no HTTP, or a secret in it, which would be written down."""
    example = "write it as http://host:port/path"
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except (ValueError, AttributeError, TypeError):
        yield Problem(f"is no URL; {example}", key=("url",))
        return
    if not is_right:
        yield Problem(f"is no HTTP URL; {example}", key=("url",))
        return
    if parts.username or parts.password:
        message = "holds what looks like a secret; send it as a header, from the environment"
        yield Problem(message, key=("url",))
    for name, value in parse_qsl(parts.query):
        if _is_secret(name, value):
            message = (
                f"holds what looks like a secret, {name}=…; set an environment variable and write "
                f"{name}=${{ITS_NAME}}"
            )
            yield Problem(message, key=("url",))
    for variable in _VARIABLE.findall(url):
        if not os.environ.get(variable):
            message = f"the environment variable {variable} is not set, or empty"
            yield Problem(message, key=("url",))


def resolve_url(url: str) -> str:
    """Return an URL with the environment's values, quoted as an URL needs them.

    Raises:
        TunerError: a variable is not set here.
    """
    missing = [name for name in _VARIABLE.findall(url) if not os.environ.get(name)]
    if missing:
        raise TunerError(f"the environment variable {missing[0]} is not set, or empty")
    return _VARIABLE.sub(lambda match: quote(os.environ[match[1]], safe=""), url)


def resolve(headers: Headers) -> dict[str, str]:
    """Return the headers with the environment's values.

    Raises:
        TunerError: a variable is not set here.
    """
    missing = [name for name in _variables(headers) if not os.environ.get(name)]
    if missing:
        raise TunerError(f"the environment variable {missing[0]} is not set, or empty")
    return {name: _VARIABLE.sub(_from_environment, value) for name, value in headers}


def without_secrets(text: str, headers: Headers) -> str:
    """Return a text in which the environment's values that headers hold are replaced by stars.

    So are their beginnings where a text was cut short in the middle of one.
    """
    secrets = {os.environ.get(name, "") for name in _variables(headers)}
    secrets |= {part for secret in secrets for part in (*secret.split(), quote(secret, safe=""))}
    return starred(text, (secret for secret in secrets if len(secret) >= _SHORTEST))


def _is_secret(name: str, value: str) -> bool:
    """Say whether a value in clear has to be taken for a secret, or for one in part."""
    in_clear = _VARIABLE.sub("", value)
    if _SECRET_NAME.search(name) or _SECRET_VALUE.match(value):
        return not (in_clear != value and _BESIDE_A_SECRET.fullmatch(in_clear))
    in_clear = in_clear.strip()
    return bool(in_clear) and not (_OPEN_NAME.fullmatch(name) or OPEN_VALUE.fullmatch(in_clear))


def _header_problems(name: str, value: str) -> Iterator[str]:
    variables = _VARIABLE.findall(value)
    if not value.isprintable():
        yield "must be printable ASCII"
        return
    if _is_secret(name, value):
        yield (
            "looks like a secret, which must not stand here: set an environment variable and "
            'write "${ITS_NAME}", or "Bearer ${ITS_NAME}"'
        )
        return
    for variable in variables:
        secret = os.environ.get(variable)
        if not secret:
            yield f"the environment variable {variable} is not set, or empty"
        elif not (secret.isascii() and secret.isprintable()):
            yield f"the value of {variable} cannot be sent: it holds a line break, or no ASCII"
    if not _VARIABLE.sub("", value).isascii():
        yield "must be printable ASCII"


def _variables(headers: Sequence[tuple[str, str]]) -> list[str]:
    return [name for _, value in headers for name in _VARIABLE.findall(value)]


def _from_environment(match: re.Match[str]) -> str:
    return os.environ[match[1]]
