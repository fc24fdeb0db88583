"""From what a user calls a system to what it is: a kind, code, a folder, files, a program."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuner.core import registry
from tuner.core.errors import InputError
from tuner.core.trial import Params
from tuner.datasets import Dataset
from tuner.retrieval.adapters.frameworks.matching import OWN
from tuner.retrieval.adapters.lightrag.working_dir import CHUNKS
from tuner.setup.matched import by_what
from tuner.setup.python_code import kind_of_code, named_in
from tuner.setup.service import options_of_service
from tuner.setup.system import FoundSystem, of_kind

ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_DATABASE = re.compile(r"(neo4j|bolt|falkor|redis)[\w+]*://|.*\.(lbug|kuzu)$", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_CALLED = {
    "graph_retriever": "graph-retriever, over the documents",
    "hybrid": "the built-in engine",
    "lightrag": "LightRAG, over the documents",
}
_UNITS = "text_units.parquet"
WHAT = (
    "write a kind of retriever such as hybrid (tuner knobs lists them), module:function, a URL, a "
    "folder of LightRAG or GraphRAG, two or more run files, or a command line"
)


def find_system(
    written: Sequence[str],
    options: Mapping[str, Any],
    today: Params,
    folder: Path,
    dataset: Dataset,
) -> FoundSystem:
    """Return what the texts of ``--retriever`` name; several are run files.

    ``options`` are those that the user gives, ``today`` are today's values of parameters, and
    ``folder`` is where the configuration will lie. A service is asked a query of the data set.

    Raises:
        InputError: it is nothing that can be recognised, or something that cannot be tuned so.
        TunerError: the system could not start.
    """
    if len(written) > 1:
        return _runs([Path(one).expanduser() for one in written], options, today, folder)
    (text,) = written
    if not text.strip():
        raise InputError(f"--retriever is empty; {WHAT}")
    if ADDRESS.match(text):
        if not today:
            raise InputError(
                f"{text} is a service, and which parameters it takes cannot be found out: name "
                "them with today's values, --baseline top_k=10"
            )
        named, told = options_of_service(text, options, today, dataset)
        return of_kind("http", named, today, folder, told)
    place = Path(text).expanduser()
    if _DATABASE.match(text) or (text == "cypher" and "steps" not in options):
        raise InputError(
            f"--retriever {text}: a graph database is asked by statements of your own, and nobody "
            "can guess these: begin with the example of docs/your-system/cypher.md"
        )
    if text in registry.kinds("retrieval"):
        told = _CALLED.get(text, f"the kind {text}")
        return of_kind(text, options, today, folder, told)
    if place.is_dir():
        return _of_folder(text, place, options, today, folder)
    if _CODE.fullmatch(text):
        kind, named, told = kind_of_code(text, folder)
        given = {**named, **options}
        if "make" in named and "id" not in given:
            how = by_what(kind, given, folder, dataset)
            if how not in ("", OWN):
                given["id"] = how
                told = f"{told}, whose documents are known by {how}"
        return of_kind(kind, given, today, folder, told)
    if place.is_file() and place.suffix == ".py":
        raise InputError(f"{text} is a file of Python: {named_in(place)}")
    if place.is_file() and not _is_program(text):
        raise InputError(
            f"{text}: is this a run file? Two or more are mixed: give --retriever for each; a "
            f"program is called by a command line, such as ./{place.name}"
        )
    return _command(text, options, today, folder)


def tells_no_knobs(written: Sequence[str]) -> bool:
    """Say whether it is a service or a program: of those nobody knows what they take."""
    if len(written) != 1 or written[0] in registry.kinds("retrieval"):
        return False
    (text,) = written
    if ADDRESS.match(text):
        return True
    is_place = Path(text).expanduser().is_dir() or _CODE.fullmatch(text)
    return not is_place and _is_program(text)


def _of_folder(
    text: str, place: Path, options: Mapping[str, Any], today: Params, folder: Path
) -> FoundSystem:
    found = [place, *(inner for inner in sorted(place.glob("*")) if inner.is_dir())]
    for inner in found:
        where = text if inner == place else str(Path(text) / inner.name)
        if (inner / _UNITS).is_file():
            told = "a Microsoft GraphRAG index, searched by the built-in engine"
            return of_kind("ms_graphrag", {"path": where, **options}, today, folder, told)
        if (inner / CHUNKS).is_file():
            if "embedder" not in options:
                raise InputError(
                    f"{where} is a working directory of LightRAG: name the embedder that its "
                    "vectors were made with, --set embedder=my_models:embed (a function from "
                    "texts to a matrix; docs/your-system/lightrag.md)"
                )
            named = {"working_dir": where, **options}
            return of_kind("lightrag", named, today, folder, "a working directory of LightRAG")
    files = [file for file in sorted(place.glob("*")) if _looks_like_run(file)]
    if len(files) > 1:
        return _runs(files, options, today, folder)
    raise InputError(
        f"{text} is a folder of nothing that is known here: GraphRAG's has {_UNITS}, LightRAG's "
        f"{CHUNKS}; {WHAT}"
    )


def _looks_like_run(file: Path) -> bool:
    names = file.name.removesuffix(".gz")
    return file.is_file() and names.endswith((".run", ".trec", ".res"))


def _runs(
    files: Sequence[Path], options: Mapping[str, Any], today: Params, folder: Path
) -> FoundSystem:
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise InputError(
            f"--retriever {missing[0]}: no such file; given more than once, it names run files"
        )
    legs: dict[str, str] = {}
    for number, file in enumerate(files, start=1):
        name = re.sub(r"\W+", "_", file.name.removesuffix(".gz").partition(".")[0], flags=re.ASCII)
        if not name.strip("_") or name in legs or name[0].isdigit():
            name = f"leg{number}_{name}".rstrip("_")
        legs[name] = str(file)
    told = f"{len(legs)} run files, mixed"
    return of_kind("runs", {"legs": legs, **options}, today, folder, told)


def _is_program(text: str) -> bool:
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    return bool(words) and shutil.which(words[0]) is not None


def _command(text: str, options: Mapping[str, Any], today: Params, folder: Path) -> FoundSystem:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--retriever {text!r}: {error}; {WHAT}") from error
    if not words or shutil.which(words[0]) is None:
        raise InputError(
            f"--retriever {text!r} is no kind, module:function, file or program; {WHAT}"
        )
    return of_kind("command", {"command": words, **options}, today, folder, "a command")
