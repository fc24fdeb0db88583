"""What the grades mean, in the words of the page: TREC's names, and what each asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """A grade, its name, and when it is given."""

    grade: int
    name: str
    when: str


_OF_FOUR = {
    0: Meaning(0, "Not relevant", "nothing to do with the query"),
    1: Meaning(1, "Related", "on the subject, without the answer"),
    2: Meaning(2, "Highly relevant", "answers in part, or not plainly"),
    3: Meaning(3, "Perfectly relevant", "is about the query, and answers it"),
}
_OF_TWO = {
    0: Meaning(0, "Not relevant", "does not help with the query"),
    1: Meaning(1, "Relevant", "answers the query, or helps to"),
}


def meanings(grades: Sequence[int]) -> list[Meaning]:
    """Return what each grade of a scale means.

    >>> [meaning.name for meaning in meanings((0, 1))]
    ['Not relevant', 'Relevant']
    >>> meanings((0, 1, 2, 3, 4))[-1]
    Meaning(grade=4, name='Grade 4', when='better than 3')
    """
    known = _OF_TWO if tuple(grades) == (0, 1) else _OF_FOUR
    found: list[Meaning] = []
    for grade in grades:
        when = f"better than {found[-1].grade}" if found else "the lowest"
        found.append(known.get(grade, Meaning(grade, f"Grade {grade}", when)))
    return found
