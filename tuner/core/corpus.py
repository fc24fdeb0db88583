"""Documents, queries and graph facts: the records that data sets provide and retrievers consume."""

from __future__ import annotations

from dataclasses import dataclass, field

from tuner.core.json_text import fingerprint_of_lists


@dataclass(frozen=True, slots=True)
class Document:
    """One passage. ``title`` may be empty; ``id`` is always a string, whatever it looks like."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Query:
    """One question. The fields beyond its text are empty where the source has none."""

    id: str
    text: str
    query_type: str = ""
    difficulty: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Triple:
    """One fact (subject, relation, object) that was found in the document ``document_id``."""

    document_id: str
    subject: str
    relation: str
    object: str


@dataclass(frozen=True)
class Corpus:
    """What a retriever may see: documents, and facts found in them. Never the judgements.

    ``entities`` maps a document id to the names found in it.
    """

    documents: tuple[Document, ...]
    triples: tuple[Triple, ...] = ()
    entities: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fingerprint: str = ""


def corpus_fingerprint(corpus: Corpus) -> str:
    """Hash the documents, triples and entities of a corpus: SHA-256 in hexadecimal.

    The order of documents and triples counts, since an index on disk points into it.
    """
    return fingerprint_of_lists(
        (
            ([d.id, d.title, d.text] for d in corpus.documents),
            ([t.document_id, t.subject, t.relation, t.object] for t in corpus.triples),
            sorted(corpus.entities.items()),
        )
    )
