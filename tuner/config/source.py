"""Read YAML as plain data that remembers the line of every key, and refuse what is ambiguous.

The scalars are those of YAML 1.2: `no` is a string and `1e-3` is a number, unlike YAML 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from tuner.core.errors import InputError, Problem
from tuner.core.files import read_input
from tuner.core.json_text import encodable

Key = tuple[str | int, ...]

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MOST_DIGITS = 30


@dataclass(frozen=True)
class Source:
    """A configuration's plain data, and where each of its keys stands."""

    file: str
    data: dict[str, Any]
    lines: Mapping[Key, int] = field(default_factory=dict)
    overridden: Mapping[Key, str] = field(default_factory=dict)

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with this source's file and the line of its closest known key."""
        if problem.file is not None:
            return problem
        for length in range(len(problem.key), -1, -1):
            prefix = tuple(problem.key[:length])
            if prefix in self.overridden:
                return replace(problem, file=f"--set {self.overridden[prefix]}", line=None)
            if prefix in self.lines:
                return replace(problem, file=self.file, line=self.lines[prefix])
        return replace(problem, file=self.file)

    def error(self, error: InputError) -> InputError:
        """Return the same error with every problem located."""
        return type(error)(problems=[self.locate(problem) for problem in error.problems])


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the scalars of YAML 1.2 only."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), _first
    )

# YAML 1.1 would read 012 as octal and 1:30 as 90.
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: _integer(str(node.value)))


def read_source(path: str | Path) -> Source:
    """Read a YAML file.

    Raises:
        InputError: the file cannot be read, is not YAML, is not a mapping, repeats a key, or uses
            anchors or tags.
    """
    file = str(path)
    try:
        raw = read_input(path, most=MAX_BYTES, is_what="is this a configuration?")
    except FileNotFoundError as error:
        raise InputError(_missing(Path(path))) from error
    except IsADirectoryError as error:
        raise InputError(
            "this is a folder; name a configuration file such as config.yaml", file=file
        ) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError("not valid UTF-8", file=file, line=line) from error
    return source_of(text, file)


def source_of(text: str, file: str) -> Source:
    """Read YAML that stands, or will stand, in a file.

    Raises:
        InputError: as ``read_source``.
    """
    data, lines = _parse(text, file)
    if not isinstance(data, dict):
        raise InputError(
            "expected a mapping of sections such as `space:` and `backends:`", file=file, line=1
        )
    return Source(file, data, lines)


def with_overrides(source: Source, settings: Sequence[str]) -> Source:
    """Apply ``--set key.path=value`` settings; values are YAML, list items are named by number.

    Raises:
        InputError: a setting without ``=``, or a path through something that is not a mapping.
    """
    data = _copy(source.data)
    overridden = dict(source.overridden)
    for setting in settings:
        path, separator, text = setting.partition("=")
        if not separator or not path.strip():
            raise InputError(f"--set {setting}: write it as key=value, such as study.seed=7")
        value, _ = _parse(text, f"--set {setting}")
        key = _set(data, _steps(data, path.strip().split(".")), value, setting)
        overridden[key] = setting
    return replace(source, data=data, overridden=overridden)


def _missing(path: Path) -> str:
    folder = path.parent if path.parent.is_dir() else Path()
    found = sorted(str(p) for p in [*folder.glob("*.yaml"), *folder.glob("configs/*.yaml")])
    known = f"; there are: {', '.join(found[:8])}" if found else ""
    return f"{path}: no such file{known}"


def _parse(text: str, file: str) -> tuple[Any, dict[Key, int]]:
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            # While it is read: 20,000 brackets would take the parser minutes.
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                message = f"nested deeper than {MAX_DEPTH} levels"
                raise InputError(message, file=file, line=_line(event.start_mark))
            anchor = getattr(event, "anchor", None)
            if anchor is not None:
                raise InputError(
                    f"anchors and aliases (&{anchor}) are not supported; write the value out",
                    file=file,
                    line=_line(event.start_mark),
                )
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            lines: dict[Key, int] = {(): 1}
            data = None if node is None else _construct(loader, node, (), lines, file)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "no reason given"
        raise InputError(f"not valid YAML: {what}", file=file, line=_line(mark)) from error
    except yaml.YAMLError as error:
        raise InputError(f"not valid YAML: {error}", file=file) from error
    except RecursionError as error:
        raise InputError(f"nested deeper than {MAX_DEPTH} levels", file=file) from error
    return data, lines


def _construct(loader: _Loader, node: yaml.Node, key: Key, lines: dict[Key, int], file: str) -> Any:
    line = node.start_mark.line + 1
    if len(key) > MAX_DEPTH:
        raise InputError(f"nested deeper than {MAX_DEPTH} levels", file=file, line=line)
    if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
        raise InputError(f"tags such as {node.tag} are not supported", file=file, line=line)
    match node:
        case yaml.MappingNode():
            result: dict[str, Any] = {}
            for key_node, value_node in node.value:
                name = _key_name(key_node, file)
                here = (*key, name)
                if name == "<<":
                    raise InputError(
                        "YAML's merge key << is not supported; write the keys out",
                        file=file,
                        line=key_node.start_mark.line + 1,
                        key=key,
                    )
                if name in result:
                    raise InputError(
                        f"this key stands twice, first on line {lines[here]}; keep one",
                        file=file,
                        line=key_node.start_mark.line + 1,
                        key=here,
                    )
                lines[here] = key_node.start_mark.line + 1
                result[name] = _construct(loader, value_node, here, lines, file)
            return result
        case yaml.SequenceNode():
            items = []
            for index, item in enumerate(node.value):
                lines[(*key, index)] = item.start_mark.line + 1
                items.append(_construct(loader, item, (*key, index), lines, file))
            return items
        case _:
            try:
                value = loader.construct_object(node)
            except (ValueError, KeyError, OverflowError) as error:
                shown = str(getattr(node, "value", ""))[:60]
                message = f"{shown!r} does not fit its type: {error}"
                raise InputError(message, file=file, line=line, key=key) from error
            if isinstance(value, str):
                value = _joined(value)
            if isinstance(value, str) and encodable(value) != value:
                message = f"{value!r} holds half of a surrogate pair (\\ud800 to \\udfff)"
                raise InputError(message, file=file, line=line, key=key)
            return value


def _joined(text: str) -> str:
    """Return text in which the two halves of a character, as JSON escapes it, are one again."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _key_name(node: yaml.Node, file: str) -> str:
    if isinstance(node, yaml.ScalarNode):
        return _joined(str(node.value))
    raise InputError(
        "a key must be a plain word, not a list or a mapping",
        file=file,
        line=node.start_mark.line + 1,
    )


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits is too large")
    return int(text)


def _line(mark: Any) -> int | None:
    return None if mark is None else mark.line + 1


def _steps(data: dict[str, Any], path: list[str]) -> list[str]:
    """Join the parts of a path that are one name with dots, such as a parameter's."""
    known = data.get("space")
    names = {name for name in known if "." in name} if isinstance(known, dict) else set()
    steps: list[str] = []
    target: Any = data
    while path:
        if isinstance(target, dict):
            names |= {name for name in target if "." in name}
        ends = range(len(path), 1, -1)
        length = next((end for end in ends if ".".join(path[:end]) in names), 1)
        step, path = ".".join(path[:length]), path[length:]
        steps.append(step)
        target = target.get(step) if isinstance(target, dict) else None
    return steps


def _set(data: dict[str, Any], path: list[str], value: Any, setting: str) -> Key:
    target: Any = data
    key: list[str | int] = []
    for position, name in enumerate(path):
        is_last = position == len(path) - 1
        if isinstance(target, list):
            if not name.isdigit() or int(name) >= len(target):
                where = ".".join(path[:position])
                raise InputError(
                    f"--set {setting}: {where} is a list of {len(target)}; "
                    f"name an item by its number, 0 to {len(target) - 1}"
                )
            step: str | int = int(name)
        elif isinstance(target, dict):
            step = name
            if not is_last and target.get(name) is None:
                target[name] = {}
        else:
            where = ".".join(path[:position])
            raise InputError(f"--set {setting}: {where} is a single value, it has no {name!r}")
        key.append(step)
        if is_last:
            target[step] = value
        else:
            target = target[step]
    return tuple(key)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
