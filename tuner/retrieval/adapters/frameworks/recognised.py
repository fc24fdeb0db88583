"""Which framework an object is of, told by its classes: none of them needs to be imported."""

from __future__ import annotations

_KINDS = {
    "haystack": "haystack",
    "langchain_core": "langchain",
    "llama_index": "llama_index",
    "neo4j_graphrag": "neo4j_graphrag",
}
CALLED = {
    "haystack": "Haystack",
    "langchain": "LangChain",
    "llama_index": "LlamaIndex",
    "neo4j_graphrag": "neo4j-graphrag",
}
"""What people call the framework of a kind."""


def framework_of(thing: object) -> str:
    """Return the kind of retriever that asks a framework's object; empty for any other.

    Of a class it tells what its objects are.
    """
    bases = thing.__mro__ if isinstance(thing, type) else type(thing).__mro__
    roots = [base.__module__.partition(".")[0] for base in bases]
    kind = next((_KINDS[root] for root in roots if root in _KINDS), "")
    if not kind and hasattr(thing, "__haystack_input__"):
        kind = "haystack"  # a component of the user's own
    return kind


def framework_hint(thing: object, name: str) -> str:
    """Return what to write in place of a framework's object ``module:thing``; empty for others.

    A method that the framework itself defines, such as ``module:thing.invoke``, is its object's.

    >>> framework_hint(print, "my_app:print")
    ''
    """
    if _is_its_method(thing):
        thing, name = getattr(thing, "__self__", None), name.rpartition(".")[0]
    kind = "" if isinstance(thing, type) else framework_of(thing)
    if not kind:
        return ""
    module, _, attribute = name.partition(":")
    made = f"make_{attribute.rpartition('.')[2]}"
    return (
        f"{name!r} is {CALLED[kind]}'s. Write a function into {module}.py that makes it, "
        f'def {made}(): return …, and write retriever: {{kind: {kind}, make: "{module}:{made}"}}'
    )


def _is_its_method(thing: object) -> bool:
    """Say whether this is a method of an object, and of a framework's own code."""
    code = getattr(thing, "__func__", None)
    root = str(getattr(code, "__module__", "")).partition(".")[0]
    return code is not None and root in _KINDS
