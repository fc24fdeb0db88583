"""What a study will ask and cost at most: from its configuration, and from a few queries asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuner.config import START_FROM
from tuner.core.ledger import Asked
from tuner.core.money import priced, total
from tuner.core.shown import counted
from tuner.core.spent import Cost, amount
from tuner.core.trial import Params
from tuner.retrieval.base import Measures
from tuner.run.assembly import Assembly
from tuner.run.free import expected, most_checked
from tuner.run.needs import may_keep, needed


@dataclass(frozen=True)
class Asking:
    """How many queries a study asks at most, and what that costs.

    Attributes:
        trials: the baseline's among them.
        by_trial: queries of one trial.
        verdict: queries that are asked after the search, where answers are kept.
        indexes: how many may be built.
        tokens: of the context of one query; None where nobody knows.
        limits: what may be spent, as in ``BudgetSection.limits``.
        checked: queries that are asked before the search, to see what is free.
        again: queries of the searches that are repeated without each part of the queries.
        given: how many of the trials are known points, and bests of earlier studies.
    """

    trials: int
    by_trial: int
    verdict: int
    indexes: int = 0
    tokens: float | None = None
    cost: Cost | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    checked: int = 0
    again: int = 0
    given: int = 0

    @property
    def queries(self) -> int:
        """Return how many there are in all."""
        asked = self.trials * self.by_trial + self.again
        return asked + self.checked + self.verdict

    @property
    def all_tokens(self) -> float | None:
        """Return the tokens of all contexts; None where nobody knows."""
        return None if self.tokens is None else self.queries * self.tokens

    @property
    def money(self) -> float | None:
        """Return what all of it costs; None where that is not known."""
        if self.cost is None or (self.tokens is None and self.cost.per_1000_tokens):
            return None
        indexes = priced(self.cost.per_index, self.indexes)
        return total([self._price(self.queries), indexes])

    @property
    def sentence(self) -> str:
        """Return it for people.

        >>> Asking(41, 203, 609, cost=Cost(per_query=0.01)).sentence
        '41 trials of 203 queries, and up to 609 for the verdict: 8,932 at most; money 89.32'
        >>> Asking(4, 10, 30, given=3).sentence
        '4 trials (3 of them by start_from) of 10 queries, and up to 30 for the verdict: 70 at most'
        """
        given = f" ({self.given} of them by {START_FROM})" if self.given else ""
        each = counted(self.by_trial, "query", "queries")
        trials = f"{counted(self.trials, 'trial')}{given} of {each}"
        again = f", {self.again:,} to search again without each part" if self.again else ""
        checked = f", {self.checked} to check what is free" if self.checked else ""
        after = f"up to {self.verdict:,} for the verdict: {self.queries:,} at most"
        told = f"{trials}{again}{checked}, and {after}"
        money = "" if self.money is None else f"; money {amount(self.money)}"
        return f"{told}{money}"

    def within(self, study_s: float) -> str:
        """Say after how many trials a budget ends it, where it does; ``study_s``: of all trials."""
        found = {name: trials for name, trials in self._ends(study_s) if trials < self.trials}
        if not found:
            return ""
        name, trials = min(found.items(), key=lambda item: item[1])
        return f"budget.{name} ends it after about {max(trials, 0)} of {self.trials:,} trials"

    def _ends(self, study_s: float) -> Iterator[tuple[str, int]]:
        limits = self.limits
        if (queries := limits.get("query_evaluations")) is not None and self.by_trial:
            yield "query_evaluations", int((queries - self.checked - self.verdict) // self.by_trial)
        one = self._price(self.by_trial)
        if (money := limits.get("money")) is not None and one and self.money is not None:
            besides = self._price(self.checked) + self._price(self.verdict)
            left = money - besides - (self.money - self._price(self.queries))
            yield "money", int(left // one)
        if (minutes := limits.get("minutes")) is not None and study_s > 0.0:
            verdict_s = study_s * self.verdict / max(self.trials * self.by_trial, 1)
            yield "minutes", int(self.trials * (60.0 * minutes - verdict_s) // study_s)

    def _price(self, queries: int) -> float:
        if self.cost is None:
            return 0.0
        return self.cost.of(Asked(sent=queries, tokens=queries * (self.tokens or 0.0)))

    def to_record(self) -> dict[str, Any]:
        """Return the figures as a JSON-ready mapping."""
        return {
            "trials": self.trials,
            **({f"trials_by_{START_FROM}": self.given} if self.given else {}),
            "queries_of_a_trial": self.by_trial,
            "queries_of_the_check": self.checked,
            "queries_of_the_verdict": self.verdict,
            **({"queries_without_a_part": self.again} if self.again else {}),
            "queries_at_most": self.queries,
            "tokens_of_a_query": self.tokens,
            "tokens_at_most": self.all_tokens,
            "money_at_most": self.money,
        }


def asking(
    assembly: Assembly,
    starts: Sequence[Params] = (),
    *,
    indexes: int = 0,
    tokens: float | None = None,
) -> Asking | None:
    """Return what a study asks at most; None of a system that measures itself.

    ``starts`` are asked before the search, ``indexes`` those that may be built, and ``tokens``
    those of the context of one query.
    """
    if isinstance(assembly.retriever, Measures):
        return None
    config, need = assembly.config, needed(assembly, keeps=may_keep(assembly))
    searched = searched_trials(assembly)
    given = given_trials(assembly, starts)
    trials = (assembly.baseline is not None) + given + searched
    of_a_query = need.trial / max(len(assembly.tune_queries), 1)
    others = sum(len(assembly.tune_queries) - len(part) for part in assembly.parts)
    return Asking(
        trials,
        need.trial,
        need.verdict,
        indexes,
        tokens,
        None if config.cost is None else config.cost.cost,
        config.budget.limits,
        most_checked(assembly) if searched else 0,
        round(trials * others * of_a_query),
        given,
    )


def given_trials(assembly: Assembly, starts: Sequence[Params]) -> int:
    """Return how many points are asked before the search: none where no trial is to be asked."""
    return 0 if assembly.config.budget.trials == 0 else len(starts)


def searched_trials(assembly: Assembly) -> int:
    """Return how many trials the arms have at most: where every parameter is free, one."""
    if assembly.config.budget.trials == 0:
        return 0
    trials = sum(budget for _, _, budget in assembly.plan.arms)
    is_all_free = set(expected(assembly).free.names) == set(assembly.plan.space.names)
    return min(trials, 1) if is_all_free else trials
