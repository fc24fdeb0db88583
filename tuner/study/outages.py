"""Failures that a restart of the system may cure: held back until it is known whose they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TypeVar

from tuner.core.errors import OutageError, TunerError, one_line
from tuner.core.outages import is_outage
from tuner.core.shown import counted
from tuner.core.trial import Blame, Outcome, Params, Trial
from tuner.execution.base import Outcomes

Result = TypeVar("Result")

# So many evaluations in a row that the system did not answer are no accident.
UNANSWERED_IN_A_ROW = 5
# A trial that the system has left without an answer so often is to blame if it answers others.
UNANSWERED_ALONE = 2


def without_outages(
    run: Callable[[], Outcomes],
    *,
    hold_back: Callable[[Trial], None],
    ask_again: Callable[[Trial], None],
    is_answering: Callable[[], bool],
) -> Outcomes:
    """Yield what ``run`` yields, but for failures that the system is to blame for.

    These are held back, each with a word to ``hold_back``. Once the system answers again, the trial
    is given to ``ask_again``, for once more; one that took longer than a trial may has then failed
    by itself, and so has one that got no answer twice, while ``is_answering`` finds that the system
    does answer. ``run`` is called again until nothing is left to ask.

    Raises:
        OutageError: 5 evaluations in a row got no answer, and ``is_answering`` gets none either; or
            fewer, where no more are sent out. What is held back stays untold.
    """
    held, is_proven = _Held(ask_again), True
    while True:
        has_run = False
        with closing(run()) as outcomes:
            for trial, outcome in outcomes:
                has_run = True
                held.to_ask.discard(trial.number)
                if outcome.error is None:
                    yield trial, outcome
                    yield from held.release()
                elif outcome.blame is Blame.PARAMS:
                    yield trial, outcome
                else:
                    held.add(trial, outcome)
                    hold_back(trial)
                    if held.needs_proof:
                        if is_answering():
                            yield from held.release()
                        elif held.in_a_row >= UNANSWERED_IN_A_ROW:
                            raise OutageError(held.reason)
        if not (has_run or is_proven):
            raise OutageError(held.reason)
        if not held.is_empty:
            is_proven = is_answering()
            if is_proven:
                yield from held.release()
            elif held.in_a_row < UNANSWERED_IN_A_ROW:
                held.ask_all_again()
            else:
                raise OutageError(held.reason)
        if not (has_run and held.to_ask):
            return


def is_answering(trials: Sequence[Trial], probe: Callable[[Params], object]) -> bool:
    """Say whether the system answers ``probe`` with the params of the trial that was the quickest.

    Without a trial that was scored, nothing is known that it would have to answer.
    """
    known = [trial for trial in trials if trial.is_scored]
    if not known:
        return False
    quickest = min(known, key=lambda trial: trial.seconds.get("total", math.inf))
    return gets_answer(lambda: probe(quickest.params))


def gets_answer(ask: Callable[[], object]) -> bool:
    """Say whether a system gives an answer, whatever it is, to what it is asked."""
    try:
        ask()
    except Exception as error:
        return not is_outage(error)
    return True


def answered(step: Callable[[], Result], is_answering: Callable[[], bool]) -> Result:
    """Do what asks a system beside the trials, as patiently as a trial is asked.

    Where it gets no answer it is done again: what was answered before is kept, where answers are.

    Raises:
        OutageError: it got none 5 times in a row, and ``is_answering`` got none either.
        TunerError: it got none twice, while the system answers others.
    """
    tries = 0
    while True:
        try:
            return step()
        except Exception as error:
            if not is_outage(error):
                raise
            tries += 1
            if tries >= UNANSWERED_ALONE and is_answering():
                raise TunerError(one_line(error)) from error
            if tries >= UNANSWERED_IN_A_ROW:
                raise OutageError(f"{one_line(error)} ({tries} times in a row)") from error


class _Held:
    """Trials that got no answer, and how often."""

    def __init__(self, ask_again: Callable[[Trial], None]) -> None:
        self._ask_again = ask_again
        self._held: list[tuple[Trial, Outcome]] = []
        self._unanswered: Counter[int] = Counter()
        self._last = ""
        self.in_a_row = 0
        # Numbers of the trials that are to be asked once more and have not been yet.
        self.to_ask: set[int] = set()

    @property
    def is_empty(self) -> bool:
        """Say whether no trial is held back."""
        return not self._held

    @property
    def needs_proof(self) -> bool:
        """Say whether it must be known now whether the system answers."""
        is_anyone_tried = any(self._is_tried(trial) for trial, _ in self._held)
        return is_anyone_tried or self.in_a_row >= UNANSWERED_IN_A_ROW

    @property
    def reason(self) -> str:
        """Say that the system does not answer, and what it said last."""
        count = counted(self.in_a_row, "evaluation")
        return f"the system does not answer: {self._last} ({count} in a row)"

    def ask_all_again(self) -> None:
        """Have all that is held back asked once more, to see whether the system answers."""
        held, self._held = self._held, []
        for trial, _ in held:
            self.to_ask.add(trial.number)
            self._ask_again(trial)

    def add(self, trial: Trial, outcome: Outcome) -> None:
        """Hold back a trial's failure."""
        self._held.append((trial, outcome))
        self._unanswered[trial.number] += 1
        self._last = outcome.error or ""
        self.in_a_row += 1

    def release(self) -> Iterator[tuple[Trial, Outcome]]:
        """Yield what is to be told, now that the system answers; the rest is asked once more."""
        held, self._held, self.in_a_row = self._held, [], 0
        for trial, outcome in held:
            if outcome.blame is Blame.EITHER or self._is_tried(trial):
                yield trial, outcome
            else:
                self.to_ask.add(trial.number)
                self._ask_again(trial)

    def _is_tried(self, trial: Trial) -> bool:
        return self._unanswered[trial.number] >= UNANSWERED_ALONE
