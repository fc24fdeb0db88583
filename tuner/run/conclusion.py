"""What a search comes to, asked of the system: winner, held-out scores, verdict, remarks, goals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tuner.core.calls import HOLDOUT, SIDE_BY_SIDE
from tuner.core.errors import OutageError
from tuner.core.journal import ENDING
from tuner.core.rankings import FloatArray
from tuner.core.run_files import JOURNAL_FILE, TUNE_QUERIES_FILE
from tuner.core.steps import Say
from tuner.core.study_record import StudySummary
from tuner.core.trial import Params, Trial
from tuner.run.accounts import queries_asked, spent
from tuner.run.asking import keep_time, probe
from tuner.run.assembly import Assembly
from tuner.run.inspection import remarks
from tuner.run.judge import LevelOf, judge, judge_without_holdout, key_of, look, utilities
from tuner.run.parts import PartsFound, ask_parts
from tuner.run.shown_texts import shown_texts, write_passages
from tuner.run.side_by_side import (
    SideBySide,
    by_query,
    put_side_by_side,
    put_tune_side_by_side,
    write_side_by_side,
)
from tuner.study.failures import Failures
from tuner.study.outages import answered, is_answering
from tuner.study.pareto import front_record
from tuner.study.results import (
    BASELINE_ARM,
    HoldoutResult,
    ScoreHoldout,
    summarise,
)
from tuner.study.study import Study
from tuner.verdict.caveats import caveat_of_parts, caveats_of_failures
from tuner.verdict.few_queries import FewQueriesVerdict
from tuner.verdict.goals import chance_of, front_notes, goal_changes, ran_beside
from tuner.verdict.looks import EarlierLooks
from tuner.verdict.ruling import THE_WAY, Reason, Ruling, to_record
from tuner.verdict.verdict import Verdict
from tuner.verdict.winner import choose_winner
from tuner.verdict.words import tell, weakened

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Conclusion:
    """Sums up a study whose search is over; what it may fail at costs that part alone.

    A system that does not answer now interrupts the study instead: it is summed up when it goes on.
    ``level_of`` takes the place of the configured alpha, and the verdict then does not warn of
    earlier looks, which have been paid for.
    """

    assembly: Assembly
    study: Study
    run_dir: Path
    say: Say
    level_of: LevelOf | None = None

    def sum_up(self, state: str) -> StudySummary:
        """Sum up, which asks the system; where it does not answer, the study is interrupted."""
        study = self.study
        try:
            summary = self._summarise(state)
            rows = self._put_side_by_side(summary)
            summary = self._with_goals(summary, rows)
        except OutageError as error:
            reason = f"the system does not answer: {' '.join(str(error).split())}"
            summary = self._interrupted(reason)
        except KeyboardInterrupt:  # what was asked until then is told, too
            summary = self._interrupted("Ctrl-C after the search, before there was a verdict")
        return replace(
            summary,
            ended_by=study.ended_by if summary.state == "finished" else "",
            queries_asked=queries_asked(self.assembly, study),
            spent=spent(self.assembly, study),
        )

    def _interrupted(self, reason: str) -> StudySummary:
        self.study.stopped_by = reason
        self.say(reason)
        self.study.note(ENDING, state="interrupted", reason=reason)
        return self._summarise("interrupted")

    def _summarise(self, state: str) -> StudySummary:
        """Return the summary without the times, which are known later."""
        trials, header = self.study.trials, self.study.header
        if state != "finished":
            stopped_by = self.study.stopped_by
            return summarise(state, header, trials, seconds=0.0, stopped_by=stopped_by)
        values = utilities(self.assembly, self.run_dir / JOURNAL_FILE, trials, say=self.say)
        winner = choose_winner(trials, values)
        summary = summarise(
            state,
            header,
            trials,
            seconds=0.0,
            score_holdout=self._score_holdout(),
            winner=winner,
        )
        objective = self.assembly.plan.objective
        verdict = self._verdict(winner, values)
        if verdict is not None:
            verdict = weakened(verdict, caveats_of_failures(Failures.of(trials)))
        chance = chance_of(objective, self.run_dir / JOURNAL_FILE, trials)
        return replace(
            summary,
            verdict=verdict,
            remarks=() if winner is None else (*self._flattered(verdict), *self._remarks(winner)),
            front=front_record(trials, objective.pareto, objective.goals, chance),
        )

    def _with_goals(self, summary: StudySummary, rows: Sequence[SideBySide]) -> StudySummary:
        """Add what became of each goal, where several were sought, and why the winner won."""
        objective = self.assembly.plan.objective
        winner, baseline = summary.winner, summary.baseline
        if not objective.pareto or winner is None:
            return summary
        trials = self.study.trials
        summary = replace(summary, front_notes=front_notes(summary, objective.pareto, trials))
        if baseline is None or winner.trial == baseline.trial:
            return summary
        compare = partial(
            goal_changes,
            objective,
            winner,
            baseline,
            partial(by_query, rows),
            confidence=1.0 - float(self.assembly.config.verdict.alpha),
            is_beside=ran_beside(trials),
            seed=self.study.header.seed,
        )
        failed = "the goals of winner and baseline could not be compared"
        return replace(summary, goals=self._had(compare, (), failed))

    def _flattered(self, verdict: dict[str, Any] | None) -> Iterator[str]:
        """Yield on how many of the held-out queries the baseline was tuned, where it was."""
        assembly, origin = self.assembly, self.assembly.baseline_tuned_on
        queries = assembly.deciding_queries
        if verdict is None or origin is None or not queries:
            return
        which = "the held-out" if assembly.holdout_queries else "the"
        remark = origin.remark("the baseline", assembly.dataset, queries, which=which)
        if remark is not None:
            yield remark

    def _remarks(self, winner: Trial) -> tuple[str, ...]:
        look_at = partial(remarks, self.assembly, winner.params, self.study.trials)
        failed = "the parameters could not be looked at one by one"
        return tuple(self._had(lambda: self._answered(look_at), [], failed))

    def _verdict(
        self, winner: Trial | None, values: Mapping[int, FloatArray]
    ) -> dict[str, Any] | None:
        """Return the verdict as a record; None without a baseline, or where it cannot be had."""
        assembly = self.assembly
        arms = (trial for trial in self.study.trials if trial.arm == BASELINE_ARM)
        baseline = next((trial for trial in arms if trial.is_scored), None)
        if winner is None or baseline is None:
            return None
        if not any(winner.metrics.get(name) for name in assembly.plan.objective.weights):
            return None  # nothing relevant was found, so there is nothing to choose from
        if not winner.is_feasible:
            nobody = Ruling("keep the baseline", Reason.INFEASIBLE)
            return to_record(nobody, tell(nobody), (), {})
        is_split = bool(assembly.holdout_queries)

        def judged() -> dict[str, Any] | None:
            if assembly.parts:
                return self._on_parts(winner, baseline, values)
            if is_split:
                return self._on_holdout(winner, baseline).to_record()
            few = self._on_all(winner, baseline, values)
            return None if few is None else few.to_record()

        which = "held-out queries" if is_split else "queries of the guard-rails"
        which = "parts" if assembly.parts else which
        again = f"; once that is mended: tuner resume {self.run_dir}"
        again += " --retry-failed" if assembly.parts else ""
        return self._had(judged, None, f"no verdict: the {which} could not be answered", again)

    def _on_holdout(self, winner: Trial, baseline: Trial) -> Verdict:
        assembly = self.assembly
        both = [key_of(assembly, trial.params) for trial in (winner, baseline)]

        def look_at() -> EarlierLooks | None:
            looks = look(self.run_dir.parent, assembly, both)
            return looks if self.level_of is None else None

        return self._answered(
            lambda: judge(
                assembly,
                winner.params,
                baseline.params,
                assembly.holdout_queries,
                look_at=look_at,
                level_of=self.level_of,
            )
        )

    def _on_parts(
        self, winner: Trial, baseline: Trial, values: Mapping[int, FloatArray]
    ) -> dict[str, Any]:
        """Return the verdict by all queries, each part of which met a winner of its own."""
        assembly, trials = self.assembly, self.study.trials
        if winner.arm == BASELINE_ARM:
            # All queries choose what runs already, so the searches without a part were left out.
            same = Ruling("keep the baseline", Reason.SAME)
            return to_record(same, tell(same), (), {})

        def judged() -> tuple[PartsFound, Verdict]:
            found = ask_parts(
                assembly, self.run_dir, winner, baseline, trials, values, say=self.say
            )
            met = [choice.params for choice in found.choices]
            keys = [key_of(assembly, one) for one in (winner.params, baseline.params, *met)]
            return found, judge(
                assembly,
                winner.params,
                baseline.params,
                found.queries,
                look_at=lambda: look(self.run_dir.parent, assembly, sorted(set(keys))),
                both=found.both,
                names=THE_WAY,
                widened=found.widened,
            )

        found, verdict = self._answered(judged)
        failed = caveats_of_failures(found.failures, "the searches without a part")
        record = weakened(verdict.to_record(), [caveat_of_parts(found.figures()), *failed])
        return {**record, "parts": [asdict(choice) for choice in found.choices]}

    def _on_all(
        self, winner: Trial, baseline: Trial, values: Mapping[int, FloatArray]
    ) -> FewQueriesVerdict | None:
        return self._answered(
            lambda: judge_without_holdout(
                self.assembly,
                winner,
                baseline,
                self.study.trials,
                values,
                self.run_dir / JOURNAL_FILE,
                level_of=self.level_of,
            )
        )

    def _put_side_by_side(self, summary: StudySummary) -> tuple[SideBySide, ...]:
        winner, baseline = summary.winner, summary.baseline
        if winner is None or baseline is None:
            return ()

        def put() -> tuple[SideBySide, ...]:
            assembly = self.assembly.counting(SIDE_BY_SIDE)
            both = partial(put_side_by_side, assembly, winner.params, baseline.params)
            rows = self._answered(both)
            write_side_by_side(self.run_dir, rows)
            others: tuple[SideBySide, ...] = ()
            on_tune = partial(
                put_tune_side_by_side,
                self.assembly,  # answers from memory, or kept: nothing is asked that could count
                self.run_dir,
                *(self.study.trials[one.trial] for one in (winner, baseline)),
            )
            others = self._had(on_tune, others, "the tune queries could not be put side by side")
            write_side_by_side(self.run_dir, others, name=TUNE_QUERIES_FILE)
            shown = shown_texts((*rows, *others), assembly.dataset.corpus.documents)
            write_passages(self.run_dir, shown)
            return rows

        return self._had(put, (), "winner and baseline could not be put side by side")

    def _score_holdout(self) -> ScoreHoldout | None:
        if not self.assembly.holdout_queries:
            return None
        assembly = self.assembly.counting(HOLDOUT)
        evaluator = assembly.evaluator(assembly.holdout_queries)
        objective = assembly.plan.objective

        def score(params: Params) -> HoldoutResult | None:
            def scored() -> HoldoutResult | None:
                metrics = self._answered(partial(evaluator, params)).metrics
                return HoldoutResult(objective.score(metrics).objective, metrics)

            return self._had(scored, None, f"cannot score {params} on the held-out queries")

        return score

    def _had(
        self, step: Callable[[], Result], otherwise: Result, failed: str, way_out: str = ""
    ) -> Result:
        """Take a step; where it fails, say so: the search is done, its result must not be lost."""
        try:
            return step()
        except OutageError:
            raise
        except Exception as error:
            self.say(f"{failed}: {error}{way_out}")
            return otherwise

    def _answered(self, step: Callable[[], Result]) -> Result:
        """Do a step that asks the system, as patiently as a trial is asked.

        Raises:
            OutageError: the system does not answer.
            TunerError: it does, but not what this step asks.
        """
        found = answered(
            step, lambda: is_answering(self.study.trials, partial(probe, self.assembly))
        )
        keep_time(self.study)
        return found
