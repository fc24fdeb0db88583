"""The contract of readers of data sets: they know their own layout, and say what is wrong where."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.datasets.base import DatasetFormat
from tuner.datasets.dataset import Dataset
from tuner.testing.contract import Contract, check_all, checks_in, need

# What a file loses or gets: nothing of it is to end in anything but a data set or an InputError.
_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut off amid its last line": lambda raw: raw.rstrip()[:-1],
    "cut off in its middle": lambda raw: raw[: len(raw) // 2],
    "with a byte amid a word that is no UTF-8": lambda raw: _with_bad_byte(raw),
    "empty": lambda _: b"",
    "of noise": lambda _: bytes(range(256)),
}


@dataclass(frozen=True)
class FormatCase:
    """One reader to check.

    Attributes:
        reader: the class, or an object like it.
        sample: a file or folder in its layout, with a few records, all of them right.
    """

    reader: DatasetFormat
    sample: Path

    @contextmanager
    def copy(self) -> Iterator[Path]:
        """Yield a copy of the sample, to be damaged."""
        with TemporaryDirectory() as folder:
            place = Path(folder) / self.sample.name
            if self.sample.is_dir():
                shutil.copytree(self.sample, place)
            else:
                shutil.copy(self.sample, place)
            yield place

    def files(self, place: Path) -> list[Path]:
        """Return the files of a copy."""
        found = place.rglob("*") if place.is_dir() else [place]
        return sorted(path for path in found if path.is_file())


def check_interface(case: FormatCase) -> None:
    """Check that it says what it expects."""
    layout = getattr(case.reader, "layout", None)
    need(isinstance(layout, str) and bool(layout), "`layout` must say in a sentence what is read")


def check_detect(case: FormatCase) -> None:
    """Check that its own sample is known, and that what says nothing is not."""
    need(
        case.reader.detect(case.sample) is True, f"{case.sample} is its own, and not known as such"
    )
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "empty").mkdir()
        (place / "nothing.json").write_bytes(b"")
        (place / "noise.jsonl").write_bytes(bytes(range(256)))
        for name in ("empty", "nothing.json", "noise.jsonl", "nowhere"):
            need(not case.reader.detect(place / name), f"{name!r} says nothing, and is taken")


def check_what_is_read(case: FormatCase) -> None:
    """Check that ids are unique, and that judgements and facts are of queries and documents."""
    dataset = case.reader.read(case.sample)
    need(
        isinstance(dataset, Dataset), f"`read` must return a Dataset, not {type(dataset).__name__}"
    )
    documents, queries = dataset.corpus.documents, dataset.queries
    need(bool(queries), "the sample has queries, and none was read")
    need(all(isinstance(one, Document) and one.id for one in documents), "documents need an id")
    need(all(isinstance(one, Query) and one.text for one in queries), "queries need a text")
    known, asked = {one.id for one in documents}, {one.id for one in queries}
    need(len(known) == len(documents), "two documents have the same id")
    need(len(asked) == len(queries), "two queries have the same id")
    need(asked == set(dataset.qrels), "each query needs its judgements, and no other has any")
    for query, judged in dataset.qrels.items():
        need(bool(judged), f"query {query!r} has no judgement")
        is_right = all(type(grade) is float for grade in judged.values())
        need(is_right, f"query {query!r}: grades must be floats")
        need(not known or judged.keys() <= known, f"query {query!r}: an unknown document is judged")
    need(dataset.evidences.keys() <= asked, "there is evidence for a query that is not asked")
    of_triples = {triple.document_id for triple in dataset.corpus.triples}
    need(of_triples <= known, "a triple is of a document that is not there")


def check_twice_is_the_same(case: FormatCase) -> None:
    """Check that reading again gives the same data set."""
    first, second = case.reader.read(case.sample), case.reader.read(case.sample)
    for field in fields(Dataset):
        is_same = getattr(first, field.name) == getattr(second, field.name)
        need(is_same, f"`{field.name}` differs when the sample is read again")


def check_damaged_files(case: FormatCase) -> None:
    """Check that a damaged file is read or refused by an InputError that names it."""
    refused = 0
    for what, damage in _DAMAGES.items():
        with case.copy() as place:
            for file in case.files(place):
                whole = file.read_bytes()
                file.write_bytes(damage(whole))
                refused += _refused(case, place, file, what)
                file.write_bytes(whole)
    need(refused > 0, "no damage to any file was noticed")


def _refused(case: FormatCase, place: Path, file: Path, what: str) -> bool:
    try:
        case.reader.detect(place)
        case.reader.read(place)
    except InputError as error:
        told = [str(problem) for problem in error.problems] or [str(error)]
        # What a file lacks may show in another, as with judgements of queries that are gone.
        is_named = any(one.name in line for line in told for one in case.files(place))
        need(is_named, f"{file.name} {what}: the error must name a file, not {told[0]!r}")
        return True
    except Exception as error:
        kind = type(error).__name__
        raise AssertionError(f"{file.name} {what}: {kind}: {error}; raise an InputError") from error
    return False


def check_unknown_split(case: FormatCase) -> None:
    """Check that a split which is not there is refused by an InputError, where there are any."""
    if "split" not in signature(case.reader.read).parameters:
        return
    try:
        case.reader.read(case.sample, split="no such split")
    except InputError:
        return
    raise AssertionError("a split that is not there was taken")


def _with_bad_byte(raw: bytes) -> bytes:
    found = re.compile(rb"[A-Za-z0-9]").search(raw, len(raw) // 2)
    at = found.start() if found else 0
    return raw[:at] + b"\xff" + raw[at + 1 :]


CHECKS = checks_in(__name__)
"""Every check of a reader."""


def check_format(case: FormatCase) -> None:
    """Run every check of the contract of readers, as ``check_all`` does."""
    check_all(CHECKS, case)


class FormatContract(Contract):
    """The contract of readers as tests of pytest's; ``case`` is a ``FormatCase``."""

    checks = CHECKS
