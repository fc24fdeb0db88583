"""What is known of an index that was built: it lies beside it, and is written last."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tuner.core.brought import MANIFEST
from tuner.core.files import write_whole
from tuner.core.json_text import read_as
from tuner.core.trial import IndexUse, Params

# Also tells other machines of a cluster that the folder is complete.
RECORD = MANIFEST
RETRIEVER = "retriever.pickle"
# What a system of the user's writes for itself lies below this folder. It may change while it is
# used, as a database does, so it says nothing of whether an index is whole.
OWN = "own"


@dataclass(frozen=True)
class IndexRecord:
    """An index in a folder.

    Attributes:
        made_from: digest of the code, the data and the options that shaped it.
        settings: the parameters of stage ``"index"`` that it was built with, all of them.
        seconds: what building took, queries prepared included.
        tokens: those that were embedded or read by a model, where the system tells.
        money: what that cost, where the system tells, in the user's currency.
        files: bytes by path below the folder.
    """

    made_from: str
    settings: Params
    seconds: float
    documents: int
    tokens: int | None = None
    money: float | None = None
    files: Mapping[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(self.files.values())

    def use(self, folder: Path, *, is_new: bool) -> IndexUse:
        """Return what a trial says of the index in ``folder``, whose name is the index's."""
        return IndexUse(
            name=folder.name,
            seconds=self.seconds,
            megabytes=round(self.size / 1e6, 6),
            documents=self.documents,
            tokens=self.tokens,
            money=self.money,
            is_new=is_new,
            folder=str(folder),
        )


def write_record(folder: Path, record: IndexRecord) -> None:
    """Write the record, whole; the index counts as built from then on.

    Raises:
        OSError: the disk refuses.
    """
    write_whole(folder / RECORD, json.dumps(asdict(record)))


def read_record(folder: Path) -> IndexRecord | None:
    """Return the record of a whole index; None where there is none, or a file is cut short."""
    try:
        raw = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        record: IndexRecord = read_as(IndexRecord, raw)
        is_whole = all(
            (folder / name).stat().st_size == size
            for name, size in record.files.items()
            if not name.startswith(f"{OWN}/")
        )
    except (OSError, ValueError):
        return None
    return record if is_whole else None


def files_of(folder: Path) -> dict[str, int]:
    """Return the bytes of every file below a folder, by its path there."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / RECORD
    }
