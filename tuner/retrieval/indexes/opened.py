"""The indexes that this process has open: the last few, since the arms of a study take turns."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from tuner.core.errors import TunerError
from tuner.retrieval.base import Retriever
from tuner.retrieval.indexes.pickling import open_pickle
from tuner.retrieval.indexes.record import RETRIEVER, IndexRecord

_MOST_OPEN = 4


class Opened:
    """Retrievers by the folder of their index, and records of all that were ever seen whole."""

    def __init__(self, most: int = _MOST_OPEN) -> None:
        self._most = most
        self._retrievers: OrderedDict[tuple[Path, str], Retriever] = OrderedDict()
        self._records: dict[tuple[Path, str], IndexRecord] = {}
        self._lock = threading.Lock()

    def record(self, folder: Path, made_from: str) -> IndexRecord | None:
        """Return the record of an index that was seen whole, and has not gone since."""
        record = self._records.get((folder, made_from))
        return record if record is not None and (folder / RETRIEVER).is_file() else None

    def remember(self, folder: Path, record: IndexRecord) -> None:
        """Take down that an index is whole."""
        self._records[folder, record.made_from] = record

    def forget(self, folder: Path) -> None:
        """Take an index for one that was never seen."""
        with self._lock:
            for known in (self._records, self._retrievers):
                for key in [key for key in known if key[0] == folder]:
                    del known[key]

    def retriever(self, folder: Path, made_from: str) -> Retriever:
        """Return the retriever of an index, opened now where it is not open.

        Raises:
            TunerError: its files are not there, or not of this version.
        """
        key = (folder, made_from)
        with self._lock:
            if key in self._retrievers:
                self._retrievers.move_to_end(key)
                return self._retrievers[key]
            try:
                opened: Retriever = open_pickle(folder / RETRIEVER)
            except Exception as error:  # whatever the user's modules raise
                raise TunerError(f"the index in {folder} cannot be opened: {error}") from error
            self._retrievers[key] = opened
            while len(self._retrievers) > self._most:
                self._retrievers.popitem(last=False)
            return opened


OPENED = Opened()
