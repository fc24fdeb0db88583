"""A corpus as the knowledge graph that LightRAG's ``insert_custom_kg`` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tuner.core.corpus import Corpus, Triple
from tuner.core.errors import InputError
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
    documents: dict[str, None] = field(default_factory=dict)
    times: int = 0

    def add(self, document_id: str, statement: str = "", relation: str = "") -> None:
        """Take up one mention."""
        self.times += 1
        self.documents.setdefault(document_id)
        if statement and len(self.statements) < _STATEMENTS:
            self.statements.setdefault(statement)
        if relation and len(self.relations) < _STATEMENTS:
            self.relations.setdefault(relation)


@dataclass(frozen=True)
class Knowledge:
    """Passages by document id, and entities and pairs of entities found in them.

    ``steps`` holds the facts between two entities as the corpus states them, since LightRAG stores
    a pair without its direction; its keys are in alphabetical order.
    """

    passages: Mapping[str, str]
    entities: Mapping[str, Found]
    pairs: Mapping[tuple[str, str], Found]
    steps: Mapping[tuple[str, str], tuple[tuple[str, str, str], ...]]

    def custom_kg(self) -> dict[str, Any]:
        """Return the argument of ``insert_custom_kg``.

        It takes one source for each entity and relation; all of them are set afterwards.
        """
        return {
            "chunks": [
                {"content": text, "source_id": id_, "file_path": id_}
                for id_, text in self.passages.items()
            ],
            "entities": [
                {
                    "entity_name": name,
                    "entity_type": "UNKNOWN",
                    "description": ". ".join(found.statements) or name,
                    "source_id": next(iter(found.documents)),
                }
                for name, found in self.entities.items()
            ],
            "relationships": [
                {
                    "src_id": first,
                    "tgt_id": second,
                    "description": ". ".join(found.statements),
                    "keywords": ", ".join(found.relations),
                    "source_id": next(iter(found.documents)),
                    "weight": float(found.times),
                }
                for (first, second), found in self.pairs.items()
            ],
        }


def read_knowledge(corpus: Corpus, normalise: Callable[[str], str]) -> Knowledge:
    """Collect entities and relations from the corpus's triples and entities.

    A corpus with neither gets a graph of mentions: a passage's own name is linked to the
    capitalised phrases in its text. ``normalise`` is LightRAG's own rule for names; a name of which
    it leaves nothing is skipped, and so is a relation of a name with itself.

    Raises:
        InputError: no document, two documents with one id, or one without any text.
    """
    texts = passages(corpus)
    for id_, text in texts.items():
        if not text:
            raise InputError(f"document {id_!r} has neither title nor text")
    entities: dict[str, Found] = {}
    pairs: dict[tuple[str, str], Found] = {}
    steps: dict[tuple[str, str], dict[tuple[str, str, str], None]] = {}
    for triple in corpus.triples or _mentions(corpus):
        subject, object_ = normalise(triple.subject), normalise(triple.object)
        if triple.document_id not in texts or not subject or not object_:
            continue
        statement = f"{triple.subject} {triple.relation} {triple.object}"
        for name in dict.fromkeys((subject, object_)):
            entities.setdefault(name, Found()).add(triple.document_id, statement)
        if subject != object_:
            pair = (min(subject, object_), max(subject, object_))
            relation = triple.relation or "related to"
            pairs.setdefault(pair, Found()).add(triple.document_id, statement, relation)
            step = (triple.subject, triple.relation, triple.object)
            steps.setdefault(pair, {}).setdefault(step)
    for document_id, names in corpus.entities.items():
        for name in filter(None, map(normalise, names)):
            if document_id in texts:
                entities.setdefault(name, Found()).add(document_id)
    return Knowledge(texts, entities, pairs, {pair: tuple(facts) for pair, facts in steps.items()})


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
