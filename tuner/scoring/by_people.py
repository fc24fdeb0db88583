"""Judgements of a judge beside people's of some queries: which count, and how far both agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuner.config.dataset import DatasetSection
from tuner.core.errors import refuse
from tuner.core.rankings import BoolArray
from tuner.datasets.run_files import read_qrels
from tuner.run.people import Grades, agreement_lines, agreement_of, not_judged
from tuner.stats.agreement import Agreement
from tuner.stats.with_judge import FEWEST_PEOPLE

# The kappa below which a judge counts for nothing, as in a study.
GATE = float(DatasetSection.model_fields["people_gate"].default)
# So many queries of the judge alone tell of a spread.
FEWEST_OTHERS = 2


@dataclass(frozen=True, eq=False)
class PeoplesGrades:
    """What people graded of what a judge graded.

    Attributes:
        grades: people's where they graded a query, the judge's of the others; people's alone where
            the judge counts for nothing.
        judged: the judge's of the same queries, in the same order.
        queries: ids of people's queries.
        agreement: of people and judge.
        why_not: why the judge counts for nothing; "" where it counts.
    """

    grades: Grades
    judged: Grades
    queries: frozenset[str]
    agreement: Agreement
    why_not: str

    @property
    def is_people(self) -> BoolArray:
        """Return which queries people graded, shape (queries,)."""
        return np.array([id_ in self.queries for id_ in self.grades], dtype=np.bool_)

    def told(self, judged: int) -> list[str]:
        """Say how far both agree, where the judge graded so many queries, and what counts."""
        people = len(self.queries)
        lines = agreement_lines(self.agreement, people=people, judged=judged - people)
        if self.why_not:
            return [*lines, f"note: the judge counts for nothing: {self.why_not}"]
        return lines

    def to_record(self) -> dict[str, Any]:
        """Return whose labels count, and how far both agree, as plain data."""
        return {
            "people": len(self.queries),
            "judge_alone": len(self.grades) - len(self.queries),
            "counts": not self.why_not,
            "kappa": self.agreement.kappa,
            "same": self.agreement.same,
            "pairs": self.agreement.pairs,
            "table": [[*pair, count] for pair, count in self.agreement.table.items()],
        }


def read_people(path: str, judged: Grades, *, relevant_from: float) -> PeoplesGrades:
    """Read people's judgements of some of the queries that a judge graded.

    People's queries must be drawn at random. Where the judge agrees too little with them, or either
    has too few queries for an estimate by both, people's count alone.

    Raises:
        InputError: the file cannot be read, or names queries that the judge did not grade.
    """
    people = read_qrels(Path(path), relevant_from=relevant_from).grades
    refuse(not_judged(people, judged, path))
    agreement = agreement_of(people, judged, relevant_from=relevant_from)
    others = len(judged) - len(people)
    why_not = ""
    if not agreement.passes(GATE):
        why_not = f"kappa is below {GATE:g}, or undefined"
    elif len(people) < FEWEST_PEOPLE:
        why_not = f"under {FEWEST_PEOPLE} of people's queries nothing is known of its rare errors"
    elif others < FEWEST_OTHERS:
        why_not = "people graded every query" if not others else "it graded one query alone"
    kept = [id_ for id_ in judged if id_ in people] if why_not else list(judged)
    return PeoplesGrades(
        {id_: people.get(id_, judged[id_]) for id_ in kept},
        {id_: judged[id_] for id_ in kept},
        frozenset(people),
        agreement,
        why_not,
    )
