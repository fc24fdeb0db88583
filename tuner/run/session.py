"""One configured study, from its run directory to its summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tuner.config import load_config
from tuner.core.errors import InputError, OutageError
from tuner.core.journal import JournalContent, read_journal
from tuner.core.run_files import BEST_FILE, CONFIG_FILE, JOURNAL_FILE, QUERIES_FILE
from tuner.core.shown import counted
from tuner.core.steps import (
    REPORT,
    TRACKING,
    VERDICT,
    Advance,
    Phases,
    Say,
    unsaid,
    watched,
)
from tuner.core.study_record import StudySummary
from tuner.retrieval.base import Measures
from tuner.retrieval.indexes import indexed_in
from tuner.run.accounts import accounting, budget_of, reopened
from tuner.run.as_study import make_header, make_spec
from tuner.run.asking import probe
from tuner.run.assembly import Assembly, assemble
from tuner.run.conclusion import Conclusion
from tuner.run.earlier import Earlier, gather, read_earlier, write_earlier
from tuner.run.folder import (
    SUMMARY_NOTE,
    TIMES_NOTE,
    earlier_seconds,
    journal_in,
    last_summary,
    new_run_dir,
    remembering,
    times_record,
    write_best,
    write_opening,
)
from tuner.run.free import interrupted, settle
from tuner.run.going_on import (
    Wish,
    check_reach,
    lacking_money,
    take_up,
    with_more,
    with_what_is_known,
)
from tuner.run.in_mlflow import finish, searching, tracker_of
from tuner.run.index_notes import noting_builds, remember_indexes
from tuner.run.inspection import NothingFound
from tuner.run.judge import LevelOf, utilities
from tuner.run.lifecycle import carry_through, closed_on_error, open_study
from tuner.run.parts import search_parts
from tuner.run.pins import WINNER, pin_index, pinning_best
from tuner.run.planning import make_plan
from tuner.run.trials import trial_evaluator
from tuner.study.limit import first_of
from tuner.study.loop import Event, State, run_study
from tuner.study.results import BASELINE_ARM
from tuner.study.stopping import Stop, enough
from tuner.study.study import Study
from tuner.verdict.looks import TunedOn
from tuner.verdict.winner import choose_winner

# Says what the baseline was tuned on, where it came from a file that does.
BASELINE_NOTE = "baseline"


Watch = Callable[[Callable[[], str]], None]
"""Is given what says how much is spent at any time, and left."""


class WriteReport(Protocol):
    """Writes ``report.html`` into a run directory; ``with_plots``, its pictures as files too."""

    def __call__(self, run_dir: Path, *, with_plots: bool, advance: Advance) -> None:
        """Write it."""


@dataclass(frozen=True)
class Tuned:
    """What a run leaves behind: how it ended, and where everything is.

    ``is_in_mlflow`` says whether MLflow's view is complete; None where nothing is tracked.
    """

    summary: StudySummary
    run_dir: Path
    mlflow_run_id: str | None
    mlflow_url: str | None
    is_in_mlflow: bool | None = None


@dataclass(frozen=True, eq=False)
class Session:
    """A study that is open and ready to run; made by ``begin`` or ``reopen``.

    ``earlier_s`` is what the sessions before this one took. ``ended`` is the summary of one that
    came to the end with a verdict: where nothing is left to do, the system is not asked again.
    ``is_judged``: one did, so that its ``best.yaml`` is more than the best so far.
    ``retries_failed``: trials that failed in the searches without a part are evaluated again too.
    """

    assembly: Assembly
    study: Study
    run_dir: Path
    earlier_s: float = 0.0
    ended: StudySummary | None = None
    is_judged: bool = False
    retries_failed: bool = False

    def asked(self, arm: str) -> int:
        """Return how many trials an arm has asked for."""
        return sum(trial.arm == arm for trial in self.study.trials)

    def run(
        self,
        *,
        on_event: Callable[[Event], None],
        say: Say,
        level_of: LevelOf | None = None,
        phases: Phases | None = None,
        write_report: WriteReport | None = None,
        watch: Watch | None = None,
    ) -> Tuned:
        """Tune to the end, or until interrupted, and write everything down.

        The winner meets the held-out queries only after the search has ended. ``level_of`` is for
        the verdict: see ``Conclusion``. ``phases`` is the clock of the command that this is part
        of, and tells how far each phase is. ``write_report`` is called when all else stands in the
        run directory; MLflow is shown what it wrote. ``watch`` is told what is
        spent.
        """
        phases = phases or Phases()
        tracker = tracker_of(self.assembly.config, say)
        study, assembly = self.study, self.assembly
        is_measured = isinstance(assembly.retriever, Measures)
        budget = budget_of(assembly, study, lambda: self.earlier_s + phases.total)
        if budget.sentence:
            say(budget.sentence)
        if watch is not None:
            watch(lambda: budget.progress)
        section = assembly.config.stop
        stop = None if section is None else Stop(section.gain_below, section.within)
        conclusion = Conclusion(assembly, study, self.run_dir, say, level_of)

        def search() -> State:
            with noting_builds(assembly, study):
                try:
                    evaluator = trial_evaluator(assembly, settle(assembly, study, say))
                except OutageError as error:
                    return interrupted(study, f"the system does not answer: {error}", say)
                if why := lacking_money(budget, study):
                    return interrupted(study, why, say)
                state = run_study(
                    study,
                    assembly.plan.execution,
                    evaluator,
                    tracker=tracker,
                    on_event=pinning_best(assembly, study, self.run_dir, on_event),
                    doubt=NothingFound(assembly, study.trials),
                    limit=first_of(budget, enough(study, stop)),
                    probe=None if is_measured else partial(probe, assembly),
                )
            if state == "finished" and (why := lacking_money(budget, study)):
                return interrupted(study, why, say)
            if state != "finished" or not self._is_tested_by_parts():
                return state
            state, why = search_parts(
                assembly,
                self.run_dir,
                say=say,
                limit_of=partial(enough, stop=stop),
                probe=probe,
                retry_failed=self.retries_failed,
            )
            return state if state == "finished" else interrupted(study, why, say)

        def timed(summary: StudySummary) -> StudySummary:
            summary = replace(summary, index_wait_s=assembly.builds.seconds)
            return _timed(summary, phases, self.earlier_s)

        def sum_up(state: State) -> StudySummary:
            with phases.phase(VERDICT) as advance, watched(self._queries_asked(), advance):
                summary = self._ended(state, level_of) or conclusion.sum_up(state)
            if budget.ended and summary.spent is not None:
                summary = replace(summary, spent=replace(summary.spent, aside=budget.ended))
            return timed(summary)

        def show(summary: StudySummary) -> StudySummary:
            if self.is_judged and summary.state == "interrupted":
                say(f"{BEST_FILE} stays what was judged before; the study has not ended again")
            else:
                write_best(self.run_dir, study.header, summary, assembly.params)
            if summary.chosen is not None:
                pin_index(assembly, self.run_dir, summary.chosen.params, WINNER)
            if write_report is not None:
                with phases.phase(REPORT) as advance:
                    self._report(write_report, say, advance)
            if tracker is not None:
                with phases.phase(TRACKING) as advance:
                    finish(tracker, timed(summary), self.run_dir, say, advance)
            summary = timed(summary)
            study.note(TIMES_NOTE, **times_record(summary))
            return summary

        summary = carry_through(
            study,
            search,
            sum_up,
            tracker=tracker,
            meanwhile=searching(phases, tracker),
            afterwards=show,
        )
        return Tuned(
            summary,
            self.run_dir,
            None if tracker is None else tracker.run_id,
            None if tracker is None else tracker.run_url,
            None if tracker is None else tracker.status.is_whole,
        )

    def _is_tested_by_parts(self) -> bool:
        """Say whether a winner is to be tested, part by part: not where all choose the baseline."""
        if not self.assembly.parts:
            return False
        trials = self.study.trials
        values = utilities(self.assembly, self.run_dir / JOURNAL_FILE, trials, say=unsaid)
        winner = choose_winner(trials, values)
        return winner is not None and winner.arm != BASELINE_ARM and winner.is_feasible

    def _ended(self, state: str, level_of: LevelOf | None) -> StudySummary | None:
        """Return the summary of the session before, where this one has added nothing to it."""
        before = self.ended
        if before is None or state != "finished" or level_of is not None:
            return None
        trials, damaged = self.study.trials, list[str]()
        utilities(self.assembly, self.run_dir / JOURNAL_FILE, trials, say=damaged.append)
        is_same = sum(trial.is_told for trial in trials) == before.told_trials
        if not is_same or damaged:
            return None
        limits = self.assembly.config.budget.limits  # may have been raised since
        spent = None if before.spent is None else replace(before.spent, limits=limits)
        return replace(before, spent=spent)

    def _queries_asked(self) -> Callable[[], tuple[int, int]]:
        """Return what tells how many queries the verdict has asked, and of how many."""
        ledger, before = self.assembly.ledger, self.assembly.ledger.total.sent
        # Both on the held-out queries, and the baseline once more, to see whether it moves; what
        # is quick is not remembered, asked more often, and over before anybody looks.
        expected = 3 * len(self.assembly.deciding_queries)
        return lambda: (min(ledger.total.sent - before, expected), expected)

    def _report(self, write_report: WriteReport, say: Say, advance: Advance) -> None:
        try:
            # Pictures are for MLflow's list of files; the page draws its own.
            with_plots = self.assembly.config.tracking is not None
            write_report(self.run_dir, with_plots=with_plots, advance=advance)
        except (Exception, KeyboardInterrupt) as error:  # the study is complete without its report
            reason = str(error) or type(error).__name__
            say(f"no report ({reason}); make it with: tuner report {self.run_dir}")


def begin(assembly: Assembly, *, say: Say = unsaid, earlier: Earlier | None = None) -> Session:
    """Make the run directory of a new study, with its resolved configuration and its journal.

    It starts from ``earlier``, or from what its configuration names.

    Raises:
        InputError: the directory cannot be made, or an earlier study to start from is of something
            else.
    """
    earlier = gather(assembly, say=say) if earlier is None else earlier
    header = make_header(assembly)
    run_dir = new_run_dir(Path(assembly.config.study.runs_dir), header)
    write_opening(run_dir, assembly)
    write_earlier(run_dir, earlier)
    study = open_study(header, make_spec(assembly, earlier), run_dir)
    with closed_on_error(study):
        if assembly.baseline_tuned_on is not None:
            # The study's own copy of the configuration holds the parameters, not their file.
            study.note(BASELINE_NOTE, tuned_on=assembly.baseline_tuned_on.to_record())
        assembly = remembering(accounting(assembly, run_dir), run_dir)
        indexed = indexed_in(assembly.retriever)
        if indexed is not None and indexed.new_first is not None:
            assembly.builds.count()
        return Session(assembly, study, run_dir)


def reopen(
    run_dir: Path,
    *,
    say: Say,
    workers: int | None = None,
    retry_failed: bool = False,
    more: Sequence[Wish] = (),
    limits: Mapping[str, str] | None = None,
    phases: Phases | None = None,
) -> Session:
    """Open the study of a run directory, to go on where it stopped.

    With ``retry_failed`` the trials that failed are evaluated again. With ``more`` trials or higher
    ``limits``, such as ``{"minutes": "+30"}``, or with more in the directory's configuration, it
    goes on also where it had ended.

    Raises:
        InputError: not a run directory, another run is writing it, the data, the index or the
            configuration are not what they were, or more of it that means nothing.
    """
    content = read_journal(journal_in(run_dir))  # before its configuration is looked for
    settings = () if workers is None else (f"execution.workers={workers}",)
    config, source = load_config(run_dir / CONFIG_FILE, settings)
    config = with_more(with_what_is_known(config, content.header), content.header, more, limits)
    assembly = assemble(
        config, source, make_plan(config, source, to_run=True), say=say, phases=phases
    )
    spec = make_spec(assembly, read_earlier(run_dir))
    elapsed_s = earlier_seconds(content) + (0.0 if phases is None else phases.total)
    check_reach(remembering(assembly, run_dir), run_dir, content, elapsed_s)
    study = open_study(make_header(assembly), spec, run_dir)
    with closed_on_error(study):
        take_up(study, content.header.arms, config, run_dir / CONFIG_FILE, say=say)
        if retry_failed:
            again = len(study.retry_failed())
            which = " of the search on all queries" if assembly.parts else ""
            none = f"no trial{which} failed, so there is none to evaluate again"
            trials = f"{counted(again, 'failed trial')}{which}"
            say(f"{trials} will be evaluated again" if again else none)
        remember_indexes(assembly, study)
        session = _restored(assembly, study, run_dir, is_changed=retry_failed)
        return replace(session, retries_failed=retry_failed)


def _restored(assembly: Assembly, study: Study, run_dir: Path, *, is_changed: bool) -> Session:
    """Return the session of a study that goes on: with what those before it knew and spent.

    ``is_changed``: results that its summary was of are no longer there.
    """
    content = study.earlier
    summary = None
    with suppress(InputError):  # this run writes another one
        for note in content.notes:
            if note.get("kind") == BASELINE_NOTE:
                origin = TunedOn.from_record(note.get("tuned_on"))
                assembly = replace(assembly, baseline_tuned_on=origin)
        summary = last_summary(content)
    assembly = reopened(assembly, run_dir, summary)
    is_ended = (
        summary is not None
        and (summary.state, summary.verdict is not None) == ("finished", True)
        and not is_changed
        and _judged_by(content.header.config) == _judged_by(make_header(assembly).config)
        and (run_dir / QUERIES_FILE).is_file()
    )
    return Session(
        remembering(assembly, run_dir),
        study,
        run_dir,
        earlier_seconds(content),
        summary if is_ended else None,
        _is_judged(content),
    )


def _is_judged(content: JournalContent) -> bool:
    """Say whether a session of a study came to its end with a verdict, if not the last."""
    summaries = (note for note in content.notes if note.get("kind") == SUMMARY_NOTE)
    return any(one.get("state") == "finished" and one.get("verdict") for one in summaries)


def _judged_by(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a configuration a summary may depend on.

    Where another budget lets the search go on, its trials tell. Where it does not, the same verdict
    is not paid for again, and least of all with a smaller one.
    """
    apart = ("execution", "tracking", "budget")
    found = {name: part for name, part in config.items() if name not in apart}
    # A journal that does not say is of a time when every value was asked.
    return {"free": "off", **found}


def _timed(summary: StudySummary, phases: Phases, before_s: float) -> StudySummary:
    """Return the summary with what the command has taken so far."""
    total = phases.total
    return replace(
        summary,
        seconds=total,
        seconds_by_phase=dict(phases.seconds),
        seconds_in_all=before_s + total,
    )
