"""What ``module:thing`` is: a search, an object, or a function that makes a framework's."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError
from tuner.retrieval.adapters.frameworks.factory import GIVEN as GIVEN_TO_FACTORIES
from tuner.retrieval.adapters.frameworks.factory import Factory
from tuner.retrieval.adapters.frameworks.recognised import (
    CALLED,
    framework_hint,
    framework_of,
)
from tuner.retrieval.adapters.frameworks.settings import hints_of
from tuner.retrieval.adapters.function.loading import find_object
from tuner.retrieval.adapters.function.signature import GIVEN

_WAYS = (
    "a function that searches takes `query` and parameters, def search(query, top_k=10): …; one "
    "that makes a retriever of LangChain's, LlamaIndex's or Haystack's returns it"
)


def kind_of_code(name: str, folder: Path) -> tuple[str, dict[str, Any], str]:
    """Return the kind of retriever that asks ``module:thing``, its options, and what it is.

    The module is looked for in ``folder``, then in the working folder. A function that makes a
    framework's object is called once, where its annotations do not tell what it returns.

    Raises:
        InputError: no such module or thing, or nothing that can be asked.
        TunerError: a function that makes something raised.
    """
    search_path = tuple(str(place.resolve()) for place in dict.fromkeys((folder, Path())))
    thing = find_object(name, search_path, key=())
    if isinstance(thing, type) and callable(getattr(thing, "build", None)):
        if callable(getattr(thing, "retrieve", None)):
            return name, {}, "a class of yours"
        return "function", {"function": name}, "an object that builds its own index"
    if hint := framework_hint(thing, name):
        raise InputError(hint)
    if not callable(thing) or isinstance(thing, type):
        return "function", {"function": name}, "an object of yours"
    takes = _parameters(thing)
    if set(GIVEN) & set(takes):
        return "function", {"function": name}, "a function of yours"
    if kind := _made_by(name, thing, search_path):
        return kind, {"make": name}, f"what a function of yours makes with {CALLED[kind]}"
    raise InputError(f"{name!r} takes ({', '.join(takes)}): {_WAYS}")


def _parameters(thing: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return ()


def _made_by(name: str, thing: Any, search_path: tuple[str, ...]) -> str:
    """Return the kind of what a function makes; empty where that is no framework's."""
    returned = hints_of(thing).get("return")
    if isinstance(returned, type) and (kind := framework_of(returned)):
        return kind
    needed = [n for n, p in inspect.signature(thing).parameters.items() if p.default is p.empty]
    if not set(needed) <= set(GIVEN_TO_FACTORIES):
        return ""  # such as a search whose query has another name
    try:
        return framework_of(Factory.read(name, list(search_path)).made_of_stand_ins())
    except InputError as error:
        raise InputError(
            f"{error}; say what it returns, as in def {name.partition(':')[2]}(…) -> BaseRetriever"
        ) from error


def named_in(file: Path) -> str:
    """Say which functions and classes of a file could be meant, without running it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        tree = ast.Module([], [])
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = [node.name for node in tree.body if isinstance(node, kinds)]
    shown = [f"{file.stem}:{name}" for name in names if not name.startswith("_")][:5]
    if not shown:
        return f"name a function in it, such as {file.stem}:search"
    return f"name what is to be called in it: {' or '.join(shown)}"
