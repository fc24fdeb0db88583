"""What one answer has told of free parameters: their settings were all looked at, one chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Scalar = bool | int | float | str | None


@dataclass(frozen=True)
class Curve:
    """The objective against one free parameter, the others as chosen.

    Attributes:
        name: the parameter.
        at: its values, ascending.
        objective: what each is worth, as a trial with it would have it.
        error: the standard error of the paired difference to the chosen value; None where fewer
            than two queries tell.
    """

    name: str
    at: tuple[float, ...]
    objective: tuple[float, ...]
    error: tuple[float | None, ...]


@dataclass(frozen=True)
class Alternative:
    """Another setting than the chosen one that no setting of the same answer beats in every goal.

    Attributes:
        params: all parameters.
        metrics: as a trial with them would have them, but for what is the same for all settings of
            one answer, such as the size of an index.
    """

    params: Mapping[str, Scalar]
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Profile:
    """How the free parameters of a trial were chosen.

    Attributes:
        asked: what the trial was asked with, without the free parameters.
        looked_at: how many settings of the free ones were compared.
        highest: the best objective among them, which chance flatters.
        curves: one for each free parameter.
        luck: by how much the choice is expected to flatter ``highest``.
        alternatives: settings beside the chosen one, where several goals are sought.
    """

    asked: Mapping[str, Scalar]
    looked_at: int
    highest: float
    curves: tuple[Curve, ...] = ()
    luck: float = 0.0
    alternatives: tuple[Alternative, ...] = ()
