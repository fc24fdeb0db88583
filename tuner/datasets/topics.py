"""Read the topics of a test collection: numbered questions, as lines or in TREC's markup."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tuner.datasets.items import peek
from tuner.datasets.lines import ProblemLog, read_text
from tuner.datasets.tables import read_separated

# <top> of the older tracks, whose fields need no end, and <topic> of the newer ones, which is XML.
_BEGIN = re.compile(r"<(top|topic)(?P<attributes>\s[^<>]*)?>", re.IGNORECASE)
_TOPIC = re.compile(
    _BEGIN.pattern + r"(?P<body>.*?)(?:</\1\s*>|(?=<\1[\s>])|\Z)", re.DOTALL | re.IGNORECASE
)
# A field goes to its own end where it has one, else to the next tag; "a < b" holds none.
_FIELD = re.compile(
    r"<(?P<name>[a-z][\w.-]*)(?:\s[^<>]*)?>"
    r"(?P<text>.*?(?=</(?P=name)\s*>)|(?:[^<]|<(?![/!?]?[a-z]))*)",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_HIDDEN = re.compile(r"<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>", re.DOTALL | re.IGNORECASE)
_TAG_OR_HEAD = re.compile(r"<[/?!]?[a-z][^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]\w{1,30});", re.IGNORECASE)
_LABEL = re.compile(r"\s*(?:Number|Topic|Description)\s*:", re.IGNORECASE)

# By track; the first that is there, and not empty, counts.
_NUMBERS = ("num", "number", "id", "qid", "identifier", "topicid", "topic-id", "topic_id")
_TEXTS = ("title", "query", "question", "description", "desc", "summary")
_NEEDED = (
    "a topic needs a number (<num>, <number>, or <topic number=…>) and a text "
    "(<title>, <query> or <question>)"
)


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
    expected = "id, text" if most_columns == 2 else "id, text or id, title, text"
    for number, line, fields in read_separated(file, log):
        if not table.lines and "\t" not in line and (tag := _TAG_OR_HEAD.match(line.lstrip())):
            # One report of the file, not one of each of its lines.
            message = f"is in markup ({tag[0][:30]}…), which is not read here; write {expected}"
            log.add("markup", f"{message}, separated by tabs, a line each", file, number)
            return table
        id_, *texts = (part.strip() for part in fields)
        if not id_ or not 2 <= len(texts) + 1 <= most_columns:
            message = f"expected {expected}, separated by tabs; got {line[:60]!r}"
            log.add("columns", message, file, number)
            continue
        table.add(id_, tuple(texts), file, number, log)
    if not table.lines and not log.mentions(file):
        log.add("none", "holds no text", file)
    return table


def read_topics(file: Path, log: ProblemLog) -> Table:
    """Return the topics of lines ``id<TAB>text``, or of TREC's markup, the older or the newer.

    ``<top> <num> Number: 1 <title> Who wrote it?``, whose tags may have attributes and ends, or XML
    such as ``<topic number="1"><query>Who wrote it?</query></topic>``.
    """
    if not _BEGIN.search(peek(file)):
        return read_table(file, log, most_columns=2)
    table = Table()
    text = _HIDDEN.sub(lambda match: "\n" * match[0].count("\n"), read_text(file, log) or "")
    for topic in _TOPIC.finditer(text):
        line = text.count("\n", 0, topic.start()) + 1
        id_, question = _topic(topic["attributes"] or "", topic["body"])
        if not id_ or question is None:
            log.add("topic", _NEEDED, file, line)
            continue
        table.add(id_, (question,), file, line, log)
    return table


def _topic(attributes: str, body: str) -> tuple[str, str | None]:
    """Return a topic's id and its question; an empty id, or None, where there is none."""
    named = {
        match[1].lower(): match[2] or match[3] or match[4] or ""
        for match in _ATTRIBUTE.finditer(attributes)
    }
    fields: dict[str, str] = {}
    for match in _FIELD.finditer(body):
        # CLEF's are called EN-title.
        fields.setdefault(match["name"].lower().rpartition("-")[2], match["text"])
    number = _plain(_first(_NUMBERS, fields) or _first(_NUMBERS, named) or "")
    question = _first(_TEXTS, fields)
    if question is None and not fields and body.strip():
        question = body  # of the clinical trials' tracks: the topic is its text
    return number.partition(" ")[0], None if question is None else _plain(question)


def _first(names: tuple[str, ...], there: Mapping[str, str]) -> str | None:
    given = [there[name] for name in names if name in there]
    return next((text for text in given if text.strip()), given[0] if given else None)


def _plain(marked: str) -> str:
    """Return text without tags, entities, TREC's label at its beginning, and runs of blanks."""
    text = marked.strip()
    if text.startswith("<![CDATA["):
        text = text.removeprefix("<![CDATA[").removesuffix("]]>")
    else:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), _TAG.sub("", text))
    label = _LABEL.match(text)
    return " ".join(text[label.end() if label else 0 :].split())
