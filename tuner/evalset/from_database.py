"""A corpus and its facts out of a graph database, by one statement of Cypher for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tuner.core.corpus import Corpus, Document, Triple, corpus_fingerprint
from tuner.core.errors import InputError, OutageError, TunerError, one_line, refuse
from tuner.core.outages import is_outage
from tuner.core.shown import joined
from tuner.retrieval.adapters.cypher.address import Address
from tuner.retrieval.adapters.cypher.database import Database, open_database
from tuner.retrieval.adapters.cypher.statement import Statement

DOCUMENTS = ("id", "title", "text")
TRIPLES = ("doc_id", "subject", "relation", "object")
# Whole tables are read, once.
TIMEOUT_S = 600.0


def read_database(database: str, *, documents: str, triples: str) -> Corpus:
    """Read the documents and facts of a graph; it is only read.

    Args:
        database: a file of ladybug's or a server's address, as for ``kind: cypher``.
        documents: a statement that returns columns ``id``, ``title`` and ``text``.
        triples: one that returns ``doc_id``, ``subject``, ``relation`` and ``object``; ``doc_id``
            is the document that states the fact.

    Raises:
        InputError: a statement that would write, reads parameters, or returns something else.
        OutageError: the server does not answer.
        TunerError: the database cannot be opened, or does not understand a statement.
    """
    address = Address.read(database)
    for option, text in (("documents", documents), ("triples", triples)):
        refuse(InputError(why, key=(option,)).problems[0] for why in _problems(Statement(text)))
    opened = open_database(address, TIMEOUT_S)
    found = [Document(*row) for row in _rows(opened, address, "documents", documents, DOCUMENTS)]
    facts = [Triple(*row) for row in _rows(opened, address, "triples", triples, TRIPLES)]
    known = {document.id for document in found}
    if len(known) < len(found):
        raise InputError("returns an id twice", key=("documents",))
    for number, fact in enumerate(facts, start=1):
        if fact.document_id not in known:
            message = f"row {number}: no document has the id {fact.document_id!r}"
            raise InputError(message, key=("triples",))
    corpus = Corpus(
        tuple(sorted(found, key=lambda document: document.id)),
        tuple(sorted(facts, key=lambda fact: tuple(_cells(fact)))),
    )
    return replace(corpus, fingerprint=corpus_fingerprint(corpus))


def _problems(statement: Statement) -> Iterator[str]:
    yield from statement.problems()
    for name in statement.names:
        yield f"reads {name!r}, and nothing is sent beside it: write the value itself"


def _cells(fact: Triple) -> tuple[str, ...]:
    return fact.document_id, fact.subject, fact.relation, fact.object


def _rows(
    opened: Database, address: Address, option: str, text: str, columns: Sequence[str]
) -> Iterator[list[str]]:
    """Yield the rows of a statement with their cells in the order of ``columns``, as texts."""
    try:
        table = opened.ask(text, {})
    except Exception as error:
        kind = OutageError if is_outage(error) else TunerError
        raise kind(f"{option}: {address.hidden(one_line(error))}: {Statement(text)}") from None
    if set(table.columns) != set(columns):
        message = f"returns {', '.join(table.columns)}; name its columns {joined(columns)}"
        raise InputError(message, key=(option,))
    if not table.rows:
        raise InputError(f"finds nothing: {Statement(text)}", key=(option,))
    places = [list(table.columns).index(column) for column in columns]
    for number, row in enumerate(table.rows, start=1):
        cells = [row[place] for place in places]
        missing = [n for n, cell in zip(columns, cells, strict=True) if cell is None]
        if missing:
            raise InputError(f"row {number} has no {missing[0]}", key=(option,))
        yield [str(cell) for cell in cells]
