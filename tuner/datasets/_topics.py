"""Read the topics of a test collection: numbered questions, as lines or in TREC's markup."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tuner.datasets._items import peek
from tuner.datasets._lines import ProblemLog, read_lines, read_text

_TOPIC = re.compile(r"<top>(.*?)(?:</top>|(?=<top>)|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number\s*:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic\s*:)?([^<]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """Texts by id, each as its columns, and the line on which each id was first seen."""

    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def add(self, id_: str, texts: tuple[str, ...], file: Path, line: int, log: ProblemLog) -> None:
        """Add a row, or report an id that was there before, or texts that are all empty."""
        first = self.lines.setdefault(id_, line)
        if first != line:
            log.add("duplicate", f"duplicate id {id_!r}, first on line {first}", file, line)
        elif not any(texts):
            log.add("empty", f"{id_!r} has no text", file, line)
        else:
            self.rows[id_] = texts


def read_table(file: Path, log: ProblemLog, *, most_columns: int) -> Table:
    """Return the rows of lines ``id<TAB>text``, with up to ``most_columns`` columns."""
    table = Table()
    for number, line in read_lines(file, log):
        id_, *texts = (part.strip() for part in line.split("\t"))
        if not id_ or not 2 <= len(texts) + 1 <= most_columns:
            expected = "id, text" if most_columns == 2 else "id, text or id, title, text"
            message = f"expected {expected}, separated by tabs; got {line[:60]!r}"
            log.add("columns", message, file, number)
            continue
        table.add(id_, tuple(texts), file, number, log)
    if not table.lines and not log.mentions(file):
        log.add("none", "holds no text", file)
    return table


def read_topics(file: Path, log: ProblemLog) -> Table:
    """Return the topics of lines ``id<TAB>text``, or of TREC's ``<num>`` and ``<title>``."""
    if "<top>" not in peek(file).lower():
        return read_table(file, log, most_columns=2)
    table = Table()
    text = read_text(file, log) or ""
    for topic in _TOPIC.finditer(text):
        line = text.count("\n", 0, topic.start()) + 1
        number, title = _NUMBER.search(topic[1]), _TITLE.search(topic[1])
        if number is None or title is None:
            log.add("topic", "a topic needs <num> and <title>", file, line)
            continue
        table.add(number[1], (" ".join(title[1].split()),), file, line, log)
    return table
