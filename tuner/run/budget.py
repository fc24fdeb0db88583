"""What a run may still spend: asked before each trial, with what the verdict needs kept aside.

What is spent is read off the books. Trials that are under way count as if each asked all of its
queries; where that alone decides, they are waited for. So the last trial does not depend on how
many run at once, and no limit of queries or money is passed, but by tries that failed and are
repeated. Seconds decide when a study ends, and nothing else.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tuner.config.budget import BudgetSection
from tuner.core.ledger import NOTHING_ASKED, Asked, key_of_evaluation
from tuner.core.money import is_passed, total
from tuner.core.shown import counted
from tuner.core.spent import Cost, SetAside, amount
from tuner.core.steps import duration
from tuner.core.trial import Trial
from tuner.study.limit import GO, Leave
from tuner.study.results import BASELINE_ARM

# Contexts of other queries are longer than those that were seen by so much at most, on average.
OTHER_QUERIES = 1.1


@dataclass(frozen=True)
class Need:
    """What is needed at most.

    Attributes:
        trial: queries of one trial.
        verdict: queries that are asked after the search, as far as answers are kept by then.
        of_baseline: those among them that are asked with the baseline's parameters.
        per_index: money for one more index; 0 where no trial can need one.
    """

    trial: int
    verdict: int
    per_index: float = 0.0
    of_baseline: int = 0


class HasTrials(Protocol):
    """What a budget looks at of a study, be it open or only read."""

    @property
    def trials(self) -> list[Trial]:
        """Return all trials."""
        ...

    @property
    def under_way(self) -> list[Trial]:
        """Return those that were sent out and have not come back."""
        ...

    @property
    def upcoming(self) -> Trial | None:
        """Return the one that was asked before and is asked again next."""
        ...


class HasAsked(Protocol):
    """What a budget looks at of what was asked."""

    @property
    def total(self) -> Asked:
        """Return all that was asked so far."""
        ...

    def by_key(self) -> Mapping[str, Asked]:
        """Return what was asked so far by evaluation."""
        ...


@dataclass(frozen=True)
class ReadTrials:
    """The trials of a study that is not open."""

    trials: list[Trial]
    under_way: list[Trial] = field(default_factory=list)

    @property
    def upcoming(self) -> Trial | None:
        """Return the first that was not told."""
        return next((trial for trial in self.trials if not trial.is_told), None)


@dataclass(frozen=True, eq=False)
class Budget:
    """The limits of a run, and what it has spent; called before each trial, as a ``Limit``.

    Attributes:
        section: the limits.
        books: what was asked so far.
        elapsed_s: tells how long all sessions have taken so far.
        need: tells what a trial and the verdict need at most.
        index_money: tells what indexes have cost so far.
        keeps_answers: whether a trial that was interrupted is not asked again what it was answered.
        ended: the limits of queries or money that ended a search: what was set aside by then.
    """

    section: BudgetSection
    study: HasTrials
    books: HasAsked
    elapsed_s: Callable[[], float]
    need: Callable[[], Need]
    cost: Cost | None = None
    index_money: Callable[[], float] = lambda: 0.0
    keeps_answers: bool = False
    ended: dict[str, SetAside] = field(default_factory=dict)

    def __call__(self) -> Leave:
        """Say whether another trial may be asked."""
        if self.section.trials == 0:
            return Leave(over="budget.trials is 0")
        minutes = self.section.minutes
        if minutes is not None and self._is_late(60.0 * float(minutes)):
            return Leave(over=f"the budget of {self._called('minutes')} is used up")
        for name in ("query_evaluations", "money"):
            leave = self._leave(name)
            if leave != GO:
                return leave
        return GO

    def short(self) -> dict[str, float]:
        """Return the limits that do not reach to one more trial and its verdict: what would.

        Minutes are reckoned from what trials have taken so far.
        """
        need, asked = self.need(), self.books.by_key()
        least = {
            "minutes": self._needed_s() / 60.0,
            "query_evaluations": self._least("query_evaluations", need, asked),
            "money": self._least("money", need, asked),
        }
        limits = self.section.limits
        return {
            name: one for name, one in least.items() if is_passed(limits.get(name, one), by=one)
        }

    @property
    def progress(self) -> str:
        """Say what is spent by now, and left; empty where nothing is limited and nothing costs."""
        limits, told = self.section.limits, list[str]()
        if not limits and self.cost is None:
            return ""
        asked = self.books.total.sent
        if asked:
            left = _left(limits.get("query_evaluations"), asked, lambda rest: f"{rest:,.0f}")
            told.append(f"{counted(asked, 'query', 'queries')}{left}")
        if self.cost is not None:
            money = self._money()
            told.append(f"money {amount(money)}{_left(limits.get('money'), money, amount)}")
        if "minutes" in limits:
            seconds = self.elapsed_s()
            told.append(f"{duration(seconds)}{_left(60.0 * limits['minutes'], seconds, duration)}")
        return f"spent {', '.join(told)}" if told else ""

    @property
    def sentence(self) -> str:
        """Say what may be spent, and what of it is kept aside; empty where nothing is limited."""
        limits = [
            self._called(name)
            for name in ("minutes", "query_evaluations", "money")
            if getattr(self.section, name) is not None
        ]
        if not limits:
            return ""
        told, verdict = f"budget: {', or '.join(limits)}", self.need().verdict
        if not verdict:
            return told
        aside = f"up to {counted(verdict, 'query', 'queries')}"
        return f"{told}; what the verdict needs is kept aside: {aside}"

    def _is_late(self, limit_s: float) -> bool:
        return self._needed_s() > limit_s

    def _needed_s(self) -> float:
        return self.elapsed_s() + self._trial_s() + self._verdict_s()

    def _trial_s(self) -> float:
        """Return how long a trial takes: the median of those that were evaluated whole."""
        return _median([trial.seconds.get("total", 0.0) for trial in self._whole()])

    def _verdict_s(self) -> float:
        """Return how long the queries after the search take, if one takes as long as in trials."""
        need = self.need()
        spent = _median([trial.seconds.get("retrieve", 0.0) for trial in self._whole()])
        return spent * need.verdict / max(need.trial, 1)

    def _whole(self) -> list[Trial]:
        return [trial for trial in self.study.trials if trial.is_scored and not trial.shared_from]

    def _leave(self, name: str) -> Leave:
        limit = getattr(self.section, name)
        if limit is None:
            return GO
        need, asked = self.need(), self.books.by_key()
        least, rest = self._least(name, need, asked), self._under_way(need.trial, asked)
        later = self._price(rest.sent, rest.answered) if name == "money" else rest.sent
        if is_passed(limit, by=least):
            aside = " but for what the verdict may need" if need.verdict else ""
            self.ended[name] = self._set_aside(name, need)
            return Leave(over=f"the budget of {self._called(name)} is used up{aside}")
        is_guessed = name == "money" and self.cost is not None and self.cost.per_1000_tokens > 0
        if is_guessed and rest.answered and not any(one.answered for one in asked.values()):
            return Leave(waits=True)  # nobody knows yet how many tokens an answer has
        if is_passed(limit, by=least + later):
            return Leave(waits=True)
        return GO

    def _least(self, name: str, need: Need, asked: Mapping[str, Asked]) -> float:
        """Return what is spent when the next trial is told and judged, all others left aside."""
        left = self._rest_of(self.study.upcoming, need.trial, asked)
        if name == "money":
            later = self._price(left), need.per_index, self._price_of_verdict(need, asked)
            return total([self._money(), *later])
        return self.books.total.sent + left + need.verdict

    def _set_aside(self, name: str, need: Need) -> SetAside:
        """Return what is set aside for the verdict, and what a further trial may take."""
        if name != "money":
            return SetAside(need.verdict, need.trial)
        verdict = self._price_of_verdict(need, self.books.by_key())
        return SetAside(verdict, total([self._price(need.trial), need.per_index]))

    def _price_of_verdict(self, need: Need, asked: Mapping[str, Asked]) -> float:
        """Return what the verdict may cost: what is asked of the baseline by its own tokens.

        Its contexts may be far shorter than those of trials that ask for the most of a parameter
        that is free. On other queries they may be a little longer than on those to tune on.
        """
        of_it = [
            asked.get(key_of_evaluation(trial.params), NOTHING_ASKED)
            for trial in self.study.trials
            if trial.arm == BASELINE_ARM
        ]
        known = next((one for one in of_it if one.answered), None)
        of_baseline = self._price(need.of_baseline)
        if known is not None and self.cost is not None:
            tokens = OTHER_QUERIES * need.of_baseline * known.tokens / known.answered
            own = self.cost.of(Asked(sent=need.of_baseline, tokens=tokens))
            of_baseline = min(of_baseline, own)
        return total([self._price(need.verdict - need.of_baseline), of_baseline])

    def _under_way(self, full: int, asked: Mapping[str, Asked]) -> Asked:
        """Return what trials that are under way may still ask, and what is still to be answered."""
        sent = answered = 0
        for trial in self.study.under_way:
            before = asked.get(key_of_evaluation(trial.params), NOTHING_ASKED)
            sent += max(0, full - before.sent)
            answered += max(0, full - before.answered)
        return Asked(sent, answered)

    def _rest_of(self, upcoming: Trial | None, full: int, asked: Mapping[str, Asked]) -> int:
        """Return how many queries the next trial may ask."""
        if upcoming is None or not self.keeps_answers:
            return full
        before = asked.get(key_of_evaluation(upcoming.params), NOTHING_ASKED)
        return max(0, full - before.answered)

    def _money(self) -> float:
        if self.cost is None:
            return 0.0
        return total([self.cost.of(self.books.total), self.index_money()])

    def _price(self, queries: int, answers: int | None = None) -> float:
        """Return what so many queries cost, each with as many tokens as those of any trial.

        ``answers``: how many of them bring tokens, or others that were sent before.
        """
        if self.cost is None:
            return 0.0
        # Before the first trial, those of what was asked to see which parameters are free.
        by_trial = [one for one in self.books.by_key().values() if one.answered]
        found = by_trial or [one for one in (self.books.total,) if one.answered]
        tokens = max((one.tokens / one.answered for one in found), default=0.0)
        bring = queries if answers is None else answers
        return self.cost.of(Asked(sent=queries, tokens=bring * tokens))

    def _called(self, name: str) -> str:
        limit = getattr(self.section, name)
        if name == "minutes":
            return duration(60.0 * float(limit))
        if name == "query_evaluations":
            return f"{limit:,} query evaluations"
        return f"money {amount(float(limit))}"


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else 0.0


def _left(limit: float | None, spent: float, write: Callable[[float], str]) -> str:
    return "" if limit is None else f" ({write(max(0.0, limit - spent))} left)"
