"""A size of effect as it is written: ``0.01`` in the metric's unit, or a share such as ``2%``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from tuner.core.checks import is_number

_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*%\s*")


@dataclass(frozen=True)
class Amount:
    """A size of effect: in the metric's unit, or as a share of the control's value."""

    value: float
    is_relative: bool

    def __str__(self) -> str:
        return f"{self.value * 100:g} %" if self.is_relative else f"{self.value:g}"

    def of(self, control: float) -> float:
        """Return the amount in the metric's unit."""
        return self.value * abs(control) if self.is_relative else self.value


def _amount(written: Any) -> Amount:
    if isinstance(written, Amount):
        return written
    if is_number(written) and 0 <= written < 1e300:
        return Amount(float(written), is_relative=False)
    found = _PERCENT.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        raise PydanticCustomError(
            "amount",
            "should be a number of at least 0, in the metric's unit, or a share such as 2%",
        )
    return Amount(float(found[1]) / 100.0, is_relative=True)


_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^[0-9.]+ ?%$"}]
}

AmountField = Annotated[Amount, PlainValidator(_amount), WithJsonSchema(_SCHEMA)]
