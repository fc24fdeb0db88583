"""The retriever ``haystack``: a pipeline of Haystack's, or one of its retrievers by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_origin

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, TunerError, did_you_mean
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Scalar
from tuner.retrieval.adapters.frameworks.haystack_components import (
    depth_rule,
    described,
    is_pipeline,
    joined,
    leading_to,
    made_anew,
    parts_of,
    with_components,
    word_of,
)
from tuner.retrieval.adapters.frameworks.matching import Hit
from tuner.retrieval.adapters.frameworks.retriever import (
    AwaitedTimeout,
    Concurrency,
    Framework,
    OfFactory,
    build_framework,
)
from tuner.retrieval.adapters.frameworks.settings import Setting
from tuner.retrieval.adapters.function.loading import SearchPath
from tuner.retrieval.adapters.options import installed_version

KIND = "haystack"
OLDEST = (2, 29)
_QUERY, _DOCUMENTS = ("query",), ("documents",)


@dataclass(frozen=True)
class Plugs:
    """Where a query goes in, and where documents come out: pairs of component and socket.

    The component is ``""`` where there is no pipeline around it.
    """

    queries: tuple[tuple[str, str], ...]
    documents: tuple[str, str]


@dataclass(frozen=True)
class Bound:
    """A pipeline or a component of a trial's own, with what it is asked besides the query."""

    system: Any
    plugs: Plugs
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def with_query(self, query: str) -> dict[str, dict[str, Any]]:
        """Return what is sent: the values of sockets by component, the query among them."""
        sent = {component: dict(values) for component, values in self.inputs.items()}
        for component, socket in self.plugs.queries:
            sent.setdefault(component, {})[socket] = query
        return sent


@dataclass(frozen=True)
class HaystackSeam:
    """Haystack: sockets are given a call; arguments of a constructor make a component anew.

    ``query`` and ``documents`` are sockets as ``component.socket``, where the user names them.
    """

    kind: ClassVar[str] = KIND

    query: tuple[str, ...] = ()
    documents: str = ""

    @classmethod
    def read(cls, query: Any, documents: Any) -> HaystackSeam:
        """Check the options that name sockets.

        Raises:
            InputError: they are no texts.
        """
        named = [query] if isinstance(query, str) else query or []
        if not isinstance(named, list | tuple) or not all(isinstance(one, str) for one in named):
            raise InputError("must be a socket, such as bm25.query, or several", key=_QUERY)
        if documents is not None and not isinstance(documents, str):
            raise InputError("must be a socket, such as joiner.documents", key=_DOCUMENTS)
        return cls(tuple(named), documents or "")

    def version(self) -> str:
        """Return the installed version."""
        return installed_version("haystack-ai", oldest=OLDEST, kind=KIND)

    def check(self, made: Any, name: str) -> None:
        """Refuse what is no pipeline and no component, or has no place for a query."""
        if not is_pipeline(made) and not hasattr(made, "__haystack_input__"):
            raise InputError(
                f"{name} returned {type(made).__name__}: a haystack.Pipeline is needed, or a "
                "component that retrieves",
                key=("make",),
            )
        self.plugs(made)

    def plugs(self, made: Any) -> Plugs:
        """Find where the query goes in, and where documents come out.

        Raises:
            InputError: that cannot be told, or an input has no value.
        """
        inputs = _open_inputs(made)
        if self.query:
            queries = [_named(one, inputs, _QUERY) for one in self.query]
        else:
            queries = [
                (component, socket.name)
                for component, sockets in inputs.items()
                for socket in sockets
                if socket.is_mandatory and _plain(socket.type) is str
            ]
        if not queries:
            known = _shown(inputs)
            raise InputError(
                f"no input is a text that has to be given; write query: with the socket that the "
                f"query goes to, one of {known}",
                key=_QUERY,
            )
        lacking = [
            joined(component, socket.name)
            for component, sockets in inputs.items()
            for socket in sockets
            if socket.is_mandatory and (component, socket.name) not in queries
        ]
        if lacking:
            raise InputError(
                f"the pipeline needs {', '.join(lacking)}, and nothing gives it; put a component "
                "before it that does, such as a text embedder before a retriever by vectors",
                key=("make",),
            )
        return Plugs(tuple(queries), self._outlet(made))

    def _outlet(self, made: Any) -> tuple[str, str]:
        if self.documents:
            return _named(self.documents, _outputs(made, every=True), _DOCUMENTS)
        found = [
            (component, socket.name)
            for component, sockets in _outputs(made, every=False).items()
            for socket in sockets
            if _is_documents(socket.type)
        ]
        if len(found) == 1:
            return found[0]
        known = ", ".join(joined(*one) for one in found) or "none"
        raise InputError(
            f"documents come out at {known}; write documents: with the socket that counts, such "
            "as joiner.documents",
            key=_DOCUMENTS,
        )

    def settings(self, made: Any) -> Iterator[Setting]:
        """Yield the optional inputs, then what components can be made anew with."""
        plugs = self.plugs(made)
        queries, inputs = set(plugs.queries), _open_inputs(made)
        leading = leading_to(made, plugs.documents[0])
        for component, part in parts_of(made).items():
            if component not in leading:  # whatever it is set to, the same documents are found
                continue
            for socket in inputs.get(component, ()):
                if not socket.is_mandatory and (component, socket.name) not in queries:
                    setting = _socket_setting(component, part, socket)
                    rule = depth_rule(made, component) if socket.name == "top_k" else ""
                    yield replace(setting, constraint=rule)
            yield from made_anew(component, part)

    def bound(self, made: Any, values: Mapping[str, Scalar]) -> Bound:
        """Return the pipeline with values; components are shared unless they are made anew."""
        inputs: dict[str, dict[str, Any]] = {}
        anew: dict[str, dict[str, Scalar]] = {}
        sockets = _open_inputs(made)
        by_word = {word_of(component): component for component in sockets}
        for name, value in values.items():
            word, _, last = name.rpartition(".")
            component = by_word[word]
            if any(socket.name == last for socket in sockets.get(component, ())):
                inputs.setdefault(component, {})[last] = value
            else:
                anew.setdefault(component, {})[last] = value
        system = made if not anew else with_components(made, anew)
        return Bound(system, self.plugs(made), inputs)

    def ask(self, bound: Bound, query: str) -> list[Hit]:
        """Run the pipeline."""
        sent = bound.with_query(query)
        component, socket = bound.plugs.documents
        if not component:
            return _hits(bound.system.run(**sent[""])[socket])
        answer = bound.system.run(sent, include_outputs_from={component})
        return _hits(answer.get(component, {}).get(socket, []))

    def can_wait(self, made: Any) -> bool:
        """Say whether it can be awaited: where lists meet, their order would be by chance then."""
        sockets = (
            socket
            for part in parts_of(made).values()
            for socket in part.__haystack_input__._sockets_dict.values()
        )
        meets = any(len(socket.senders) > 1 for socket in sockets)
        return not meets and callable(getattr(made, "run_async", None))

    async def ask_async(self, bound: Bound, query: str) -> list[Hit]:
        """Run the pipeline, and let others work meanwhile."""
        sent = bound.with_query(query)
        component, socket = bound.plugs.documents
        if not component:
            return _hits((await bound.system.run_async(**sent[""]))[socket])
        answer = await bound.system.run_async(sent, include_outputs_from={component})
        return _hits(answer.get(component, {}).get(socket, []))

    def counts(self, made: Any) -> dict[str, int]:
        """Count the documents of each component's store."""
        found: dict[str, int] = {}
        for component, part in parts_of(made).items():
            count = getattr(getattr(part, "document_store", None), "count_documents", None)
            if callable(count):
                found[component or type(part).__name__] = int(count())
        return found


def _open_inputs(made: Any) -> dict[str, list[Any]]:
    """Return the sockets that nothing is connected to, by component."""
    return {
        component: [s for s in part.__haystack_input__._sockets_dict.values() if not s.senders]
        for component, part in parts_of(made).items()
    }


def _outputs(made: Any, *, every: bool) -> dict[str, list[Any]]:
    """Return the sockets that give something, by component; else those that lead nowhere."""
    return {
        component: [
            s for s in part.__haystack_output__._sockets_dict.values() if every or not s.receivers
        ]
        for component, part in parts_of(made).items()
    }


def _shown(sockets: Mapping[str, Sequence[Any]]) -> str:
    return ", ".join(joined(c, socket.name) for c, all_of in sockets.items() for socket in all_of)


def _named(
    name: str, sockets: Mapping[str, Sequence[Any]], key: tuple[str, ...]
) -> tuple[str, str]:
    word, _, last = name.rpartition(".")
    for component, all_of in sockets.items():
        if word in (component, word_of(component)) and any(one.name == last for one in all_of):
            return component, last
    known = [joined(c, socket.name) for c, all_of in sockets.items() for socket in all_of]
    raise InputError(f"there is no {name!r}{did_you_mean(name, known)}", key=key)


def _plain(hint: Any) -> Any:
    """Return the one type that a hint names beside None."""
    parts = [part for part in get_args(hint) if part is not type(None)]
    return parts[0] if len(parts) == 1 and get_origin(hint) is not list else hint


def _is_documents(hint: Any) -> bool:
    if get_origin(hint) is not list:
        return False
    return [getattr(one, "__name__", "") for one in get_args(hint)] == ["Document"]


def _hits(documents: Any) -> list[Hit]:
    if not isinstance(documents, list):
        kind = type(documents).__name__
        raise TunerError(f"a list of Haystack's documents is needed, the answer is a {kind}")
    return [Hit(one.id, one.meta or {}, one.content or "") for one in documents]


def _socket_setting(component: str, part: Any, socket: Any) -> Setting:
    """Return an input as a setting; where nothing is given, the component's attribute counts."""
    value = socket.default_value
    if value is None:
        value = getattr(part, socket.name, None)
    name = joined(component, socket.name)
    return Setting(name, value, socket.type, f"an input of {described(part)}")


class Haystack(OfFactory):
    """A pipeline of Haystack's, or one of its retrievers, that a factory of yours makes."""

    @classmethod
    def seam_of(
        cls,
        query: Any = None,
        documents: str | None = None,
        **options: Any,  # noqa: ARG003
    ) -> HaystackSeam:
        """Return how a pipeline is asked, or a retriever."""
        return HaystackSeam.read(query, documents)

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        make: Annotated[
            str,
            "a function that makes your pipeline, as module:function; its arguments shape "
            "the index",
        ],
        id: Annotated[  # as the option is called
            str,
            "how what is found is matched with documents: id, meta.KEY (a key of its metadata) or "
            "content (its text)",
        ] = "id",
        query: Annotated[
            str | Sequence[str] | None,
            "the inputs that the query goes to, such as bm25.query; left out: every text "
            "that has to be given",
        ] = None,
        documents: Annotated[
            str | None, "the output that counts, such as joiner.documents; left out: the only one"
        ] = None,
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
            InputError: Haystack is missing, an option is wrong, or the pipeline cannot be asked.
            TunerError: the factory failed.
        """
        return build_framework(
            HaystackSeam.read(query, documents),
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
