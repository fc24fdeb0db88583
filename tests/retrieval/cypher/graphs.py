"""A small graph in a file of ladybug's: who directed what, and where they were born."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tuner.core.corpus import Corpus, Document, Query, Triple

DOCUMENTS = (
    Document("10", "Night Ferry", "Night Ferry is a film directed by Ada Holm in 1954."),
    Document("11", "Ada Holm", "Ada Holm was a director. She was born in Kvarnby."),
    Document("12", "Kvarnby", "Kvarnby is a town on the river Lissa."),
    Document("13", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
    Document("14", "Per Lund", "Per Lund was born in Kvarnby, too."),
)
IDS = {document.id for document in DOCUMENTS}
TRIPLES = (
    Triple("10", "Night Ferry", "directed by", "Ada Holm"),
    Triple("11", "Ada Holm", "born in", "Kvarnby"),
    Triple("12", "Kvarnby", "lies on", "Lissa"),
    Triple("13", "Day Ferry", "directed by", "Per Lund"),
    Triple("14", "Per Lund", "born in", "Kvarnby"),
)
CORPUS = Corpus(DOCUMENTS, TRIPLES, fingerprint="five-passages")
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "who directed day ferry"),
    Query("d", "zymurgy"),
)
SCHEMA = (
    "CREATE NODE TABLE Passage(id STRING, title STRING, PRIMARY KEY(id))",
    "CREATE NODE TABLE Entity(name STRING, PRIMARY KEY(name))",
    "CREATE REL TABLE Mentions(FROM Passage TO Entity)",
    "CREATE REL TABLE Related(FROM Entity TO Entity, name STRING, passage STRING)",
)

SEEDS = """
    MATCH (e:Entity) WHERE contains(lower($query), lower(e.name))
    RETURN e.name AS id, size(e.name) AS score ORDER BY score DESC, id LIMIT $seeds
"""
GRAPH = """
    MATCH (e:Entity)-[:Related*0..{hops}]-(f:Entity)<-[:Mentions]-(p:Passage)
    WHERE e.name IN $ids
    RETURN p.id AS id, count(*) AS score ORDER BY score DESC, id LIMIT $depth
"""
STEPS = [{"seeds": SEEDS}, {"graph": GRAPH}]
BASELINE = {"seeds": 3, "hops": 1, "depth": 10, "top_k": 5}


def write_graph(path: Path, corpus: Corpus = CORPUS, *, rows: bool = True) -> Path:
    """Load passages and triples into a file, or nothing but the tables."""
    import ladybug

    database = ladybug.Database(str(path))
    connection = ladybug.Connection(database)
    fill(connection, corpus if rows else Corpus(()))
    connection.close()
    database.close()
    return path


def fill(connection: Any, corpus: Corpus) -> None:
    for statement in SCHEMA:
        connection.execute(statement)
    for document in corpus.documents:
        given = {"id": document.id, "title": document.title}
        connection.execute("CREATE (:Passage {id: $id, title: $title})", given)
    mentioned = {(t.document_id, name) for t in corpus.triples for name in (t.subject, t.object)}
    for name in sorted({name for _, name in mentioned}):
        connection.execute("CREATE (:Entity {name: $name})", {"name": name})
    for id_, name in sorted(mentioned):
        connection.execute(
            "MATCH (p:Passage {id: $id}), (e:Entity {name: $name}) CREATE (p)-[:Mentions]->(e)",
            {"id": id_, "name": name},
        )
    for triple in corpus.triples:
        connection.execute(
            "MATCH (a:Entity {name: $subject}), (b:Entity {name: $object}) "
            "CREATE (a)-[:Related {name: $relation, passage: $passage}]->(b)",
            {
                "subject": triple.subject,
                "object": triple.object,
                "relation": triple.relation,
                "passage": triple.document_id,
            },
        )
