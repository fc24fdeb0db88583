"""A corpus as the knowledge graph that LightRAG's ``insert_custom_kg`` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuner.core.corpus import Corpus, Triple
from tuner.core.errors import InputError
from tuner.core.words import fold
from tuner.retrieval.adapters.embedding import passages
from tuner.retrieval.hybrid.names import own_names, phrases

# LightRAG has a language model shorten what many passages say of one entity; we stop reading.
_STATEMENTS = 20
# LightRAG's own limit to the passages that an entity or relation points back to.
SOURCES = 200
MENTIONS = "mentions"


@dataclass
class Found:
    """What the corpus says of one entity, or of one pair of entities, in the order of reading."""

    statements: dict[str, None] = field(default_factory=dict)
    relations: dict[str, None] = field(default_factory=dict)
    chunks: dict[str, None] = field(default_factory=dict)
    times: int = 0

    def add(self, chunks: Iterable[str], statement: str = "", relation: str = "") -> None:
        """Take up one mention, which stands in these chunks."""
        self.times += 1
        self.chunks.update(dict.fromkeys(chunks))
        if statement and len(self.statements) < _STATEMENTS:
            self.statements.setdefault(statement)
        if relation and len(self.relations) < _STATEMENTS:
            self.relations.setdefault(relation)


@dataclass(frozen=True)
class Chunk:
    """A part of a document, or all of it."""

    document_id: str
    text: str


@dataclass(frozen=True)
class Knowledge:
    """Chunks by an id of their own, and entities and pairs of entities found in them.

    ``steps`` holds the facts between two entities as the corpus states them, since LightRAG stores
    a pair without its direction; its keys are in alphabetical order.
    """

    chunks: Mapping[str, Chunk]
    entities: Mapping[str, Found]
    pairs: Mapping[tuple[str, str], Found]
    steps: Mapping[tuple[str, str], tuple[tuple[str, str, str], ...]]

    def custom_kg(self) -> dict[str, Any]:
        """Return the argument of ``insert_custom_kg``.

        It takes one source for each entity and relation; all of them are set afterwards.
        """
        return {
            "chunks": [
                {"content": chunk.text, "source_id": id_, "file_path": chunk.document_id}
                for id_, chunk in self.chunks.items()
            ],
            "entities": [
                {
                    "entity_name": name,
                    "entity_type": "UNKNOWN",
                    "description": ". ".join(found.statements) or name,
                    "source_id": next(iter(found.chunks)),
                }
                for name, found in self.entities.items()
            ],
            "relationships": [
                {
                    "src_id": first,
                    "tgt_id": second,
                    "description": ". ".join(found.statements),
                    "keywords": ", ".join(found.relations),
                    "source_id": next(iter(found.chunks)),
                    "weight": float(found.times),
                }
                for (first, second), found in self.pairs.items()
            ],
        }


def read_knowledge(
    corpus: Corpus,
    normalise: Callable[[str], str],
    cut: Callable[[str], Sequence[str]] = lambda text: [text],
) -> Knowledge:
    """Collect entities and relations from the corpus's triples and entities.

    A corpus with neither gets a graph of mentions: a passage's own name is linked to the
    capitalised phrases in its text. ``normalise`` is LightRAG's own rule for names; a name of which
    it leaves nothing is skipped, and so is a relation of a name with itself. ``cut`` is LightRAG's
    own rule for the chunks of a text; a fact belongs to those of its document that have its names.

    Raises:
        InputError: no document, two documents with one id, or one without any text.
    """
    texts = passages(corpus)
    for id_, text in texts.items():
        if not text:
            raise InputError(f"document {id_!r} has neither title nor text")
    chunks = {id_: cut(text) for id_, text in texts.items()}
    places = {id_: Places(id_, parts) for id_, parts in chunks.items()}
    entities: dict[str, Found] = {}
    pairs: dict[tuple[str, str], Found] = {}
    steps: dict[tuple[str, str], dict[tuple[str, str, str], None]] = {}
    for triple in corpus.triples or _mentions(corpus):
        subject, object_ = normalise(triple.subject), normalise(triple.object)
        if triple.document_id not in texts or not subject or not object_:
            continue
        statement = f"{triple.subject} {triple.relation} {triple.object}"
        place = places[triple.document_id]
        for name in dict.fromkeys((subject, object_)):
            entities.setdefault(name, Found()).add(place.of(name), statement)
        if subject != object_:
            pair = (min(subject, object_), max(subject, object_))
            relation = triple.relation or "related to"
            pairs.setdefault(pair, Found()).add(place.of(*pair), statement, relation)
            step = (triple.subject, triple.relation, triple.object)
            steps.setdefault(pair, {}).setdefault(step)
    for document_id, names in corpus.entities.items():
        for name in filter(None, map(normalise, names)):
            if document_id in texts:
                entities.setdefault(name, Found()).add(places[document_id].of(name))
    return Knowledge(
        {
            chunk_name(id_, number): Chunk(id_, part)
            for id_, parts in chunks.items()
            for number, part in enumerate(parts)
        },
        entities,
        pairs,
        {pair: tuple(facts) for pair, facts in steps.items()},
    )


def chunk_name(document_id: str, number: int) -> str:
    """Return the id of a document's chunk, counted from 0; no two are equal."""
    return f"{document_id}#{number}"


class Places:
    """Where in a document its names stand."""

    def __init__(self, document_id: str, chunks: Sequence[str]) -> None:
        self._names = [chunk_name(document_id, number) for number in range(len(chunks))]
        self._texts = [fold(chunk) for chunk in chunks] if len(chunks) > 1 else []

    def of(self, *names: str) -> Sequence[str]:
        """Return the chunks with most of these names; all, where none is written so."""
        if not self._texts:
            return self._names
        wanted = [fold(name) for name in names]
        counts = [sum(name in text for name in wanted) for text in self._texts]
        most = max(counts)
        return [name for name, count in zip(self._names, counts, strict=True) if count == most]


def _mentions(corpus: Corpus) -> Iterator[Triple]:
    """Link each passage's own name to the names in it: those given, else capitalised phrases."""
    for document in corpus.documents:
        own = own_names(document)
        if not own:
            continue
        if corpus.entities:
            subject = document.title or " ".join(own[0])
            names = list(corpus.entities.get(document.id, ()))
        else:
            # The last form is the title without parentheses, as other passages would write it.
            subject = " ".join(own[-1])
            names = [" ".join(name) for name in phrases(document.text)]
        for name in dict.fromkeys(names):
            yield Triple(document.id, subject, MENTIONS, name)
