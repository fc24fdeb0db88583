"""From a question to a request's body, and from a response to an answer: JMESPath both ways."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from tuner.core.errors import Problem, TunerError, did_you_mean

ONE = ("id", "query", "params")
MANY = ("queries", "params")
PARAMS = "params"
_TEXT = "a plain text is written as \"'text'\""
# Everything after the first part of these is relative to it.
_RELATIVE = (
    "subexpression", "projection", "filter_projection", "value_projection", "flatten",
    "index_expression", "pipe",
)  # fmt: skip
_SECRET = re.compile(r"(api|access|auth)[-_]?(key|token)|password|secret", re.IGNORECASE)


def sent_names(batch_size: int, *, has_index: bool) -> tuple[str, ...]:
    """Return what expressions of a request can name."""
    return (*(ONE if batch_size == 1 else MANY), *(("index",) if has_index else ()))


def template_problems(
    template: Any, known: Collection[str], key: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what is wrong with a template: no expression, an unknown name, or a secret in it."""
    match template:
        case str():
            yield from expression_problems(template, key, known)
        case dict():
            for name, part in template.items():
                if isinstance(part, str) and _SECRET.search(str(name)):
                    message = "looks like a secret; send it as a header, from the environment"
                    yield Problem(message, key=(*key, name))
                else:
                    yield from template_problems(part, known, (*key, name))
        case list():
            for index, part in enumerate(template):
                yield from template_problems(part, known, (*key, index))


def expression_problems(
    expression: Any, key: tuple[str | int, ...], known: Collection[str] | None = None
) -> Iterator[Problem]:
    """Yield why an expression is no JMESPath, or which of its names is not among the known."""
    import jmespath.exceptions

    if not isinstance(expression, str):
        yield Problem(f"must be a JMESPath expression, got {expression!r}", key=key)
        return
    try:
        parsed = _compiled(expression).parsed
    except jmespath.exceptions.JMESPathError as error:
        reason = " ".join(str(error).split())
        yield Problem(f"is not JMESPath: {reason}; {_TEXT}", key=key)
        return
    for name in dict.fromkeys(root for root, _ in _uses(parsed)):
        if known is not None and name not in known:
            yield Problem(
                f"{name!r} is not known here{did_you_mean(name, known)}; {_TEXT}", key=key
            )


def named_params(template: Any) -> tuple[str, ...] | None:
    """Return the parameters that a template sends by name; None: it sends all of them.

    >>> named_params({"text": "query", "k": "params.top_k", "mode": "'local'"})
    ('top_k',)
    >>> named_params({"q": "query", "options": "params"}) is None
    True
    """
    names: list[str] = []
    for expression in _expressions(template):
        for root, name in _uses(_compiled(expression).parsed):
            if root == PARAMS and name is None:
                return None
            if root == PARAMS and name is not None:
                names.append(name)
    return tuple(dict.fromkeys(names))


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with each of its texts, which are expressions, replaced by its value."""
    match template:
        case str():
            return _compiled(template).search(values)
        case dict():
            return {name: fill(part, values) for name, part in template.items()}
        case list():
            return [fill(part, values) for part in template]
    return template


def search(expression: str, response: Any) -> Any:
    """Return what an expression finds in a response.

    Raises:
        TunerError: nothing, or the response has another form than it asks for.
    """
    import jmespath.exceptions

    try:
        found = _compiled(expression).search(response)
    except jmespath.exceptions.JMESPathError as error:
        raise TunerError(f"{expression!r} cannot read the response: {error}") from error
    if found is None:
        start = json.dumps(response)[:80]
        raise TunerError(f"{expression!r} finds nothing in the response: {start}")
    return found


def holds(expression: str, response: Any) -> bool:
    """Say whether an expression finds something in a response, and that is not false or empty."""
    import jmespath.exceptions

    try:
        return bool(_compiled(expression).search(response))
    except jmespath.exceptions.JMESPathError as error:
        raise TunerError(f"{expression!r} cannot read the response: {error}") from error


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    import jmespath

    return jmespath.compile(expression)


def _expressions(template: Any) -> Iterator[str]:
    match template:
        case str():
            yield template
        case dict():
            for part in template.values():
                yield from _expressions(part)
        case list():
            for part in template:
                yield from _expressions(part)


def _uses(node: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield each name at the root of a parsed expression, with the field of it that is used.

    ``params.top_k`` uses (params, top_k), ``params`` alone (params, None). Names after a dot or in
    a projection are relative to what stands before them, and are not at the root.
    """
    children = [child for child in node.get("children", []) if isinstance(child, Mapping)]
    if node["type"] == "field":
        yield node["value"], None
    elif node["type"] == "current":
        yield PARAMS, None
    elif node["type"] == "subexpression" and children[0]["type"] == "field":
        names: list[str | None] = [*_fields(children[1])]
        for name in names or [None]:
            yield children[0]["value"], name
    elif node["type"] in _RELATIVE:
        yield from _uses(children[0])
    else:
        for child in children:
            yield from _uses(child)


def _fields(node: Mapping[str, Any]) -> list[str]:
    if node["type"] == "field":
        return [node["value"]]
    children = [child for child in node.get("children", []) if isinstance(child, Mapping)]
    return [name for child in children for name in _fields(child)]
