"""The sections of a configuration that say where the data is, and how it is divided and judged."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, StrictInt, model_validator

from tuner.config.section import Number, Section
from tuner.core.grades import GradeScale


class SplitSection(Section):
    """How queries are divided into the part to tune on and the part held out."""

    holdout: Number = Field(
        default=0.5,
        ge=0,
        lt=1,
        description="the share of the queries that is held out for the verdict; left out with "
        "fewer than 60 queries, none is held out",
    )
    stratify_by: list[Literal["query_type", "difficulty"]] = Field(
        default=["query_type", "difficulty"],
        description="all parts get the same share of each query type and difficulty",
    )
    parts: StrictInt | None = Field(
        default=None,
        ge=2,
        le=10,
        description="let all queries decide, in place of a holdout: they are cut in so many parts, "
        "the search is repeated without each part, and its winner meets the baseline on that part",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.parts is not None and "holdout" in self.model_fields_set and self.holdout > 0:
            raise ValueError(
                "parts lets all queries decide, and holdout lays some aside: give one of them"
            )
        return self


class DatasetSection(Section):
    """Where the corpus and the judged queries are."""

    path: str = Field(min_length=1, description="a folder, or `builtin:atlas`")
    format: str | None = Field(
        default=None, description="the name of its format; recognised where left out"
    )
    relevant_from: Number = Field(
        default=1,
        gt=0,
        description="the lowest grade of a relevant document, such as 0.5 where grades run from "
        "0 to 1",
    )
    max_grade: Number | Literal["query", "dataset"] = Field(
        default="query",
        description="the highest grade, for metrics that divide by it: the highest among the "
        "query's judgements, the highest in the data set, or a number",
    )
    judge: Literal["document", "evidence"] = Field(
        default="document",
        description="what has to be retrieved for a judgement to count: any part of the document, "
        "or evidence, the part that holds its labelled supporting texts; for passages cut from "
        "documents",
    )
    people: str | None = Field(
        default=None,
        min_length=1,
        description="a file of judgements by people, of some of the queries, drawn at random; "
        "those of `path` are then a judge's, and count for what they are worth beside people's",
    )
    people_gate: Number = Field(
        default=0.5,
        ge=0,
        le=1,
        description="the agreement of judge and people, Cohen's kappa, below which the judge "
        "counts for nothing",
    )
    split: SplitSection = Field(
        default=SplitSection(),
        description="how queries are divided into the part to tune on and the part held out",
    )

    @property
    def scale(self) -> GradeScale:
        """Return how grades are read.

        Raises:
            InputError: the highest grade is below the lowest that is relevant.
        """
        highest = self.max_grade if isinstance(self.max_grade, str) else float(self.max_grade)
        return GradeScale(float(self.relevant_from), highest, self.judge)
