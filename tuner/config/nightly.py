"""The section of a configuration that says what a night does."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from tuner.config.section import Number, Section


class NotifySection(Section):
    """Who is told of a night: a command, with the summary as JSON on its input, or a web hook."""

    command: list[StrictStr] | None = Field(
        default=None,
        min_length=1,
        description="a program and its arguments, run without a shell; it reads the summary of "
        "the night as JSON",
    )
    webhook: str | None = Field(
        default=None,
        min_length=1,
        description="an address to which the summary is posted as JSON; `${NAME}` is replaced by "
        "the environment variable of that name",
    )
    timeout_s: Number = Field(
        default=30, gt=0, le=3600, description="after this many seconds the notice has failed"
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.webhook is None):
            raise ValueError("needs exactly one of command and webhook")
        return self


class KeepSection(Section):
    """Which run directories of earlier nights stay; the champion's always does."""

    days: StrictInt | None = Field(
        default=None, ge=1, description="keep those of this many latest days"
    )
    studies: StrictInt | None = Field(
        default=None, ge=1, description="keep at most this many, the latest"
    )


class NightlySection(Section):
    """What `tuner nightly` does every night."""

    promote: Literal["auto", "ask", "never"] = Field(
        default="ask",
        description="what happens after the verdict *deploy*. auto: what was found becomes the "
        "champion; ask: it waits for `tuner promote`; never: nothing",
    )
    notify: NotifySection | None = Field(
        default=None, description="who is told of a night; left out: nobody"
    )
    keep: KeepSection = Field(
        default=KeepSection(),
        description="which run directories stay; by default every one is kept",
    )
