"""What a question is, what the passages state, and how a question names an entity."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from passages import Passage, with_article
from tables import Atlas, Entity, choose, seeded

Path = tuple[tuple[str, str, str], ...]
ENGLISH_SPEAKING = (
    "United Kingdom",
    "United States",
    "England",
    "Scotland",
    "Wales",
    "Ireland",
    "Canada",
    "Australia",
    "New Zealand",
)
# Grades: a passage that the answer cannot be proved without, and one about an entity on the way.
NEEDED, HELPFUL = 2, 1
LISTS = ("languages", "neighbours", "connects", "countries", "award")
YEAR = re.compile(r"-(\d+)")


@dataclass(frozen=True)
class Question:
    """A question with its answer, its relevant passages by grade, and the paths that prove it.

    ``hidden`` entities may not be named by the text; ``rivals`` satisfy a part of the question, so
    that their passages belong into the corpus.
    """

    text: str
    answer: str
    query_type: str
    gold: dict[str, int]
    paths: tuple[Path, ...]
    pattern: str
    starts: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    has_alias: bool = False
    entities: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()

    @property
    def hops(self) -> int:
        """Return how many passages must be read one after the other."""
        by_type = {"bridge2": 2, "bridge3": 3, "comparison": 1 + bool(self.hidden)}
        if self.query_type == "intersection":
            return 1 if self.pattern.startswith("shared") else 2
        return by_type.get(self.query_type, 1)

    @property
    def difficulty(self) -> str:
        """Return easy, medium or hard by hops, passages to find, aliases and missing names."""
        needed = sum(grade == NEEDED for grade in self.gold.values())
        points = self.hops + (needed > 2) + self.has_alias + (self.query_type == "plain")
        return "easy" if points <= 1 else "medium" if points == 2 else "hard"


@dataclass(frozen=True, eq=False)
class World:
    """The entities, their passages, and what the passages state."""

    atlas: Atlas
    passages: dict[str, Passage]

    @cached_property
    def popularity(self) -> Counter[str]:
        """Count how many entities point to each entity."""
        found: Counter[str] = Counter()
        for entity in self.atlas.entities.values():
            values = {value for cell in entity.values.values() for value in cell}
            found.update(target.name for value in values if (target := self.atlas.linked(value)))
        return found

    def value(self, entity: Entity, column: str) -> str:
        """Return the one value of a column, if the entity's passage states it, or an empty string."""
        values = entity.values.get(column, ())
        return values[0] if len(values) == 1 and column in self.passages[entity.name].links else ""

    def target(self, entity: Entity, column: str) -> Entity | None:
        """Return the entity that the one value of a column names."""
        value = self.value(entity, column)
        return self.atlas.linked(value) if value else None


def printed(atlas: Atlas, value: str) -> str:
    """Return a value as an answer is written: an entity's base name, a year with its era."""
    entity = atlas.linked(value)
    if entity is not None:
        return entity.base
    era = YEAR.fullmatch(value)
    return f"{era[1]} BC" if era else value


def appears(name: str, text: str) -> bool:
    """Say whether a name occurs in a text as whole words, whatever its capitals."""
    return re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", text.casefold()) is not None


def names_of(entity: Entity) -> list[str]:
    return [name for name in (entity.base, *entity.aliases) if len(name) > 2]


def reveals(text: str, entity: Entity) -> bool:
    """Say whether a question names an entity that it should leave unnamed."""
    return any(appears(name, text) for name in names_of(entity))


def is_bare_surname(entity: Entity, alias: str) -> bool:
    """Say whether an alias is a surname that many others bear (English ones are the commonest)."""
    return (
        entity.kind == "person"
        and " " not in alias
        and entity.one("birth_country") in ENGLISH_SPEAKING
    )


def reference(
    atlas: Atlas, entity: Entity, *seed: object, wants_alias: bool | None = None
) -> tuple[str, bool] | None:
    """Name an entity in a question so that it can only be this one; None where that fails.

    Returns the text and whether it is an alias.
    """
    aliases = [
        alias
        for alias in entity.aliases
        if len(alias) > 3
        and not is_bare_surname(entity, alias)
        and atlas.resolve(alias) is entity
        and not alias.startswith(("The ", "Venice of", "Paris of"))
    ]
    wants = (
        wants_alias if wants_alias is not None else seeded("alias", entity.name, *seed) % 100 < 28
    )
    if wants and aliases:
        return with_article(choose(aliases, entity.name, *seed), entity.kind), True
    form = entity.one("form") or entity.kind
    same = [
        other
        for other in atlas.names[entity.base]
        if (atlas.entities[other].one("form") or atlas.entities[other].kind) == form
    ]
    if len(atlas.names[entity.base]) == 1 and not (
        entity.kind == "work" and seeded("form", entity.name, *seed) % 2
    ):
        return with_article(entity.base, entity.kind), False
    if len(same) != 1 or " or " in form:
        return None
    if form in entity.base.lower() and len(atlas.names[entity.base]) == 1:
        return with_article(entity.base, entity.kind), False  # not "the symphony Jupiter Symphony"
    return f"the {form} {entity.base}", False
