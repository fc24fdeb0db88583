"""What the page asks for, and what it is told: plain data in, plain data out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tuner.core.checks import is_whole
from tuner.core.errors import InputError
from tuner.core.shown import shown
from tuner.evalset.grading.given import NOTHING, Grading
from tuner.evalset.grading.marking import in_pieces, query_terms
from tuner.evalset.grading.scale import meanings

MOST_AT_ONCE = 50
# Of a passage, unless all of it is asked for: a page of passages stays small.
MOST_CHARACTERS = 6_000
MOST_IN_A_COMMENT = 2_000

Asked = Mapping[str, Any]


def opened(grading: Grading, asked: Asked) -> dict[str, Any]:
    """Tell one person where the work stands: a grade or null for every passage, and no texts."""
    name = grading.name_of(asked.get("by"))
    given = grading.person(name).given
    return {
        "by": name,
        "given": [given.get(row.key, NOTHING).grade for row in grading.rows],
        "starts": list(grading.starts),
        **standing(grading, asked),
    }


def standing(grading: Grading, asked: Asked) -> dict[str, Any]:  # noqa: ARG001  # one of several
    """Tell how far everybody is, and how far they agree."""
    return {
        "sheet": shown(Path(grading.sheet.file).name),
        "pairs": len(grading.rows),
        "scale": [asdict(meaning) for meaning in meanings(grading.grades)],
        "people": [
            {
                "name": person.name,
                "graded": sum(
                    given.grade is not None and key in grading.place
                    for key, given in list(person.given.items())
                ),
            }
            for person in grading.people()
        ],
        "agreements": [
            {
                "first": one.first,
                "second": one.second,
                "pairs": one.agreement.pairs,
                "same": one.agreement.same,
                "kappa": one.agreement.kappa,
                "why_undefined": one.agreement.why_undefined,
            }
            for one in grading.together()
        ],
        "differing": len(grading.disputed()),
        "problem": grading.problem,
    }


def passages(grading: Grading, asked: Asked) -> dict[str, Any]:
    """Return some passages in their order, with what one person gave them."""
    first, count = _number(asked, "from"), _number(asked, "count")
    if not 1 <= count <= MOST_AT_ONCE:
        raise InputError(f"{count} passages; ask for 1 to {MOST_AT_ONCE}")
    given = grading.person(grading.name_of(asked.get("by"))).given
    found = []
    for at in range(first, min(first + count, len(grading.rows))):
        comment = given.get(grading.rows[at].key, NOTHING).comment
        found.append(_texts(grading, at, MOST_CHARACTERS) | {"comment": comment})
    return {"passages": found}


def whole_passage(grading: Grading, asked: Asked) -> dict[str, Any]:
    """Return one passage, however long it is."""
    return _texts(grading, _place(grading, asked), None)


def graded(grading: Grading, asked: Asked) -> dict[str, Any]:
    """Keep a grade, or that there is none, and a comment."""
    name, at = grading.name_of(asked.get("by")), _place(grading, asked)
    comment = asked.get("comment", "")
    if not isinstance(comment, str) or len(comment) > MOST_IN_A_COMMENT:
        raise InputError(f"a comment is a text of at most {MOST_IN_A_COMMENT:,} characters")
    grading.give(name, at, _grade(asked), " ".join(comment.split()))
    return {"at": at, "grade": _grade(asked)}


def undone(grading: Grading, asked: Asked) -> dict[str, Any]:
    """Take back what one person did last; its place is null where there is nothing."""
    name = grading.name_of(asked.get("by"))
    at = grading.undo(name)
    if at is None:
        return {"at": None}
    now = grading.person(name).given[grading.rows[at].key]
    return {"at": at, "grade": now.grade, "comment": now.comment}


def disputed(grading: Grading, asked: Asked) -> dict[str, Any]:
    """Return one of the passages that were graded differently, or the first not settled from it."""
    number, found = _number(asked, "number"), grading.disputed()
    is_open = [one.settled.grade is None for one in found]
    if asked.get("open"):
        number = next((n for n in range(number, len(found)) if is_open[n]), len(found))
    told: dict[str, Any] = {"of": len(found), "settled": len(found) - sum(is_open), "number": None}
    if number >= len(found):
        return told
    one = found[number]
    return told | {
        "number": number,
        "at": one.at,
        "opinions": [asdict(opinion) | {"by": opinion.by} for opinion in one.opinions],
        "grade": one.settled.grade,
        "by": one.settled.by,
        **_texts(grading, one.at, MOST_CHARACTERS),
    }


def settled(grading: Grading, asked: Asked) -> dict[str, Any]:
    """Keep the grade that holds of a passage which was graded differently."""
    at = _place(grading, asked)
    grading.settle(grading.name_of(asked.get("by")), at, _grade(asked))
    return {"at": at, "grade": _grade(asked)}


def unsettled(grading: Grading, asked: Asked) -> dict[str, Any]:
    """Take back what one person settled last; its place is null where there is nothing."""
    at = grading.unsettle(grading.name_of(asked.get("by")))
    places = [one.at for one in grading.disputed()]
    return {"number": places.index(at) if at in places else None, "at": at}


def _texts(grading: Grading, at: int, most: int | None) -> dict[str, Any]:
    row = grading.rows[at].row
    terms = query_terms(row.query)
    cut = row.passage if most is None else row.passage[:most]
    return {
        "at": at,
        "query_id": shown(row.query_id),
        "query": shown(row.query) or shown(row.query_id),
        "document_id": shown(row.document_id),
        "title": in_pieces(shown(row.title), terms),
        "passage": in_pieces(shown(cut), terms),
        "left_out": len(row.passage) - len(cut),
    }


def _place(grading: Grading, asked: Asked) -> int:
    at = _number(asked, "at")
    if at >= len(grading.rows):
        raise InputError(f"there is no passage {at}; the sheet has {len(grading.rows)}")
    return at


def _grade(asked: Asked) -> int | None:
    grade = asked.get("grade")
    if grade is not None and not is_whole(grade):
        raise InputError(f"{grade!r:.60} is no grade")
    return grade


def _number(asked: Asked, name: str) -> int:
    value = asked.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    if is_whole(value) and value >= 0:
        return value
    raise InputError(f"{name!r} is {value!r:.60}; a whole number is wanted")


READ = {
    "open": opened,
    "standing": standing,
    "passages": passages,
    "passage": whole_passage,
    "disputed": disputed,
}
"""What is asked by GET."""

CHANGE = {"grade": graded, "undo": undone, "settle": settled, "unsettle": unsettled}
"""What is asked by POST."""
