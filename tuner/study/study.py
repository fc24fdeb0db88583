"""A study: arms that suggest, an objective that scores, and a journal that remembers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from tuner.backends.base import learns
from tuner.core.errors import TunerError
from tuner.core.journal import RETRIED, JournalContent, read_per_query
from tuner.core.rankings import FloatArray
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Outcome, Trial, TrialState, best_trial, params_key
from tuner.execution.call import plain
from tuner.study.arms import Arm, next_arm, spent
from tuner.study.journal import Journal
from tuner.study.limit import Limit, no_limit
from tuner.study.results import BASELINE_ARM
from tuner.study.rival import Rival, leaders
from tuner.study.scoring import with_result, with_shared_result
from tuner.study.spec import StudySpec

# Who waits for an outcome looks so often whether the study was stopped: ``stop`` may be called by a
# signal's handler, which can wake nobody.
LONGEST_WAIT_S = 0.2


class Study:
    """Asks its arms for trials and takes their outcomes; made by ``create`` or ``resume``.

    A trial is suggested from the results of all earlier trials of its arm but the last few, no more
    and no less: it waits until they are told, and takes the last for under way, although some may
    be told. How many these are is the arm's part of ``header.ahead``, see ``StudySpec.unseen``. So
    the trials depend on the study alone, and not on how many workers there are, how long
    evaluations take, or whether a run was killed and resumed. A backend that learns nothing waits
    for nobody. Where trials race, trial n also waits for all before n - ``header.ahead``, of which
    the best is the one to beat.

    The arms take turns by the share of their budget that is used. A baseline in the header is the
    first trial, of an arm of its own called ``baseline``. Equal params are evaluated once: a later
    trial with the params of an earlier one is told with the same result, as soon as that is known
    (state SHARED; where the evaluation failed, FAILED with the same reason). A trial whose metrics
    cannot be scored is FAILED with the reason.

    Where trials race, each is sent out with the best trial so far to beat, and is RACED_OUT where
    its evaluation was stopped early. The baseline is always evaluated whole.

    All methods may be called from any thread. After an interruption, trials that were asked but not
    told come first, with their numbers, and the backends see the same history as if nothing had
    happened: a resumed study suggests exactly what one long run would have.
    """

    def __init__(
        self,
        header: StudyHeader,
        spec: StudySpec,
        *,
        journal: Journal | None = None,
        content: JournalContent | None = None,
    ) -> None:
        self.header = header
        self.spec = spec
        self.journal = journal
        # What earlier sessions left in the journal; nothing for a study that begins.
        self.earlier = content = content or JournalContent(header, {})
        # Numbers of trials that have failed once and are asked again, or were.
        self.failed_before = frozenset(trial.number for trial in content.superseded)
        # Numbers of trials that were under way when a run died: one of them may have killed it.
        self.suspects = content.suspects
        self._rival = None if spec.by_query is None else Rival(spec.by_query)
        self._arms = spec.arms_of(header)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._is_stopped = False
        # Why a run ended early, but for a signal: the system gave no answer, or nothing is to hope
        # for. Empty where it did not.
        self.stopped_by = ""
        # Which limit ended it before its arms were done; empty where none did.
        self.ended_by = ""
        self._trials = list(content.trials.values())
        # Every trial with a number below it is told.
        self._told_before = 0
        self._count_told()
        self._asked = Counter(trial.arm for trial in self._trials)
        turns = [trial.arm for trial in self._trials]
        self._exhausted = spent(self._arms, turns, content.stages)
        begun = content.stages[0].arms if content.stages else header.arms
        self._unseen = spec.unseen(header.ahead, len(begun))
        self._unfinished = [trial for trial in self._trials if not trial.is_told]
        self._unfinished.reverse()  # popped from the end, oldest first
        # Whether a worker that was free had to wait for a result.
        self.has_kept_waiting = False
        # Numbers of the trials that were sent out and have not come back, with whatever.
        self._sent_out: set[int] = set()
        self._unreported: list[Trial] = []
        # By params: the number of the trial that is evaluated for all that are equal.
        self._evaluated: dict[str, int] = {}
        self._waiting: dict[int, list[Trial]] = {}
        for trial in self._trials:
            if trial.is_told and trial.shared_from is None:
                self._evaluated[params_key(trial.asked)] = trial.number
        if self._rival is not None and journal is not None:
            begin = self._unfinished[-1].number if self._unfinished else len(self._trials)
            for leader in leaders(self._trials, self._seen(begin)):
                self._rival.offer(leader, read_per_query(journal.path, leader.evaluated_as))

    @classmethod
    def create(cls, header: StudyHeader, spec: StudySpec, path: Path | None = None) -> Self:
        """Begin a study, with its journal at ``path`` (None: it is not written down).

        Raises:
            InputError: ``path`` holds a study already, or two arms have one name.
        """
        study = cls(header, spec)
        if path is not None:
            study.journal = Journal.create(path, header)
        return study

    @classmethod
    def resume(cls, header: StudyHeader, spec: StudySpec, path: Path) -> Self:
        """Continue the study in the journal at ``path``; ``header`` says what is there to run now.

        The study keeps the identity (id, name, time) of its first run. Library versions may
        differ, and the journal then notes it: suggestions may differ from those of one long run.
        Where there are more trials for an arm, or further arms, the study goes on with these, also
        one that had ended.

        Raises:
            InputError: no journal, a broken one, one that another run writes, or another study:
                every difference in seed, space, objective, baseline or fingerprints is named, and
                what of its arms it would lose.
        """
        journal, content = Journal.resume(path, header)
        try:
            return cls(content.header, spec, journal=journal, content=content)
        except BaseException:
            journal.close()
            raise

    @property
    def trials(self) -> list[Trial]:
        """Return all trials in the order of asking, those under way included."""
        with self._lock:
            return list(self._trials)

    @property
    def best(self) -> Trial | None:
        """Return the best trial so far; None where none is scored."""
        return best_trial(self.trials)

    @property
    def budget(self) -> int:
        """Return how many trials all arms together may ask for, the baseline included."""
        return sum(arm.budget for arm in self._arms)

    @property
    def shown_arms(self) -> tuple[ArmRecord, ...]:
        """Return the arms but the baseline's: that of starting points, if any, and the header's."""
        known = {BASELINE_ARM, *(arm.name for arm in self.header.arms)}
        given = [arm for arm in self._arms if arm.name not in known]
        return (*(ArmRecord(a.name, "fixed", a.budget) for a in given), *self.header.arms)

    @property
    def is_done(self) -> bool:
        """Say whether every trial is told and no arm has anything left to ask for."""
        with self._lock:
            is_told = all(trial.is_told for trial in self._trials)
            return is_told and self._next_arm() is None

    @property
    def has_more(self) -> bool:
        """Say whether any trial is left to ask for."""
        with self._lock:
            return bool(self._unfinished) or self._next_arm() is not None

    @property
    def under_way(self) -> list[Trial]:
        """Return the trials that were sent out and have not come back."""
        with self._lock:
            return [self._trials[number] for number in sorted(self._sent_out)]

    @property
    def upcoming(self) -> Trial | None:
        """Return the trial that was asked before and is asked again next; None where it is new."""
        with self._lock:
            return self._unfinished[-1] if self._unfinished else None

    def asks(self, *, limit: Limit = no_limit, teller: int | None = None) -> Iterator[Trial]:
        """Yield trials to evaluate until the arms are done, ``limit``, or ``stop`` is called.

        Waits where the next trial can be suggested only once another is told; where each of those
        is held back, it ends. ``teller`` is the identity of the thread that tells, which would wait
        for itself.

        Raises:
            TunerError: that thread asks for a trial which has to wait.
        """
        while not (leave := limit()).over:
            with self._lock:
                trial = None if leave.waits and self._sent_out else self._ask()
                if trial is None:
                    if self._is_stopped or not self.has_more or not self._sent_out:
                        return
                    if threading.get_ident() == teller:
                        raise TunerError(
                            f"trial {len(self._trials)} was asked for before trial "
                            f"{self._told_before} was told, in the thread that would tell it; an "
                            "execution pulls trials ahead from a thread of its own"
                        )
                    self.has_kept_waiting |= not leave.waits
                    self._changed.wait(LONGEST_WAIT_S)
                    continue
            yield trial

    def ask(self, count: int) -> list[Trial]:
        """Return up to ``count`` trials that can be evaluated now; never waits.

        ``[]``: the study is done, or trials that were asked have to be told first.
        """
        trials: list[Trial] = []
        while len(trials) < count and (trial := self._ask()) is not None:
            trials.append(trial)
        return trials

    def tell(self, trial: Trial, outcome: Outcome) -> list[Trial]:
        """Score a trial, write it down, and return it together with all that share its result.

        Raises:
            TunerError: the trial is not under way,
                or the journal cannot be written: the trial then counts as not told.
        """
        with self._lock:
            known = self._trials[trial.number] if trial.number < len(self._trials) else None
            if known is None or known.is_told or known.params != trial.asked:
                raise TunerError(f"trial {trial.number} is not under way in this study")
            outcome = plain(outcome)
            ended = with_result(known, outcome, self.spec.objective)
            per_query = outcome.per_query if ended.error is None else {}
            told = self._end(ended, per_query)
            if self._rival is not None:
                self._rival.offer(told, per_query)
            for waiting in self._waiting.pop(told.number, []):
                self._share(waiting, told)
            self._changed.notify_all()
            return self.unreported()

    def let_free(self, names: Sequence[str]) -> None:
        """Let no arm suggest these parameters: each answer tells what all their values are worth.

        Before the first trial is asked for.
        """
        self.spec = replace(self.spec, free=tuple(names))

    def retry_failed(self) -> list[Trial]:
        """Let every failed trial be asked again, and return them; a later result replaces theirs.

        Raises:
            TunerError: the journal cannot be written.
        """
        with self._lock:
            failed = [trial for trial in self._trials if trial.state is TrialState.FAILED]
            if failed:
                self.note(RETRIED, trials=[trial.number for trial in failed])
            self.failed_before |= {trial.number for trial in failed}
            for trial in failed:
                self._trials[trial.number] = trial.reopened()
                if trial.shared_from is None:
                    del self._evaluated[params_key(trial.asked)]
            again = [self._trials[trial.number] for trial in failed]
            self._unfinished += reversed(again)
            self._told_before = 0
            self._count_told()
            return again

    def hold_back(self, trial: Trial) -> None:
        """Let nobody wait for a trial that got no answer, until it is told or asked again."""
        with self._lock:
            self._sent_out.discard(trial.number)
            self._changed.notify_all()

    def ask_again(self, trial: Trial) -> None:
        """Let a trial that is under way, but got no answer, be the next one that is asked."""
        with self._lock:
            self._unfinished.append(self._trials[trial.number])
            self._changed.notify_all()

    def unreported(self) -> list[Trial]:
        """Return the told trials that no call has returned yet, such as those shared at once."""
        with self._lock:
            reported, self._unreported = self._unreported, []
            return reported

    def note(self, kind: str, **detail: Any) -> None:
        """Write any other event, such as a summary, into the journal, where there is one.

        Raises:
            TunerError: the disk refuses.
        """
        if self.journal is not None:
            self.journal.note(kind, **detail)

    @property
    def is_stopped(self) -> bool:
        """Say whether ``stop`` was called."""
        return self._is_stopped

    def stop(self) -> None:
        """Let ``asks`` end; trials under way may still be told."""
        self._is_stopped = True

    def close(self) -> None:
        """Close the journal; the study can only be read from then on."""
        self._is_stopped = True
        with self._lock:  # another thread may be writing what it asks for
            if self.journal is not None:
                self.journal.close()

    def _ask(self) -> Trial | None:
        with self._lock:
            while not self._is_stopped:
                trial = self._unfinished.pop() if self._unfinished else self._new_trial()
                if trial is None:
                    return None
                first = self._evaluated.setdefault(params_key(trial.params), trial.number)
                if first == trial.number:
                    self._sent_out.add(trial.number)
                    return self._against_rival(trial)
                if self._trials[first].is_told:
                    self._share(trial, self._trials[first])
                else:
                    self._waiting.setdefault(first, []).append(trial)
            return None

    def _next_arm(self) -> Arm | None:
        return next_arm(self._arms, self._asked, self._exhausted)

    def _against_rival(self, trial: Trial) -> Trial:
        if self._rival is None:
            return trial
        return self._rival.sent_against(trial, self._seen(trial.number))

    def _seen(self, number: int) -> int:
        """Return the number below which the results of trials are seen when ``number`` is asked."""
        return number - self.header.ahead

    def _has_to_wait(self, arm: Arm) -> bool:
        if self._rival is not None and self._told_before < self._seen(len(self._trials)):
            return True
        if not learns(arm.backend):
            return False
        shown = self.spec.shown(arm, self._trials)
        return not all(trial.is_told for trial in shown[: max(len(shown) - self._unseen, 0)])

    def _new_trial(self) -> Trial | None:
        while (arm := self._next_arm()) is not None:
            if self._has_to_wait(arm):
                return None
            seed = self.header.seed
            history = self.spec.history(arm, self._trials, unseen=self._unseen, seed=seed)
            suggested = self.spec.suggest(arm, history, self._trials, seed=seed)
            if not suggested:
                self._exhausted.add(arm.name)
                continue
            trial = Trial(len(self._trials), arm.name, suggested[0], asked_at=time.time())
            if self.journal is not None:
                self.journal.asked(trial)
            self._trials.append(trial)
            self._asked[arm.name] += 1
            return trial
        return None

    def _share(self, trial: Trial, first: Trial) -> None:
        self._end(with_shared_result(trial, first), {})

    def _end(self, ended: Trial, per_query: Mapping[str, FloatArray]) -> Trial:
        told = replace(ended, told_at=time.time())
        if self.journal is not None:
            self.journal.told(told, per_query)
        self._trials[told.number] = told
        self._sent_out.discard(told.number)
        self._count_told()
        self._unreported.append(told)
        return told

    def _count_told(self) -> None:
        trials = self._trials
        while self._told_before < len(trials) and trials[self._told_before].is_told:
            self._told_before += 1
