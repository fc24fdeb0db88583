"""Direct questions and bridge questions, and the choice among all questions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from asking import (
    HELPFUL,
    LISTS,
    NEEDED,
    Path,
    Question,
    World,
    appears,
    names_of,
    printed,
    reference,
    reveals,
)
from passages import MAKERS, capital_first
from relations import ENDS, HOPS, End, Hop
from tables import Entity, choose, shuffled

# Three passages in a row are asked for only where each link is narrow enough to be followed: a
# city that fifty others point to says little about which of them is meant.
CROWDED = 25


@cache
def steps_from(world: World, name: str) -> list[tuple[Hop, Entity]]:
    """Return each hop that leads from an entity to exactly one other."""
    entity, steps = world.atlas.entities[name], []
    for hop in HOPS:
        if hop.inverse:
            if entity.kind != hop.kind:
                continue
            found = [
                e
                for e in world.atlas.of_kind(hop.reaches[0])
                if world.target(e, hop.column) is entity
            ]
            if len(found) == 1:
                steps.append((hop, found[0]))
        elif hop.kind == entity.kind:
            target = world.target(entity, hop.column)
            if target is not None and target.kind in hop.reaches and target is not entity:
                steps.append((hop, target))
    return steps


def ends_of(world: World, entity: Entity) -> Iterator[tuple[End, str]]:
    """Yield each end that an entity's passage answers, with the answer."""
    for end in ENDS:
        if end.kind != entity.kind:
            continue
        if end.column in LISTS:
            if (
                end.column in world.passages[entity.name].links
                and len(entity.values[end.column]) <= 4
            ):
                yield (
                    end,
                    ", ".join(
                        dict.fromkeys(printed(world.atlas, v) for v in entity.values[end.column])
                    ),
                )
        elif value := world.value(entity, end.column):
            yield end, printed(world.atlas, value)


def phrase(hop: Hop, inner: str, start: Entity, *seed: object) -> str:
    maker = MAKERS.get(start.one("form"), "artist")
    return choose(hop.phrases, inner, *seed).format(x=inner, maker=maker)


def asked(end: End, inner: str, *seed: object) -> str:
    return capital_first(choose(end.questions, inner, *seed).format(x=inner))


def path_of(start: Entity, walked: list[tuple[Hop, Entity]], end: End, answer: str) -> Path:
    names = [start.name, *(entity.name for _, entity in walked)]
    steps = [
        (a, f"is the {hop.label} of" if hop.inverse else hop.label, b)
        for a, (hop, _), b in zip(names, walked, names[1:], strict=False)
    ]
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
            if count == 3 and any(world.popularity[entity.name] > CROWDED for entity in chain[1:]):
                continue
            if count == 3 and any(
                appears(name, world.passages[start.name].text) for name in names_of(last)
            ):
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
    stack: list[list[tuple[Hop, Entity]]] = [[step] for step in steps_from(world, start.name)]
    while stack:
        walked = stack.pop()
        yield walked
        if len(walked) < longest:
            hop, last = walked[-1]
            # Twice the same relation ("the state from which the state from which") is unreadable.
            stack += [
                [*walked, step]
                for step in steps_from(world, last.name)
                if step[0].column != hop.column
            ]


def select(
    questions: Iterable[Question],
    count: int,
    *,
    per_pattern: int,
    per_start: int,
    used: Counter[str],
) -> list[Question]:
    """Pick questions in seeded order, few of one pattern and few about one entity.

    ``used`` counts, over all types, how often a passage is relevant.
    """
    patterns: defaultdict[str, int] = defaultdict(int)
    starts: Counter[str] = Counter()
    chosen: list[Question] = []
    for question in shuffled(questions, "select"):
        if len(chosen) == count:
            break
        if patterns[question.pattern] >= per_pattern or any(
            starts[s] >= per_start for s in question.starts
        ):
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
    return [replace(q, text=q.text.lower()) if q.text in small else q for q in questions]
