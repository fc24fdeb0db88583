"""Find the files of a data set in a folder, and tell layouts apart that share some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tuner.core.errors import InputError, did_you_mean
from tuner.datasets.items import peek, peek_keys
from tuner.datasets.lines import ProblemLog

MOST_FILES = 20
"""A folder with more JSON files than this is something else, and is not looked through."""

CHOOSE_ONE = "choose one with --qrels (in Python: split_name), or keep only one"

# What a sample asks, and what it can be judged by: any of these.
SAMPLE_KEYS = {"query", "relevant_docs", "relevant_entities", "relevant_paths"}
_BEIR_FACTS = {"corpus", "queries", "triples", "entities", "evidences"}


def stem(file: Path) -> str:
    """Return a file's name without its suffix, nor ``.gz``."""
    return Path(file.name.removesuffix(".gz")).stem


def variants(folder: Path, name: str) -> list[Path]:
    """Return the files in a folder with this name, plain or gzipped."""
    return [file for file in (folder / name, folder / f"{name}.gz") if file.is_file()]


def only_variant(files: list[Path], log: ProblemLog) -> Path | None:
    """Return the one file of `variants`, and report it where there are both."""
    if len(files) > 1:
        log.add("twice", f"is there with and without .gz ({files[1].name}); remove one", files[0])
    return files[0] if files else None


def json_files(folder: Path, *suffixes: str) -> list[Path]:
    """Return the JSON files in a folder by name, none if there are more than 20.

    ``suffixes`` narrow them down; by default ``.json`` and ``.jsonl``, each plain or gzipped.
    """
    wanted = suffixes or (".json", ".jsonl")
    if not folder.is_dir():
        return []
    files = [
        file
        for file in sorted(folder.glob("*"))  # unlike iterdir, passes over what may not be read
        if file.name.removesuffix(".gz").endswith(wanted) and file.is_file()
    ]
    return files if len(files) <= MOST_FILES else []


def beir_qrels(folder: Path) -> list[Path]:
    """Return the judgements of the BEIR layout: ``qrels/*.tsv``, plain or gzipped."""
    inner = folder / "qrels"
    if not inner.is_dir():
        return []
    return [
        file
        for file in sorted(inner.iterdir())
        if file.is_file() and file.name.endswith((".tsv", ".tsv.gz"))
    ]


def trec_qrels(folder: Path) -> list[Path]:
    """Return the files named ``qrels…`` in a folder that does not have the BEIR layout's."""
    if not folder.is_dir() or beir_qrels(folder):
        return []
    return [file for file in sorted(folder.glob("qrels*")) if file.is_file()]


def is_samples(file: Path) -> bool:
    """Return whether the first record of a file is a question with labels."""
    keys = peek_keys(file) & SAMPLE_KEYS
    return "query" in keys and len(keys) > 1


def sample_files(folder: Path) -> list[Path]:
    """Return the files of evaluation samples in a folder without any file of judgements."""
    if beir_qrels(folder) or trec_qrels(folder):
        return []
    files = [file for file in json_files(folder, ".jsonl") if stem(file) not in _BEIR_FACTS]
    return [file for file in files if is_samples(file)]


def choose(
    files: Sequence[Path],
    folder: Path,
    what: str,
    log: ProblemLog,
    *,
    split: str | None,
    preferred: str = "",
    name_of: Callable[[Path], str] = stem,
) -> Path | None:
    """Return the file named by ``split``, else the preferred or the only one; else report which.

    ``name_of`` gives the split that a file holds. The caller reports that there is no file at all.
    """
    named: dict[str, Path] = {}
    for file in files:
        if named.setdefault(name_of(file), file) != file:
            message = f"holds the {what} twice: {named[name_of(file)].name}, {file.name}; keep one"
            log.add("twice", message, folder)
    there = ", ".join(sorted(named))
    wanted = preferred if split is None and preferred in named else split
    if wanted in named:
        return named[wanted]
    if wanted is not None:
        log.add("split", no_such_split(what, wanted, named), folder)
    elif len(named) == 1:
        return files[0]
    elif named:
        log.add("split", f"several files of {what}: {there}; {CHOOSE_ONE}", folder)
    return None


def refuse_folder(path: Path, reads: Callable[[Path], bool], layout: str) -> None:
    """Raise an InputError where a folder is given for a format that is one file.

    ``reads`` says of a file whether it has this format.
    """
    if path.is_dir():
        inside = [str(file) for file in json_files(path) if reads(file)]
        hint = f"; did you mean {' or '.join(map(repr, inside[:5]))}?" if inside else ""
        raise InputError(f"is a folder; this format is a file: {layout}{hint}", file=str(path))


def no_such_split(what: str, split: str, known: Iterable[str]) -> str:
    """Return the message for a name that was asked for and is not there."""
    return f"no {what} named {split!r}, as asked for by --qrels{did_you_mean(split, known)}"


def report_empty(files: Iterable[Path], log: ProblemLog) -> None:
    """Report the files that hold nothing: what they were to be cannot be told."""
    for file in files:
        if not peek(file).strip():
            log.add("none", "is empty; write its records, or remove it", file)


def files_by_role(
    path: Path, role_of: Callable[[Path], str], *, layout: str
) -> dict[str, list[Path]]:
    """Return the JSON files at a path by their role; role "" collects those without one.

    For a file, its folder is looked through, and the file is the only one of its role.

    Raises:
        InputError: a file that has no role; ``layout`` says what was expected.
    """
    if path.is_file() and not role_of(path):
        raise InputError(f"does not belong here; expected {layout}", file=str(path))
    roles: dict[str, list[Path]] = {}
    for file in json_files(path if path.is_dir() else path.parent):
        roles.setdefault(role_of(file), []).append(file)
    if path.is_file():
        roles[role_of(path)] = [path]
    return roles
