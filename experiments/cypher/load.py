"""Load a data set with triples into ladybug: ``python experiments/cypher/load.py FOLDER FILE``.

Passages, names and what mentions what; each triple is a link between two names, with the passage
that states it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ladybug
import pandas as pd

from tuner import open_dataset

TABLES = (
    "CREATE NODE TABLE Passage(id STRING, title STRING, text STRING, PRIMARY KEY(id))",
    "CREATE NODE TABLE Entity(name STRING, PRIMARY KEY(name))",
    "CREATE REL TABLE Mentions(FROM Passage TO Entity)",
    "CREATE REL TABLE Related(FROM Entity TO Entity, relation STRING, passage STRING)",
)


def load(folder: str, file: str) -> None:
    """Write the file; one that is there is replaced."""
    corpus = open_dataset(folder).corpus
    facts = pd.DataFrame(
        [(one.subject, one.object, one.relation, one.document_id) for one in corpus.triples],
        columns=["subject", "object", "relation", "passage"],
    )
    mentions = pd.concat([
        facts[["passage", "subject"]].set_axis(["passage", "name"], axis=1),
        facts[["passage", "object"]].set_axis(["passage", "name"], axis=1),
    ]).drop_duplicates()  # fmt: skip
    passages = pd.DataFrame(
        [(one.id, one.title, one.text) for one in corpus.documents],
        columns=["id", "title", "text"],
    )
    names = pd.DataFrame({"name": sorted(set(mentions["name"]))})
    Path(file).unlink(missing_ok=True)
    database = ladybug.Database(file)
    connection = ladybug.Connection(database)
    for table in TABLES:
        connection.execute(table)
    for name, rows in [
        ("Passage", passages),
        ("Entity", names),
        ("Mentions", mentions),
        ("Related", facts),
    ]:
        connection.execute(f"COPY {name} FROM $rows", {"rows": rows})
    connection.close()
    database.close()


if __name__ == "__main__":
    load(sys.argv[1], sys.argv[2])
