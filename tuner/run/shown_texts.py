"""The texts of the passages that a report shows, kept in the run directory: it opens no data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from tuner.core.corpus import Document
from tuner.core.files import read_lines, write_whole
from tuner.core.json_text import json_text, read_as
from tuner.core.run_files import PASSAGES_FILE
from tuner.run.side_by_side import SideBySide

LONGEST_TEXT = 4_000
"""Characters of a passage that are kept: whoever reads on opens the document."""
MOST_CHARACTERS = 50_000_000
"""Of all passages together; those of the queries that changed most come first."""


@dataclass(frozen=True)
class PassageText:
    """A passage as it is read: ``length`` is that of its whole text, in characters."""

    id: str
    title: str
    text: str
    length: int

    @property
    def is_cut(self) -> bool:
        """Say whether there is more of the text than was kept."""
        return len(self.text) < self.length


def shown_texts(
    rows: Iterable[SideBySide],
    documents: Iterable[Document],
    *,
    longest: int = LONGEST_TEXT,
    most: int = MOST_CHARACTERS,
) -> Iterator[PassageText]:
    """Yield what was retrieved for queries, or should have been, each passage once.

    Each is cut after ``longest`` characters, and where all would be more than ``most``, those of
    the queries with the smallest changes are left out.
    """
    by_id = {document.id: document for document in documents}
    left = most
    for id_ in _ids(rows):
        document = by_id.get(id_)
        if document is None:
            continue
        text = PassageText(id_, document.title, document.text[:longest], len(document.text))
        left -= len(text.title) + len(text.text)
        if left < 0:
            return
        yield text


def write_passages(run_dir: Path, texts: Iterable[PassageText]) -> None:
    """Write ``passages.jsonl``, whole or not at all."""
    lines = (json_text(asdict(text)) + "\n" for text in texts)
    write_whole(run_dir / PASSAGES_FILE, "".join(lines))


def read_passages(run_dir: Path) -> dict[str, PassageText]:
    """Read a run directory's ``passages.jsonl``, by id; empty where there is none.

    Raises:
        InputError: a line that cannot be right, with its number.
    """
    read = partial(read_as, PassageText)
    found: Mapping[str, PassageText] = {
        text.id: text for text in read_lines(run_dir / PASSAGES_FILE, read, "text of a passage")
    }
    return dict(found)


def _ids(rows: Iterable[SideBySide]) -> Iterator[str]:
    """Yield the passages of all rows, those that changed most first, each once."""
    seen: dict[str, None] = {}
    for row in sorted(rows, key=lambda row: -abs(row.change or 0.0)):
        both = (passage.id for side in (row.winner, row.baseline) for passage in side.retrieved)
        for id_ in (*row.relevant, *both):
            if id_ not in seen:
                seen[id_] = None
                yield id_
