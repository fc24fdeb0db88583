"""Where a decoded answer holds a list of known documents, as a JMESPath expression."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

_SCORES = ("score", "_score", "similarity", "relevance", "relevance_score")
# An id may lie below a result, as in {"metadata": {"doc_id": …}}; and results below an answer.
_DEEP_RESULT, _DEEP_ANSWER = 3, 6

Path = tuple[str, ...]


def results_in(answer: Any, known: Collection[str]) -> str | None:
    """Return an expression that finds the results in an answer; None where no id is known.

    Of several lists the one with most known ids is taken, and of several fields the one that is
    called ``id``, or stands first. Scores are taken along where they do not rise.

    >>> results_in({"hits": [{"id": "d1", "score": 2.0}, {"id": "d2", "score": 1.0}]}, {"d1", "d2"})
    'hits[*].{id: id, score: score}'
    >>> results_in({"ids": ["d1"]}, {"d1"}), results_in(["d1"], {"d1"}), results_in([], {"d1"})
    ('ids', '@', None)
    """
    best: tuple[tuple[int, int, int], str] | None = None
    for path, items in _lists(answer, ()):
        for column, ids in _columns(items):
            hits = sum(id_ in known for id_ in ids)
            rank = (hits, column is None or column[-1:] == ("id",), -len(path))
            if hits and (best is None or rank > best[0]):
                best = rank, _expression(path, column, items)
    return None if best is None else best[1]


def _lists(value: Any, path: Path) -> Iterator[tuple[Path, list[Any]]]:
    if isinstance(value, list):
        yield path, value
    elif isinstance(value, Mapping) and len(path) < _DEEP_ANSWER:
        for name, part in value.items():
            yield from _lists(part, (*path, str(name)))


def _columns(items: list[Any]) -> Iterator[tuple[Path | None, list[str]]]:
    """Yield what could be ids: the items themselves (None), or a field that all of them have."""
    if items and all(_is_id(item) for item in items):
        yield None, [str(item) for item in items]
    elif items and all(isinstance(item, list) and item and _is_id(item[0]) for item in items):
        yield None, [str(item[0]) for item in items]
    elif items and all(isinstance(item, Mapping) for item in items):
        for column in _fields(items[0], ()):
            values = [_at(item, column) for item in items]
            if all(_is_id(value) for value in values):
                yield column, [str(value) for value in values]


def _fields(item: Any, path: Path) -> Iterator[Path]:
    if isinstance(item, Mapping) and len(path) < _DEEP_RESULT:
        for name, part in item.items():
            yield from _fields(part, (*path, str(name)))
    elif path:
        yield path


def _at(item: Any, path: Path) -> Any:
    for name in path:
        item = item.get(name) if isinstance(item, Mapping) else None
    return item


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _expression(path: Path, column: Path | None, items: list[Any]) -> str:
    base = _dotted(path)
    if column is None:
        return base or "@"
    for name in _SCORES:
        scores = [item.get(name) for item in items]
        if all(isinstance(s, int | float) and not isinstance(s, bool) for s in scores):
            if all(first >= second for first, second in pairwise(scores)):
                return f"{base}[*].{{id: {_dotted(column)}, score: {key_part(name)}}}"
            break
    return f"{base}[*].{_dotted(column)}"


def _dotted(path: Path) -> str:
    return ".".join(map(key_part, path))


def key_part(name: str) -> str:
    """Return a name as JMESPath writes it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else json.dumps(name)
