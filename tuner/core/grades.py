"""How judgements are read: from which grade on, how high grades go, and what has to be found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tuner.core.errors import InputError

RELEVANT_FROM = 1.0
"""The lowest relevant grade by default, as in trec_eval (its option ``-l``)."""

OfWhat = Literal["query", "dataset"]
Found = Literal["document", "evidence"]


@dataclass(frozen=True)
class GradeScale:
    """How grades are read.

    Attributes:
        relevant_from: the lowest grade that counts as relevant, above 0. Grades from 0 to 1, such
            as a cross-encoder's, need one below 1.
        max_grade: what the metrics that divide by the highest grade divide by: the highest of the
            query's own judgements, the highest of the data set's, or a number.
        judge: what has to be retrieved for a grade to count: any part of the document, or the part
            that holds the labelled supporting texts.

    Raises:
        InputError: a value that no grade can have.
    """

    relevant_from: float = RELEVANT_FROM
    max_grade: float | OfWhat = "query"
    judge: Found = "document"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.relevant_from) and self.relevant_from > 0):
            message = f"relevant_from is {self.relevant_from:g}; it must be a number above 0"
            raise InputError(message, key=("relevant_from",))
        if isinstance(self.max_grade, str):
            if self.max_grade not in ("query", "dataset"):
                message = f"max_grade is {self.max_grade!r}; write 'query', 'dataset' or a number"
                raise InputError(message, key=("max_grade",))
        elif not (math.isfinite(self.max_grade) and self.max_grade >= self.relevant_from):
            raise InputError(
                f"max_grade is {self.max_grade:g}; it must be at least {self.relevant_from:g}, "
                "from which a document is relevant",
                key=("max_grade",),
            )

    def highest(self, judgements: Iterable[Mapping[str, float]]) -> float | None:
        """Return what grades are divided by; None where each query has its own highest grade."""
        match self.max_grade:
            case "query":
                return None
            case "dataset":
                grades = (grade for judged in judgements for grade in judged.values())
                return max(grades, default=self.relevant_from)
            case number:
                return float(number)

    def problem(self, judgements: Iterable[Mapping[str, float]]) -> str:
        """Say what is wrong where no judged document is relevant; an empty string otherwise."""
        grades = [grade for judged in judgements for grade in judged.values()]
        highest = float(max(grades, default=0.0))
        if not grades or highest >= self.relevant_from:
            return ""
        message = f"no document is relevant: no grade reaches {self.relevant_from:g}"
        if highest <= 0:
            return message
        return f"{message}, the highest is {highest:g}; set relevant_from, such as {highest / 2:g}"


DEFAULT_SCALE = GradeScale()
