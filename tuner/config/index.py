"""The section of a configuration that says what the indexes of a study may take."""

from __future__ import annotations

from pydantic import Field, StrictInt

from tuner.config.section import Number, Section
from tuner.retrieval.indexes.limits import IndexLimits


class KeptIndexesSection(Section):
    """Which indexes stay on the disk; what was asked longest ago is deleted first."""

    gb: Number | None = Field(
        default=None, gt=0, description="all of them together take at most so many 10^9 bytes"
    )
    count: StrictInt | None = Field(default=None, ge=1, description="at most so many are kept")


class IndexSection(Section):
    """What the indexes of a study may take, where parameters of the index are searched."""

    timeout_s: Number | None = Field(
        default=None,
        gt=0,
        description="an index that takes longer to build has failed, and so have the trials that "
        "need it; left out: no limit",
    )
    budget: StrictInt | None = Field(
        default=None,
        ge=1,
        description="how many different indexes the search may ask for, the baseline's included; "
        "left out: no limit",
    )
    keep: KeptIndexesSection = Field(
        default=KeptIndexesSection(),
        description="which indexes stay on the disk, in the cache; never deleted are those of "
        "running trials, of the best, of a winner and of a champion",
    )

    @property
    def limits(self) -> IndexLimits:
        """Return the limits of building and keeping."""
        return IndexLimits(
            None if self.timeout_s is None else float(self.timeout_s),
            None if self.keep.gb is None else float(self.keep.gb),
            self.keep.count,
        )
