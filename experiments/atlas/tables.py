"""Read the fact tables into entities and facts, with the links between entities resolved."""

from __future__ import annotations

import csv
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
FACTS = Path(__file__).parent / "facts"
# Another name, another choice of questions, wordings and passages from the same facts.
WORLD = os.environ.get("ATLAS_WORLD", "")
KINDS = {
    "countries": "country",
    "cities": "city",
    "rivers": "river",
    "mountains": "mountain",
    "ranges": "region",
    "lakes_islands": "lake or island",
    "waters": "water",
    "landmarks": "landmark",
    "people": "person",
    "works": "work",
    "discoveries": "discovery",
    "institutions": "institution",
}


@dataclass(frozen=True)
class Entity:
    """One row of a fact table; ``values[column]`` holds the cell split at ``|``."""

    name: str
    kind: str
    aliases: tuple[str, ...]
    values: dict[str, tuple[str, ...]]

    @property
    def base(self) -> str:
        """Return the name without its parenthesis, as running text writes it."""
        return re.sub(r" \([^)]*\)$", "", self.name)

    def one(self, column: str) -> str:
        """Return the first value of a column, or an empty string."""
        return next(iter(self.values.get(column, ())), "")


@dataclass(frozen=True)
class Atlas:
    """All entities by name, and the names that an alias may stand for."""

    entities: dict[str, Entity]
    names: dict[str, tuple[str, ...]]

    def resolve(self, value: str) -> Entity | None:
        """Return the entity that a value names, or None where it names none or several."""
        if value in self.entities:
            return self.entities[value]
        found = self.names.get(value, ())
        return self.entities[found[0]] if len(found) == 1 else None

    def linked(self, value: str) -> Entity | None:
        """Return the entity that a cell of a table names: by its exact name, a city by any name.

        Not by other aliases: the year 1984 is no novel, and the state of Hesse no novelist.
        """
        entity = self.resolve(value)
        return entity if entity and (entity.name == value or entity.kind == "city") else None

    def of_kind(self, kind: str) -> list[Entity]:
        return [entity for entity in self.entities.values() if entity.kind == kind]


def seeded(*parts: object) -> int:
    """Return a number that depends on the parts alone, on every machine and Python version.

    In another world than the committed one, on the world's name too.
    """
    text = "\x1f".join(str(part) for part in ((WORLD, *parts) if WORLD else parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def choose(options: Sequence[Item], *parts: object) -> Item:
    """Pick one of the options by the hash of the parts."""
    return options[seeded(*parts) % len(options)]


def shuffled(items: Iterable[Item], *parts: object) -> list[Item]:
    """Return the items in an order that depends on the parts and on each item's own text."""
    return sorted(items, key=lambda item: seeded(*parts, item))


def load(folder: Path = FACTS) -> Atlas:
    """Read every known table of the folder; a name that occurs twice is an error."""
    entities: dict[str, Entity] = {}
    for stem, kind in KINDS.items():
        path = folder / f"{stem}.tsv"
        if not path.exists():
            continue
        with path.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                cells = {
                    column: tuple(part.strip() for part in (cell or "").split("|") if part.strip())
                    for column, cell in row.items()
                    if column
                }
                name = cells.pop("name")[0]
                if name in entities:
                    raise ValueError(f"{path.name}: {name!r} is also in another table or row")
                entities[name] = Entity(name, kind, cells.pop("aliases", ()), cells)
    names: dict[str, set[str]] = defaultdict(set)
    for entity in entities.values():
        for text in (entity.name, entity.base, *entity.aliases):
            names[text].add(entity.name)
    return Atlas(entities, {text: tuple(sorted(found)) for text, found in names.items()})
