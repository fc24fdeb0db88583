"""Data sets: documents, judged queries, and the readers of each published layout."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.resources import files
from inspect import signature
from os import PathLike
from os.path import expanduser
from pathlib import Path
from typing import Any, cast

from tuner.core import registry
from tuner.core.errors import InputError, Problem, did_you_mean
from tuner.core.grades import DEFAULT_SCALE, GradeScale
from tuner.core.steps import Advance, unheard
from tuner.datasets.base import DatasetFormat
from tuner.datasets.dataset import Dataset, Evidence
from tuner.datasets.items import json_problems
from tuner.datasets.split import cut_queries, split_queries

__all__ = [
    "Dataset",
    "Evidence",
    "builtin_names",
    "cut_queries",
    "format_of",
    "open_dataset",
    "split_queries",
]

BUILTIN = "builtin:"
_NO_SUPPORTS = (
    "judge: evidence needs texts in the documents that are labelled as supporting the answers, and "
    "this data set has none; leave `judge` out to judge whole documents, or label such texts: in "
    "evidences.jsonl as 'supporting', in samples as 'supporting_texts'"
)


def open_dataset(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    split_name: str | None = None,
    is_strict: bool = True,
    scale: GradeScale = DEFAULT_SCALE,
    advance: Advance = unheard,
) -> Dataset:
    """Read a data set from ``"builtin:atlas"``, or from a folder or file in a known format.

    ``format`` names the format, such as ``"beir"``; without it, each one is asked whether it
    recognises the path. ``split_name`` picks one of several sets of judgements in the source. A
    relative path starts at the current folder.

    Where judged documents are not in the corpus, no retriever can be scored fairly. Without
    ``is_strict`` such a data set is returned all the same, to be looked at, and its ``lacking``
    tells where they are. ``scale`` says from which grade a document is relevant.

    ``advance`` is told how much of the largest file has been read, by formats that can tell.

    Raises:
        InputError: nothing is there, no format recognises it, or its content is wrong.
    """
    read = _read(str(path), format=format, split_name=split_name, scale=scale, advance=advance)
    dataset = read.with_scale(scale)
    if message := scale.problem(dataset.qrels.values()):
        raise InputError(message, file=dataset.path)
    if scale.judge == "evidence" and not dataset.supports:
        raise InputError(_NO_SUPPORTS, file=dataset.path)
    if is_strict and dataset.lacking:
        told = [Problem(f"warning: {text}", dataset.path) for text in dataset.warnings]
        raise InputError(problems=[*dataset.lacking, *told])
    return dataset


def _read(
    written: str,
    *,
    format: str | None,
    split_name: str | None,
    scale: GradeScale,
    advance: Advance,
) -> Dataset:
    asked = {"split": split_name, "relevant_from": scale.relevant_from, "advance": advance}
    if written.startswith(BUILTIN):
        return _read_builtin(written.removeprefix(BUILTIN), format=format, asked=asked)
    place = Path(expanduser(written))
    try:
        if not place.exists():
            raise InputError(_not_found(place))
        reader = _load(format) if format is not None else _detect(place)
        return _read_with(reader, place, asked)
    except OSError as error:
        raise InputError(f"cannot read {written!r}: {error.strerror or error}") from error


def _read_with(reader: DatasetFormat, place: Path, asked: Mapping[str, Any]) -> Dataset:
    """Read with those of the options that the format's ``read`` names."""
    named = signature(reader.read).parameters
    if "split" not in named and asked["split"] is not None:
        message = (
            f"no judgements named {asked['split']!r}: this format holds one set of them; leave "
            "--qrels out"
        )
        raise InputError(message, file=str(place))
    return reader.read(place, **{name: asked[name] for name in asked if name in named})


def builtin_names() -> list[str]:
    """List the data sets that ship with the package, for use as ``builtin:NAME``."""
    folders = (folder for folder in _package_folder().iterdir() if folder.is_dir())
    return sorted(folder.name for folder in folders if _load("beir").detect(folder))


def _read_builtin(name: str, *, format: str | None, asked: Mapping[str, Any]) -> Dataset:
    if name not in builtin_names():
        raise InputError(f"no built-in data set {name!r}{did_you_mean(name, builtin_names())}")
    dataset = _read_with(_load(format or "beir"), _package_folder() / name, asked)
    # The path of the installed package would differ between machines that share a study.
    return replace(dataset, name=name, path=f"{BUILTIN}{name}")


def _package_folder() -> Path:
    return Path(str(files("tuner.datasets")))


def _load(format: str) -> DatasetFormat:
    return cast(DatasetFormat, registry.load("datasets", format))


def format_of(place: Path) -> str | None:
    """Return the name of the first format that recognises a path; None: none does."""
    return next((kind for kind in registry.kinds("datasets") if _load(kind).detect(place)), None)


def _detect(place: Path) -> DatasetFormat:
    if (found := format_of(place)) is not None:
        return _load(found)
    formats = {kind: _load(kind) for kind in registry.kinds("datasets")}
    broken = json_problems(place)
    if broken:
        raise InputError(
            "not a data set in a known format, as it is broken JSON",
            file=str(place),
            problems=broken,
        )
    known = "".join(f"\n  {kind}: {reader.layout}" for kind, reader in formats.items())
    hint = _nearby(place, formats.values())
    raise InputError(
        f"not a data set in a known format: {str(place)!r}{hint}\nknown formats:{known}"
    )


def _nearby(place: Path, formats: Collection[DatasetFormat]) -> str:
    """Point from a file to the folder it belongs to, and from a folder to data sets inside it."""
    candidates = sorted(place.iterdir()) if place.is_dir() else [place.parent, place.parent.parent]
    candidates = list(dict.fromkeys(candidates))  # "." is its own parent
    found = [str(near) for near in candidates if any(each.detect(near) for each in formats)]
    return f"; did you mean {', '.join(map(repr, found[:5]))}?" if found else ""


def _not_found(place: Path) -> str:
    message = f"no such file or folder: {str(place)!r}"
    if not place.is_absolute():
        message += f" (from {str(Path.cwd())!r})"
    if place.name in builtin_names():
        return f"{message}; did you mean '{BUILTIN}{place.name}'?"
    if not place.parent.is_dir():
        return message
    siblings = [entry.name for entry in place.parent.iterdir() if not entry.name.startswith(".")]
    hint = did_you_mean(place.name, siblings)
    # Without a close match the hint lists everything that is there: too long in a busy folder.
    return message + (hint if len(siblings) <= 20 or "did you mean" in hint else "")
