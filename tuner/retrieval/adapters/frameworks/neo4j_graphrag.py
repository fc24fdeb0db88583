"""The retriever ``neo4j_graphrag``: a retriever of neo4j-graphrag's over a Neo4j database."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.space import Categorical, SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.frameworks.matching import Hit
from tuner.retrieval.adapters.frameworks.retriever import (
    Concurrency,
    Framework,
    OfFactory,
    build_framework,
)
from tuner.retrieval.adapters.frameworks.settings import Setting, at_most
from tuner.retrieval.adapters.function.loading import SearchPath
from tuner.retrieval.adapters.options import installed_version

KIND = "neo4j_graphrag"
OLDEST = (1, 10, 1)
_TEXT, _VECTOR, _OWN_PARAMS = "query_text", "query_vector", "query_params"
_RANKER, _LINEAR, _ALPHA = "ranker", "linear", "alpha"
_MANY_NAMES = frozenset({_TEXT, _VECTOR, _OWN_PARAMS})
# The smallest share that counts: at 0 the package takes alpha for missing, and ranks as "naive".
_LEAST_ALPHA = 1e-9
# What Lucene's parser reads as more than a letter, and the words that it reads as operators.
_LUCENE = re.compile(r'([+\-!(){}\[\]^"~*?:\\/&|])')
_OPERATORS = re.compile(r"\b(AND|OR|NOT)\b")
# Quoted texts, names in backticks and comments of a query hold no parameters.
_ASIDE = re.compile(
    r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|//[^\n]*|/\*.*?\*/", flags=re.DOTALL
)
_PARAMETER = re.compile(r"\$(\w+)")
# What the package gives to each of its queries.
_GIVEN = frozenset(
    "alpha effective_search_ratio fulltext_index_name query_text query_vector top_k "
    "vector_index_name".split()
)
_TEXTS = ("text", "content", "chunk", "page_content")


@dataclass(frozen=True)
class Bound:
    """A retriever, and what each of its searches is given besides the query."""

    retriever: Any
    given: Mapping[str, Any]


@dataclass(frozen=True)
class Neo4jGraphragSeam:
    """neo4j-graphrag: all that a search is set to is given with it; nothing is made anew."""

    kind: ClassVar[str] = KIND

    def version(self) -> str:
        """Return the installed version."""
        return installed_version("neo4j-graphrag", oldest=OLDEST, kind=KIND)

    def check(self, made: Any, name: str) -> None:
        """Refuse what is no retriever, cannot embed a query, or searches an index of nothing."""
        if not _is_retriever(made):
            raise InputError(
                f"{name} returned {type(made).__name__}: a retriever of neo4j_graphrag.retrievers "
                "is needed",
                key=("make",),
            )
        takes = _takes(made)
        if _TEXT not in takes:
            raise InputError(
                f"the search of what {name} returned takes no query_text", key=("make",)
            )
        if _VECTOR in takes and getattr(made, "embedder", None) is None:
            raise InputError(
                f"{type(made).__name__} has no embedder, and a query is a text: give it one, which "
                "has embed_query",
                key=("make",),
            )
        if _is_of_nothing(made):
            index = getattr(made, "vector_index_name", None) or getattr(made, "index_name", "?")
            raise InputError(
                f"the index {index!r} that {name} searches is empty: no node with the label "
                f"{made._node_label!r} has {made._embedding_node_property!r}",
                key=("make",),
            )

    def settings(self, made: Any) -> Iterator[Setting]:
        """Yield what a search takes, with the bounds of its pydantic model."""
        takes = _takes(made)
        fields = _fields(made)
        told = f"what {type(made).__name__} is asked with"
        for name, parameter in takes.items():
            if name in _MANY_NAMES or parameter.kind is parameter.VAR_KEYWORD:
                continue
            value, field = parameter.default, fields.get(name)
            hint = getattr(field, "annotation", None) or parameter.annotation
            if not _is_plain(hint, value):
                continue
            when = {_RANKER: (_LINEAR,)} if name == _ALPHA and _RANKER in takes else {}
            yield Setting(name, value, hint, told, within=_bounds(field), when=when)
        for name in _own_parameters(made):
            full = f"{_OWN_PARAMS}.{name}"
            yield Setting(full, None, None, "a parameter of your query", is_open=True)
        if getattr(made, "retrieval_query", None) or "top_k" not in takes:
            yield at_most()

    def bound(self, made: Any, values: Mapping[str, Scalar]) -> Bound:
        """Return the retriever, with what it is asked."""
        given: dict[str, Any] = {}
        for name, value in values.items():
            word, _, last = name.partition(".")
            if last:
                given.setdefault(word, {})[last] = value
            elif value is not None:
                given[name] = value
        if given.get(_ALPHA) == 0:
            given[_ALPHA] = _LEAST_ALPHA
        return Bound(made, given)

    def ask(self, bound: Bound, query: str) -> list[Hit]:
        """Search, and read the records."""
        retriever, takes = bound.retriever, _takes(bound.retriever)
        asked = dict(bound.given)
        if _VECTOR in takes:
            asked[_VECTOR] = list(_embedded(retriever.embedder, query))
        if takes[_TEXT].default is not None:  # one of both will do where either may be left out
            asked[_TEXT] = query if not _is_lucene(retriever) else escaped(query)
        return [_hit(record) for record in retriever.get_search_results(**asked).records]

    def can_wait(self, made: Any) -> bool:  # noqa: ARG002
        """Say no: the package's retrievers wait for the database."""
        return False

    async def ask_async(self, bound: Bound, query: str) -> list[Hit]:
        """Search, and read the records."""
        return self.ask(bound, query)

    def counts(self, made: Any) -> dict[str, int]:  # noqa: ARG002
        """Count nothing: a database is the same in every process, and may grow meanwhile."""
        return {}


def escaped(query: str) -> str:
    r"""Return a question as Lucene reads it: as words, and not as a query of its language.

    >>> print(escaped("What is C++ (and NOT C)?"))
    What is C\+\+ \(and not C\)\?
    """
    return _OPERATORS.sub(lambda found: found[0].lower(), _LUCENE.sub(r"\\\1", query))


@lru_cache(maxsize=1000)
def _embedded(embedder: Any, query: str) -> tuple[float, ...]:
    """Return the vector of a query: each costs a call, and every trial asks the same queries."""
    return tuple(embedder.embed_query(query))


def _is_retriever(value: Any) -> bool:
    return any(
        base.__name__ == "Retriever" and base.__module__.startswith("neo4j_graphrag.")
        for base in type(value).__mro__
    )


def _takes(made: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(made.get_search_results).parameters


def _fields(made: Any) -> Mapping[str, Any]:
    """Return the fields of the model that checks a search: HybridSearchModel of HybridRetriever."""
    for base in type(made).__mro__:
        name = base.__name__.removesuffix("Retriever") + "SearchModel"
        for module in (base.__module__, "neo4j_graphrag.types"):
            fields = getattr(getattr(sys.modules.get(module), name, None), "model_fields", None)
            if isinstance(fields, Mapping):
                return fields
    return {}


def _is_plain(hint: Any, value: Any) -> bool:
    """Say whether a search takes a number or a choice here, and no vector and no filter."""
    types = [one for one in (get_args(hint) or (hint,)) if one is not type(None)]
    is_choice = any(isinstance(one, type) and issubclass(one, Enum) for one in types)
    return is_choice or isinstance(value, bool | int | float) or set(types) <= {bool, int, float}


def _bounds(field: Any) -> tuple[float | None, float | None] | None:
    """Return the ends that a pydantic field declares: ``gt=0`` of an integer is 1."""
    ends: dict[str, Any] = {}
    for one in getattr(field, "metadata", ()):
        for word in ("gt", "ge", "lt", "le"):
            if getattr(one, word, None) is not None:
                ends[word] = getattr(one, word)
    is_whole = getattr(field, "annotation", None) is int
    step = 1 if is_whole else 0
    low = ends.get("ge", ends["gt"] + step if "gt" in ends else None)
    high = ends.get("le", ends["lt"] - step if "lt" in ends else None)
    return None if low is None and high is None else (low, high)


def _own_parameters(made: Any) -> tuple[str, ...]:
    """Return the ``$names`` of the user's part of a query, which the package does not give."""
    query = getattr(made, "retrieval_query", None)
    if not isinstance(query, str) or _OWN_PARAMS not in _takes(made):
        return ()
    names = dict.fromkeys(_PARAMETER.findall(_ASIDE.sub(" ", query)))
    return tuple(name for name in names if name not in _GIVEN)


def _is_lucene(made: Any) -> bool:
    return getattr(made, "fulltext_index_name", None) is not None


def _is_of_nothing(made: Any) -> bool:
    """Ask the database whether no node has what a vector index is made of."""
    label = getattr(made, "_node_label", None)
    key = getattr(made, "_embedding_node_property", None)
    driver = getattr(made, "driver", None)
    if not (label and key and driver is not None):
        return False
    quoted, where = (str(one).replace("`", "``") for one in (label, key))
    statement = f"MATCH (n:`{quoted}`) WHERE n.`{where}` IS NOT NULL RETURN 1 AS one LIMIT 1"
    database = getattr(made, "neo4j_database", None)
    found, _, _ = driver.execute_query(statement, {}, database_=database, routing_="r")
    return not found


def _hit(record: Any) -> Hit:
    """Read a record: by its node's properties, else by what your own query returns.

    ``elementId`` is the database's, and so is the ``id`` beside a node: neither is a document's.
    """
    values = dict(record)
    node = next((value for value in values.values() if _is_node(value)), None)
    properties = dict(node.items()) if node is not None else {}
    plain = {name: value for name, value in values.items() if not _is_node(value)}
    if "elementId" in plain:
        plain = {name: value for name, value in plain.items() if name not in ("elementId", "id")}
    told = {**plain, **properties}
    content = next((told[name] for name in _TEXTS if isinstance(told.get(name), str)), "")
    id_ = told.get("id")
    return Hit(id_, {name: one for name, one in told.items() if name != "id"}, content)


def _is_node(value: Any) -> bool:
    return callable(getattr(value, "items", None))


def _alpha_problems(space: SearchSpace | None, baseline: Params | None) -> Iterator[Problem]:
    """Yield that a linear ranker needs a weight, where none is named."""
    ranker = None if space is None else space.parameters.get(_RANKER)
    named = {*(() if space is None else space.parameters), *(baseline or {})}
    choices = (
        ranker.choices if isinstance(ranker, Categorical) else ((baseline or {}).get(_RANKER),)
    )
    if _LINEAR in choices and _ALPHA not in named:
        hint = "{type: real, low: 0.0, high: 1.0, when: {ranker: linear}}"
        message = f"a linear ranker needs alpha: write alpha: {hint}"
        yield Problem(message, key=("space", _RANKER) if ranker else ("baseline", _RANKER))


class Neo4jGraphrag(OfFactory):
    """A retriever of neo4j-graphrag's that a factory of yours makes."""

    @classmethod
    def seam_of(cls, **options: Any) -> Neo4jGraphragSeam:  # noqa: ARG003
        """Return how its retrievers are asked."""
        return Neo4jGraphragSeam()

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        make: Annotated[
            str,
            "a function that opens your database and makes your retriever, as module:function",
        ],
        id: Annotated[  # as the option is called
            str,
            "how what is found is matched with documents: id (of a node, or what your own query "
            "returns as id), metadata.KEY (another property) or content (its text)",
        ] = "id",
        search_path: SearchPath = None,
        concurrency: Concurrency = None,
        timeout_s: Annotated[float | None, "seconds for one query; left out: no limit"] = None,
        cache_dir: Path | None = None,
        index_params: Params | None = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
    ) -> Framework:
        """Call the factory, and look at what it made.

        Raises:
            InputError: neo4j-graphrag is missing, an option is wrong, or the retriever cannot be
                asked.
            OutageError: the database does not answer.
            TunerError: the factory failed.
        """
        framework = build_framework(
            Neo4jGraphragSeam(),
            corpus,
            make=make,
            search_path=search_path,
            id=id,
            concurrency=concurrency,
            timeout_s=timeout_s,
            cache_dir=cache_dir,
            index_params=index_params,
            space=space,
            baseline=baseline,
        )
        refuse(list(_alpha_problems(space, baseline)))
        return framework
