"""What a configuration was tuned on, so that a later comparison knows which queries flatter it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.study_record import StudyHeader
from tuner.core.typed import read_as
from tuner.datasets import Dataset, split_queries


@dataclass(frozen=True)
class TunedOn:
    """The data and the split of the study that chose a configuration.

    ``fingerprint`` is the data set's; with the other fields it tells the tune queries.
    """

    study: str
    dataset: str
    fingerprint: str
    seed: int
    holdout: float
    stratify_by: tuple[str, ...]

    @classmethod
    def of(cls, header: StudyHeader) -> TunedOn:
        """Return what a study tunes on."""
        split = header.config["dataset"]["split"]
        return cls(
            header.name,
            str(header.dataset["name"]),
            str(header.dataset["fingerprint"]),
            header.seed,
            float(split["holdout"]),
            tuple(split["stratify_by"]),
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any] | None) -> TunedOn | None:
        """Read it back from ``best.yaml``; None where it is not there or not whole."""
        try:
            return None if record is None else read_as(cls, record)
        except (TypeError, ValueError):
            return None

    def to_record(self) -> dict[str, Any]:
        """Return it as plain data, the content of ``tuned_on`` in ``best.yaml``."""
        return {**asdict(self), "stratify_by": list(self.stratify_by)}

    def remark(
        self, called: str, dataset: Dataset, queries: Sequence[Query], *, which: str = "these"
    ) -> str | None:
        """Say how many of these queries the configuration was tuned on; None where it was on none.

        ``which`` says of them which they are, such as "the held-out".
        Another data set's queries are fresh. Another version of the same one cannot be told.
        """
        if self.fingerprint != dataset.fingerprint:
            return (
                f"{called} was tuned on another version of {dataset.name} (study {self.study}): "
                f"whether {which} queries were among those cannot be told."
                if self.dataset == dataset.name
                else None
            )
        try:
            tune_ids, _ = split_queries(
                dataset.queries,
                holdout=self.holdout,
                stratify_by=self.stratify_by,
                seed=self.seed,
            )
        except InputError:  # a hand-edited file describes no split
            return None
        seen = len({query.id for query in queries}.intersection(tune_ids))
        if seen == 0:
            return None
        some = "all" if seen == len(queries) else f"{seen} of"
        were = "was" if seen == 1 else "were"
        return (
            f"{some} {which} {len(queries)} queries {were} among those that {called} was tuned on "
            f"(study {self.study}), which flatters it."
        )
