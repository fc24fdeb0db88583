"""A study: arms that suggest, an objective that scores, and a journal that remembers."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from tuner.core.errors import InputError, TunerError
from tuner.core.rankings import FloatArray
from tuner.core.space import SearchSpace
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Outcome, Params, Trial, TrialState, best_trial
from tuner.execution._plain import plain
from tuner.study.arms import Arm, ArmsSee, Fixed, arm_seed, next_arm
from tuner.study.journal import Journal
from tuner.study.pareto import Goals, swept
from tuner.study.reading import RETRIED, read_per_query
from tuner.study.results import BASELINE_ARM
from tuner.study.resume import check_same_study
from tuner.study.rival import ByQuery, Rival
from tuner.study.scoring import Objective, Result, result_of


class Study:
    """Asks its arms for trials and takes their outcomes; made by ``create`` or ``resume``.

    The arms take turns by the share of their budget that is used. A baseline in the header is the
    first trial, of an arm of its own called ``baseline``. Equal params are evaluated once: a later
    trial with the params of an earlier one is told with the same result, as soon as that is known
    (state SHARED; where the evaluation failed, FAILED with the same reason). A trial whose metrics
    cannot be scored is FAILED with the reason.

    With ``by_query`` trials race: each is sent out with the best trial so far to beat, and is
    RACED_OUT where its evaluation was stopped early. The baseline is always evaluated whole.
    ``earlier`` are trials of other studies that every arm learns from, and that no budget pays.
    With ``goals`` the arms search for a front: see ``study.pareto``.

    All methods may be called from any thread. After an interruption, trials that were asked but not
    told come first, with their numbers, and the backends see the same history as if nothing had
    happened: with one worker a resumed study suggests exactly what one long run would have.
    """

    def __init__(
        self,
        header: StudyHeader,
        *,
        arms: Sequence[Arm],
        space: SearchSpace,
        objective: Objective,
        journal: Journal | None = None,
        arms_see: ArmsSee = "own",
        by_query: ByQuery | None = None,
        earlier: Sequence[Trial] = (),
        goals: Goals | None = None,
        trials: Mapping[int, Trial] | None = None,
        suspects: frozenset[int] = frozenset(),
    ) -> None:
        self.header = header
        # Numbers of trials that were under way when a run died: one of them may have killed it.
        self.suspects = suspects
        self.journal = journal
        self._space = space
        self._objective = objective
        self._arms_see = arms_see
        self._earlier = list(earlier)
        self._goals = goals
        self._rival = None if by_query is None else Rival(by_query)
        self._arms = _with_baseline(header, arms, space)
        self._lock = threading.RLock()
        self._is_stopped = False
        # Why a run ended early, but for a signal: the system gave no answer, or nothing is to hope
        # for. Empty where it did not.
        self.stopped_by = ""
        self._exhausted: set[str] = set()
        self._trials: list[Trial] = list((trials or {}).values())
        self._asked = Counter(trial.arm for trial in self._trials)
        self._unfinished = [trial for trial in self._trials if not trial.is_told]
        self._unfinished.reverse()  # popped from the end, oldest first
        self._unreported: list[Trial] = []
        # By params: the number of the trial that is evaluated for all that are equal.
        self._evaluated: dict[str, int] = {}
        self._waiting: dict[int, list[Trial]] = {}
        for trial in self._trials:
            if trial.is_told and trial.shared_from is None:
                self._evaluated[_key(trial.params)] = trial.number
        if self._rival is not None and journal is not None and (best := self.best) is not None:
            self._rival.offer(best, read_per_query(journal.path, best.evaluated_as))

    @classmethod
    def create(
        cls,
        header: StudyHeader,
        *,
        arms: Sequence[Arm],
        space: SearchSpace,
        objective: Objective,
        path: Path | None = None,
        arms_see: ArmsSee = "own",
        by_query: ByQuery | None = None,
        earlier: Sequence[Trial] = (),
        goals: Goals | None = None,
        keep_per_query: bool = True,
    ) -> Self:
        """Begin a study, with its journal at ``path`` (None: it is not written down).

        Raises:
            InputError: ``path`` holds a study already, or two arms have one name.
        """
        study = cls(
            header,
            arms=arms,
            space=space,
            objective=objective,
            arms_see=arms_see,
            by_query=by_query,
            earlier=earlier,
            goals=goals,
        )
        if path is not None:
            study.journal = Journal.create(path, header, keep_per_query=keep_per_query)
        return study

    @classmethod
    def resume(
        cls,
        header: StudyHeader,
        *,
        arms: Sequence[Arm],
        space: SearchSpace,
        objective: Objective,
        path: Path,
        arms_see: ArmsSee = "own",
        by_query: ByQuery | None = None,
        earlier: Sequence[Trial] = (),
        goals: Goals | None = None,
        keep_per_query: bool = True,
    ) -> Self:
        """Continue the study in the journal at ``path``; ``header`` says what is there to run now.

        The study keeps the identity (id, name, time) of its first run. Library versions may
        differ, and the journal then notes it: suggestions may differ from those of one long run.

        Raises:
            InputError: no journal, a broken one, one that another run writes, or another study:
                every difference in seed, arms, space, objective, baseline or fingerprints is named.
        """
        other_versions: dict[str, Any] = {}

        def check(stored: StudyHeader) -> None:
            other_versions.update(check_same_study(stored, header, file=str(path)))

        journal, content = Journal.resume(path, check=check, keep_per_query=keep_per_query)
        try:
            if other_versions:
                journal.note("other_versions", versions=other_versions)
            return cls(
                content.header,
                arms=arms,
                space=space,
                objective=objective,
                journal=journal,
                arms_see=arms_see,
                by_query=by_query,
                earlier=earlier,
                goals=goals,
                trials=content.trials,
                suspects=content.suspects,
            )
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
    def is_done(self) -> bool:
        """Say whether every trial is told and no arm has anything left to ask for."""
        with self._lock:
            is_told = all(trial.is_told for trial in self._trials)
            return is_told and next_arm(self._arms, self._asked, self._exhausted) is None

    def asks(self) -> Iterator[Trial]:
        """Yield trials to evaluate until the arms are done or ``stop`` is called; never waits."""
        while (trial := self._ask()) is not None:
            yield trial

    def ask(self, count: int) -> list[Trial]:
        """Return up to ``count`` trials to evaluate; ``[]`` when the study is done."""
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
            if known is None or known.is_told or known.params != trial.params:
                raise TunerError(f"trial {trial.number} is not under way in this study")
            outcome = plain(outcome)
            result = result_of(outcome, self._objective)
            per_query = outcome.per_query if result.error is None else {}
            told = self._end(known, result, per_query)
            if self._rival is not None:
                self._rival.offer(told, per_query)
            for waiting in self._waiting.pop(told.number, []):
                self._share(waiting, told)
            return self.unreported()

    def retry_failed(self) -> list[Trial]:
        """Let every failed trial be asked again, and return them; a later result replaces theirs.

        Raises:
            TunerError: the journal cannot be written.
        """
        with self._lock:
            failed = [trial for trial in self._trials if trial.state is TrialState.FAILED]
            if failed and self.journal is not None:
                self.journal.note(RETRIED, trials=[trial.number for trial in failed])
            for trial in failed:
                self._trials[trial.number] = trial.reopened()
                if trial.shared_from is None:
                    del self._evaluated[_key(trial.params)]
            again = [self._trials[trial.number] for trial in failed]
            self._unfinished += reversed(again)
            return again

    def ask_again(self, trial: Trial) -> None:
        """Let a trial that is under way, but got no answer, be the next one that is asked."""
        with self._lock:
            self._unfinished.append(self._trials[trial.number])

    def unreported(self) -> list[Trial]:
        """Return the told trials that no call has returned yet, such as those shared at once."""
        with self._lock:
            reported, self._unreported = self._unreported, []
            return reported

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
        if self.journal is not None:
            self.journal.close()

    def _ask(self) -> Trial | None:
        with self._lock:
            while not self._is_stopped:
                trial = self._unfinished.pop() if self._unfinished else self._new_trial()
                if trial is None:
                    return None
                first = self._evaluated.setdefault(_key(trial.params), trial.number)
                if first == trial.number:
                    return trial if self._rival is None else self._rival.sent_against(trial)
                if self._trials[first].is_told:
                    self._share(trial, self._trials[first])
                else:
                    self._waiting.setdefault(first, []).append(trial)
            return None

    def _new_trial(self) -> Trial | None:
        while (arm := next_arm(self._arms, self._asked, self._exhausted)) is not None:
            seed = arm_seed(self.header.seed, arm.name)
            history = self._history(arm)
            suggested = arm.backend.suggest(self._space, history, count=1, seed=seed)
            if not suggested:
                self._exhausted.add(arm.name)
                continue
            is_fixed = isinstance(arm.backend, Fixed)
            params = suggested[0] if is_fixed else self._space.canonical(suggested[0])
            trial = Trial(len(self._trials), arm.name, params, asked_at=time.time())
            if self.journal is not None:
                self.journal.asked(trial)
            self._trials.append(trial)
            self._asked[arm.name] += 1
            return trial
        return None

    def _history(self, arm: Arm) -> list[Trial]:
        if isinstance(arm.backend, Fixed):
            return [trial for trial in self._trials if trial.arm == arm.name]
        if self._arms_see == "all":
            seen = [trial for trial in self._trials if self._is_point(trial)]
        else:
            seen = [trial for trial in self._trials if trial.arm == arm.name]
        history = self._earlier + seen
        if self._goals is None:
            return history
        return swept(history, self._goals, seed=arm_seed(self.header.seed, arm.name))

    def _is_point(self, trial: Trial) -> bool:
        # Suggested params are points of the space; a baseline need not be one, and backends can
        # only learn from points.
        return trial.arm != BASELINE_ARM or self._space.contains(trial.params)

    def _share(self, trial: Trial, first: Trial) -> None:
        state = TrialState.SHARED if first.is_scored else first.state
        result = Result(
            state, first.objective, first.violation, first.metrics, {}, first.error, first.race
        )
        self._end(trial, result, {}, shared_from=first.number)

    def _end(
        self,
        trial: Trial,
        result: Result,
        per_query: Mapping[str, FloatArray],
        *,
        shared_from: int | None = None,
    ) -> Trial:
        told = replace(trial, **vars(result), shared_from=shared_from, told_at=time.time())
        if self.journal is not None:
            self.journal.told(told, per_query)
        self._trials[told.number] = told
        self._unreported.append(told)
        return told


def _with_baseline(header: StudyHeader, arms: Sequence[Arm], space: SearchSpace) -> list[Arm]:
    names = [arm.name for arm in arms]
    for name in names:
        if names.count(name) > 1 or (name == BASELINE_ARM and header.baseline is not None):
            raise InputError(f"two arms are called {name!r}; give each a name of its own")
    if header.baseline is None:
        return list(arms)
    try:
        params = space.canonical(header.baseline)
    except InputError:
        # A baseline may lie outside the space, or set what the space leaves alone.
        params = dict(header.baseline)
    return [Arm(BASELINE_ARM, Fixed(params), 1), *arms]


def _key(params: Params) -> str:
    return json.dumps(params, sort_keys=True)
