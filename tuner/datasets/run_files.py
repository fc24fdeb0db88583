"""Read runs and judgements, in whichever format they are: TREC, tab-separated, JSON, JSON lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tuner.core.errors import InputError, did_you_mean
from tuner.core.grades import RELEVANT_FROM
from tuner.datasets.folders import beir_qrels, trec_qrels
from tuner.datasets.items import peek, read_items
from tuner.datasets.lines import ProblemLog, read_lines
from tuner.datasets.run_json import Answer, Run, read_json_qrels, read_json_run
from tuner.datasets.tables import (
    QUERY_COLUMNS,
    PairTable,
    check_some_relevant,
    index_before,
    parse_grade,
    read_judgements,
    read_separated,
    unquoted,
)
from tuner.datasets.trec import read_trec_qrels, read_trec_run

QRELS_FORMATS = (
    "TREC's lines 'query iteration document grade'; lines 'query<TAB>document<TAB>grade' with or "
    "without a header; JSON {query: {document: grade}}; or JSON lines with query_id and "
    "doc_id and grade, or query_id and relevant_docs"
)
RUN_FORMATS = (
    "TREC's lines 'query Q0 document rank score name'; lines 'query<TAB>document<TAB>score' with "
    "or without a header; JSON {query: {document: score}} or {query: [documents, best first]}; or "
    "JSON lines with query_id and docs, best first or with scores beside them, and optional "
    "entities and paths of the graph"
)

QUERY_LABELS = ("query_type", "difficulty")

_LINES_LOOKED_AT = 20


@dataclass(frozen=True, eq=False)
class Judgements:
    """What a file of judgements holds: query id -> document id -> grade, and its format."""

    format: str
    grades: dict[str, dict[str, float]]


def read_qrels(path: Path, *, relevant_from: float = RELEVANT_FROM) -> Judgements:
    """Read judgements in a format found by the file's content; the name may end in ``.gz``.

    Raises:
        InputError: no such file, an unknown format, a run instead of judgements, or everything
            that is wrong in the file, with the line where lines are records.
    """
    path = _existing(path, "judgements")
    log = ProblemLog()
    match _format_of(path):
        case "trec run":
            raise InputError(
                "is a run (query, Q0, document, rank, score, name), not judgements; "
                "did you swap --qrels and --run?",
                file=str(path),
            )
        case "trec qrels":
            found = Judgements("trec", read_trec_qrels(path))
            check_some_relevant(found.grades, True, path, log, relevant_from)
        case "tsv":
            found = Judgements("tsv", read_judgements(path, log, None, None, relevant_from))
        case "json":
            format, grades = read_json_qrels(path, log)
            found = Judgements(format, grades)
            check_some_relevant(grades, bool(grades), path, log, relevant_from)
        case _:
            raise _unknown(path, "judgements", QRELS_FORMATS)
    if log.problems() and look_like_scores(found.grades):
        log.add("run", "most grades are fractions, like scores; is this file a run?", path)
    log.refuse()
    return found


def read_run(path: Path) -> Run:
    """Read a run in a format found by the file's content; the name may end in ``.gz``.

    Three columns without a header hold scores, unless the third counts 1, 2, 3, … down each query
    as in MS MARCO's files: these are ranks.

    Raises:
        InputError: no such file, an unknown format, judgements instead of a run, or everything
            that is wrong in the file, such as a document twice or a score that is not a finite
            number, with the line where lines are records.
    """
    path = _existing(path, "run")
    log = ProblemLog()
    match _format_of(path):
        case "trec qrels":
            raise InputError(
                "holds judgements (query, iteration, document, grade), not a run; "
                "did you swap --qrels and --run?",
                file=str(path),
            )
        case "trec run":
            return Run("trec", dict(read_trec_run(path)))
        case "tsv":
            found = _read_table(path, log)
        case "json":
            found = read_json_run(path, log)
        case _:
            raise _unknown(path, "run", RUN_FORMATS)
    log.refuse()
    return found


def read_query_labels(path: Path) -> dict[str, dict[str, str]]:
    """Return query id -> ``{"query_type": …, "difficulty": …}`` of a file of queries in JSON.

    Its records are JSON lines or an array, with ``_id``, ``id``, ``query_id`` or ``query``. A label
    that is missing is empty.

    Raises:
        InputError: no such file, or everything that is wrong in it.
    """
    path = _existing(path, "queries")
    log = ProblemLog()
    found: dict[str, dict[str, str]] = {}
    for item in read_items(path, log):
        id_ = item.id("_id", "id", "query_id", "query")
        if not id_:
            item.report("id", "'_id' is missing")
        elif id_ in found:
            item.report("duplicate", f"duplicate query {id_!r}")
        else:
            found[id_] = {label: item.text(label) for label in QUERY_LABELS}
    log.refuse()
    return found


def look_like_scores(grades: dict[str, dict[str, float]]) -> bool:
    """Return whether most of the grades are fractions, as scores are and judgements rarely."""
    values = [grade for judged in grades.values() for grade in judged.values()]
    return sum(not grade.is_integer() for grade in values) * 2 > len(values)


def look_like_grades(answers: dict[str, Answer]) -> bool:
    """Return whether all of a run's scores are whole numbers from -2 to 5, as grades are."""
    values = [
        score
        for answer in answers.values()
        if isinstance(answer, dict)
        for score in answer.values()
    ]
    return bool(values) and all(value.is_integer() and -2 <= value <= 5 for value in values)


def _existing(path: Path, what: str) -> Path:
    path = Path(path).expanduser()
    if path.is_file():
        with path.open("rb") as stream:
            # Its bytes may look like any format's, by chance.
            if path.suffix != ".gz" and stream.read(2) == b"\x1f\x8b":
                raise InputError("is gzipped; let its name end in .gz", file=str(path))
        return path
    if path.is_dir():
        inside = [*beir_qrels(path), *trec_qrels(path)] if what == "judgements" else []
        hint = f", such as {str(inside[0])!r}" if inside else ""
        raise InputError(f"is a folder; give the file of the {what}{hint}", file=str(path))
    if path.exists():  # it is looked at twice, which a pipe does not allow
        raise InputError(f"is a pipe or a device; give the {what} as a file", file=str(path))
    siblings = path.parent.glob("*") if path.parent.is_dir() else ()
    hint = did_you_mean(path.name, (file.name for file in siblings))
    # Without a close match the hint lists everything that is there.
    raise InputError("no such file" + (hint if "did you mean" in hint else ""), file=str(path))


def _format_of(path: Path) -> str:
    """Return the format by the first lines, even if some of them are broken; else ""."""
    head = peek(path)
    if head.lstrip()[:1] in ("{", "["):
        return "json"
    lines = list(
        islice((line.rstrip("\r") for line in head.split("\n") if line.strip()), _LINES_LOOKED_AT)
    )
    header = lines[0].rstrip("\t").split("\t") if lines else [""]
    if len(header) > 2 and (index_before(header) or _header(header)):
        return "tsv"  # whatever the rows look like: with an index they have four fields
    seen = Counter(kind for kind in map(_kind_of_line, lines) if kind)
    return seen.most_common(1)[0][0] if seen else ""


def _kind_of_line(line: str) -> str:
    columns = line.count("\t") + 1
    if columns == 3 or (columns == 4 and line.endswith("\t")):
        return "tsv"  # before the others: an id may hold blanks here
    return {4: "trec qrels", 6: "trec run"}.get(len(line.split()), "")


def _unknown(path: Path, what: str, formats: str) -> InputError:
    log = ProblemLog()
    first = next(iter(read_lines(path, log)), None)
    if log.problems():
        return InputError(problems=log.problems())
    if first is None:
        return InputError("is empty", file=str(path))
    number, line = first
    mark = next((mark for mark in ";,|" if line.count(mark) > 1 and "\t" not in line), "")
    if mark:
        message = f"the fields are separated by {mark!r}; write them separated by tabs"
        message = f"not a known format of {what}: {message}"
        return InputError(message, file=str(path), line=number)
    message = f"not a known format of {what}: {line[:60]!r}; write {formats}"
    return InputError(message, file=str(path), line=number)


def _read_table(file: Path, log: ProblemLog) -> Run:
    """Read lines of query id, document id and score or rank, separated by tabs."""
    table = PairTable(file, log, "score")
    rows = read_separated(file, log)
    header = _header(rows[0][2]) if rows else ""
    for number, _, fields in rows[1:] if header else rows:
        table.add_fields(number, fields)
    table.check_any()
    answers = table.values
    if header == "rank" or (header != "score" and _count_up(answers.values())):
        return Run(
            "tsv of ranks",
            {query: sorted(ranks, key=ranks.__getitem__) for query, ranks in answers.items()},
        )
    return Run("tsv", dict(answers))


def _header(columns: Sequence[str]) -> str:
    """Return the name of the last column in lower case, or "" where the line is no header."""
    fields = [unquoted(field).strip().lower() for field in columns]
    is_header = fields[0] in QUERY_COLUMNS and parse_grade(fields[-1]) is None
    return fields[-1] if is_header else ""


def _count_up(answers: Collection[dict[str, float]]) -> bool:
    """Return whether the values of each query are 1, 2, 3, … in the order of the file."""
    rows = [list(answer.values()) for answer in answers]
    return any(len(row) > 1 for row in rows) and all(
        row == list(range(1, len(row) + 1)) for row in rows
    )
