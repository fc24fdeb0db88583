"""The retriever ``langchain``: a retriever of LangChain's, with those that it asks in turn."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, Problem, TunerError, did_you_mean, refuse
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.frameworks.matching import Hit
from tuner.retrieval.adapters.frameworks.retriever import (
    AwaitedTimeout,
    Concurrency,
    Framework,
    OfFactory,
    build_framework,
)
from tuner.retrieval.adapters.frameworks.settings import Setting, at_most
from tuner.retrieval.adapters.frameworks.unread import unread_keys
from tuner.retrieval.adapters.function.loading import SearchPath
from tuner.retrieval.adapters.options import installed_version

KIND = "langchain"
OLDEST = (1, 0, 7)
# Fields that tell nothing of what is found, or whose parts are no retrievers.
_LEFT = frozenset("cache callbacks docs metadata name tags verbose".split())
_DEPTHS = ("k", "top_k", "top_n", "search_kwargs", "strategy")
_SIMILARITY, _MMR, _THRESHOLD = "similarity", "mmr", "similarity_score_threshold"
_DEEPEST = 4

Step = str | int
"""Where a value lies: a field, a key, or a place in a list."""
Found = tuple[tuple[Step, ...], Setting]


@dataclass(frozen=True)
class LangChainSeam:
    """LangChain: fields of pydantic models, all the way down, and what a vector store is asked."""

    kind: ClassVar[str] = KIND

    def version(self) -> str:
        """Return the installed version."""
        return installed_version("langchain-core", oldest=OLDEST, kind=KIND)

    def check(self, made: Any, name: str) -> None:
        """Refuse what is no retriever."""
        if not callable(getattr(made, "invoke", None)):
            raise InputError(
                f"{name} returned {type(made).__name__}: a retriever is needed, such as what "
                "as_retriever() of a vector store returns",
                key=("make",),
            )
        refuse(_misspelt(made, name))

    def settings(self, made: Any) -> Iterator[Setting]:
        """Yield what each retriever can be set to; the parts of one are named after its fields."""
        for _, setting in _walk(made, ()):
            yield setting
        if not any(hasattr(made, name) for name in _DEPTHS):
            yield at_most()

    def bound(self, made: Any, values: Mapping[str, Scalar]) -> Any:
        """Return copies of the retrievers that are set; stores and indexes are shared."""
        places = {setting.name: place for place, setting in _walk(made, ())}
        retriever = made
        for name, value in values.items():
            if name in places:
                retriever = _with_value(retriever, places[name], value)
        return retriever

    def ask(self, bound: Any, query: str) -> list[Hit]:
        """Invoke the retriever."""
        return _hits(bound.invoke(query))

    def can_wait(self, made: Any) -> bool:
        """Say whether it was written to be awaited, and does not just call itself in a thread."""
        from langchain_core.retrievers import BaseRetriever

        own = getattr(type(made), "_aget_relevant_documents", None)
        return own is not None and own is not BaseRetriever._aget_relevant_documents

    async def ask_async(self, bound: Any, query: str) -> list[Hit]:
        """Invoke the retriever, and let others work meanwhile."""
        return _hits(await bound.ainvoke(query))

    def counts(self, made: Any) -> dict[str, int]:
        """Count the documents that retrievers and stores hold in memory."""
        found: dict[str, int] = {}
        for place, part in _retrievers(made, ()):
            count = _count(part)
            if count is not None:
                found[_named(place) or type(part).__name__] = count
        return found


def _hits(documents: Any) -> list[Hit]:
    found = documents if isinstance(documents, list) else [documents]
    wrong = [one for one in found if not hasattr(one, "page_content")]
    if wrong or found is not documents:
        kind = type((wrong or found)[0]).__name__
        raise TunerError(f"a list of LangChain's documents is needed, the answer has a {kind}")
    return [Hit(one.id, one.metadata or {}, one.page_content) for one in documents]


def _retrievers(part: Any, place: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yield a retriever and those that it asks, each with its place."""
    yield place, part
    if len(place) >= _DEEPEST:
        return
    for name, value in _fields(part):
        if _is_part(value):
            yield from _retrievers(value, (*place, name))
        elif isinstance(value, list):
            for number, one in enumerate(value):
                if _is_part(one):
                    yield from _retrievers(one, (*place, name, number))


def _walk(made: Any, place: tuple[Step, ...]) -> Iterator[Found]:
    for where, part in _retrievers(made, place):
        hints = getattr(type(part), "model_fields", {})
        for name, value in _fields(part):
            here = (*where, name)
            told = f"a field of {type(part).__name__}"
            if name == "search_kwargs" and isinstance(value, Mapping):
                yield from _of_store(part, where, value)
            elif name == "search_type" and hasattr(part, "vectorstore"):
                choices = _ways(part.vectorstore, value)
                yield here, Setting(_named(here), value, None, told, choices)
            elif dataclasses.is_dataclass(value) and not isinstance(value, type):
                yield from _of_record(here, value)
            elif _is_weights(name, value):
                for number, weight in enumerate(value):
                    item = (*here, number)
                    which = f"what counts of retriever {number}, beside the other weights"
                    yield item, Setting(_named(item), float(weight), float, which)
            elif name not in ("id_key",):
                hint = getattr(hints.get(name), "annotation", None)
                # Where places are counted from 1, c = -1 divides by 0.
                is_rank = name == "c" and type(part).__name__ == "EnsembleRetriever"
                within = (0, None) if is_rank else None
                yield here, Setting(_named(here), value, hint, told, within=within)


def _fields(part: Any) -> Iterator[tuple[str, Any]]:
    for name in getattr(type(part), "model_fields", {}):
        if name not in _LEFT and not name.startswith("_"):
            yield name, getattr(part, name, None)


def _is_part(value: Any) -> bool:
    """Say whether a field holds a retriever, or what compresses and orders what one finds."""
    asks = callable(getattr(value, "invoke", None)) and not hasattr(value, "bind_tools")
    compresses = callable(getattr(value, "compress_documents", None))
    return (asks or compresses) and hasattr(type(value), "model_fields")


def _is_weights(name: str, value: Any) -> bool:
    is_list = isinstance(value, list) and bool(value)
    return name == "weights" and is_list and all(isinstance(one, int | float) for one in value)


def _named(place: tuple[Step, ...]) -> str:
    """Return the name of a place: ``retrievers_0.k`` for the first of several."""
    name = ""
    for step in place:
        name += f"_{step}" if isinstance(step, int) else f".{step}" if name else step
    return name


def _of_record(place: tuple[Step, ...], record: Any) -> Iterator[Found]:
    """Yield the fields of a dataclass, such as the strategy of a traversal."""
    for field in dataclasses.fields(record):
        if field.name.startswith("_") or not field.init or not field.repr:  # an old name
            continue
        here = (*place, field.name)
        hint = None if isinstance(field.type, str) else field.type
        told = f"a field of {type(record).__name__}"
        limit = f"{_named(here)} <= {_named((*place, 'select_k'))}"
        # A strategy that chooses among what it begins with makes use of more than it returns.
        is_cut = field.name == "start_k" and _is_eager(record)
        constraint = limit if is_cut else ""
        value = getattr(record, field.name)
        yield here, Setting(_named(here), value, hint, told, constraint=constraint)


def _is_eager(record: Any) -> bool:
    """Say whether a strategy takes all that it finds, in the order in which it finds it."""
    return any(base.__name__ == "Eager" for base in type(record).__mro__)


def _of_store(part: Any, where: tuple[Step, ...], given: Mapping[str, Any]) -> Iterator[Found]:
    """Yield what a vector store's searches take: they have names, which a mapping has not."""
    store, place = part.vectorstore, (*where, "search_kwargs")
    ways = _ways(store, part.search_type)
    search_type = _named((*where, "search_type"))
    both = _numbers(store.similarity_search)
    mmr = _numbers(store.max_marginal_relevance_search) if _MMR in ways else {}
    for name in dict.fromkeys((*both, *mmr)):
        here = (*place, name)
        value = given.get(name, both.get(name, mmr.get(name)))
        when = {} if name in both else {search_type: (_MMR,)}
        told = f"what {type(store).__name__} is asked"
        setting = Setting(_named(here), value, None, told, when=when)
        if name == "fetch_k":  # under mmr the k are chosen from these
            rule, mode = f"{_named((*place, 'k'))} <= {_named(here)}", {search_type: (_MMR,)}
            setting = dataclasses.replace(setting, constraint=rule, constraint_when=mode)
        yield here, setting
    if _THRESHOLD in ways:
        here = (*place, "score_threshold")
        told = "the least similarity of what is found"
        when = {search_type: (_THRESHOLD,)}
        yield here, Setting(_named(here), given.get("score_threshold"), float, told, when=when)


def _misspelt(made: Any, name: str) -> Iterator[Problem]:
    """Yield keys of ``search_kwargs`` that are almost, but not quite, what a store is asked."""
    for place, part in _retrievers(made, ()):
        given, store = getattr(part, "search_kwargs", None), getattr(part, "vectorstore", None)
        if not isinstance(given, Mapping) or store is None:
            continue
        known = [setting.name.rpartition(".")[2] for _, setting in _of_store(part, (), given)]
        for key in unread_keys(given, store, [*known, "filter"]):
            where = _named((*place, "search_kwargs"))
            yield Problem(
                f"{name} gives {where} {key!r}, which {type(store).__name__} does not read"
                f"{did_you_mean(key, [*known, 'filter'])}",
                key=("make",),
            )


def _ways(store: Any, today: str) -> tuple[str, ...]:
    """Return the ways of searching that a store has of its own."""
    from langchain_core.vectorstores import VectorStore

    own = {
        _SIMILARITY: True,
        _MMR: _overrides(store, VectorStore, "max_marginal_relevance_search"),
        _THRESHOLD: _overrides(store, VectorStore, "_select_relevance_score_fn")
        or _overrides(store, VectorStore, "_similarity_search_with_relevance_scores"),
    }
    return tuple(way for way, has in own.items() if has or way == today)


def _overrides(store: Any, base: type, method: str) -> bool:
    return getattr(type(store), method, None) is not getattr(base, method, None)


def _numbers(search: Any) -> dict[str, int | float]:
    """Return the numbers that a search takes by name, with their defaults."""
    found = {}
    for name, parameter in inspect.signature(search).parameters.items():
        if isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool):
            found[name] = parameter.default
    return found


def _with_value(part: Any, place: tuple[Step, ...], value: Any) -> Any:
    """Return a copy of a part with a value in it; what lies beside it is shared."""
    if not place:
        return value
    step, *rest = place
    old = _at(part, step)
    if not rest and isinstance(old, Enum):
        value = type(old)(value)
    new = _with_value(old, tuple(rest), value)
    if isinstance(part, Mapping):
        return {**part, step: new}
    if isinstance(part, list):
        return [new if number == step else one for number, one in enumerate(part)]
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return dataclasses.replace(part, **{str(step): new}, **_old_name(part, step, new))
    if hasattr(part, "model_copy"):
        return part.model_copy(update={str(step): new})
    fresh = copy.copy(part)
    setattr(fresh, str(step), new)
    return fresh


def _old_name(record: Any, step: Step, value: Any) -> dict[str, Any]:
    """Return the old name of a strategy's field along with it.

    Where ``select_k`` is set to the package's default, 5, it would take the value of ``k`` instead.
    """
    has_one = step == "select_k" and any(one.name == "k" for one in dataclasses.fields(record))
    return {"k": value} if has_one else {}


def _at(part: Any, step: Step) -> Any:
    if isinstance(part, Mapping):
        return part.get(step)
    return part[int(step)] if isinstance(part, list) else getattr(part, str(step))


def _count(part: Any) -> int | None:
    """Return how many documents a retriever holds, or its store, where either can be counted."""
    documents = getattr(part, "docs", None)
    if isinstance(documents, list):
        return len(documents)
    store = getattr(part, "vectorstore", None) or getattr(part, "store", None)
    inside = getattr(store, "store", None)
    if isinstance(inside, Mapping):
        return len(inside)
    total = getattr(getattr(store, "index", None), "ntotal", None)
    return int(total) if isinstance(total, int) else None


class LangChain(OfFactory):
    """A retriever of LangChain's that a factory of yours makes."""

    @classmethod
    def seam_of(cls, **options: Any) -> LangChainSeam:  # noqa: ARG003
        """Return how its retrievers are asked."""
        return LangChainSeam()

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        make: Annotated[
            str,
            "a function that makes your retriever, as module:function; its arguments shape the "
            "index",
        ],
        id: Annotated[
            str,
            "how what is found is matched with documents: id, metadata.KEY (a key of its "
            "metadata) or content (its text)",
        ] = "id",
        search_path: SearchPath = None,
        concurrency: Concurrency = None,
        timeout_s: AwaitedTimeout = None,
        cache_dir: Path | None = None,
        index_params: Params | None = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
    ) -> Framework:
        """Call the factory, and look at what it made.

        Raises:
            InputError: LangChain is missing, an option is wrong, or the retriever cannot be asked.
            TunerError: the factory failed.
        """
        return build_framework(
            LangChainSeam(),
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
