"""The sentences that prove an answer: where the passages state the steps of its paths."""

from __future__ import annotations

from collections.abc import Iterator

from asking import Question, World, printed
from relations import ENDS, HOPS
from tables import Entity


def supporting(world: World, question: Question) -> list[tuple[str, str]]:
    """Return title and sentence for each step of the paths that a judged passage states."""
    found = (pair for path in question.paths for step in path for pair in _sentences(world, *step))
    return [pair for pair in dict.fromkeys(found) if pair[0] in question.gold]


def _sentences(world: World, subject: str, label: str, target: str) -> Iterator[tuple[str, str]]:
    # "is the capital of" stands in the passage of the country, as its capital.
    is_inverse = label.startswith("is the ") and label.endswith(" of")
    if is_inverse:
        subject, label, target = target, label[len("is the ") : -len(" of")], subject
    entity = world.atlas.entities.get(subject)
    if entity is None:
        return
    sentences = world.passages[subject].sentences
    stating = [column for column in sentences if target in _values(world, entity, column)]
    named = {
        part.column for part in (*HOPS, *ENDS) if (part.kind, part.label) == (entity.kind, label)
    }
    named.add(label.replace(" ", "_"))
    for column in [column for column in stating if column in named] or stating[:1]:
        yield subject, sentences[column]


def _values(world: World, entity: Entity, column: str) -> set[str]:
    values = entity.values.get(column, ())
    linked = (world.atlas.linked(value) for value in values)
    return {*values, *(printed(world.atlas, v) for v in values), *(e.name for e in linked if e)}
