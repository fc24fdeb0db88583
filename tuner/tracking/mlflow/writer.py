"""The background thread that writes a study's view, and starts over where an outage ended it."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tuner.core.steps import Say
from tuner.core.study_record import StudySummary
from tuner.core.trial import Trial
from tuner.tracking.mlflow.client import Refused
from tuner.tracking.mlflow.quiet import message_of, quiet, reason_of
from tuner.tracking.mlflow.records import SystemSample, in_order_of_telling
from tuner.tracking.mlflow.view import StudyView, Target, open_view

_FIRST_RETRY_S = 0.5
_LONGEST_RETRY_S = 10.0
_LONGEST_RETRY_AT_THE_END_S = 1.0
# A trial that the store never takes must not keep the others away: one more try after a plain
# refusal (its arm may have been deleted meanwhile, which a fresh view repairs), a few otherwise.
_TRIES_IF_REFUSED = 2
_TRIES = 5
# Kept while the store is out of reach; hours of them.
_SYSTEM_SAMPLES = 1_000


@dataclass(frozen=True)
class TrackingStatus:
    """How far the view is: trials written and pending, and in one line why it is behind.

    ``added`` counts the runs and curve points that ``sync`` found missing, ``repaired`` the runs
    that were half-written, duplicated or left running. ``is_complete``: the study's end is in it.
    """

    written: int = 0
    pending: int = 0
    error: str | None = None
    added: int = 0
    repaired: int = 0
    is_complete: bool = False

    @property
    def is_whole(self) -> bool:
        """Say whether nothing is missing."""
        return self.is_complete and not self.pending and not self.error


class Writer:
    """Takes trials from the study's thread and writes them in its own.

    After any failure it opens the view afresh, which finds what is in the store, and adds the rest.
    """

    def __init__(
        self,
        target: Target,
        *,
        say: Say,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.run_id: str | None = None
        self.experiment_id: str | None = None
        self._target = target
        self._say = say
        self._on_progress = on_progress
        self._timeouts = target.timeouts
        self._inbox: queue.SimpleQueue[Trial | SystemSample | None] = queue.SimpleQueue()
        self._system: deque[SystemSample] = deque(maxlen=_SYSTEM_SAMPLES)
        self._submitted: set[int] = set()
        self._trials: dict[int, Trial] = {}
        self._written: set[int] = set()
        self._tries: dict[int, int] = {}
        self._summary: StudySummary | None = None
        self._retry_until = 0.0
        self._is_finishing = threading.Event()
        self._is_given_up = threading.Event()
        self._is_complete = False
        self._error: str | None = None
        self._failures = 0
        self._is_lost = False
        self._outages = 0
        self._thread = threading.Thread(target=self._run, name="tuner-mlflow", daemon=True)

    def start(self) -> None:
        """Begin to connect, in the background."""
        self._thread.start()

    def add(self, trial: Trial) -> None:
        """Take one told trial; takes microseconds. A trial that is known already is left out."""
        if trial.number not in self._submitted:
            self._submitted.add(trial.number)
            self._inbox.put(trial)

    def add_system(self, sample: SystemSample) -> None:
        """Take system metrics; takes microseconds."""
        self._inbox.put(sample)

    def status(self) -> TrackingStatus:
        """Return how far the view is."""
        written = len(self._written)
        pending = len(self._submitted) - written
        return TrackingStatus(written, pending, self._error, is_complete=self._is_complete)

    def finish(self, summary: StudySummary) -> None:
        """Let the thread write the rest and the study's end; wait for it as long as is given."""
        self._retry_until = time.monotonic() + self._timeouts.retry_s
        self._summary = summary
        self._is_finishing.set()
        self._inbox.put(None)
        self._thread.join(self._timeouts.finish_s)
        self._is_given_up.set()

    def _run(self) -> None:
        try:
            with quiet(request_s=self._timeouts.request_s):
                while not (self._is_complete or self._is_given_up.is_set()):
                    try:
                        self._write_view()
                    except Exception as error:  # whatever the outside does, the study goes on
                        if not self._tries_again_after(error):
                            return
        except Exception as error:
            self._error = message_of(error)
            self._say(f"MLflow cannot be used ({self._error}); the study goes on without it")

    def _write_view(self) -> None:
        """Open the view, complete it, and follow the inbox to the study's end."""
        view = open_view(self._target, say=self._say)
        self.run_id, self.experiment_id = view.run_id, view.experiment_id
        self._on_progress()
        view.resume()
        self._take(block=False)
        self._write(view, in_order_of_telling(self._trials.values()))
        self._note_recovery()
        while not self._is_given_up.is_set():
            is_last = self._summary is not None
            new = self._take(block=not is_last)
            self._write(view, new)
            if new:
                self._failures = 0
            elif self._summary is not None and is_last:
                view.close(self._summary, end_ms=round(time.time() * 1000))
                self._error = view.artifact_error or self._error
                self._is_complete = True
                if self._outages > 1:
                    self._say(
                        f"MLflow was away {self._outages} times; it has all "
                        f"{len(self._written)} trials"
                    )
                return

    def _take(self, *, block: bool) -> list[Trial]:
        """Return the trials that came in; with ``block``, wait until there is one or the end."""
        new: list[Trial] = []
        with suppress(queue.Empty):
            while (item := self._inbox.get(block=block and not (new or self._system))) is not None:
                if isinstance(item, SystemSample):
                    self._system.append(item)
                    continue
                self._trials[item.number] = item
                new.append(item)
        return new

    def _write(self, view: StudyView, trials: list[Trial]) -> None:
        for trial in trials:
            if self._is_given_up.is_set():
                return
            if self._tries.get(trial.number, 0) < _TRIES:
                self._write_trial(view, trial)
            view.add_to_curve(trial)
        view.write_curves()
        if self._system:
            with suppress(Refused):  # they are not worth a second try
                view.write_system(self._system)
            self._system.clear()

    def _write_trial(self, view: StudyView, trial: Trial) -> None:
        try:
            view.write_trial(trial)
        except Exception as error:
            tries = self._tries.get(trial.number, 0) + 1
            if tries >= (_TRIES_IF_REFUSED if isinstance(error, Refused) else _TRIES):
                self._say(f"MLflow does not take trial {trial.number}: {message_of(error)}")
                tries = _TRIES
            self._tries[trial.number] = tries
            # It is the trial that fails, not the store: the time to wait for that one starts anew.
            self._retry_until = max(self._retry_until, time.monotonic() + self._timeouts.retry_s)
            raise
        self._written.add(trial.number)
        self._on_progress()

    def _tries_again_after(self, error: Exception) -> bool:
        """Wait before the next attempt, and say once that the store is lost; False: give up."""
        self._error = reason_of(error)
        self._failures += 1
        if self._failures == 1 or isinstance(error, Refused):
            return True  # at once: a server closes connections that idle, which is no outage
        if not self._is_lost:
            self._is_lost = True
            self._outages += 1
            if self._outages == 1:  # of one that comes and goes, the end tells the rest
                self._say(
                    f"MLflow is out of reach ({self._error}); the study goes on, and its trials "
                    "are added when MLflow is back"
                )
        pause_s = min(_FIRST_RETRY_S * 2 ** min(self._failures - 2, 10), _LONGEST_RETRY_S)
        if not self._is_finishing.is_set():
            self._is_finishing.wait(pause_s)  # the study's end brings one more attempt at once
            return True
        left_s = self._retry_until - time.monotonic()
        self._is_given_up.wait(max(0.0, min(pause_s, left_s, _LONGEST_RETRY_AT_THE_END_S)))
        return left_s > 0

    def _note_recovery(self) -> None:
        if self._is_lost and self._outages == 1:
            self._say(f"MLflow is back, and has all {len(self._written)} trials so far")
        self._is_lost = False
        self._error = None
