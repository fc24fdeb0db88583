"""Read a GraphRAG output folder: its text units, their documents, entities and relationships.

Text units are judged by their own ids, or by those of the data set's documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Annotated, Any

from tuner.core.corpus import Corpus, Triple
from tuner.core.errors import InputError, Problem, did_you_mean

JUDGE = ("document", "text_unit")

JudgedBy = Annotated[str, "whose ids the judgements name: `document` or `text_unit`"]


def judged_ids(output: Output, corpus: Corpus, judge: object) -> dict[str, str]:
    """Return text unit id -> the id that it is judged by.

    Under ``"text_unit"`` these are the text units' own ids, and the data set's corpus, where it
    has one, must hold some of them. Under ``"document"`` a text unit counts as its document, and
    that is the document of the data set with the same id; or with GraphRAG's title as its id; or
    with that title less its ending (``d1.txt`` is ``d1``). The first of these three rules under
    which every document of the folder is in the data set holds for all of them.

    Raises:
        InputError: another value of ``judge``, or no rule under which the two fit together.
    """
    if judge not in JUDGE:
        message = f"{judge!r} is not one of {', '.join(JUDGE)}{did_you_mean(str(judge), JUDGE)}"
        raise InputError(message, key=("judge",))
    known = {document.id for document in corpus.documents}
    if judge == "text_unit":
        if known and known.isdisjoint(unit.id for unit in output.units):
            message = (
                f"none of the data set's documents, such as {min(known)!r}, is a text unit of the "
                f"folder, such as {output.units[0].id!r}; write judge: document"
            )
            raise InputError(message, key=("judge",))
        return {unit.id: unit.id for unit in output.units}
    if not known:
        message = "judge: document needs the data set's corpus; the data set has judgements alone"
        raise InputError(message, key=("judge",))
    used = {unit.document_id for unit in output.units}
    titles = {id_: title for id_, title in output.titles.items() if id_ in used}
    rules = {  # the safest first
        "id": {id_: id_ for id_ in titles},
        "title": titles,
        "file name": {id_: PurePath(title).stem for id_, title in titles.items()},
    }
    lost: dict[str, list[str]] = {}
    for name, called in rules.items():
        lost[name] = [id_ for id_ in called.values() if id_ not in known]
        if not lost[name]:
            return {unit.id: called[unit.document_id] for unit in output.units}
    found = ", ".join(f"{len(titles) - len(ids)} by {name}" for name, ids in lost.items())
    nearest = min(lost, key=lambda name: len(lost[name]))
    message = (
        f"of the folder's {len(titles)} documents the data set has {found}; the {nearest} "
        f"{lost[nearest][0]!r} is not one of its ids, such as {min(known)!r}. "
        "Index the data set's corpus.jsonl with id_column: _id, or write judge: text_unit"
    )
    raise InputError(message, key=("judge",))


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "documents": ("id", "title"),
    "text_units": ("id", "human_readable_id", "text", "document_id"),
    "entities": ("title", "text_unit_ids"),
    "relationships": ("source", "target", "description", "text_unit_ids"),
}
"""The files that are read, without ``.parquet``, and the columns that each must have."""

# Until GraphRAG 2 a text unit had a list of documents, nearly always of one.
_OLDER_NAMES = {"document_id": "document_ids"}


@dataclass(frozen=True)
class TextUnit:
    """One chunk of a document; ``short_id`` is what GraphRAG calls human_readable_id."""

    id: str
    short_id: str
    text: str
    document_id: str


@dataclass(frozen=True)
class Output:
    """What a folder holds.

    Attributes:
        titles: document id -> title, which is the file's name where text files were indexed.
        entities: text unit id -> titles of the entities found in it; every unit has an entry.
        triples: the relationships, one for each text unit that they were found in; its
            ``document_id`` is the text unit's id.
    """

    folder: Path
    units: tuple[TextUnit, ...]
    titles: Mapping[str, str]
    entities: Mapping[str, tuple[str, ...]]
    triples: tuple[Triple, ...]


def table_path(folder: Path, table: str) -> Path:
    """Return where a folder has one of its tables."""
    return folder / f"{table}.parquet"


def read_output(folder: Path) -> Output:
    """Read and check an output folder, made by GraphRAG 2 or 3.

    Raises:
        InputError: everything that is wrong, with file and column, all at once.
    """
    check_folder(folder)
    reader = _Reader(folder)
    rows = {table: list(reader.rows(table)) for table in COLUMNS}
    reader.raise_problems()
    titles = {_text(row["id"]): _text(row["title"]) for row in rows["documents"]}
    units = tuple(_units(rows["text_units"], titles, reader))
    known = {unit.id for unit in units}
    entities: dict[str, list[str]] = {unit.id: [] for unit in units}
    for row in rows["entities"]:
        for id_ in known.intersection(row["text_unit_ids"] or ()):
            entities[id_].append(_text(row["title"]))
    triples = tuple(
        Triple(id_, _text(row["source"]), _text(row["description"]), _text(row["target"]))
        for row in rows["relationships"]
        for id_ in row["text_unit_ids"] or ()
        if id_ in known
    )
    if units and not any(entities.values()):
        message = (
            "names none of the text units in text_units.parquet; are the files of one run?"
            if rows["entities"]
            else "holds no entity, so there is no graph"
        )
        reader.report(message, "entities", "text_unit_ids" if rows["entities"] else "")
    reader.raise_problems()
    return Output(
        folder, units, titles, {id_: tuple(names) for id_, names in entities.items()}, triples
    )


def _units(
    rows: list[dict[str, Any]], titles: Mapping[str, str], reader: _Reader
) -> Iterator[TextUnit]:
    if not rows:
        reader.report("holds no text unit", "text_units")
    seen: set[str] = set()
    for row in rows:
        id_, documents = _text(row["id"]), row["document_id"]
        if isinstance(documents, list):
            if len(documents) > 1:
                message = f"text unit {id_[:12]!r} is of {len(documents)} documents; one is needed"
                reader.report(message, "text_units", _OLDER_NAMES["document_id"])
            documents = documents[0] if documents else None
        document_id = _text(documents)
        if document_id not in titles:
            message = f"text unit {id_[:12]!r}: no document has the id {document_id!r}"
            reader.report(message, "text_units", "document_id")
        if not id_ or id_ in seen:
            reader.report(f"the id {id_!r} is empty or there twice", "text_units", "id")
        seen.add(id_)
        yield TextUnit(id_, _text(row["human_readable_id"]), _text(row["text"]), document_id)


def _text(value: object) -> str:
    return "" if value is None else str(value)


_MOST_SHOWN = 20
# Where GraphRAG 0 and 1 wrote to: below a folder named by the time of the run.
_OLDER_PLACES = ("", "artifacts", "*/artifacts", "output", "output/*/artifacts")


def _older_tables(folder: Path) -> Path | None:
    """Return the folder that holds tables under the names of GraphRAG 0 and 1, the latest one."""
    for place in _OLDER_PLACES:
        for found in sorted(folder.glob(place), reverse=True) if place else [folder]:
            if any(found.glob("create_final_*.parquet")):
                return found
    return None


def check_folder(folder: Path, key: tuple[str, ...] = ("path",)) -> None:
    """Refuse what is no output folder at all, and point to one that is near.

    Raises:
        InputError: it has no tables of GraphRAG 2 or 3; ``key`` is the option that names it.
    """
    if table_path(folder, "text_units").is_file():
        return
    if not folder.is_dir():
        raise InputError("no such folder", file=str(folder), key=key)
    older = _older_tables(folder)
    if older is not None:
        where = "" if older == folder else f" below {older.relative_to(folder)}"
        message = (
            f"holds create_final_*.parquet{where}, made by GraphRAG 0 or 1; the tables of "
            "version 2 or 3 are needed: index again, or migrate them as GraphRAG's notes on "
            "breaking changes say"
        )
        raise InputError(message, file=str(folder), key=key)
    below = folder / "output"
    if table_path(below, "text_units").is_file():
        message = f"holds no GraphRAG tables; did you mean {str(below)!r}?"
        raise InputError(message, file=str(folder), key=key)
    if not any(table_path(folder, table).exists() for table in COLUMNS):
        names = ", ".join(f"{table}.parquet" for table in COLUMNS)
        message = f"holds none of GraphRAG's tables ({names}); is it where the index was made?"
        raise InputError(message, file=str(folder), key=key)


@dataclass(frozen=True)
class _Reader:
    """Reads the tables of one folder, and collects what is wrong with them."""

    folder: Path
    problems: list[Problem] = field(default_factory=list)

    def report(self, message: str, table: str, column: str = "") -> None:
        key = (column,) if column else ()
        self.problems.append(Problem(message, file=str(table_path(self.folder, table)), key=key))

    def raise_problems(self) -> None:
        shown = self.problems[:_MOST_SHOWN]
        if len(self.problems) > len(shown):
            more = f"and {len(self.problems) - len(shown)} more like these"
            shown.append(Problem(more, file=str(self.folder)))
        if shown:
            raise InputError(problems=shown)

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table by the names in ``COLUMNS``; nothing after a report."""
        from pyarrow import ArrowException, parquet

        path = table_path(self.folder, table)
        try:
            there = parquet.read_schema(path).names
            column_of = {
                name: name if name in there else _OLDER_NAMES.get(name, name)
                for name in COLUMNS[table]
            }
            missing = [name for name, column in column_of.items() if column not in there]
            for name in missing:
                self.report(f"no such column; the columns are: {', '.join(there)}", table, name)
            if missing:
                return
            # Rows of dictionaries would convert the long texts of columns that nobody reads.
            columns = parquet.read_table(path, columns=list(column_of.values())).to_pydict()
            for column in {"text_unit_ids"} & columns.keys():
                if any(not isinstance(value, list | None) for value in columns[column]):
                    self.report("is to hold lists of the ids of text units", table, column)
                    return
        except FileNotFoundError:
            self.report("no such file", table)
        except (OSError, ArrowException) as error:
            reason = " ".join(str(error).split())
            self.report(f"cannot be read as parquet: {reason}", table)
        else:
            values = (columns[column] for column in column_of.values())
            for row in zip(*values, strict=True):
                yield dict(zip(column_of, row, strict=True))
