"""Read TREC's files: judgements, runs, and a test collection with its topics."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.grades import RELEVANT_FROM
from tuner.core.steps import Advance, unheard
from tuner.datasets.collected import data_set_name
from tuner.datasets.dataset import Dataset
from tuner.datasets.folders import choose, stem, trec_qrels
from tuner.datasets.items import peek
from tuner.datasets.lines import ABSENT, ProblemLog, read_lines, read_text
from tuner.datasets.tables import (
    IN_QUOTES,
    PairTable,
    check_some_relevant,
    is_quoted,
    parse_grade,
    read_separated,
)
from tuner.datasets.texts import (
    CorpusFile,
    QueriesFile,
    judgement_warnings,
    read_corpus,
    read_queries,
)

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
_TEXT_FIELDS = ("title", "query", "question", "description", "desc", "summary")
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
    question = _first(_TEXT_FIELDS, fields)
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


PREFERRED_SPLIT = "test"

_TOPICS = ("topics*", "queries.tsv*", "queries.jsonl*")
_TOPICS_HINT = "topics* or queries.tsv (id<TAB>text, or TREC's <top> markup) or queries.jsonl"
_TEXTS = ("collection*", "corpus.tsv*", "corpus.jsonl*")
_TEXTS_HINT = "collection* or corpus.tsv (id<TAB>text or id<TAB>title<TAB>text) or corpus.jsonl"

# What C's isspace separates, as in trec_eval; str.split would also break an id at U+00A0.
_BLANKS = re.compile(r"[ \t\v\f\r]+")
_QRELS_FIELDS = ("query id", "iteration", "document id", "grade")
_RUN_FIELDS = ("query id", "Q0", "document id", "rank", "score", "run name")


class Trec:
    """A TREC test collection. See `Trec.read`."""

    layout = (
        "a folder with judgements qrels* (query, iteration, document, grade), "
        f"{_TOPICS_HINT}, and {_TEXTS_HINT}; or the file of judgements there"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the path holds TREC judgements, or is a file of them or a run."""
        if path.is_dir():
            return bool(trec_qrels(path))
        return bool(_kind_of(path))

    @staticmethod
    def read(
        path: Path,
        *,
        split: str | None = None,
        relevant_from: float = RELEVANT_FROM,
        advance: Advance = unheard,
    ) -> Dataset:
        """Read and check a folder, or a file of judgements beside its topics and collection.

        Of several files of judgements, ``split`` names one by what follows ``qrels``, such as
        ``"dev"`` for ``qrels.dev.txt``; by default it is ``"test"``, or the only one. Queries
        without judgements are left out with a warning. Each file may end in ``.gz``.

        Raises:
            InputError: everything that is wrong, with file and line, all at once; or that the
                texts are missing, since judgements alone are no data set.
        """
        path = Path(path)
        log = ProblemLog(advance)
        if path.is_file() and _kind_of(path) == "run":
            message = "is a run, not a data set; score it: tuner score --qrels QRELS --run RUN"
            raise InputError(message, file=str(path))
        folder = path if path.is_dir() else path.parent
        qrels_file = _choose_qrels(path, split, log)
        topics_file = _find(folder, _TOPICS, _TOPICS_HINT, log)
        texts_file = _find(folder, _TEXTS, _TEXTS_HINT, log)
        topics = _read_topics(topics_file, log) if topics_file else None
        texts = _read_texts(texts_file, log) if texts_file else None
        qrels = {}
        if qrels_file:
            # Where a file gave no id at all, one report says why; not one more for each use of one.
            asked, held = ((read and read.lines) or None for read in (topics, texts))
            rows = PairTable(qrels_file, log, "grade", asked, held, ("topics", "collection"))
            _read_rows(rows)
            qrels = rows.values
            if qrels:
                check_some_relevant(qrels, True, qrels_file, log, relevant_from)
        problems = log.problems()
        if not log.has_only(ABSENT) or topics is None or texts is None:
            raise InputError(problems=problems)
        return Dataset.create(
            data_set_name(path),
            str(path),
            documents=texts.documents,
            queries=[query for query in topics.queries if query.id in qrels],
            qrels=qrels,
            answers=topics.answers,
            warnings=judgement_warnings(topics, qrels, relevant_from),
            unjudged=[query.id for query in topics.queries if query.id not in qrels],
            lacking=problems,
        )


def read_trec_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Return query id -> document id -> grade of lines ``query iteration document grade``.

    Blanks or tabs separate the fields, whatever the ids look like; the lines may be in any order.

    Raises:
        InputError: every line that is broken or there twice, and every invalid grade.
    """
    return _read_alone(path, "grade")


def read_trec_run(path: Path) -> dict[str, dict[str, float]]:
    """Return query id -> document id -> score of lines ``query Q0 document rank score name``.

    Blanks or tabs separate the fields; the lines may be in any order. The rank is not looked at:
    as in trec_eval, the scores order the documents.

    Raises:
        InputError: every line that is broken or there twice, and every score that is not a
            finite number.
    """
    return _read_alone(path, "score")


def _read_alone(path: Path, number: Literal["grade", "score"]) -> dict[str, dict[str, float]]:
    table = _read_rows(PairTable(Path(path), ProblemLog(), number))
    table.log.refuse()
    return table.values


def _read_rows(table: PairTable) -> PairTable:
    """Read the rows of a table's file into it; a broken, repeated or empty one is reported."""
    file, log = table.file, table.log
    names = _QRELS_FIELDS if table.number == "grade" else _RUN_FIELDS
    for line, text in read_lines(file, log):
        parts = _BLANKS.split(text.strip(" \t\v\f\r"))
        if not table.lines and is_quoted(parts):
            log.add("quotes", IN_QUOTES, file, line)
            return table
        if len(parts) != len(names):
            message = (
                f"expected {len(names)} fields ({', '.join(names)}); got {len(parts)}: "
                f"{text[:60]!r}"
            )
            log.add("fields", message, file, line)
            continue
        table.add(line, parts[0], parts[2], parts[names.index(table.number)])
    table.check_any()
    return table


def _kind_of(file: Path) -> str:
    """Return "qrels" or "run" by the first lines of a file, or an empty string."""
    lines = [line for line in peek(file).split("\n")[:5] if line.strip()]
    rows = [_BLANKS.split(line.strip(" \t\v\f\r")) for line in lines]
    for kind, fields, value in (("qrels", _QRELS_FIELDS, 3), ("run", _RUN_FIELDS, 4)):
        is_like = [len(row) == len(fields) and parse_grade(row[value]) is not None for row in rows]
        if is_like and all(is_like):
            return kind
    return ""


def _choose_qrels(path: Path, split: str | None, log: ProblemLog) -> Path | None:
    files = [path] if path.is_file() else trec_qrels(path)
    if not files:
        log.add("missing", f"no qrels file here; expected {Trec.layout}", path)
    return choose(
        files,
        path,
        "judgements",
        log,
        split=split,
        preferred=PREFERRED_SPLIT,
        # "qrels.dev.txt" holds the split "dev", and "qrels.txt" the split "qrels".
        name_of=lambda file: stem(file).removeprefix("qrels").strip("._-") or "qrels",
    )


def _find(folder: Path, patterns: tuple[str, ...], hint: str, log: ProblemLog) -> Path | None:
    files = sorted(file for pattern in patterns for file in folder.glob(pattern) if file.is_file())
    if len(files) == 1:
        return files[0]
    if files:
        names = ", ".join(file.name for file in files)
        log.add("several", f"holds several of {hint}: {names}; keep one", folder)
    else:
        message = f"judgements alone are no data set; add {hint}, or write format: qrels for runs"
        log.add("missing", message, folder)
    return None


def _read_topics(file: Path, log: ProblemLog) -> QueriesFile:
    if ".jsonl" in file.suffixes:
        return read_queries(file, log)
    table = read_topics(file, log)
    queries = [Query(id_, text) for id_, (text, *_) in table.rows.items()]
    return QueriesFile(queries, {}, table.lines)


def _read_texts(file: Path, log: ProblemLog) -> CorpusFile:
    if ".jsonl" in file.suffixes:
        return read_corpus(file, log)
    table = read_table(file, log, most_columns=3)
    documents = [
        Document(id_, columns[0] if len(columns) == 2 else "", columns[-1])
        for id_, columns in table.rows.items()
    ]
    return CorpusFile(documents, table.lines)
