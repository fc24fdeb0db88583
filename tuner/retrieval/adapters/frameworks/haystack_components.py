"""The components of a pipeline of Haystack's: their names, and how one is made anew."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.trial import Scalar
from tuner.retrieval.adapters.frameworks.settings import Setting

# Arguments of constructors that change how fast an answer comes, and not which.
_TECHNICAL = frozenset("batch_size debug progress_bar raise_on_failure timeout max_retries".split())
# Which of its ways to join reads a joiner's weights; the others leave them aside.
_WEIGHING = ("merge", "reciprocal_rank_fusion")


def is_pipeline(made: Any) -> bool:
    """Say whether something is a pipeline, and no component by itself."""
    return hasattr(made, "graph") and callable(getattr(made, "walk", None))


def parts_of(made: Any) -> dict[str, Any]:
    """Return the components by name; one without a pipeline is called ``""``."""
    return dict(made.walk()) if is_pipeline(made) else {"": made}


def leading_to(made: Any, component: str) -> set[str]:
    """Return a component and all that something of goes into it, by name."""
    found, new = {component}, [component]
    while new and is_pipeline(made):
        before = set(made.graph.predecessors(new.pop())) - found
        found |= before
        new += before
    return found


def depth_rule(made: Any, component: str) -> str:
    """Return the constraint on how many a joiner or a ranker returns; empty where none is known.

    What it returns was found by the retrievers before it.
    """
    parts = parts_of(made)
    kind = type(parts[component])
    if kind.__name__ != "DocumentJoiner" and not kind.__name__.endswith("Ranker"):
        return ""
    socket = parts[component].__haystack_input__._sockets_dict.get("documents")
    senders = [] if socket is None else socket.senders
    if not senders or not all(_is_limited(parts[one]) for one in (component, *senders)):
        return ""
    limits = " + ".join(joined(one, "top_k") for one in senders)
    return f"{joined(component, 'top_k')} <= {limits}"


def _is_limited(part: Any) -> bool:
    """Say whether a part of Haystack's own is told at each call how many it returns at most."""
    depth = part.__haystack_input__._sockets_dict.get("top_k")
    is_known = type(part).__name__.endswith(("DocumentJoiner", "Ranker", "Retriever"))
    is_own = type(part).__module__.startswith(("haystack.", "haystack_integrations."))
    return is_known and is_own and depth is not None and not depth.senders


def joined(component: str, socket: str) -> str:
    """Return the name of a socket, which is one that a space takes: ``-`` and blanks are ``_``."""
    return f"{word_of(component)}.{socket}" if component else socket


def word_of(component: str) -> str:
    """Return the name of a component as a word."""
    word = re.sub(r"\W", "_", component, flags=re.ASCII)
    return f"_{word}" if word[:1].isdigit() else word


def described(part: Any) -> str:
    """Return what a component is, for people."""
    return type(part).__name__


def _arguments(part: Any) -> dict[str, Any] | None:
    """Return what a component was made with; None where it cannot be made again for each trial.

    That is one with a store, a model or a client in it.
    """
    if callable(getattr(part, "warm_up", None)) or not callable(getattr(part, "to_dict", None)):
        return None
    try:
        arguments = part.to_dict()["init_parameters"]
    except Exception:  # whatever a component of the user's raises
        return None
    return dict(arguments) if all(map(_is_data, arguments.values())) else None


def _is_data(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_data, value))
    return value is None or isinstance(value, bool | int | float | str)


def made_anew(component: str, part: Any) -> Iterator[Setting]:
    """Yield the arguments of a component's constructor that are no inputs."""
    arguments = _arguments(part)
    if arguments is None:
        return
    own = inspect.signature(type(part).__init__, eval_str=False).parameters
    inputs = part.__haystack_input__._sockets_dict
    told = f"what {described(part)} is made with"
    for name, value in arguments.items():
        if name in inputs or name in _TECHNICAL or name not in own:
            continue
        full = joined(component, name)
        if name == "weights":
            yield from _weights(component, part, value)
        else:
            yield Setting(full, value, _hint(part, name), told)


def _hint(part: Any, name: str) -> Any:
    hints = inspect.get_annotations(type(part).__init__)
    hint = hints.get(name)
    return None if isinstance(hint, str) else hint


def _weights(component: str, part: Any, value: Any) -> Iterator[Setting]:
    """Yield a weight for each list that comes in."""
    senders = [
        s for socket in part.__haystack_input__._sockets_dict.values() for s in socket.senders
    ]
    when = {joined(component, "join_mode"): _WEIGHING} if hasattr(part, "join_mode") else {}
    for place, sender in enumerate(senders):
        weight = value[place] if value and place < len(value) else 1.0 / len(senders)
        name = joined(component, f"weights_{place}")
        told = f"what counts of {sender}, beside the other weights"
        yield Setting(name, weight, float, told, when=when)


def with_components(made: Any, anew: Mapping[str, Mapping[str, Scalar]]) -> Any:
    """Return a copy of a pipeline with some components made anew; it shares the others."""
    parts = parts_of(made)
    fresh = {name: _fresh(name, parts[name], values) for name, values in anew.items()}
    if not is_pipeline(made):
        return fresh[""]
    pipeline = copy.copy(made)
    pipeline.graph = made.graph.copy()
    for name, part in fresh.items():
        pipeline.graph.nodes[name]["instance"] = part
    return pipeline


def _fresh(name: str, part: Any, values: Mapping[str, Scalar]) -> Any:
    arguments: dict[str, Any] = dict(_arguments(part) or {})
    weights = {
        setting.name.rpartition(".")[2]: setting.value
        for setting in _weights(name, part, arguments.get("weights"))
    }
    if any(one in weights for one in values):
        arguments["weights"] = [values.get(one, weight) for one, weight in weights.items()]
    arguments |= {one: value for one, value in values.items() if one not in weights}
    fresh = type(part)(**arguments)
    for sockets in ("__haystack_input__", "__haystack_output__"):
        old = getattr(part, sockets)
        if set(getattr(fresh, sockets)._sockets_dict) != set(old._sockets_dict):
            raise TunerError(f"{name} would have other inputs or outputs, which are connected")
        setattr(fresh, sockets, old)  # they know what they are connected to
    return fresh
