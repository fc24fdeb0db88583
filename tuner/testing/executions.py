"""The contract of executions: every trial comes back once, and a failure costs its own alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tuner.core.errors import InputError
from tuner.core.trial import Outcome, Trial
from tuner.execution.base import Evaluate, Execution
from tuner.testing.contract import Contract, check_all, checks_in, need


@dataclass(frozen=True)
class ExecutionCase:
    """One execution to check.

    Attributes:
        make: ``make(workers=…, trial_timeout_s=…)`` constructs it, as a configuration would.
        workers: how many to ask for.
        can_stop: whether it can end an evaluation that takes too long.
    """

    make: Callable[..., Execution] = field(repr=False)
    workers: int = 2
    can_stop: bool = True

    def run(self, trials: list[Trial], evaluate: Evaluate, **options: Any) -> dict[Any, Outcome]:
        """Run trials to their end; return the outcome by ``x``."""
        execution = self.make(workers=self.workers, **options)
        results = list(execution.run(evaluate, trials))
        need(len(results) == len(trials), f"{len(trials)} trials gave {len(results)} outcomes")
        return {trial.params["x"]: outcome for trial, outcome in results}


def trials_of(*values: Any) -> list[Trial]:
    """Return a trial for each value of the parameter ``x``."""
    return [Trial(number, "arm", {"x": value}) for number, value in enumerate(values)]


def _make_evaluate(sleep_s: float = 0.0) -> Evaluate:
    # A function within a function travels to workers by value: those may lack this file.
    def evaluate(params: Any) -> Any:
        import sys
        import time

        from tuner.core.trial import Outcome

        time.sleep(sleep_s)
        if params["x"] == "raise":
            raise ValueError("bad\nnews")
        if params["x"] == "exit":
            sys.exit(3)
        if params["x"] == "dict":
            return {"double": 1.0}
        if params["x"] == "slow":
            time.sleep(60.0)
        return Outcome({"double": 2.0 * params["x"]})

    return evaluate


def check_every_trial_once(case: ExecutionCase) -> None:
    """Check that each trial comes back once, with its own outcome and the time that it took."""
    for sleep_s in (0.0, 0.06):
        found = case.run(trials_of(*range(7)), _make_evaluate(sleep_s))
        need(found.keys() == set(range(7)), f"the trials came back as {sorted(found)}")
        for x, outcome in found.items():
            is_right = outcome.error is None and outcome.metrics.get("double") == 2.0 * x
            need(is_right, f"trial {x} came back with {outcome}")
            total = outcome.seconds.get("total", 0.0)
            need(total >= sleep_s, f"`seconds` must tell the total, {sleep_s} or more, got {total}")


def check_no_trials(case: ExecutionCase) -> None:
    """Check that nothing to do is done at once."""
    need(case.run([], _make_evaluate()) == {}, "without trials there can be no outcome")


def check_failures_are_outcomes(case: ExecutionCase) -> None:
    """Check that an evaluation which fails, in whatever way, is an outcome of its trial alone."""
    found = case.run(trials_of(1, "raise", 2, "exit", "dict", 3), _make_evaluate())
    for x in (1, 2, 3):
        need(found[x].error is None, f"trial {x} failed for another's sake: {found[x].error}")
    for name, word in (("raise", "ValueError: bad news"), ("exit", "SystemExit"), ("dict", "dict")):
        told = found[name].error
        need(
            told is not None and word in told,
            f"the failure {name!r} must name {word!r}, got {told!r}",
        )
        need("\n" not in str(told), f"an error is one line, got {told!r}")


def check_trials_are_pulled_as_they_are_needed(case: ExecutionCase) -> None:
    """Check that no more trials are pulled than there are places, and that closing stops that."""
    pulled: list[int] = []

    def pull() -> Iterator[Trial]:
        for trial in trials_of(*range(1000)):
            pulled.append(trial.number)
            yield trial

    execution = case.make(workers=case.workers)
    results = execution.run(_make_evaluate(0.06), pull())
    for count in range(1, 5):
        next(results)
        most = count + 2 * max(execution.slots, case.workers)
        need(len(pulled) <= most, f"{len(pulled)} trials were pulled when {count} were done")
    results.close()
    time.sleep(0.2)
    before = len(pulled)
    time.sleep(0.2)
    need(len(pulled) == before, "trials are pulled after the results were closed")


def check_an_input_that_fails(case: ExecutionCase) -> None:
    """Check that an error of the search is raised as it is."""

    def pull() -> Iterator[Trial]:
        yield from trials_of(*range(5))
        raise RuntimeError("the backend broke")

    try:
        list(case.make(workers=case.workers).run(_make_evaluate(), pull()))
    except RuntimeError as error:
        need(str(error) == "the backend broke", f"the error of the search came as {error!r}")
    else:
        raise AssertionError("the error of the search was lost")


def check_time_limit(case: ExecutionCase) -> None:
    """Check that an evaluation which takes too long is stopped, and costs its own trial."""
    if not case.can_stop:
        return
    found = case.run(trials_of(1, "slow", 2), _make_evaluate(), trial_timeout_s=2.0)
    told = found["slow"].error
    need(told is not None and "2 s" in told, f"the limit of 2 s must be named, got {told!r}")
    need(found[2].error is None, f"a trial failed for another's sake: {found[2].error}")


def check_options(case: ExecutionCase) -> None:
    """Check that options which make no sense are refused by their keys."""
    for options, key in (
        ({"workers": 0}, "workers"),
        ({"workers": 1.5}, "workers"),
        ({"workers": True}, "workers"),
        ({"workers": 1, "trial_timeout_s": 0}, "trial_timeout_s"),
        ({"workers": 1, "trial_timeout_s": float("inf")}, "trial_timeout_s"),
        ({"workers": 1, "trial_timeout_s": "5"}, "trial_timeout_s"),
    ):
        try:
            case.make(**options)
        except InputError as error:
            need(
                error.problems[0].key == (key,), f"{options} is refused by {error.problems[0].key}"
            )
        else:
            raise AssertionError(f"{options} was taken")


def check_words(case: ExecutionCase) -> None:
    """Check that it says where evaluations run, and in how many places."""
    execution = case.make(workers=case.workers)
    list(execution.run(_make_evaluate(), trials_of(1)))
    need(execution.slots >= 1, f"`slots` is how many trials can run at once, got {execution.slots}")
    need(bool(execution.choice), "`choice` must say in a sentence where evaluations run")


CHECKS = checks_in(__name__)
"""Every check of an execution."""


def check_execution(case: ExecutionCase) -> None:
    """Run every check of the contract of executions, as ``check_all`` does."""
    check_all(CHECKS, case)


class ExecutionContract(Contract):
    """The contract of executions as tests of pytest's; ``case`` is an ``ExecutionCase``."""

    checks = CHECKS
