"""The winner beside the baseline, query by query: what each retrieved, and how good that was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tuner.core.corpus import Query
from tuner.core.files import read_lines, write_whole
from tuner.core.json_text import json_text, read_as
from tuner.core.rankings import BoolArray, FloatArray, Rankings
from tuner.core.run_files import QUERIES_FILE
from tuner.core.trial import Params
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import COMPOSITE, composite_values
from tuner.retrieval.base import with_reasons
from tuner.run.assembly import Assembly

# Nobody reads further down a ranking, and a data set may have many queries.
SHOWN_PASSAGES = 10

Part = Literal["holdout", "tune"]


@dataclass(frozen=True)
class Passage:
    """One retrieved document: is it relevant; ``title`` is empty where the corpus has none.

    Its fields are called as the file has them, and so are those of the others.
    """

    id: str
    title: str
    relevant: bool


@dataclass(frozen=True)
class Side:
    """What one configuration made of one query; None marks what is undefined for it."""

    composite: float | None
    metrics: Mapping[str, float | None]
    retrieved: tuple[Passage, ...]


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
    return tuple(
        SideBySide(
            query_id=query.id,
            query=query.text,
            query_type=query.query_type,
            part=part,
            relevant=_relevant(assembly, query),
            winner=mine,
            baseline=theirs,
        )
        for query, mine, theirs in zip(queries, first, second, strict=True)
    )


def write_side_by_side(run_dir: Path, rows: Iterable[SideBySide]) -> None:
    """Write ``per_query.jsonl``, whole or not at all; nothing where there are no queries."""
    lines = [json_text(row.to_record()) for row in rows]
    if not lines:
        return
    write_whole(run_dir / QUERIES_FILE, "\n".join(lines) + "\n")


def read_side_by_side(run_dir: Path) -> tuple[SideBySide, ...]:
    """Read a run directory's ``per_query.jsonl``; empty where there is none.

    Raises:
        InputError: a line that cannot be right, with its number.
    """
    read = partial(read_as, SideBySide)
    return tuple(read_lines(run_dir / QUERIES_FILE, read, "query with two answers"))


def _sides(assembly: Assembly, evaluator: Evaluator, params: Params) -> list[Side]:
    """Ask once, and take both the values and the passages from the same answers."""
    params = {**evaluator.fixed, **params}
    retriever, queries = evaluator.retriever, evaluator.queries
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
        )
        for row in range(len(queries))
    ]


def _passages(
    rankings: Rankings, row: int, titles: Mapping[str, str], is_hit: BoolArray
) -> tuple[Passage, ...]:
    return tuple(
        Passage(id_, titles.get(id_, ""), bool(hit))
        for id_, hit in zip(rankings.ids(row)[:SHOWN_PASSAGES], is_hit, strict=False)
    )


def _relevant(assembly: Assembly, query: Query) -> tuple[str, ...]:
    grades = assembly.dataset.qrels.get(query.id, {})
    return tuple(
        id_ for id_, grade in grades.items() if grade >= assembly.dataset.scale.relevant_from
    )


def _number(values: FloatArray, row: int) -> float | None:
    return float(values[row]) if np.isfinite(values[row]) else None
