"""Why a query got worse or better, in a sentence or two, from the answers that were kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tuner.core.shown import counted, shortened
from tuner.run.side_by_side import SHOWN_PASSAGES, Passage, Side, SideBySide
from tuner.stats.pairs import ROUNDING

MOST_NAMED = 4
"""Passages that are named; of the others the count."""
MOST_MOVED = 3
"""Relevant passages whose ranks are told, in each direction; the page has a table of all."""
LONGEST_TITLE = 80


def why_it_changed(row: SideBySide) -> str:
    """Say which relevant passages moved, and which passages stand before the first that did.

    With the leg by which they do, where both tell it. Empty where there is nothing to explain, or
    nothing to explain it by: the composite is the same, or an answer or its ranks were not kept.
    """
    change = row.change
    if change is None or abs(change) <= ROUNDING:
        return ""
    if not (row.winner.is_kept and row.baseline.is_kept):
        return ""
    is_worse = change < 0
    worse, better = (row.winner, row.baseline) if is_worse else (row.baseline, row.winner)
    moved = [id_ for id_ in row.relevant if _rank(better, id_) < _rank(worse, id_)]
    against = _told([id_ for id_ in row.relevant if _rank(worse, id_) < _rank(better, id_)], row)
    if not moved:
        if not (row.winner.found or row.baseline.found):
            return ""  # no rank was kept
        way = "fell" if is_worse else "rose"
        sentences = [f"No relevant passage {way}: ranks do not explain this difference"]
    else:
        # The one that matters most to a reader: from 1 to 2 is more than from 8 to 9.
        moved.sort(key=lambda id_: 1 / _rank(worse, id_) - 1 / _rank(better, id_))
        sentences = [_told(moved, row), *_explained(moved, row, worse, better)]
    if against:
        sentences.append(f"But {against}")
    return " ".join(f"{one}." for one in sentences if one)


def _told(moved: Sequence[str], row: SideBySide) -> str:
    """Say from where to where relevant passages moved, all of them in the same direction."""
    names = _names(row)
    ranks = [(_rank(row.baseline, id_), _rank(row.winner, id_)) for id_ in moved]
    said = [
        f"{names.get(id_, f'“{id_}”')} {_move(*pair)}"
        for id_, pair in zip(moved[:MOST_MOVED], ranks, strict=False)
    ]
    if more := len(moved) - len(said):
        before, now = ranks[0]
        way = "fell" if now > before else "rose"
        said.append(f"{counted(more, 'other relevant passage')} {way} too")
    return " and ".join(filter(None, (", ".join(said[:-1]), *said[-1:])))


def _explained(moved: Sequence[str], row: SideBySide, worse: Side, better: Side) -> list[str]:
    """Say by what others passed the first that moved, and what its legs gave, where that is told.

    The sentences are without their full stops.
    """
    most, names, is_worse = moved[0], _names(row), worse is row.winner
    own = _legs(worse, most)
    whom = "it" if len(moved) == 1 else names.get(most, f"“{most}”")
    sentences = [_before(most, worse, better, own, names, is_worse, whom)]
    if not own and (legs := _legs(better, most)):
        told = ", ".join(f"{leg} {_score(score)}" for leg, score in legs.items())
        who = f"{whom[:1].upper()}{whom[1:]}"
        sentences.append(
            f"{who} had {told} with the baseline" if is_worse else f"{who} has {told} now"
        )
    if not any(passage.legs for side in (worse, better) for passage in side.retrieved):
        sentences.append("No scores by leg are told, so which leg moved it is not known")
    return sentences


def _before(
    id_: str,
    worse: Side,
    better: Side,
    own: Mapping[str, float | None],
    names: Mapping[str, str],
    is_worse: bool,
    whom: str,
) -> str:
    """Name the passages that are before a relevant one on the worse side only."""
    rank, was = _rank(worse, id_), _rank(better, id_)
    shown = len(worse.retrieved)
    if rank == math.inf and shown < SHOWN_PASSAGES and was > shown:
        whose = "winner" if is_worse else "baseline"
        return f"The {whose}'s answer ends at rank {shown}" if shown else f"The {whose} found none"
    if was > len(better.retrieved):
        return ""  # who was before it there is not known to the end
    already = {passage.id for passage in better.retrieved[: int(was) - 1]}
    before = [
        passage
        for place, passage in enumerate(worse.retrieved, start=1)
        if place < rank and passage.id not in already
    ]
    if not before:
        return ""
    by_legs: dict[tuple[str, ...] | None, list[Passage]] = {}
    for passage in before[:MOST_NAMED]:
        by_legs.setdefault(_leading(passage.legs, own), []).append(passage)
    parts = []
    for legs, passages in by_legs.items():
        named = [_named(passage, legs or (), names) for passage in passages]
        head = "" if legs is None else f" by {' and '.join(legs) or 'no leg'}"
        verb = "has" if is_worse else "had"
        tail = f" (it {verb} {_scores(own, legs)})" if legs else ""
        parts.append(f"{head}: {', '.join(named)}{tail}")
    more = len(before) - MOST_NAMED
    when = "now" if is_worse else "with the baseline"
    return f"Before {whom} {when}{';'.join(parts)}{f' and {more} more' if more > 0 else ''}"


def _rank(side: Side, id_: str) -> float:
    return side.found.get(id_, math.inf)


def _move(before: float, now: float) -> str:
    if now == math.inf:
        return f"fell from rank {before} out of the answer"
    if before == math.inf:
        return f"came in at rank {now}"
    return f"{'fell' if now > before else 'rose'} from rank {before} to {now}"


def _legs(side: Side, id_: str) -> Mapping[str, float | None]:
    return next((passage.legs for passage in side.retrieved if passage.id == id_), {})


def _leading(
    legs: Mapping[str, float | None], own: Mapping[str, float | None]
) -> tuple[str, ...] | None:
    """Return the legs in which a passage has more; None where that is not told."""
    if not legs or not own:
        return None
    # The weights are not known here, and scores of two legs may have two scales: so no leg is
    # called the decisive one.
    return tuple(leg for leg in own if _order(legs.get(leg)) > _order(own[leg]))


def _order(score: float | None) -> float:
    return -math.inf if score is None else score


def _names(row: SideBySide) -> dict[str, str]:
    """Return what passages are called: by title, and with their id where two have the same."""
    titles = {p.id: p.title for side in (row.winner, row.baseline) for p in side.retrieved}
    held = list(titles.values())
    names = {}
    for id_, title in titles.items():
        name = f"“{shortened(title or id_, LONGEST_TITLE)}”"
        names[id_] = f"{name} ({id_})" if title and held.count(title) > 1 else name
    return names


def _named(passage: Passage, legs: Sequence[str], names: Mapping[str, str]) -> str:
    scores = f" {_scores(passage.legs, legs)}" if legs else ""
    return f"{names[passage.id]}{scores}"


def _scores(of: Mapping[str, float | None], legs: Sequence[str]) -> str:
    return " and ".join(_score(of.get(leg)) for leg in legs)


def _score(score: float | None) -> str:
    return "not found" if score is None else f"{score:.4g}"
