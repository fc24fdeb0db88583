"""Intersection questions: what satisfies two relations, or what two entities share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from asking import HELPFUL, NEEDED, Question, World, appears, printed, reference, reveals
from passages import capital_first
from questions import phrase
from relations import HOPS, Hop
from tables import Entity, choose, seeded, shuffled

# kind, first column, second column, question; {o1} and {o2} are described, {what} is a plain noun
INTERSECTED = (
    ("person", "birth_city", "death_city", "Which {what} came into the world in {o1} and passed away in {o2}?"),
    ("person", "birth_city", "student_of_university", "Which {what} came from {o1} and attended {o2}?"),
    ("person", "birth_city", "award", "Which {what} from {o1} won {o2}?"),
    ("person", "teacher", "birth_city", "Which {what} from {o2} had {o1} as teacher or model?"),
    ("work", "creator", "setting", "Which {what} by {o1} is set in {o2}?"),
    ("work", "creator", "location", "Which {what} by {o1} can be seen in {o2}?"),
    ("city", "country", "river", "Which city in {o1} is situated on {o2}?"),
    ("city", "country", "sea", "Which city in {o1} is situated on the coast of {o2}?"),
    ("river", "source", "mouth", "Which river rises in {o1} and empties into {o2}?"),
    ("mountain", "range", "country", "Which peak of {o1} belongs to {o2}?"),
    ("landmark", "city", "architect", "Which sight of {o1} was designed by {o2}?"),
    ("discovery", "discoverer", "named_after", "Which find of {o1} is called after {o2}?"),
    ("institution", "city", "founder", "Which institution in {o1} was founded by {o2}?"),
)  # fmt: skip
# column shared by two named subjects, question
SHARED = (
    ("city", "river", "Which river crosses both {a} and {b}?"),
    ("river", "mouth", "Into which body of water do both {a} and {b} empty?"),
    ("person", "birth_city", "Which city was the birthplace of both {a} and {b}?"),
    ("work", "creator", "Who created both {a} and {b}?"),
    ("discovery", "discoverer", "Who discovered or devised both {a} and {b}?"),
    ("mountain", "range", "To which mountain range do both {a} and {b} belong?"),
    ("person", "teacher", "Who was the teacher or model of both {a} and {b}?"),
)


def descriptions(world: World) -> dict[str, list[tuple[Hop, Entity]]]:
    """Return, for each entity, the hops by which another entity leads to it."""
    found: dict[str, list[tuple[Hop, Entity]]] = {}
    for hop in HOPS:
        if hop.inverse:
            continue
        for entity in world.atlas.of_kind(hop.kind):
            target = world.target(entity, hop.column)
            if target is not None and target.kind in hop.reaches:
                found.setdefault(target.name, []).append((hop, entity))
    return found


def noun(entity: Entity) -> str:
    """Return the plain word for what an entity is, as an intersection question asks for it."""
    if entity.kind == "person":
        return entity.one("occupation").split(" and ")[0]
    return entity.one("form") or entity.kind


def intersection_questions(world: World) -> Iterator[Question]:
    """Ask for what satisfies two relations, one or both of them described by way of an entity."""
    leads = descriptions(world)
    for kind, first, second, question in INTERSECTED:
        groups: dict[tuple[str, str, str], list[str]] = {}
        for entity in world.atlas.of_kind(kind):
            values = [list(dict.fromkeys(entity.values.get(c, ()))) for c in (first, second)]
            for one, two in product(*values):
                ends = [world.atlas.linked(one), world.atlas.linked(two)]
                key = tuple(
                    end.name if end else value for end, value in zip(ends, (one, two), strict=True)
                )
                groups.setdefault((noun(entity), *key), []).append(entity.name)
        for (what, one, two), members in groups.items():
            stated = all({first, second} <= world.passages[name].links for name in members)
            if len(members) > 3 or one == two or not stated:
                continue
            yield from intersections(
                world, leads, members, (first, second), (one, two), question.replace("{what}", what)
            )


def intersections(
    world: World,
    leads: dict[str, list[tuple[Hop, Entity]]],
    members: list[str],
    columns: tuple[str, str],
    objects: tuple[str, str],
    question: str,
) -> Iterator[Question]:
    texts, gold, paths, hidden, starts, has_alias = [], {}, [], [], [], False
    for index, (column, name) in enumerate(zip(columns, objects, strict=True)):
        entity = world.atlas.entities.get(name)
        ways = [
            (h, e) for h, e in leads.get(name, []) if e.name not in members and h.column != column
        ]
        # The first object is described through another passage; the second one in half of the cases.
        if ways and (index == 0 or seeded("both", *members, column) % 2):
            hop, way = choose(ways, *members, column)
            named = reference(world.atlas, way, "meet")
            if named is None:
                return
            texts.append(phrase(hop, named[0], way, *members))
            gold[way.name] = NEEDED
            gold.setdefault(name, HELPFUL)
            hidden.append(name)
            starts.append(way.name)
            has_alias |= named[1]
            paths.append((way.name, hop.label, name))
        elif entity is not None:
            named = reference(world.atlas, entity, "meet")
            if named is None:
                return
            texts.append(named[0])
            has_alias |= named[1]
        else:
            texts.append(name if column != "award" else f"the {name}")
    if not hidden:
        return
    text = capital_first(question.format(o1=texts[0], o2=texts[1]))
    if len(members) > 1:
        text = f"{text[:-1]} (name all)?"
    entities = world.atlas.entities
    if any(reveals(text, entities[name]) for name in (*hidden, *members)):
        return
    facts = []
    for member in members:
        for column, name in zip(columns, objects, strict=True):
            lead = [step for step in paths if step[2] == name]
            label = column.replace("_", " ")
            facts.append(
                (*lead, (name, f"is the {label} of", member)) if lead else ((member, label, name),)
            )
    yield Question(
        text, ", ".join(printed(world.atlas, m) for m in members), "intersection",
        gold | dict.fromkeys(members, NEEDED), tuple(facts), f"{entities[members[0]].kind}.{'.'.join(columns)}",
        (*starts, *members), (*hidden, *members), has_alias,
        entities=tuple(dict.fromkeys((*starts, *hidden, *members))),
    )  # fmt: skip


def shared_questions(world: World) -> Iterator[Question]:
    """Ask what two named entities have in common; the two passages prove it."""
    for kind, column, question in SHARED:
        groups: dict[str, list[str]] = {}
        for entity in world.atlas.of_kind(kind):
            target = world.target(entity, column)
            if target is not None:
                groups.setdefault(target.name, []).append(entity.name)
        for name, members in groups.items():
            if len(members) < 2:
                continue
            a, b = shuffled(members, column)[:2]
            named = [reference(world.atlas, world.atlas.entities[n], "shared") for n in (a, b)]
            if None in named:
                continue
            text = question.format(a=named[0][0], b=named[1][0])
            target = world.atlas.entities[name]
            if reveals(text, target) or appears(printed(world.atlas, name), text):
                continue
            label = column.replace("_", " ")
            yield Question(
                text, printed(world.atlas, name), "intersection",
                {a: NEEDED, b: NEEDED, name: HELPFUL},
                (((a, label, name),), ((b, label, name),)), f"shared.{kind}.{column}", (a, b), (name,),
                named[0][1] or named[1][1], entities=(a, b, name),
            )  # fmt: skip
