"""Comparison questions: the passages of two entities must be read side by side."""

from __future__ import annotations

from collections.abc import Iterator

from asking import NEEDED, Question, World, printed, reference, reveals
from relations import HOPS
from tables import shuffled

# kind, column, question, whether the greater value wins, least gap
COMPARED = (
    ("mountain", "height_m", "Which is taller, {a} or {b}?", True, 60),
    ("river", "length_km", "Which is longer, {a} or {b}?", True, 150),
    ("person", "birth_year", "Who came into the world earlier, {a} or {b}?", False, 3),
    ("work", "year", "Which is older, {a} or {b}?", False, 3),
    ("discovery", "year", "Which was discovered or invented first, {a} or {b}?", False, 3),
    ("country", "independence_year", "Which gained independence first, {a} or {b}?", False, 3),
    ("landmark", "year", "Which was completed first, {a} or {b}?", False, 5),
    ("city", "founded", "Which was founded earlier, {a} or {b}?", False, 10),
)
# hop from (kind, column), compared column of the entity reached, question, greater wins, least gap
BRIDGED = (
    (
        "country",
        "highest_mountain",
        "height_m",
        "Which has the taller highest mountain, {a} or {b}?",
        True,
        60,
    ),
    (
        "country",
        "longest_river",
        "length_km",
        "Whose longest river is longer from source to mouth, that of {a} or that of {b}?",
        True,
        150,
    ),
    (
        "work",
        "creator",
        "birth_year",
        "Which had the creator who was born earlier, {a} or {b}?",
        False,
        3,
    ),
    (
        "discovery",
        "discoverer",
        "birth_year",
        "Which is owed to the person born earlier, {a} or {b}?",
        False,
        3,
    ),
    (
        "landmark",
        "city",
        "founded",
        "Which stands in the city with the earlier founding year, {a} or {b}?",
        False,
        10,
    ),
    ("city", "river", "length_km", "Which is on the longer river, {a} or {b}?", True, 150),
    ("work", "based_on", "year", "Which goes back to the older source, {a} or {b}?", False, 3),
)


def year_or_size(value: str) -> float | None:
    """Read a number, years before the common era below zero; None for anything else."""
    text = value.removesuffix(" BC")
    if not text.lstrip("-").isdigit():
        return None
    return -float(text) if text != value else float(text)


def measured(world: World, kind: str, column: str) -> dict[str, float]:
    sizes = {e.name: year_or_size(world.value(e, column)) for e in world.atlas.of_kind(kind)}
    return {name: size for name, size in sizes.items() if size is not None}


def pairs(names: list[str], salt: str) -> Iterator[tuple[str, str]]:
    """Yield pairs in seeded order, each name a few times."""
    for turn in range(3):
        order = shuffled(names, salt, turn)
        yield from zip(order[::2], order[1::2], strict=False)


def comparison_questions(world: World) -> Iterator[Question]:
    """Compare a figure of two named entities: both passages are needed."""
    for kind, column, question, greater, gap in COMPARED:
        sizes = measured(world, kind, column)
        for a, b in pairs(list(sizes), f"{kind}.{column}"):
            named = [
                reference(world.atlas, world.atlas.entities[name], "compare") for name in (a, b)
            ]
            if abs(sizes[a] - sizes[b]) < gap or None in named:
                continue
            winner = max((a, b), key=lambda name: sizes[name] if greater else -sizes[name])
            text = question.format(a=named[0][0], b=named[1][0])
            paths = tuple(
                ((name, column.replace("_", " "), f"{sizes[name]:g}"),) for name in (a, b)
            )
            yield Question(
                text, printed(world.atlas, winner), "comparison", {a: NEEDED, b: NEEDED}, paths, f"{kind}.{column}",
                (a, b), (), named[0][1] or named[1][1], entities=(a, b),
            )  # fmt: skip


def bridged_comparisons(world: World) -> Iterator[Question]:
    """Compare two entities through others that stay unnamed: four passages are needed."""
    for kind, link, column, question, greater, gap in BRIDGED:
        hop = next(h for h in HOPS if (h.kind, h.column) == (kind, link) and not h.inverse)
        reached = {e.name: world.target(e, link) for e in world.atlas.of_kind(kind)}
        sizes = {
            name: size
            for name, target in reached.items()
            if target
            and target.kind in hop.reaches
            and (size := year_or_size(world.value(target, column))) is not None
        }
        for a, b in pairs(list(sizes), f"{kind}.{link}.{column}"):
            named = [
                reference(world.atlas, world.atlas.entities[name], "compare") for name in (a, b)
            ]
            ends = [reached[a], reached[b]]
            if abs(sizes[a] - sizes[b]) < gap or None in named or ends[0] is ends[1]:
                continue
            text = question.format(a=named[0][0], b=named[1][0])
            if any(reveals(text, end) for end in ends):
                continue
            winner = max((a, b), key=lambda name: sizes[name] if greater else -sizes[name])
            paths = tuple(
                (
                    (name, hop.label, end.name),
                    (end.name, column.replace("_", " "), f"{sizes[name]:g}"),
                )
                for name, end in zip((a, b), ends, strict=True)
            )
            yield Question(
                text, printed(world.atlas, winner), "comparison",
                dict.fromkeys((a, b, ends[0].name, ends[1].name), NEEDED), paths, f"{kind}.{link}.{column}",
                (a, b), (ends[0].name, ends[1].name), named[0][1] or named[1][1],
                entities=(a, b, ends[0].name, ends[1].name),
            )  # fmt: skip
