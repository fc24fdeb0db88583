"""Write the Atlas data set with its triples: ``python experiments/atlas/triples.py FOLDER``.

The facts of the tables that link two entities, each with the passage that states it: as a perfect
extraction would find them. A fact whose passage does not name the other entity is left out, and so
is the one that another passage states.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from passages import omitted
from tables import Atlas, Entity, load

ATLAS = Path(__file__).parents[2] / "tuner" / "datasets" / "atlas"


def triples() -> Iterator[dict[str, str]]:
    """Yield the facts that the passages state, in the order of the passages."""
    atlas = load()
    skip = omitted(atlas)
    with (ATLAS / "corpus.jsonl").open(encoding="utf-8") as lines:
        for passage in map(json.loads, lines):
            entity = atlas.entities.get(passage["title"])
            if entity is not None:
                yield from _stated(atlas, entity, skip, passage)


def _stated(
    atlas: Atlas, entity: Entity, skip: set[tuple[str, str]], passage: dict[str, str]
) -> Iterator[dict[str, str]]:
    for column, values in entity.values.items():
        if (entity.name, column) in skip:
            continue
        for value in values:
            other = atlas.linked(value)
            if other is None or other.name == entity.name:
                continue
            names = (other.name, other.base, *other.aliases)
            if any(name in passage["text"] for name in names):
                yield {
                    "doc_id": passage["_id"],
                    "subject": entity.name,
                    "relation": column.replace("_", " "),
                    "object": other.name,
                }


def write(folder: Path) -> None:
    """Write the data set and its triples into a new folder."""
    shutil.copytree(ATLAS, folder, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    lines = [json.dumps(triple, ensure_ascii=False) for triple in triples()]
    (folder / "triples.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
