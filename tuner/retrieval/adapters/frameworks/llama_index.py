"""The retriever ``llama_index``: a retriever of LlamaIndex's, with those that it asks in turn."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.frameworks.llama_fusion import (
    DEPTH,
    HYBRID_MODES,
    QUERY_MODE,
    depth_rule,
)
from tuner.retrieval.adapters.frameworks.llama_graphs import by_relations, is_of_graph
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

KIND = "llama_index"
OLDEST = (0, 14, 10)
# Arguments that an index is made with, or that tell nothing of which documents are found.
_LEFT = frozenset(
    "include_properties include_text include_text_preamble language num_workers show_progress "
    "skip_stemming token_pattern use_async verbose".split()
)
_DEPTHS = (DEPTH, f"_{DEPTH}")
# Attributes that lead to other things than retrievers.
_DEEPEST = 4
_STORE_KWARGS = "vector_store_kwargs"
_THRESHOLD, _SIMPLE = "mmr_threshold", "SimpleVectorStore"
# Which ways to fuse read the weights of retrievers; ranks and plain scores leave them aside.
_WEIGHING = ("relative_score", "dist_based_score")
# Arguments that only a store which mixes two sorts of vectors reads.
_HYBRID = frozenset("alpha hybrid_top_k sparse_top_k".split())
# Without a threshold, and without a language model that thinks of more queries.
_OFF = (("similarity_score", None), ("num_queries", 1))
# At 0, nothing is found.
_FROM_ONE = frozenset("max_keywords num_queries path_depth".split())

Step = tuple[str, str | int | None]
"""An attribute that leads to a retriever, and its place there where there are several."""
Place = tuple[Step, ...]


@dataclass(frozen=True)
class Found:
    """One setting, the retriever that has it, and the attribute (and key, or place) it lies in."""

    setting: Setting
    place: Place
    attribute: str
    key: str | int | None = None


@dataclass(frozen=True)
class LlamaIndexSeam:
    """LlamaIndex: arguments of constructors, by the attributes that these leave behind."""

    kind: ClassVar[str] = KIND

    def version(self) -> str:
        """Return the installed version."""
        return installed_version("llama-index-core", oldest=OLDEST, kind=KIND)

    def check(self, made: Any, name: str) -> None:
        """Refuse what is no retriever."""
        if not _is_retriever(made):
            raise InputError(
                f"{name} returned {type(made).__name__}: a retriever is needed, such as what "
                "as_retriever() of an index returns",
                key=("make",),
            )
        refuse(_misspelt(made, name))

    def settings(self, made: Any) -> Iterator[Setting]:
        """Yield what each retriever can be set to; the parts of one are named after its fields."""
        for found in _walk(made):
            yield found.setting
        # Of a graph, `similarity_top_k` are the entities to begin with, each with many facts.
        if is_of_graph(made) or not any(name in vars(made) for name in _DEPTHS):
            yield at_most()

    def bound(self, made: Any, values: Mapping[str, Scalar]) -> Any:
        """Return copies of the retrievers that are set; indexes and stores are shared."""
        found = {one.setting.name: one for one in _walk(made)}
        retriever = _copied(made)
        for name, value in values.items():
            if name in found:
                _set(_at(retriever, found[name].place), found[name], value)
        for _, part in _retrievers(retriever, ()):
            _settle(part)
            by_relations(part)
        return retriever

    def ask(self, bound: Any, query: str) -> list[Hit]:
        """Ask the retriever."""
        return _hits(bound.retrieve(query))

    def can_wait(self, made: Any) -> bool:
        """Say whether it was written to be awaited."""
        from llama_index.core.base.base_retriever import BaseRetriever

        return type(made)._aretrieve is not BaseRetriever._aretrieve

    async def ask_async(self, bound: Any, query: str) -> list[Hit]:
        """Ask the retriever, and let others work meanwhile."""
        return _hits(await bound.aretrieve(query))

    def counts(self, made: Any) -> dict[str, int]:
        """Count what retrievers and stores hold in memory."""
        found: dict[str, int] = {}
        for place, part in _retrievers(made, ()):
            count = _count(part)
            if count is not None:
                found[_named(place, "").rstrip(".") or type(part).__name__] = count
        return found


def _hits(nodes: Any) -> list[Hit]:
    """Return what was found: a chunk counts for the document that it was cut from."""
    return [
        Hit(one.node.ref_doc_id or one.node.node_id, one.node.metadata, one.node.get_content())
        for one in nodes
    ]


def _is_retriever(value: Any) -> bool:
    return any(
        base.__name__ == "BaseRetriever" and base.__module__.startswith("llama_index.")
        for base in type(value).__mro__
    )


def _parts(part: Any) -> Iterator[tuple[Step, Any]]:
    """Yield the retrievers that one asks, with the attribute that leads there."""
    for attribute, value in vars(part).items():
        if _is_retriever(value):
            yield (attribute, None), value
        elif isinstance(value, list):
            for number, one in enumerate(value):
                if _is_retriever(one):
                    yield (attribute, number), one
        elif isinstance(value, dict):
            for key, one in value.items():
                if _is_retriever(one) and str(key).isidentifier():
                    yield (attribute, str(key)), one


def _retrievers(part: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    yield place, part
    if len(place) < _DEEPEST:
        for step, one in _parts(part):
            yield from _retrievers(one, (*place, step))


def _named(place: Place, last: str) -> str:
    """Return a dotted name, without the underscores that attributes begin with."""
    name = ""
    for attribute, key in place:
        plain = attribute.lstrip("_")
        name += plain if key is None else f"{plain}_{key}"
        name += "."
    return f"{name}{last}"


def _walk(made: Any) -> Iterator[Found]:
    for place, part in _retrievers(made, ()):
        hints = _hints(type(part).__init__)
        told = f"an argument of {type(part).__name__}"
        for name in inspect.signature(type(part).__init__).parameters:
            attribute = next((one for one in (f"_{name}", name) if one in vars(part)), None)
            if attribute is None or name in _LEFT:
                continue
            value = vars(part)[attribute]
            full = _named(place, name)
            if name == "retriever_weights":
                yield from _weights(place, attribute, value)
            elif name == QUERY_MODE:
                yield Found(Setting(full, value, None, told, _modes(part, value)), place, attribute)
            elif name in _HYBRID:
                if type(getattr(part, "_vector_store", None)).__name__ != _SIMPLE:
                    when: Mapping[str, tuple[Scalar, ...]] = {
                        _named(place, QUERY_MODE): HYBRID_MODES
                    }
                    setting = Setting(full, value, hints.get(name), told, when=when)
                    yield Found(setting, place, attribute)
            elif (name, value) not in _OFF:
                within = (1, None) if name in _FROM_ONE else None
                setting = Setting(full, value, hints.get(name), told, within=within)
                if name == DEPTH:
                    asked = {_named((*place, step), ""): one for step, one in _parts(part)}
                    rule, beside = depth_rule(part, full, asked)
                    setting = replace(setting, constraint=rule, constraint_when=beside)
                yield Found(setting, place, attribute)
        if hasattr(part, "_vector_store_query_mode") and isinstance(
            vars(part).get("_kwargs"), dict
        ):
            yield _threshold(part, place)


def _misspelt(made: Any, name: str) -> Iterator[Problem]:
    """Yield keys of ``vector_store_kwargs`` that are almost, but not quite, what a store reads."""
    for place, part in _retrievers(made, ()):
        given, store = vars(part).get("_kwargs"), vars(part).get("_vector_store")
        if not isinstance(given, Mapping) or store is None:
            continue
        for key in unread_keys(given, store, [_THRESHOLD]):
            yield Problem(
                f"{name} gives {_named(place, _STORE_KWARGS)} {key!r}, which "
                f"{type(store).__name__} does not read; did you mean {_THRESHOLD!r}?",
                key=("make",),
            )


def _threshold(part: Any, place: Place) -> Found:
    name = _named(place, f"{_STORE_KWARGS}.{_THRESHOLD}")
    value = part._kwargs.get(_THRESHOLD, 0.5)
    told = "what counts under mmr: at 1 relevance, near 0 diversity"
    when = {_named(place, QUERY_MODE): ("mmr",)}
    return Found(Setting(name, value, float, told, when=when), place, "_kwargs", _THRESHOLD)


def _weights(place: Place, attribute: str, weights: Sequence[float]) -> Iterator[Found]:
    for number, weight in enumerate(weights):
        name = _named(place, f"retriever_weights_{number}")
        told = f"what counts of retriever {number}, beside the other weights"
        when = {_named(place, "mode"): _WEIGHING}
        setting = Setting(name, float(weight), float, told, when=when)
        yield Found(setting, place, attribute, number)


def _modes(part: Any, today: Any) -> tuple[Scalar, ...]:
    """Return the ways of searching: the store in memory raises at all but two."""
    if type(getattr(part, "_vector_store", None)).__name__ == _SIMPLE:
        return ("default", "mmr")
    return tuple(one.value for one in type(today))


def _hints(function: Any) -> Mapping[str, Any]:
    """Return the annotations of a constructor, as far as they can be told."""
    try:
        return get_type_hints(function)
    except Exception:  # a name that is imported for type checkers alone
        raw = inspect.get_annotations(function)
        return {name: hint for name, hint in raw.items() if not isinstance(hint, str)}


def _copied(part: Any) -> Any:
    """Return a copy of a retriever and of all that it asks; what these search is shared."""
    fresh = copy.copy(part)
    for attribute in {step[0] for step, _ in _parts(part)}:
        value = vars(part)[attribute]
        if isinstance(value, list):
            copied: Any = [_copied(one) if _is_retriever(one) else one for one in value]
        elif isinstance(value, dict):
            copied = {k: _copied(one) if _is_retriever(one) else one for k, one in value.items()}
        else:
            copied = _copied(value)
        setattr(fresh, attribute, copied)
    return fresh


def _at(part: Any, place: Place) -> Any:
    for attribute, key in place:
        value = vars(part)[attribute]
        part = value if key is None else value[key]
    return part


def _set(part: Any, found: Found, value: Any) -> None:
    """Set a retriever of a trial's own; a list or a mapping in it is another one afterwards."""
    old = vars(part)[found.attribute]
    if isinstance(found.key, int):
        value = [value if number == found.key else one for number, one in enumerate(old)]
    elif found.key is not None:
        value = {**old, found.key: value}
    elif isinstance(old, Enum):
        value = type(old)(value)
    setattr(part, found.attribute, value)


def _settle(part: Any) -> None:
    """Do what a constructor does with its arguments: weights add up, and depths are not beyond."""
    weights = vars(part).get("_retriever_weights")
    if weights and sum(weights) > 0:
        part._retriever_weights = [weight / sum(weights) for weight in weights]
    corpus = vars(part).get("corpus")
    if hasattr(part, "bm25") and isinstance(corpus, Sequence):
        part.similarity_top_k = min(part.similarity_top_k, len(corpus))


def _count(part: Any) -> int | None:
    """Return how much a retriever holds, or its emptiest store, where these can be counted."""
    corpus = vars(part).get("corpus")
    if isinstance(corpus, Sequence):
        return len(corpus)
    stores = vars(part).get("_vector_store"), vars(part).get("_graph_store")
    vectors = getattr(getattr(stores[0], "data", None), "embedding_dict", None)
    names = getattr(getattr(stores[1], "graph", None), "nodes", None)
    counts = [len(one) for one in (vectors, names) if isinstance(one, Mapping)]
    return min(counts, default=None)


class LlamaIndex(OfFactory):
    """A retriever of LlamaIndex's that a factory of yours makes."""

    @classmethod
    def seam_of(cls, **options: Any) -> LlamaIndexSeam:  # noqa: ARG003
        """Return how its retrievers are asked."""
        return LlamaIndexSeam()

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
            "how what is found is matched with documents: id (of the document that a chunk was "
            "cut from), metadata.KEY (a key of its metadata) or content (its text)",
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
            InputError: LlamaIndex is missing, an option is wrong, or the retriever cannot be asked.
            TunerError: the factory failed.
        """
        return build_framework(
            LlamaIndexSeam(),
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
