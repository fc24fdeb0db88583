"""What can be set in the `retriever:` section of a kind, as the signature of its ``build`` says."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tuner.core.trial import Params

# What a ``build`` is handed besides the configuration's options.
GIVEN = frozenset(
    {
        *("advance", "baseline", "cache_dir", "index_params", "index_timeout_s", "read_run"),
        "space",
    }
)


@dataclass(frozen=True)
class BuildOption:
    """One option: fixed for a study, unlike a knob.

    Attributes:
        hint: the type that the signature gives, without its description.
        default: None also where there is none (``is_required``).
    """

    name: str
    hint: Any
    default: Any
    is_required: bool
    description: str


def build_options(kind: Any) -> tuple[BuildOption, ...]:
    """Return the options of a kind of retriever, in the order of its ``build``.

    Each is a keyword of ``build``, described by ``Annotated[type, "what it is"]``. ``**options``
    annotated with a dataclass are its fields.
    """
    return tuple(_found(kind.build))


def with_index(
    kind: Any, options: Mapping[str, Any], settings: Params
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options, and what else a kind is handed, to build it with index parameters.

    Each is an option, unless the kind's ``build`` takes them all in one mapping.
    """
    if "index_params" in inspect.signature(kind.build).parameters:
        return dict(options), {"index_params": dict(settings)}
    return {**options, **settings}, {}


def _found(build: Any) -> Iterator[BuildOption]:
    hints = get_type_hints(build, include_extras=True)
    for name, parameter in inspect.signature(build).parameters.items():
        hint, told = _split(hints.get(name, Any))
        if parameter.kind is parameter.VAR_KEYWORD and isinstance(told, type):
            yield from _fields(told)
        elif parameter.kind is parameter.KEYWORD_ONLY and name not in GIVEN:
            is_required = parameter.default is parameter.empty
            default = None if is_required else parameter.default
            yield BuildOption(name, hint, default, is_required, str(told or ""))


def _fields(record: Any) -> Iterator[BuildOption]:
    hints = get_type_hints(record, include_extras=True)
    for field in fields(record):
        hint, told = _split(hints[field.name])
        is_required = field.default is MISSING
        yield BuildOption(
            field.name, hint, None if is_required else field.default, is_required, str(told or "")
        )


def _split(hint: Any) -> tuple[Any, Any]:
    """Return a type, and what ``Annotated`` tells of it."""
    if get_origin(hint) is not Annotated:
        return hint, None
    plain, told, *_ = get_args(hint)
    return plain, told
