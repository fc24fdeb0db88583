"""What every section of a configuration is, and what editors learn of it from its JSON schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, TypeAdapter

from tuner.core import registry

if TYPE_CHECKING:
    from tuner.retrieval.build_options import BuildOption

ENGINE = "hybrid"
"""The kind of retriever where a configuration names none."""

Number = Annotated[StrictInt | StrictFloat, Field(allow_inf_nan=False)]

_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}


def _with_bounds(schema: dict[str, Any]) -> None:
    """Call bounds what JSON Schema calls them: of a number of two types pydantic does not."""
    for key, value in list(schema.items()):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                _with_bounds(part)
        if key in _BOUNDS and not isinstance(value, dict):
            schema[_BOUNDS[key]] = schema.pop(key)


class Section(BaseModel):
    """A part of the configuration; keys that it does not know are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_with_bounds)


class OpenSection(BaseModel):
    """A part whose further keys are options of the named ``kind``, checked by that kind itself."""

    model_config = ConfigDict(extra="allow", frozen=True, json_schema_extra=_with_bounds)

    @property
    def options(self) -> dict[str, Any]:
        """Return the keys beyond those that every kind shares."""
        return dict(self.model_extra or {})


def one_of(family: str) -> str:
    """Describe a key that names a kind of a family: those that ship here, or one from elsewhere."""
    kinds = ", ".join(f"`{kind}`" for kind in registry.kinds(family))
    return f"{kinds}, or a class of your own as `package.module:Class`"


def with_options_of_each_kind(schema: dict[str, Any]) -> None:
    """Add the options of the kinds that ship here to the schema, for editors."""
    from tuner.retrieval.build_options import build_options

    schema["allOf"] = [
        {
            "if": {"properties": {"kind": {"const": kind}}, **_named(kind)},
            "then": {"properties": dict(map(_property, build_options(load)))},
        }
        for kind in registry.kinds("retrieval")
        for load in [registry.load("retrieval", kind)]
    ]


def _named(kind: str) -> dict[str, Any]:
    return {} if kind == ENGINE else {"required": ["kind"]}


def _property(option: BuildOption) -> tuple[str, dict[str, Any]]:
    schema = TypeAdapter(option.hint).json_schema()
    schema = _inlined(schema, schema.pop("$defs", {}))
    default = {} if option.is_required else {"default": option.default}
    return option.name, {**schema, **default, "description": option.description}


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """Put definitions where they are referred to: pydantic knows none but its own."""
    match schema:
        case {"$ref": reference}:
            return definitions[reference.rpartition("/")[2]]
        case dict():
            return {key: _inlined(value, definitions) for key, value in schema.items()}
        case list():
            return [_inlined(value, definitions) for value in schema]
    return schema
