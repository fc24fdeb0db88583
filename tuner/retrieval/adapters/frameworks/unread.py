"""Keywords that a store swallows: they are given to its search, and its code never names them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import CodeType
from typing import Any


def unread_keys(given: Mapping[str, Any], store: Any, known: Iterable[str]) -> list[str]:
    """Return the keys that look like one of the known names, and that a store does not read.

    A key that looks like none may be meant for the service behind the store, and is left alone.
    """
    names = list(known)
    doubtful = [key for key in given if key not in names and get_close_matches(key, names, n=1)]
    read = set(_words(type(store))) if doubtful else set()
    return [key for key in doubtful if key not in read]


def _words(kind: type) -> Iterator[str]:
    """Yield the arguments and the quoted words of a class's methods."""
    for base in kind.__mro__:
        for method in vars(base).values():
            plain = inspect.unwrap(getattr(method, "__func__", method))
            if (code := getattr(plain, "__code__", None)) is not None:
                yield from _words_of(code)


def _words_of(code: CodeType) -> Iterator[str]:
    yield from code.co_varnames
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # a function within
            yield from _words_of(constant)
        elif isinstance(constant, str):
            yield constant
