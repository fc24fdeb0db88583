"""One query taken through the steps: what each found, checked, and handed on to the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

from tuner.core.checks import is_whole
from tuner.core.errors import OutageError, TunerError, one_line
from tuner.core.outages import is_outage
from tuner.core.trial import Params
from tuner.retrieval.adapters.answers import Passages, read_answer, shown
from tuner.retrieval.adapters.cypher.address import Address
from tuner.retrieval.adapters.cypher.database import Database, Table
from tuner.retrieval.adapters.cypher.steps import IDS, QUERY, ROWS, VECTOR, Step, Steps

ID, SCORE = "id", "score"

ByWords = Callable[[str, int], Sequence[tuple[str, float]]]
"""The built-in search: a text and a count -> documents with their scores, best first."""


@dataclass(frozen=True)
class Rows:
    """What a step found, best first: ids as the database gave them, each once, and their scores."""

    ids: tuple[Any, ...] = ()
    scores: tuple[float, ...] | None = None

    @property
    def records(self) -> list[dict[str, Any]]:
        """Return rows as the next step can read them; without scores each counts 1."""
        scores = self.scores or (1.0,) * len(self.ids)
        return [{ID: id_, SCORE: score} for id_, score in zip(self.ids, scores, strict=True)]

    @property
    def documents(self) -> list[tuple[str, float]]:
        """Return documents with scores; where none are told, n documents have n, n - 1, …, 1."""
        scores = self.scores or tuple(float(rest) for rest in range(len(self.ids), 0, -1))
        return [(str(id_), score) for id_, score in zip(self.ids, scores, strict=True)]


@dataclass(frozen=True)
class Asking:
    """Takes queries through the steps of a configuration, over an open database."""

    steps: Steps
    address: Address
    database: Database
    by_words: ByWords | None
    known: Passages

    def legs(self, query: str, vector: Any, params: Params) -> dict[str, list[tuple[str, float]]]:
        """Return the documents that each leg found for a query, with scores, best first.

        Raises:
            OutageError: the server does not answer.
            TunerError: as ``found``; or a leg found what is no document of the data set.
        """
        found = self.found(query, vector, params)
        legs = {}
        for step in self.steps.steps:
            if step.name not in self.steps.legs:
                continue
            legs[step.name] = found[step.name].documents
            try:
                read_answer(legs[step.name], self.known)
            except TunerError as error:
                raise TunerError(f"{step}: {error}") from None
        return {leg: legs[leg] for leg in self.steps.legs}

    def found(self, query: str, vector: Any, params: Params) -> dict[str, Rows]:
        """Return what each step found for a query; ``vector`` is None where no step reads it.

        A step that starts from an earlier one which found nothing finds nothing, and is not asked.

        Raises:
            OutageError: the server does not answer.
            TunerError: a step failed, or found what is no row; it names the step and its statement.
        """
        found: dict[str, Rows] = {}
        for place, step in enumerate(self.steps.steps):
            sources = self.steps.sources(place)
            if any(not found[source].ids for source in sources):
                found[step.name] = Rows()
                continue
            try:
                before = found[self.steps.steps[place - 1].name] if place else Rows()
                values = {
                    **params,
                    **{one.ids: list(found[one.name].ids) for one in self.steps.steps[:place]},
                    QUERY: query,
                    VECTOR: vector,
                    IDS: list(before.ids),
                    ROWS: before.records if ROWS in step.names else [],
                }
                found[step.name] = self._asked(step, values)
            except Exception as error:
                kind = OutageError if is_outage(error) else TunerError
                reason = str(error) if isinstance(error, TunerError) else one_line(error)
                raise kind(f"{step}: {self.address.hidden(reason)}") from None
        return found

    def _asked(self, step: Step, values: Mapping[str, Any]) -> Rows:
        statement = step.statement
        if statement is not None:
            sent = {name: values[name] for name in statement.parameters}
            return read_rows(self.database.ask(statement.filled(values), sent))
        if self.by_words is None:
            raise TunerError("no documents to search")
        depth = values[step.depth] if isinstance(step.depth, str) else step.depth
        hits = self.by_words(values[QUERY], int(depth))
        return Rows(tuple(id_ for id_, _ in hits), tuple(score for _, score in hits))


def read_rows(table: Table) -> Rows:
    """Read what a statement returned: a column ``id``, and one called ``score`` or none.

    Of an id that is there twice the first place counts; equal scores are put in the order of ids.

    Raises:
        TunerError: other columns, an id that is none, a score that is missing, or scores that rise.
    """
    columns = list(table.columns)
    if ID not in columns or set(columns) - {ID, SCORE}:
        raise TunerError(
            f"it returns {', '.join(columns) or 'nothing'}; what counts is `id`, and `score` where "
            "there is one: write RETURN … AS id, … AS score, and nothing else"
        )
    ids = [_checked_id(row[columns.index(ID)], place) for place, row in _numbered(table)]
    if SCORE not in columns:
        return Rows(tuple(dict.fromkeys(ids)))
    column, last, best = columns.index(SCORE), math.inf, dict[Any, float]()
    for place, row in _numbered(table):
        score = _checked_score(row[column], place)
        if score > last:
            raise TunerError(
                f"the scores rise from {last:g} to {score:g} in row {place}: higher is better, so "
                "write ORDER BY score DESC, id; a distance is turned around first, as in "
                "1 - distance AS score"
            )
        last = score
        best.setdefault(ids[place - 1], score)
    ordered = sorted(best, key=lambda id_: (-best[id_], str(id_)))
    return Rows(tuple(ordered), tuple(best[id_] for id_ in ordered))


def _numbered(table: Table) -> Sequence[tuple[int, Sequence[Any]]]:
    return list(enumerate(table.rows, start=1))


def _checked_id(value: Any, place: int) -> Any:
    if value is None:
        raise TunerError(
            f"the id of row {place} is null: the node has no such property, so return the one that "
            "holds its id"
        )
    if isinstance(value, str) or is_whole(value):
        return value
    raise TunerError(
        f"the id of row {place} is {shown(value)}, of type {type(value).__name__}; return a text "
        "or a whole number, such as node.id AS id"
    )


def _checked_score(value: Any, place: int) -> float:
    is_number = isinstance(value, Real | Decimal) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise TunerError(f"the score of row {place} is {shown(value)}, no finite number")
    return float(value)
