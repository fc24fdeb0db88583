"""The section of a configuration that ends a search which gains nothing more."""

from __future__ import annotations

from pydantic import Field, StrictInt

from tuner.config.section import Number, Section


class StopSection(Section):
    """When the search ends before its trials are spent; left out: it does not."""

    gain_below: Number = Field(
        gt=0,
        description="the search ends when the trials that are left are not expected to gain this "
        "much of the objective, such as `0.002`",
    )
    within: StrictInt | None = Field(
        default=None,
        ge=1,
        description="how many trials ahead it looks; left out: at all that are left",
    )
