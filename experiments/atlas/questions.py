"""What a question is, how it names entities, and the direct and bridge questions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from passages import MAKERS, Passage, capital_first, with_article
from relations import ENDS, HOPS, End, Hop
from tables import Atlas, Entity, choose, seeded, shuffled

Path = tuple[tuple[str, str, str], ...]
ENGLISH_SPEAKING = ("United Kingdom", "United States", "England", "Scotland", "Wales", "Ireland", "Canada", "Australia", "New Zealand")
# Grades: a passage that the answer cannot be proved without, and one about an entity on the way.
NEEDED, HELPFUL = 2, 1
LISTS = ("languages", "neighbours", "connects", "countries", "award")
YEAR = re.compile(r"-(\d+)")


@dataclass(frozen=True)
class Question:
    """A question with its answer, its relevant passages by grade, and the paths that prove it."""

    text: str
    answer: str
    query_type: str
    gold: dict[str, int]
    paths: tuple[Path, ...]
    pattern: str
    starts: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    has_alias: bool = False
    is_lower: bool = False
    entities: tuple[str, ...] = field(default=())

    @property
    def hops(self) -> int:
        """Return how many passages must be read one after the other."""
        return {"direct": 1, "plain": 1, "bridge2": 2, "bridge3": 3}.get(self.query_type, 1 if len(self.gold) <= 2 else 2)

    @property
    def difficulty(self) -> str:
        """Return easy, medium or hard by hops, passages to find, aliases and missing capitals."""
        points = self.hops + (len(self.gold) > 2) + self.has_alias + (self.query_type == "plain")
        return "easy" if points <= 1 else "medium" if points == 2 else "hard"


@dataclass(frozen=True)
class World:
    """The entities, their passages, and what the passages state."""

    atlas: Atlas
    passages: dict[str, Passage]

    def value(self, entity: Entity, column: str) -> str:
        """Return the one value of a column, if the entity's passage states it, or an empty string."""
        values = entity.values.get(column, ())
        return values[0] if len(values) == 1 and column in self.passages[entity.name].links else ""

    def target(self, entity: Entity, column: str) -> Entity | None:
        """Return the entity that the one value of a column names."""
        value = self.value(entity, column)
        return self.atlas.resolve(value) if value else None


def printed(atlas: Atlas, value: str) -> str:
    """Return a value as an answer is written: an entity's base name, a year with its era."""
    entity = atlas.resolve(value)
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
    return entity.kind == "person" and " " not in alias and entity.one("birth_country") in ENGLISH_SPEAKING


def reference(atlas: Atlas, entity: Entity, *seed: object, wants_alias: bool | None = None) -> tuple[str, bool] | None:
    """Name an entity in a question so that it can only be this one; None where that fails.

    Returns the text and whether it is an alias.
    """
    aliases = [
        alias
        for alias in entity.aliases
        if len(alias) > 3 and not is_bare_surname(entity, alias) and atlas.resolve(alias) is entity and not alias.startswith(("The ", "Venice of", "Paris of"))
    ]
    wants = wants_alias if wants_alias is not None else seeded("alias", entity.name, *seed) % 100 < 28
    if wants and aliases:
        return with_article(choose(aliases, entity.name, *seed), entity.kind), True
    form = entity.one("form") or entity.kind
    same = [other for other in atlas.names[entity.base] if (atlas.entities[other].one("form") or atlas.entities[other].kind) == form]
    if len(atlas.names[entity.base]) == 1 and not (entity.kind == "work" and seeded("form", entity.name, *seed) % 2):
        return with_article(entity.base, entity.kind), False
    if len(same) != 1 or " or " in form:
        return None
    return f"the {form} {re.sub('^The ', 'The ', entity.base)}", False


def steps_from(world: World, entity: Entity) -> Iterator[tuple[Hop, Entity]]:
    """Yield each hop that leads from an entity to exactly one other."""
    for hop in HOPS:
        if hop.inverse:
            if entity.kind != hop.kind:
                continue
            found = [e for e in world.atlas.of_kind(hop.reaches[0]) if world.target(e, hop.column) is entity]
            if len(found) == 1:
                yield hop, found[0]
        elif hop.kind == entity.kind:
            target = world.target(entity, hop.column)
            if target is not None and target.kind in hop.reaches and target is not entity:
                yield hop, target


def ends_of(world: World, entity: Entity) -> Iterator[tuple[End, str]]:
    """Yield each end that an entity's passage answers, with the answer."""
    for end in ENDS:
        if end.kind != entity.kind:
            continue
        if end.column in LISTS:
            if end.column in world.passages[entity.name].links and len(entity.values[end.column]) <= 4:
                yield end, ", ".join(dict.fromkeys(printed(world.atlas, v) for v in entity.values[end.column]))
        elif value := world.value(entity, end.column):
            yield end, printed(world.atlas, value)


def phrase(hop: Hop, inner: str, start: Entity, *seed: object) -> str:
    maker = MAKERS.get(start.one("form"), "artist")
    return choose(hop.phrases, inner, *seed).format(x=inner, maker=maker)


def asked(end: End, inner: str, *seed: object) -> str:
    return capital_first(choose(end.questions, inner, *seed).format(x=inner))


def path_of(start: Entity, walked: list[tuple[Hop, Entity]], end: End, answer: str) -> Path:
    names = [start.name, *(entity.name for _, entity in walked)]
    steps = [(a, f"is the {hop.label} of" if hop.inverse else hop.label, b) for a, (hop, _), b in zip(names, walked, names[1:], strict=False)]
    return (*steps, (names[-1], end.label, answer))


def direct_questions(world: World) -> Iterator[Question]:
    """Ask one fact of a named entity: one passage answers."""
    for entity in world.atlas.entities.values():
        named = reference(world.atlas, entity, "direct")
        if named is None:
            continue
        for end, answer in ends_of(world, entity):
            text = asked(end, named[0], entity.name)
            if appears(answer, text):
                continue
            yield Question(
                text, answer, "direct", {entity.name: NEEDED}, (((entity.name, end.label, answer),),),
                f"{entity.kind}.{end.column}", (entity.name,), (), named[1], entities=(entity.name,),
            )  # fmt: skip


def bridge_questions(world: World, count: int) -> Iterator[Question]:
    """Ask one fact of an entity that is only described, ``count`` passages away from the named one."""
    for start in world.atlas.entities.values():
        named = reference(world.atlas, start, "bridge", count)
        if named is None:
            continue
        for walked in walks(world, start, count):
            last = walked[-1][1]
            chain = [start, *(entity for _, entity in walked)]
            # The middle entity of an inverse hop is proved by the passage that it leads to.
            silent = {chain[i].name for i, (hop, _) in enumerate(walked) if hop.inverse}
            gold = {entity.name: HELPFUL if entity.name in silent else NEEDED for entity in chain}
            if len(gold) - len(silent) != count or len(gold) != len(chain):
                continue
            inner, previous = named[0], start
            for hop, entity in walked:
                inner, previous = phrase(hop, inner, previous, start.name, hop.column), entity
            earlier = " ".join(world.passages[name].text for name in gold if name != last.name)
            if any(reveals(inner, entity) for entity in chain[1:]):
                continue
            if count == 3 and any(appears(name, world.passages[start.name].text) for name in names_of(last)):
                continue
            for end, answer in ends_of(world, last):
                text = asked(end, inner, start.name, end.column)
                if appears(answer, text) or appears(answer, earlier):
                    continue
                pattern = ".".join([*(hop.column for hop, _ in walked), end.column])
                yield Question(
                    text, answer, f"bridge{count}", gold, (path_of(start, walked, end, answer),), pattern,
                    (start.name,), tuple(entity.name for entity in chain[1:]), named[1],
                    entities=tuple(entity.name for entity in chain),
                )  # fmt: skip


def walks(world: World, start: Entity, count: int) -> Iterator[list[tuple[Hop, Entity]]]:
    """Yield walks of hops whose proof needs at most ``count`` passages."""
    longest = count if count < 3 else 3
    stack: list[list[tuple[Hop, Entity]]] = [[step] for step in steps_from(world, start)]
    while stack:
        walked = stack.pop()
        yield walked
        if len(walked) < longest:
            stack += [[*walked, step] for step in steps_from(world, walked[-1][1])]


def select(questions: Iterable[Question], count: int, *, per_pattern: int, per_start: int, used: Counter[str]) -> list[Question]:
    """Pick questions in seeded order, few of one pattern and few about one entity.

    ``used`` counts, over all types, how often a passage is relevant.
    """
    patterns: defaultdict[str, int] = defaultdict(int)
    starts: Counter[str] = Counter()
    chosen: list[Question] = []
    for question in shuffled(questions, "select"):
        if len(chosen) == count:
            break
        if patterns[question.pattern] >= per_pattern or any(starts[s] >= per_start for s in question.starts):
            continue
        if any(used[title] >= 5 for title in question.gold):
            continue
        patterns[question.pattern] += 1
        starts.update(question.starts)
        used.update(question.gold.keys())
        chosen.append(question)
    return chosen


def lowered(questions: list[Question], share: float) -> list[Question]:
    """Write a share of the questions in small letters, as people type them."""
    count = round(share * len(questions))
    small = {question.text for question in shuffled(questions, "lower")[:count]}
    return [replace(q, text=q.text.lower(), is_lower=True) if q.text in small else q for q in questions]
