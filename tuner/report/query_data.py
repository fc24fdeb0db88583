"""All queries of a study for the page's list: an index within the page, the rest beside it.

The page is opened from a disk as often as from a server, where it may load scripts but fetch
nothing. So each file is a script that hands its content over as JSON: ``beside.js`` loads it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tuner.core.files import write_whole
from tuner.core.found import ranks_of
from tuner.core.journal import found_if_whole, per_query_if_whole
from tuner.core.json_text import text_digest
from tuner.core.rankings import FloatArray
from tuner.core.run_files import BEST_FILE, CONFIG_FILE, JOURNAL_FILE
from tuner.core.shown import shortened
from tuner.core.trial import Trial
from tuner.evaluation.objective import composite_values
from tuner.report.page_view import packed
from tuner.report.query_change import why_it_changed
from tuner.report.review import Review
from tuner.run.shown_texts import LONGEST_TEXT, PassageText, read_passages
from tuner.run.side_by_side import SHOWN_PASSAGES, Passage, Side, SideBySide

LONGEST_QUERY = 300
"""Characters of a query in the index; its file has more."""
LONGEST_WHOLE_QUERY = 4_000
MOST_RELEVANT = 30
"""Relevant passages of a query whose ranks are shown one by one."""
BLOCK = 500
"""Queries in one block of the index: the page holds whole blocks."""
MOST_IN_PAGE = 300_000
"""Characters that the index may take in the page; the blocks after that lie beside it."""
FILE_CHARACTERS = 600_000
"""About so many in a file: what opening one query loads."""
MOST_CHARACTERS = 100_000_000
"""Of texts of passages in all files together; queries after that have titles only."""
MOST_TRIAL_VALUES = 4_000_000
"""Values by trial and query in all files together, best trials first."""
FILE_NAME = re.compile(r"(index|queries|trials)-\d{4,}\.js")


@dataclass(frozen=True)
class QueryData:
    """What the page knows of the queries, and the files beside it by name, in their order."""

    index: Mapping[str, Any]
    files: Iterable[tuple[str, str]]


def query_data(review: Review) -> QueryData | None:
    """Return the queries of a study, those that changed most first; None where none is known."""
    tune = review.tune_rows
    places = {row.query_id: place for place, row in enumerate(tune)}
    others = tune if tune and review.rows[:1] != tune[:1] else ()
    rows = sorted((*review.rows, *others), key=_largest_change_first)
    if not rows:
        return None
    names = _Names(rows)
    found = [
        _found(review, trial)
        for trial in (review.trial(review.chosen), review.trial(review.baseline))
    ]
    chunks = [0, *_ends(rows)]
    of_trials, trial_files = _trials(review, len(tune))
    blocks = [
        _block(rows[begin : begin + BLOCK], names, places, found)
        for begin in range(0, len(rows), BLOCK)
    ]
    head = {
        "count": len(rows),
        "types": names.types,
        "metrics": names.metrics,
        "legs": names.legs,
        "chunks": chunks,
        "block": BLOCK,
        "shown": SHOWN_PASSAGES,
        "longest": LONGEST_TEXT,
        "trials": of_trials,
    }
    key = text_digest(json.dumps([review.header.study_id, head, blocks]))[:16]
    inside: list[dict[str, Any]] = []
    left = MOST_IN_PAGE
    for block in blocks:
        left -= len(packed(_json(block).encode()))
        if left < 0 and inside:
            break
        inside.append(block)
    file = partial(_file, key)

    def files() -> Iterator[tuple[str, str]]:
        for number in range(len(inside), len(blocks)):
            yield file("index", number, blocks[number])
        texts = _Texts(read_passages(review.run_dir))
        for number, (begin, end) in enumerate(zip(chunks, [*chunks[1:], len(rows)], strict=True)):
            yield file("queries", number, _chunk(rows[begin:end], names, texts, review))
        for number, content in enumerate(trial_files):
            yield file("trials", number, content)

    return QueryData({**head, "key": key, "blocks": inside}, files())


def write_files(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    """Write the files of a page into the folder beside it, and take those of an earlier one away.

    Raises:
        OSError: the disk refuses.
    """
    written = set()
    for name, text in files:
        folder.mkdir(exist_ok=True)
        write_whole(folder / name, text)
        written.add(name)
    for path in folder.glob("*.js"):
        if FILE_NAME.fullmatch(path.name) and path.name not in written:
            path.unlink()


def _largest_change_first(row: SideBySide) -> tuple[bool, float]:
    change = row.change
    return (change is None, -abs(change or 0.0))


class _Names:
    """Names that many queries share, each once."""

    def __init__(self, rows: Sequence[SideBySide]) -> None:
        sides = [side for row in rows for side in (row.winner, row.baseline)]
        self.types = sorted({row.query_type for row in rows})
        self.metrics = list(dict.fromkeys(name for side in sides for name in side.metrics))
        passages = (passage for side in sides for passage in side.retrieved)
        self.legs = list(dict.fromkeys(leg for passage in passages for leg in passage.legs))


def _block(
    rows: Sequence[SideBySide],
    names: _Names,
    places: Mapping[str, int],
    found: Sequence[FloatArray | None],
) -> dict[str, Any]:
    """Return what the list shows of some queries, as columns."""
    types = {name: place for place, name in enumerate(names.types)}
    return {
        "id": [row.query_id for row in rows],
        "text": [shortened(row.query, LONGEST_QUERY) for row in rows],
        "type": [types[row.query_type] for row in rows],
        "tune": [places.get(row.query_id) for row in rows],
        "holdout": [int(row.part == "holdout") for row in rows],
        "relevant": [list(row.relevant[:MOST_RELEVANT]) for row in rows],
        "relevants": [len(row.relevant) for row in rows],
        "sides": [
            {
                "composite": [_short(side.composite) for side in sides],
                "metrics": [
                    [_short(side.metrics.get(name)) for side in sides] for name in names.metrics
                ],
                "kept": [int(side.is_kept) for side in sides],
                "ranks": [
                    _ranks(row, side, found[which], places)
                    for row, side in zip(rows, sides, strict=True)
                ],
            }
            for which, sides in enumerate(
                ([row.winner for row in rows], [row.baseline for row in rows])
            )
        ],
    }


def _ranks(
    row: SideBySide, side: Side, found: FloatArray | None, places: Mapping[str, int]
) -> list[int] | None:
    """Return the rank of each relevant passage, 0 where it is not in the answer.

    Of an answer that was not kept, the ranks at which there was one; None where nobody knows.
    """
    if side.is_kept:
        return [side.found.get(id_, 0) for id_ in row.relevant[:MOST_RELEVANT]]
    place = places.get(row.query_id)
    told = None if found is None or place is None or place >= len(found) else ranks_of(found[place])
    return None if told is None else list(told[0])


def _found(review: Review, trial: Trial | None) -> FloatArray | None:
    if trial is None:
        return None
    return found_if_whole(review.run_dir / JOURNAL_FILE, trial.evaluated_as)


def _ends(rows: Sequence[SideBySide]) -> Iterator[int]:
    """Yield at which rows another file begins: before it would be too long."""
    size = 0
    seen = set[str]()
    for number, row in enumerate(rows):
        ids = {p.id for side in (row.winner, row.baseline) for p in side.retrieved}
        ids |= set(row.relevant[:MOST_RELEVANT])
        added = len(ids - seen) * _TYPICAL_TEXT + len(row.query) + 80 * len(ids)
        if number and size + added > FILE_CHARACTERS:
            yield number
            size, seen = 0, set()
            added = len(ids) * _TYPICAL_TEXT + len(row.query) + 80 * len(ids)
        size += added
        seen |= ids


_TYPICAL_TEXT = 1_000


class _Texts:
    """The kept texts of passages, as long as there is room for them."""

    def __init__(self, by_id: Mapping[str, PassageText]) -> None:
        self._by_id = by_id
        self._left = MOST_CHARACTERS

    def of(self, id_: str, title: str) -> list[Any]:
        """Return id, title, text or None, and how long the whole text is."""
        text = self._by_id.get(id_)
        if text is None or len(text.text) > self._left:
            return [id_, title or ("" if text is None else text.title), None, 0]
        self._left -= len(text.text)
        return [id_, title or text.title, text.text, text.length]


def _chunk(
    rows: Sequence[SideBySide], names: _Names, texts: _Texts, review: Review
) -> dict[str, Any]:
    """Return what opening a query shows, each passage once."""
    places: dict[str, int] = {}
    passages: list[list[Any]] = []

    def place(id_: str, title: str = "") -> int:
        if id_ not in places:
            places[id_] = len(passages)
            passages.append(texts.of(id_, title))
        return places[id_]

    def line(passage: Passage) -> list[Any]:
        legs = [_short(passage.legs.get(leg)) for leg in names.legs] if passage.legs else []
        at = place(passage.id, passage.title)
        return [at, int(passage.relevant), _short(passage.score), legs]

    queries = [
        {
            "text": shortened(row.query, LONGEST_WHOLE_QUERY),
            "why": why_it_changed(row),
            "ask": _ask_command(review, row.query_id),
            "sides": [
                [line(passage) for passage in side.retrieved] for side in (row.winner, row.baseline)
            ],
            "relevant": [place(id_) for id_ in row.relevant[:MOST_RELEVANT]],
        }
        for row in rows
    ]
    return {"queries": queries, "passages": passages}


def _ask_command(review: Review, query_id: str) -> str:
    """Return the line that asks a query of winner and baseline; empty where it could not run."""
    config, best = (review.run_dir / name for name in (CONFIG_FILE, BEST_FILE))
    if review.header.baseline is None or not (config.is_file() and best.is_file()):
        return ""
    path, question = shlex.quote(str(config)), shlex.quote(query_id)
    options = f"--params {shlex.quote(str(best))} --compare baseline"
    # By id, as texts can be long, and two queries can have the same.
    if query_id.startswith("-"):
        return f"tuner ask {path} {options} -- {question}"
    return f"tuner ask {path} {question} {options}"


def _trials(review: Review, queries: int) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return which file has a trial's values by query, and what the files hold.

    A trial is ``[number, composites, found]``, in the order of the tune queries.
    """
    journal = review.run_dir / JOURNAL_FILE
    own = [trial for trial in review.trials if trial.is_told]
    own.sort(key=lambda trial: -(trial.worth if trial.worth is not None else float("-inf")))
    kept: list[list[Any]] = []
    left_out = 0
    for trial in own:
        if queries == 0 or (len(kept) + 1) * queries > MOST_TRIAL_VALUES:
            left_out += 1
            continue
        values = per_query_if_whole(journal, trial.evaluated_as)
        if not values or any(len(row) != queries for row in values.values()):
            continue
        is_whole = bool(review.weights) and all(name in values for name in review.weights)
        composite = composite_values(values, review.weights) if is_whole else None
        found = found_if_whole(journal, trial.evaluated_as)
        kept.append(
            [
                trial.number,
                None if composite is None else [_short(value) for value in composite],
                None if found is None else [_whole(value) for value in found],
            ]
        )
    each = max(1, FILE_CHARACTERS // max(1, 12 * queries))
    files = [kept[begin : begin + each] for begin in range(0, len(kept), each)]
    where = [[one[0], number] for number, file in enumerate(files) for one in file]
    return {"file": where, "left_out": left_out if kept else 0}, files


def _short(value: float | None) -> float | None:
    """Return a value in as many digits as are shown."""
    if value is None or value != value:
        return None
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() else short


def _whole(value: float) -> int | None:
    return None if value != value else int(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _file(key: str, kind: str, number: int, content: Any) -> tuple[str, str]:
    """Return a file's name and its text: a script that gives its content as one JSON string."""
    name = f"{kind}-{number + 1:04}"
    text = _json(content).replace("\\", "\\\\").replace("'", "\\'")
    return f"{name}.js", f"reportData('{name}', '{key}', '{text}');\n"
