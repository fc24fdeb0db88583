"""Whether another trial may be asked: by what is spent, under way, and kept for the verdict."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tuner.config.budget import BudgetSection
from tuner.core.ledger import Asked, Ledger, key_of_evaluation
from tuner.core.spent import Cost, SetAside
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial, TrialState
from tuner.run.accounts import Books
from tuner.run.budget import Budget, Need
from tuner.study.limit import GO, Leave

WAITS = Leave(waits=True)


class Run:
    """A run whose trials ask 10 queries, and whose verdict 30; one may cost."""

    def __init__(self, cost: Cost | None = None, **limits: Any) -> None:
        self.ledger, self.seconds, self.indexes = Ledger(), 0.0, 0.0
        self.of_baseline = 0
        self.study: Any = SimpleNamespace(trials=[], under_way=[], upcoming=None)
        self.budget = Budget(
            BudgetSection(**limits),
            self.study,
            self.ledger,
            lambda: self.seconds,
            lambda: Need(10, 30, of_baseline=self.of_baseline),
            cost,
            lambda: self.indexes,
            keeps_answers=True,
        )

    def ask(self, number: int, *, sent: int = 10, answered: int = 10, tokens: float = 0.0) -> Trial:
        trial = Trial(number, "tpe", {"x": number})
        asked = Asked(sent, answered, 0, tokens)
        self.ledger.add("trials", asked, key_of_evaluation(trial.params))
        return trial

    def tell(self, number: int, seconds: float = 0.0, **asked: Any) -> None:
        trial = self.ask(number, **asked)
        spent = {"total": seconds, "retrieve": seconds}
        self.study.trials.append(
            trial.told(state=TrialState.FINISHED, objective=0.5, seconds=spent)
        )


def test_a_trial_is_asked_where_it_and_the_verdict_can_be_paid() -> None:
    run = Run(query_evaluations=60)
    run.tell(0)
    run.tell(1)
    assert run.budget() == GO  # 20 + 10 + 30 = 60
    run.tell(2)
    assert run.budget().over == (
        "the budget of 60 query evaluations is used up but for what the verdict may need"
    )


def test_trials_under_way_count_whole_and_are_waited_for_where_that_decides() -> None:
    run = Run(query_evaluations=70)
    run.tell(0)
    run.study.under_way = [run.ask(1, sent=4, answered=2)]
    assert run.budget() == GO  # 14 + the other 6 + 10 + 30 = 60
    run.study.under_way.append(run.ask(2, sent=2, answered=0))
    assert run.budget() == GO  # 16 + 6 + 8 + 10 + 30 = 70
    run.study.under_way.append(run.ask(3, sent=1, answered=0))
    assert run.budget() == WAITS  # 17 + 23 + 10 + 30 = 80; but 57 if they are stopped here
    run.study.under_way = []
    assert run.budget() == GO


def test_a_trial_that_was_interrupted_is_asked_for_what_it_lacks() -> None:
    run = Run(query_evaluations=60)
    run.tell(0)
    run.tell(1)
    run.study.upcoming = run.ask(2, sent=8, answered=7)
    assert run.budget().over  # 28 + the other 3 + 30 = 61
    run.study.upcoming = run.ask(2, sent=0, answered=1)  # it was, just before the run was killed
    assert run.budget() == GO  # 28 + 2 + 30 = 60


def test_money_counts_tokens_of_what_is_still_to_be_answered_by_the_longest_contexts() -> None:
    cost = Cost(per_query=0.01, per_1000_tokens=0.02)
    run = Run(cost, money=1.5)
    run.study.under_way = [run.ask(0, sent=10, answered=0)]
    assert run.budget() == WAITS  # nobody knows how long an answer is
    run.study.under_way = []
    run.tell(0, sent=0, tokens=5_000.0)  # 500 a query, which then costs 0.02
    for number in (1, 2):
        run.tell(number, tokens=2_500.0)
    assert run.budget() == GO  # 0.20 + 2 * 0.15 + 0.20 + 0.60 = 1.30
    run.study.under_way = [run.ask(3, sent=10, answered=0)]
    assert run.budget() == GO  # 0.50 + 0.10, and 0.10 for its tokens, + 0.20 + 0.60 = 1.50
    run.indexes = 0.05
    assert run.budget() == WAITS
    run.study.under_way = []
    run.tell(3, sent=0, tokens=5_000.0)
    assert run.budget().over.startswith("the budget of money 1.50 is used up")


def test_trials_that_the_ledger_has_not_heard_of_count_by_their_records() -> None:
    # As of machines of a cluster that do not see the run directory.
    header = StudyHeader("s", "s", 0.0, 1, (), {}, {}, dataset={"tune_queries": 10})
    run = Run(query_evaluations=60)
    known, unknown, failed = (Trial(number, "tpe", {"x": number}) for number in range(3))
    run.tell(0)
    told = {"state": TrialState.FINISHED, "objective": 0.5, "metrics": {"context_tokens": 200.0}}
    run.study.trials.append(unknown.told(**told))
    run.study.trials.append(failed.told(state=TrialState.FAILED, error="no"))
    books = Books(run.ledger, header, run.study)
    assert books.by_purpose() == {"trials": Asked(20, 20, 0, 2000.0)}
    assert set(books.by_key()) == {key_of_evaluation(one.params) for one in (known, unknown)}
    budget = replace(run.budget, books=books)
    assert budget() == GO  # 20 + 10 + 30 = 60
    run.study.trials.append(Trial(3, "tpe", {"x": 3}).told(**told))
    assert budget().over


@pytest.mark.parametrize(("seconds", "is_over"), [(29.0, False), (33.0, True)])
def test_no_trial_is_begun_that_would_not_end_in_time(seconds: float, is_over: bool) -> None:
    run = Run(minutes=1.0)
    run.tell(0, seconds=7.0)  # 10 queries; the verdict's 30 take 21 s
    run.seconds = seconds  # and 28 s more
    assert bool(run.budget().over) is is_over


def test_without_limits_every_trial_may_be_asked_and_nothing_is_told() -> None:
    run = Run()
    run.tell(0)
    assert (run.budget(), run.budget.sentence, run.budget.progress) == (GO, "", "")
    assert Run(trials=0).budget().over == "budget.trials is 0"


def test_what_is_spent_and_left_is_told_in_a_line() -> None:
    run = Run(Cost(per_query=0.01), query_evaluations=8_000, money=25, minutes=60)
    run.tell(0)
    run.seconds = 63.0
    assert run.budget.progress == (
        "spent 10 queries (7,990 left), money 0.10 (24.90 left), 63.0 s (58 min 57 s left)"
    )
    assert run.budget.sentence == (
        "budget: 60 min 0 s, or 8,000 query evaluations, or money 25.00; what the verdict needs is "
        "kept aside: up to 30 queries"
    )


def test_a_limit_of_money_is_not_passed_by_how_fractions_are_added() -> None:
    cost = Cost(per_query=0.27)
    run = Run(cost, money=13.5)  # the baseline, one trial and the verdict: 50 queries
    run.tell(0)
    assert run.budget() == GO
    run.tell(1)
    assert run.budget().over


def test_what_queries_cost_is_what_it_is_on_paper() -> None:
    # 39 times 0.01 add up to 0.39000000000000007, and 0.07 times 100 is 7.000000000000001.
    assert Cost(per_query=0.07).of(Asked(sent=100)) == 7.0
    run = Run(Cost(per_query=0.01), money=0.8)
    for number in range(4):
        run.tell(number)
    assert run.budget() == GO  # 0.40 + 0.10 + 0.30 = 0.80
    assert run.budget.progress == "spent 40 queries, money 0.40 (0.40 left)"


def test_the_baseline_is_judged_at_the_price_of_its_own_contexts() -> None:
    # A trial asks for the most of a parameter that is free, and a baseline for what it has.
    run = Run(Cost(per_1000_tokens=1.0), money=50)
    run.tell(0, tokens=1_000.0)
    run.study.trials[0] = replace(run.study.trials[0], arm="baseline")
    run.tell(1, tokens=10_000.0)
    assert run.budget().over  # 1 + 10, 10 for a trial, and 30 * 1 for the verdict: 51
    run.of_baseline = 20
    assert run.budget() == GO  # 10 * 1 for the winner, and 20 * 0.1, a tenth more: 12.20, 33.20
    run.tell(2, tokens=17_000.0)
    # Contexts of 1,700 tokens now: 28 + 17 + 17 + 2.20 = 64.20.
    assert run.budget().over.startswith("the budget of money 50.00 is used up")
    assert run.budget.ended == {"money": SetAside(19.2, 17.0)}


def test_limits_that_do_not_reach_to_one_more_trial_are_told_as_they_would() -> None:
    run = Run(Cost(per_query=0.5), query_evaluations=60, money=25.0, minutes=1.0)
    run.tell(0, seconds=8.0)
    assert run.budget.short() == {}
    run.tell(1, seconds=8.0)
    run.seconds = 30.0  # 8 s more, and 24 s for the verdict
    short = run.budget.short()
    assert short == {"money": 30.0, "minutes": pytest.approx(62.0 / 60.0)}
    run.tell(2)
    assert run.budget.short()["query_evaluations"] == 70
