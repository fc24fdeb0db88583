"""Arms: a backend with a budget each, and which one asks next."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from tuner.backends.base import Backend
from tuner.core.journal import Stage
from tuner.core.space import SearchSpace
from tuner.core.trial import Params, Trial

ArmsSee = Literal["own", "all"]


@dataclass(frozen=True)
class Arm:
    """A backend that may ask for ``budget`` trials. ``name`` is unique in the study.

    ``new_indexes`` is how many indexes it may ask for first; None: no limit of its own.
    """

    name: str
    backend: Backend
    budget: int
    new_indexes: int | None = None


@dataclass(frozen=True)
class Fixed:
    """A backend that asks for given params once each: how a baseline takes part in a study."""

    params: tuple[Params, ...]
    learns: ClassVar[bool] = False

    def suggest(
        self,
        space: SearchSpace,  # noqa: ARG002  # the protocol's
        history: Sequence[Trial],
        *,
        count: int,  # noqa: ARG002
        seed: int,  # noqa: ARG002
    ) -> list[Params]:
        """Return the first params that are not in the history yet."""
        known = [trial.params for trial in history]
        return next(([params] for params in self.params if params not in known), [])


def next_arm(arms: Sequence[Arm], asked: Mapping[str, int], exhausted: Iterable[str]) -> Arm | None:
    """Return the arm that has used the smallest share of its budget; the first of equals.

    Given params come before all that is searched for. None: every arm has used its budget or has
    nothing left to suggest.
    """
    done = set(exhausted)
    open_arms = [arm for arm in arms if arm.name not in done and asked[arm.name] < arm.budget]
    given = [arm for arm in open_arms if isinstance(arm.backend, Fixed)]
    return min(given or open_arms, key=lambda arm: asked[arm.name] / arm.budget, default=None)


def spent(arms: Sequence[Arm], turns: Sequence[str], stages: Sequence[Stage] = ()) -> set[str]:
    """Return the arms that had nothing left to suggest in a study whose arms took these turns.

    ``stages`` are the arms that it began with, and those of each time that it was given more; from
    there on every arm is asked anew.
    """
    asked: Counter[str] = Counter()
    exhausted: set[str] = set()
    begins = [stage.begin for stage in stages[1:]]
    for number, name in enumerate(turns):
        if number in begins:
            exhausted.clear()
        stage = bisect_right(begins, number)
        now = arms if stage >= len(begins) else _arms_then(arms, stages[stage])
        while (arm := next_arm(now, asked, exhausted)) is not None and arm.name != name:
            exhausted.add(arm.name)
        asked[name] += 1
    return set() if len(turns) in begins else exhausted


def _arms_then(arms: Sequence[Arm], stage: Stage) -> list[Arm]:
    """Return the arms that there were in a stage, with the budgets that they had."""
    budgets = {record.name: record.budget for record in stage.arms}
    return [
        replace(arm, budget=budgets.get(arm.name, arm.budget))
        for arm in arms
        if arm.name in budgets or isinstance(arm.backend, Fixed)
    ]


def arm_seed(study_seed: int, arm_name: str) -> int:
    """Derive an arm's own seed (0 to 2**31 - 1) from the study's and its name.

    It is SHA-256 of ``"<seed>/<name>"``, first 4 bytes, so that an arm's suggestions do not depend
    on which other arms there are.
    """
    digest = hashlib.sha256(f"{study_seed}/{arm_name}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
