"""The winner beside the baseline, query by query: what each retrieved, and how good that was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tuner.core.corpus import Query
from tuner.core.files import read_lines, write_whole
from tuner.core.journal import per_query_if_whole
from tuner.core.json_text import json_text, read_as
from tuner.core.rankings import BoolArray, FloatArray, Legs, Rankings
from tuner.core.run_files import JOURNAL_FILE, QUERIES_FILE
from tuner.core.trial import Params, Trial
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import COMPOSITE, composite_values
from tuner.retrieval.base import Retriever, telling_legs, with_reasons
from tuner.retrieval.wrapped.around import is_engine
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.assembly import Assembly

# Nobody reads further down a ranking, and a data set may have many queries.
SHOWN_PASSAGES = 10

Part = Literal["holdout", "tune"]


@dataclass(frozen=True)
class Passage:
    """One retrieved document: is it relevant; ``title`` is empty where the corpus has none.

    Its fields are called as the file has them, and so are those of the others. ``legs`` holds its
    score in each leg that the answer was mixed from, None where a leg did not find it; it is empty
    where the system does not tell of legs, and ``score`` is None where it tells no scores.
    """

    id: str
    title: str
    relevant: bool
    score: float | None = None
    legs: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """What one configuration made of one query; None marks what is undefined for it.

    ``found`` holds the rank, from 1, of each relevant document in the whole answer, of which
    ``retrieved`` is the beginning. Both are empty where the answer was not kept (``is_kept``).
    """

    composite: float | None
    metrics: Mapping[str, float | None]
    retrieved: tuple[Passage, ...]
    found: Mapping[str, int] = field(default_factory=dict)
    is_kept: bool = True


@dataclass(frozen=True)
class SideBySide:
    """One query with the answers of both; ``relevant`` holds the ids that are to be found."""

    query_id: str
    query: str
    query_type: str
    part: Part
    relevant: tuple[str, ...]
    winner: Side
    baseline: Side

    @property
    def change(self) -> float | None:
        """Return the winner's composite less the baseline's; None where one is undefined."""
        if self.winner.composite is None or self.baseline.composite is None:
            return None
        return self.winner.composite - self.baseline.composite

    def to_record(self) -> dict[str, Any]:
        """Return the query as a JSON-ready mapping, the form of a line of the file."""
        return asdict(self)


def by_query(rows: Sequence[SideBySide], name: str) -> tuple[FloatArray, FloatArray] | None:
    """Return a metric's, or the composite's, values of winner and baseline by query.

    None where no query has both.
    """
    first, second = (
        np.array(
            [
                np.nan if value is None else value
                for side in sides
                for value in (side.composite if name == COMPOSITE else side.metrics.get(name),)
            ],
            dtype=np.float64,
        )
        for sides in ([row.winner for row in rows], [row.baseline for row in rows])
    )
    return None if np.isnan(first - second).all() else (first, second)


def put_side_by_side(
    assembly: Assembly, winner: Params, baseline: Params
) -> tuple[SideBySide, ...]:
    """Answer the held-out queries with both, or all of them where none is held out.

    Each is asked for its rankings once; what a slow system answered before comes from the run
    directory. Empty for a system that measures itself, which answers no queries.
    """
    part: Part = "holdout" if assembly.holdout_queries else "tune"
    queries = assembly.holdout_queries or assembly.tune_queries
    evaluator = assembly.evaluator(queries)
    if not queries or not isinstance(evaluator, Evaluator):
        return ()
    first = _sides(assembly, evaluator, winner)
    second = first if winner == baseline else _sides(assembly, evaluator, baseline)
    return _rows(assembly, queries, part, first, second)


def put_tune_side_by_side(
    assembly: Assembly, run_dir: Path, winner: Trial, baseline: Trial
) -> tuple[SideBySide, ...]:
    """Put both side by side on the tune queries too, where others were held out.

    Nothing is asked anew: the built-in engine answers from memory, the answers of others are those
    that are kept in the run directory, and where there are none, the trials' values by query are
    all that is known. Empty where no query was held out, or the system answers none.
    """
    queries = assembly.tune_queries
    evaluator = assembly.evaluator(queries)
    if not assembly.holdout_queries or not isinstance(evaluator, Evaluator):
        return ()
    sides = []
    for one in (winner, baseline):
        params = {**evaluator.fixed, **one.params}
        if is_known(evaluator.retriever, queries, params):
            sides.append(_sides(assembly, evaluator, one.params))
        else:
            values = per_query_if_whole(run_dir / JOURNAL_FILE, one.evaluated_as)
            sides.append(_unanswered(assembly, values))
    return _rows(assembly, queries, "tune", *sides)


def write_side_by_side(
    run_dir: Path, rows: Iterable[SideBySide], *, name: str = QUERIES_FILE
) -> None:
    """Write ``per_query.jsonl``, whole or not at all; nothing where there are no queries.

    ``name`` is that of the file, where the queries are others.
    """
    lines = [json_text(row.to_record()) for row in rows]
    if not lines:
        return
    write_whole(run_dir / name, "\n".join(lines) + "\n")


def read_side_by_side(run_dir: Path, *, name: str = QUERIES_FILE) -> tuple[SideBySide, ...]:
    """Read a run directory's ``per_query.jsonl``; empty where there is none.

    Raises:
        InputError: a line that cannot be right, with its number.
    """
    read = partial(read_as, SideBySide)
    return tuple(read_lines(run_dir / name, read, "query with two answers"))


def is_known(retriever: Retriever, queries: Sequence[Query], params: Params) -> bool:
    """Say whether these answers cost nothing: they come from memory, or are kept."""
    if is_engine(retriever):
        return True
    return isinstance(retriever, Remembered) and retriever.kept(queries, params) == len(queries)


def _rows(
    assembly: Assembly,
    queries: Sequence[Query],
    part: Part,
    first: Sequence[Side],
    second: Sequence[Side],
) -> tuple[SideBySide, ...]:
    return tuple(
        SideBySide(
            query_id=query.id,
            query=query.text,
            query_type=query.query_type,
            part=part,
            relevant=assembly.dataset.relevant(query.id),
            winner=mine,
            baseline=theirs,
        )
        for query, mine, theirs in zip(queries, first, second, strict=True)
    )


def _unanswered(assembly: Assembly, values: Mapping[str, FloatArray]) -> list[Side]:
    """Return what a trial's values by query tell, where its answers were not kept."""
    count, weights = len(assembly.tune_queries), assembly.plan.objective.weights
    nothing = np.full(count, np.nan)
    is_whole = all(name in values for name in weights)
    composite = composite_values(values, weights) if is_whole else nothing
    return [
        Side(
            _number(composite, row),
            {name: _number(array, row) for name, array in values.items()},
            (),
            is_kept=False,
        )
        for row in range(count)
    ]


def _with_legs(retriever: Retriever, queries: Sequence[Query], params: Params) -> Retriever:
    """Return the same, whose answers tell their legs where that costs nothing."""
    telling = telling_legs(retriever)
    return telling if is_known(telling, queries, params) else retriever


def _sides(assembly: Assembly, evaluator: Evaluator, params: Params) -> list[Side]:
    """Ask once, and take both the values and the passages from the same answers."""
    params = {**evaluator.fixed, **params}
    queries = evaluator.queries
    retriever = _with_legs(evaluator.retriever, queries, params)
    rankings = retriever.retrieve(queries, params)
    if evaluator.labels is not None:
        rankings = with_reasons(retriever, queries, params, rankings)
    if evaluator.passages is not None and evaluator.budget_tokens is not None:
        rankings = evaluator.passages.within(rankings, evaluator.budget_tokens)
        evaluator = replace(evaluator, budget_tokens=None)
    per_query = evaluator.measure(rankings).per_query
    hits = evaluator.qrels.judge(rankings, depth=SHOWN_PASSAGES).hits
    composite = composite_values(per_query, assembly.plan.objective.weights)
    titles = {document.id: document.title for document in assembly.dataset.corpus.documents}
    return [
        Side(
            _number(composite, row),
            {name: _number(values, row) for name, values in per_query.items()},
            _passages(rankings, row, titles, hits[row]),
            _found(rankings, row, assembly.dataset.relevant(queries[row].id)),
        )
        for row in range(len(queries))
    ]


def _passages(
    rankings: Rankings, row: int, titles: Mapping[str, str], is_hit: BoolArray
) -> tuple[Passage, ...]:
    return tuple(
        Passage(
            id_,
            titles.get(id_, ""),
            bool(hit),
            None if rankings.scores is None else _score(rankings.scores[row, place]),
            {} if rankings.legs is None else _by_leg(rankings, rankings.legs, row, place),
        )
        for place, (id_, hit) in enumerate(
            zip(rankings.ids(row)[:SHOWN_PASSAGES], is_hit, strict=False)
        )
    )


def _by_leg(rankings: Rankings, legs: Legs, row: int, place: int) -> dict[str, float | None]:
    """Return a document's score in each leg; of several passages of it, the best."""
    is_it = legs.documents[row] == rankings.documents[row, place]
    if not is_it.any():
        return {}
    return {
        name: _score(np.fmax.reduce(legs.scores[leg, row][is_it]))
        for leg, name in enumerate(legs.names)
    }


def _found(rankings: Rankings, row: int, relevant: Sequence[str]) -> dict[str, int]:
    ranks = {id_: rank for rank, id_ in enumerate(rankings.ids(row), start=1)}
    return {id_: ranks[id_] for id_ in relevant if id_ in ranks}


def _score(value: Any) -> float | None:
    """Return a score in so many digits as anybody compares."""
    return float(f"{value:.6g}") if np.isfinite(value) else None


def _number(values: FloatArray, row: int) -> float | None:
    return float(values[row]) if np.isfinite(values[row]) else None
