"""The loop of a study: ask, evaluate, tell, record; and when to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from tuner.core.errors import OutageError
from tuner.core.journal import ENDING
from tuner.core.shown import counted
from tuner.core.trial import Blame, Params, Trial, TrialState
from tuner.execution.base import Evaluate, Execution, Outcomes
from tuner.execution.call import call_within
from tuner.study.failures import Failures
from tuner.study.interrupt import interruptible
from tuner.study.limit import GO, Leave, Limit, no_limit
from tuner.study.outages import is_answering, without_outages
from tuner.study.study import Study
from tuner.tracking.base import Tracker

# So many failures, without a success before them, are no accident.
FIRST_FAILURES = 10
# How long evaluations under way may go on after the first Ctrl-C or SIGTERM. Container managers
# commonly kill 10 s after SIGTERM.
GRACE_S = 5.0

State = Literal["finished", "failed", "interrupted"]


@dataclass(frozen=True)
class Event:
    """Something to show. ``trial`` is there for ``told``, ``text`` for all other kinds.

    Kinds: ``told``; ``execution`` (where evaluations run, and why, whenever that changes);
    ``stopping`` (a signal came, too many trials failed, or a limit is reached).
    """

    kind: Literal["told", "execution", "stopping"]
    trial: Trial | None = None
    text: str = ""


def _ignore(event: Event) -> None:  # noqa: ARG001  # the form of a listener
    return None


def _no_doubt(trial: Trial) -> None:  # noqa: ARG001  # the form of a doubt
    return None


def run_study(
    study: Study,
    execution: Execution,
    evaluate: Evaluate,
    *,
    tracker: Tracker | None = None,
    on_event: Callable[[Event], None] = _ignore,
    doubt: Callable[[Trial], str | None] = _no_doubt,
    limit: Limit = no_limit,
    probe: Callable[[Params], object] | None = None,
    grace_s: float = GRACE_S,
) -> State:
    """Run a study to its end and return how it ended; the journal stays open for a summary.

    ``"failed"``: the first 10 evaluations all failed (it stops there), ``doubt`` says of a told
    trial why it makes no sense to go on (likewise), or more than half of the study's trials failed.
    First is by number, not by time, so that this ends a study at the same trial wherever it runs;
    others may be under way then. In a run that resumes a study which ended so, or one with a
    success, the count begins anew; where one succeeded, those that had failed before and are asked
    again are not counted. Once ``limit`` says that it is over, no trial is asked but a first one,
    those under way end, and the study with them; ``study.ended_by`` says why. ``"interrupted"``: by
    Ctrl-C or SIGTERM (or by ``study.stop`` from elsewhere); no trial is asked from then on, those
    under way have ``grace_s`` seconds to end, and a second signal does not wait. What did not end
    is evaluated when the study is resumed. So is what got no answer when the system does not answer
    any more: ``probe`` asks it something with params that it has answered (by default a whole
    evaluation), and raises where it cannot. What ended a run early, but for a signal, is told by
    ``study.stopped_by``. The tracker is only given trials; starting and finishing it is the
    caller's.
    """
    signals: list[str] = []

    def say_signal(name: str) -> None:
        signals.append(name)
        text = f"{name}: ending after the evaluations under way; once more to end at once"
        on_event(Event("stopping", text=text))

    asking = _Asking(study, limit, on_event)
    is_hopeless, is_out = False, False
    try:
        with interruptible(study.stop, say_signal, grace_s=grace_s):
            ask = probe or _evaluation(execution, evaluate)
            outcomes = without_outages(
                lambda: execution.run(evaluate, iter(asking), suspects=study.suspects),
                hold_back=study.hold_back,
                ask_again=study.ask_again,
                is_answering=lambda: not study.is_stopped and is_answering(study.trials, ask),
            )
            is_hopeless = _ask_and_tell(asking, execution, outcomes, tracker, on_event, doubt)
    except KeyboardInterrupt:
        signals.append("KeyboardInterrupt")
    except OutageError as error:
        is_out = not signals
        if is_out:
            study.stopped_by = str(error)
            on_event(Event("stopping", text=study.stopped_by))
    study.stop()
    is_over = study.is_done or (asking.is_over and not signals and not is_out)
    state = _state(study, is_hopeless=is_hopeless, is_over=is_over)
    reason = study.stopped_by or (study.ended_by if state == "finished" else "")
    detail = {"reason": reason} if reason else {}
    if signals and state == "interrupted":
        detail = {"signal": signals[0]}
    study.note(ENDING, state=state, **detail)
    return state


class _Asking:
    """A study's trials for as long as its limit leaves another; ``is_over`` once it does not."""

    def __init__(self, study: Study, limit: Limit, on_event: Callable[[Event], None]) -> None:
        self.study = study
        self.is_over = False
        self._limit = limit
        self._on_event = on_event
        self._teller = threading.get_ident()
        # Without its first trial, the baseline where there is one, a study has nothing to say.
        self._has_first = any(trial.is_told for trial in study.trials[:1])

    def __iter__(self) -> Iterator[Trial]:
        for trial in self.study.asks(limit=self._leave, teller=self._teller):
            self._has_first = True
            yield trial

    def _leave(self) -> Leave:
        upcoming = self.study.upcoming
        # It may have got no answer at first, and is asked again when the limit is reached.
        is_first = upcoming is not None and upcoming.number == 0
        leave = self._limit() if self._has_first and not is_first else GO
        if leave.over and self.study.has_more:
            self.study.ended_by = leave.over
            if not self.is_over:
                rest = "no further trial, those under way are waited for"
                self._on_event(Event("stopping", text=f"{leave.over}: {rest}"))
            self.is_over = True
        return leave


class _InOrder:
    """Looks at each evaluation as if all had ended in the order of their numbers."""

    def __init__(self, study: Study, doubt: Callable[[Trial], str | None]) -> None:
        earlier = [trial for trial in study.trials if trial.is_told]
        evaluated = [trial for trial in earlier if trial.shared_from is None]
        self._doubt = doubt
        self._told = {trial.number: trial for trial in earlier}
        self._is_earlier = frozenset(self._told)
        self._next = 0
        has_success = any(trial.state is not TrialState.FAILED for trial in evaluated)
        # A run that was killed among its first failures goes on counting.
        self._failures: int | None = 0 if has_success else len(evaluated) % FIRST_FAILURES
        # Where others succeed, they say nothing new of the system when they fail once more.
        self._not_counted = study.failed_before if has_success else frozenset()

    def reason_to_end(self, told: Iterable[Trial]) -> str | None:
        """Take in what was told, and return why it is of no use to go on, or None."""
        self._told.update({trial.number: trial for trial in told})
        while (trial := self._told.get(self._next)) is not None:
            self._next += 1
            if trial.number in self._is_earlier or trial.shared_from is not None:
                continue
            if (reason := self._doubt(trial) or self._all_failed(trial)) is not None:
                return reason
        return None

    def _all_failed(self, trial: Trial) -> str | None:
        if trial.state is not TrialState.FAILED or self._failures is None:
            self._failures = None
            return None
        if trial.number in self._not_counted:
            return None
        self._failures += 1
        if self._failures < FIRST_FAILURES:
            return None
        return f"the first {FIRST_FAILURES} evaluations all failed; the last: {trial.error}"


def _ask_and_tell(
    asking: _Asking,
    execution: Execution,
    outcomes: Outcomes,
    tracker: Tracker | None,
    on_event: Callable[[Event], None],
    doubt: Callable[[Trial], str | None],
) -> bool:
    """Run until nothing is left to do; return whether it ended early since that is of no use."""
    choice = ""
    has_said = False

    def report(trials: Iterable[Trial]) -> None:
        for trial in trials:
            if tracker is not None:
                tracker.record(trial)
            on_event(Event("told", trial=trial))

    study = asking.study
    at_once = study.header.ahead + 1
    in_order = _InOrder(study, doubt)
    with closing(outcomes):
        for trial, outcome in outcomes:
            told = study.tell(trial, outcome)
            if execution.choice != choice:
                choice = execution.choice
                on_event(Event("execution", text=choice))
            report(told)
            if study.has_kept_waiting and not has_said and execution.slots > at_once:
                has_said = True
                on_event(Event("execution", text=_idle(execution.slots, study.header.ahead)))
            if (reason := in_order.reason_to_end(told)) is not None:
                study.stopped_by = reason
                on_event(Event("stopping", text=reason))
                return True
    report(study.unreported())
    return False


def _evaluation(execution: Execution, evaluate: Evaluate) -> Callable[[Params], object]:
    """Return a probe that evaluates."""

    def probe(params: Params) -> None:
        timeout_s: float | None = getattr(execution, "trial_timeout_s", None)
        outcome = call_within(evaluate, Trial(0, "", params), timeout_s)
        if outcome.error is not None and outcome.blame is not Blame.PARAMS:
            raise OutageError(outcome.error)

    return probe


def _idle(workers: int, ahead: int) -> str:
    return (
        f"at most {counted(ahead + 1, 'evaluation')} at once, of {workers} workers: study.ahead is "
        f"{ahead}; with more, more of them are busy, and each suggestion knows less"
    )


def _state(study: Study, *, is_hopeless: bool, is_over: bool) -> State:
    if is_hopeless:
        return "failed"
    if not is_over:
        return "interrupted"
    return "failed" if Failures.of(study.trials).is_too_many else "finished"
