"""Read TREC's files: judgements, runs, and a test collection with its topics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.grades import RELEVANT_FROM
from tuner.core.steps import Advance, unheard
from tuner.datasets.collected import data_set_name
from tuner.datasets.dataset import Dataset
from tuner.datasets.folders import choose, stem, trec_qrels
from tuner.datasets.items import peek
from tuner.datasets.judgements import check_some_relevant, parse_grade
from tuner.datasets.lines import ABSENT, ProblemLog, read_lines
from tuner.datasets.tables import IN_QUOTES, is_quoted
from tuner.datasets.texts import (
    CorpusFile,
    QueriesFile,
    judgement_warnings,
    read_corpus,
    read_queries,
)
from tuner.datasets.topics import read_table, read_topics

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
        rows = _read_qrels(qrels_file, log) if qrels_file else []
        if qrels_file:
            _check(rows, topics, texts, qrels_file, log, relevant_from)
        problems = log.problems()
        if not log.has_only(ABSENT) or topics is None or texts is None:
            raise InputError(problems=problems)
        qrels = _by_query(rows)
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
    log = ProblemLog()
    rows = _read_qrels(Path(path), log)
    log.refuse()
    return _by_query(rows)


def read_trec_run(path: Path) -> dict[str, dict[str, float]]:
    """Return query id -> document id -> score of lines ``query Q0 document rank score name``.

    Blanks or tabs separate the fields; the lines may be in any order. The rank is not looked at:
    as in trec_eval, the scores order the documents.

    Raises:
        InputError: every line that is broken or there twice, and every score that is not a
            finite number.
    """
    log = ProblemLog()
    rows = _read_rows(Path(path), _RUN_FIELDS, "score", "ranking", log)
    log.refuse()
    return _by_query(rows)


class _Row(NamedTuple):
    line: int
    query: str
    document: str
    value: float


def _read_qrels(file: Path, log: ProblemLog) -> list[_Row]:
    return _read_rows(file, _QRELS_FIELDS, "grade", "judgement", log)


def _read_rows(
    file: Path, fields: tuple[str, ...], value_name: str, what: str, log: ProblemLog
) -> list[_Row]:
    """Return the rows of a file; a broken, repeated or empty one is reported."""
    rows: list[_Row] = []
    first_lines: dict[tuple[str, str], int] = {}
    for number, line in read_lines(file, log):
        parts = _BLANKS.split(line.strip(" \t\v\f\r"))
        if not rows and is_quoted(parts):
            log.add("quotes", IN_QUOTES, file, number)
            return []
        if len(parts) != len(fields):
            names = ", ".join(fields)
            message = f"expected {len(fields)} fields ({names}); got {len(parts)}: {line[:60]!r}"
            log.add("fields", message, file, number)
            continue
        query, document, written = parts[0], parts[2], parts[fields.index(value_name)]
        value = parse_grade(written)
        first = first_lines.setdefault((query, document), number)
        if first != number:
            message = (
                f"duplicate {what} of query {query!r} and document {document!r}, "
                f"first on line {first}"
            )
            log.add("repeat", message, file, number)
        elif value is None:
            message = f"invalid {value_name} {written!r}: must be a finite number"
            log.add(value_name, message, file, number)
        else:
            rows.append(_Row(number, query, document, value))
    if not first_lines and not log.mentions(file):
        log.add("none", f"holds no {what}", file)
    return rows


def _by_query(rows: list[_Row]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for _, query, document, value in rows:
        found.setdefault(query, {})[document] = value
    return found


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


def _check(
    rows: list[_Row],
    topics: QueriesFile | None,
    texts: CorpusFile | None,
    file: Path,
    log: ProblemLog,
    relevant_from: float,
) -> None:
    """Report judgements of unknown queries and documents, or that none says "relevant"."""
    # Where a file gave no id at all, one report says why; not one more for each use of an id.
    queries = topics.lines if topics and topics.lines else None
    documents = texts.lines if texts and texts.lines else None
    for row in rows:
        if queries is not None and row.query not in queries:
            message = f"unknown query {row.query!r}: not in the topics"
            log.add("unknown query", message, file, row.line)
        if documents is not None and row.document not in documents:
            message = f"unknown document {row.document!r}: not in the collection"
            log.add(ABSENT, message, file, row.line)
    if rows:
        check_some_relevant(_by_query(rows), True, file, log, relevant_from)
