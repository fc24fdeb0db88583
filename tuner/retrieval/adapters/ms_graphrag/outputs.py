"""Which output folder is read: the one, or of several that a configuration names the chosen one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from tuner.core.errors import InputError
from tuner.retrieval.adapters.alternatives import (
    choice_knob,
    chosen,
    file_digest,
    read_alternatives,
)
from tuner.retrieval.adapters.ms_graphrag.output import check_folder, table_path
from tuner.retrieval.knobs import Knob

OutputFolder = Annotated[str | None, "the output folder of GraphRAG; needed without `outputs`"]
OutputFolders = Annotated[
    Any, "several output folders in place of `path`, as name: folder; `output` chooses one"
]
OutputName = Annotated[str | None, "which of `outputs` is read; left out: the first"]

_EXAMPLE = "{small: output_300, large: output_1200}"


def folders(path: object, outputs: object) -> dict[str, Path]:
    """Return the folders by name; one that ``path`` gives has none.

    Raises:
        InputError: neither is given, or both, or something else than a path or paths by name.
    """
    if outputs is not None:
        if path is not None:
            raise InputError("give one folder as path, or several as outputs", key=("outputs",))
        return read_alternatives(outputs, key=("outputs",), example=_EXAMPLE)
    if not isinstance(path, str | Path) or not str(path):
        message = "must be GraphRAG's output folder, or give several as outputs: " + _EXAMPLE
        raise InputError(message, key=("path",))
    return {"": Path(path).expanduser().absolute()}


def chosen_folder(path: object, outputs: object, output: object) -> Path:
    """Return the folder to read, all of them being such as GraphRAG writes.

    Raises:
        InputError: impossible options, or a folder that is none of GraphRAG's.
    """
    named = folders(path, outputs)
    for name, folder in named.items():
        check_folder(folder, ("outputs", name) if name else ("path",))
    if outputs is None and output is not None:
        raise InputError("chooses among outputs, and there are none", key=("output",))
    return named[chosen(output, named, key=("output",))]


def output_knobs(outputs: object, output: object) -> tuple[Knob, ...]:
    """Return the index parameter ``output``; none where there is no choice.

    Raises:
        InputError: impossible options.
    """
    if outputs is None:
        return ()
    named = folders(None, outputs)
    today = chosen(output, named, key=("output",))
    description = "which output folder of GraphRAG is read, of those in the option `outputs`"
    return (choice_knob("output", named, today, description),) if len(named) > 1 else ()


def contents(path: object, outputs: object, tables: Iterable[str]) -> Mapping[str, list[str]]:
    """Return hashes of the tables in every folder; "" for one that is not there."""
    names = tuple(tables)
    return {
        name: [file_digest(table_path(folder, table)) for table in names]
        for name, folder in folders(path, outputs).items()
    }
