"""Intersection questions with a description: a relation leaves many candidates, words pick one."""

from __future__ import annotations

from collections.abc import Iterator

from asking import HELPFUL, NEEDED, Question, World, reference, reveals
from intersections import descriptions, noun
from passages import capital_first
from questions import phrase
from tables import choose

# kind, column that leads to it, column of the description, question
DESCRIBED = (
    ("work", "creator", "subject", "Which {what} by {x} is about {clue}?"),
    ("discovery", "discoverer", "note", "Which find of {x} is {clue}?"),
    ("person", "birth_city", "known_for", "Which {what} from {x} is famous for {clue}?"),
    ("person", "teacher", "known_for", "Which follower of {x} is famous for {clue}?"),
    ("person", "student_of_university", "known_for", "Which alumnus or alumna of {x} is famous for {clue}?"),
    ("institution", "city", "note", "Which {what} in {x} fits the words {clue}?"),
)  # fmt: skip
FEWEST_RIVALS = 2


def described_questions(world: World) -> Iterator[Question]:
    """Ask which of the many things that a hidden entity leads to fits a description."""
    leads = descriptions(world)
    for kind, column, clue_column, question in DESCRIBED:
        groups: dict[str, list[str]] = {}
        for entity in world.atlas.of_kind(kind):
            target = world.target(entity, column)
            if target is not None:
                groups.setdefault(target.name, []).append(entity.name)
        for name, members in groups.items():
            target = world.atlas.entities[name]
            for member in members:
                entity = world.atlas.entities[member]
                clue = world.value(entity, clue_column)
                ways = [(hop, e) for hop, e in leads.get(name, []) if e.name != member]
                if len(members) <= FEWEST_RIVALS or not clue or not ways:
                    continue
                hop, way = choose(ways, member, column)
                named = reference(world.atlas, way, "described")
                if named is None:
                    continue
                inner = phrase(hop, named[0], way, member)
                text = capital_first(question.format(what=noun(entity), x=inner, clue=clue))
                if reveals(text, target) or reveals(text, entity):
                    continue
                steps = (
                    (way.name, hop.label, name),
                    (name, f"is the {column.replace('_', ' ')} of", member),
                )
                yield Question(
                    text, entity.base, "intersection",
                    {way.name: NEEDED, member: NEEDED, name: HELPFUL}, (steps,), f"described.{kind}.{column}",
                    (way.name, member), (name, member), named[1], (way.name, name, member), tuple(members),
                )  # fmt: skip
