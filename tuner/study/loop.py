"""The loop of a study: ask, evaluate, tell, record; and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tuner.core.errors import OutageError
from tuner.core.outages import is_outage
from tuner.core.trial import Blame, Params, Trial, TrialState
from tuner.execution._call import call_within
from tuner.execution.base import Evaluate, Execution, Outcomes
from tuner.study.interrupt import interruptible
from tuner.study.outages import without_outages
from tuner.study.reading import ENDING
from tuner.study.study import Study
from tuner.tracking.base import Tracker

# So many failures, without a success before them, are no accident.
FIRST_FAILURES = 10
# A study that failed more often than this has not searched its space.
LARGEST_FAILED_SHARE = 0.5
# How long evaluations under way may go on after the first Ctrl-C or SIGTERM. Container managers
# commonly kill 10 s after SIGTERM.
GRACE_S = 5.0

State = Literal["finished", "failed", "interrupted"]


@dataclass(frozen=True)
class Event:
    """Something to show. ``trial`` is there for ``told``, ``text`` for all other kinds.

    Kinds: ``told``; ``execution`` (where evaluations run, and why, whenever that changes);
    ``stopping`` (a signal came, too many trials failed, or the time is up).
    """

    kind: Literal["told", "execution", "stopping"]
    trial: Trial | None = None
    text: str = ""


def _ignore(event: Event) -> None:  # noqa: ARG001  # the form of a listener
    return None


def _never() -> bool:
    return False


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
    is_time_up: Callable[[], bool] = _never,
    probe: Callable[[Params], object] | None = None,
    grace_s: float = GRACE_S,
) -> State:
    """Run a study to its end and return how it ended; the journal stays open for a summary.

    ``"failed"``: the first 10 evaluations of this run all failed (it stops there), ``doubt`` says
    of a told trial why it makes no sense to go on (likewise), or more than half of all evaluations
    in the study failed. From where ``is_time_up`` on, no trial is asked but a first one, those
    under way end, and the study with them. ``"interrupted"``: by Ctrl-C or SIGTERM (or by
    ``study.stop`` from elsewhere); no trial is asked from then on, those under way have
    ``grace_s`` seconds to end, and a second signal does not wait. What did not end is evaluated
    when the study is resumed. So is what got no answer when the system does not answer any more
    (``study.outage`` then says so): ``probe`` asks it something with params that it has answered
    (by default a whole evaluation), and raises where it cannot. The tracker is only given trials;
    starting and finishing it is the caller's.
    """
    signals: list[str] = []

    def say_signal(name: str) -> None:
        signals.append(name)
        text = f"{name}: ending after the evaluations under way; once more to end at once"
        on_event(Event("stopping", text=text))

    asking = _Asking(study, is_time_up, on_event)
    is_hopeless = False
    try:
        with interruptible(study.stop, say_signal, grace_s=grace_s):
            ask = probe or _evaluation(execution, evaluate)
            outcomes = without_outages(
                lambda: execution.run(evaluate, iter(asking), suspects=study.suspects),
                ask_again=study.ask_again,
                is_answering=partial(_is_answering, study, ask),
            )
            is_hopeless = _ask_and_tell(asking, execution, outcomes, tracker, on_event, doubt)
    except KeyboardInterrupt:
        signals.append("KeyboardInterrupt")
    except OutageError as error:
        if not signals:
            study.outage = str(error)
            on_event(Event("stopping", text=study.outage))
    study.stop()
    is_over = study.is_done or (asking.is_time_over and not signals and not study.outage)
    state = _state(study, is_hopeless=is_hopeless, is_over=is_over)
    if study.journal is not None:
        detail = {"outage": study.outage} if study.outage else {}
        if signals and state == "interrupted":
            detail = {"signal": signals[0]}
        study.journal.note(ENDING, state=state, **detail)
    return state


class _Asking:
    """A study's trials for as long as there is time for another; ``is_time_over`` once not."""

    def __init__(
        self, study: Study, is_time_up: Callable[[], bool], on_event: Callable[[Event], None]
    ) -> None:
        self.study = study
        self.is_time_over = False
        self._is_time_up = is_time_up
        self._on_event = on_event

    def __iter__(self) -> Iterator[Trial]:
        # Without its first trial, the baseline where there is one, a study has nothing to say.
        has_first = any(trial.is_told for trial in self.study.trials[:1])
        trials = self.study.asks()
        while not (has_first and self._is_time_up()):
            trial = next(trials, None)
            if trial is None:
                return
            has_first = True
            yield trial
        if not self.is_time_over and not self.study.is_done:
            text = "the time is up: no further trial, those under way are waited for"
            self._on_event(Event("stopping", text=text))
        self.is_time_over = True


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
    evaluated = 0
    has_success = False

    def report(trials: Iterable[Trial]) -> None:
        for trial in trials:
            if tracker is not None:
                tracker.record(trial)
            on_event(Event("told", trial=trial))

    study = asking.study
    with closing(outcomes):
        for trial, outcome in outcomes:
            told = study.tell(trial, outcome)
            report(told)
            if execution.choice != choice:
                choice = execution.choice
                on_event(Event("execution", text=choice))
            has_success = has_success or any(trial.is_scored for trial in told)
            evaluated += 1
            if (reason := doubt(told[0])) is not None:
                on_event(Event("stopping", text=reason))
                return True
            if evaluated == FIRST_FAILURES and not has_success:
                text = (
                    f"the first {FIRST_FAILURES} evaluations all failed; the last: {told[0].error}"
                )
                on_event(Event("stopping", text=text))
                return True
    report(study.unreported())
    return False


def _is_answering(study: Study, probe: Callable[[Params], object]) -> bool:
    """Say whether the system answers: to what it answered most quickly of all trials so far."""
    known = [trial for trial in study.trials if trial.is_scored]
    if study.is_stopped or not known:
        return False
    try:
        probe(min(known, key=lambda trial: trial.seconds.get("total", math.inf)).params)
    except Exception as error:  # whatever it is, it is an answer, unless the system gave none
        return not is_outage(error)
    return True


def _evaluation(execution: Execution, evaluate: Evaluate) -> Callable[[Params], object]:
    """Return a probe that evaluates."""

    def probe(params: Params) -> None:
        timeout_s: float | None = getattr(execution, "trial_timeout_s", None)
        outcome = call_within(evaluate, Trial(0, "", params), timeout_s)
        if outcome.error is not None and outcome.blame is not Blame.PARAMS:
            raise OutageError(outcome.error)

    return probe


def _state(study: Study, *, is_hopeless: bool, is_over: bool) -> State:
    if is_hopeless:
        return "failed"
    if not is_over:
        return "interrupted"
    evaluated = [trial for trial in study.trials if trial.is_told and trial.shared_from is None]
    failed = sum(trial.state is TrialState.FAILED for trial in evaluated)
    return "failed" if failed > LARGEST_FAILED_SHARE * len(evaluated) else "finished"
