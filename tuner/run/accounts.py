"""What a study has spent: from the ledger in its run directory, and from its trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tuner.config.budget import CostSection
from tuner.core.calls import OF_TRIALS, TRIALS
from tuner.core.journal import JournalContent
from tuner.core.ledger import NOTHING_ASKED, Asked, Ledger, key_of_evaluation
from tuner.core.spent import Spent, spent_on
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.core.trial import Trial
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.assembly import Assembly
from tuner.run.budget import Budget
from tuner.run.needs import keeps_answers, needed
from tuner.study.results import BASELINE_ARM, asked_in_trials
from tuner.study.study import Study

LEDGER_DIR = "asked"
# Below it, what was asked, and the indexes that were begun.
_QUERIES, _INDEXES = "queries", "indexes"


def accounting(assembly: Assembly, run_dir: Path) -> Assembly:
    """Let what is asked from here on be counted in the run directory, with what was before."""
    assembly.builds.ledger = _moved(assembly.builds.ledger, run_dir / LEDGER_DIR / _INDEXES)
    return replace(assembly, ledger=_moved(assembly.ledger, run_dir / LEDGER_DIR / _QUERIES))


def _moved(before: Ledger, folder: Path) -> Ledger:
    """Return a ledger in a folder, with what was added up in memory so far."""
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(folder.resolve())
    for purpose, asked in before.by_purpose().items():
        ledger.add(purpose, asked)
    return ledger


def reopened(
    assembly: Assembly, run_dir: Path, content: JournalContent, summary: StudySummary | None
) -> Assembly:
    """Go on with a run directory's ledger; where an earlier version left none, with its counts."""
    is_new = not (run_dir / LEDGER_DIR).is_dir()
    assembly = accounting(assembly, run_dir)
    if is_new:
        trials = tuple(content.trials.values())
        for key, asked in _by_trial(content.header, trials).items():
            assembly.ledger.add(TRIALS, asked, key)
        for purpose, count in (summary.queries_asked if summary is not None else {}).items():
            if purpose != TRIALS:
                assembly.ledger.add(purpose, Asked(count, count))
    return assembly


@dataclass(frozen=True)
class _Read:
    """The trials of a study that is not open."""

    trials: list[Trial]
    upcoming: Trial | None
    under_way: list[Trial] = field(default_factory=list)


def unopened_budget(
    assembly: Assembly, run_dir: Path, content: JournalContent, elapsed_s: float
) -> Budget:
    """Return the limits of a study that is not open, and what it has spent; writes nothing."""
    trials = list(content.trials.values())
    upcoming = next((trial for trial in trials if not trial.is_told), None)
    folder = run_dir / LEDGER_DIR
    ledger = Ledger(folder / _QUERIES)
    if not folder.is_dir():
        for key, asked in _by_trial(content.header, trials).items():
            ledger.add(TRIALS, asked, key)
    section, begun = assembly.config.cost, Ledger(folder / _INDEXES).total.sent
    is_remembered = isinstance(assembly.retriever, Remembered)
    return Budget(
        assembly.config.budget,
        _Read(trials, upcoming),
        ledger,
        lambda: elapsed_s,
        lambda: needed(assembly, keeps=keeps_answers(assembly)),
        None if section is None else section.cost,
        lambda: _index_money(section, trials, begun),
        keeps_answers=is_remembered,
    )


def queries_asked(assembly: Assembly, study: Study) -> dict[str, int]:
    """Return how many queries were sent, by what for; those of the trials also where none was."""
    asked = {purpose: one.sent for purpose, one in _by_purpose(assembly, study).items()}
    return {TRIALS: 0, **{purpose: count for purpose, count in asked.items() if count}}


def spent(assembly: Assembly, study: Study) -> Spent:
    """Return what a study has spent so far, in all its sessions."""
    by_key = assembly.ledger.by_key() or _by_trial(study.header, study.trials)
    baselines = [trial for trial in study.trials if trial.arm == BASELINE_ARM]
    keys = {key_of_evaluation(trial.params) for trial in baselines}
    baseline = sum((by_key.get(key, NOTHING_ASKED) for key in keys), NOTHING_ASKED)
    section = assembly.config.cost
    return spent_on(
        _by_purpose(assembly, study),
        baseline,
        cost=None if section is None else section.cost,
        indexes=assembly.builds.ledger.total.sent,
        index_money=index_money(assembly, study),
        computed=_computed(study),
        limits=assembly.config.budget.limits,
    )


def _computed(study: Study) -> int:
    """Return how many settings of free parameters were looked at beyond those that were asked."""
    return sum(
        trial.profile.looked_at - 1
        for trial in study.trials
        if trial.profile is not None and trial.shared_from is None
    )


def index_money(assembly: Assembly, study: Study) -> float:
    """Return what indexes have cost: what the system says of those it built, else by ``cost``."""
    return _index_money(assembly.config.cost, study.trials, assembly.builds.ledger.total.sent)


def _index_money(section: CostSection | None, trials: Sequence[Trial], begun: int) -> float:
    if section is None:
        return 0.0
    told: dict[str, float] = {}
    for trial in trials:
        for use in () if trial.index is None else trial.index.each:
            if use.is_new and use.money is not None:
                told[use.name] = use.money
    others = max(0, begun - len(told))
    return sum(told.values()) + float(section.per_index) * others


def budget_of(assembly: Assembly, study: Study, elapsed_s: Callable[[], float]) -> Budget:
    """Return the limits of a configured study, and what it has spent of them."""
    section = assembly.config.cost
    return Budget(
        assembly.config.budget,
        study,
        assembly.ledger,
        elapsed_s,
        lambda: needed(assembly, keeps=keeps_answers(assembly)),
        None if section is None else section.cost,
        partial(index_money, assembly, study),
        keeps_answers=isinstance(assembly.retriever, Remembered),
    )


def _by_purpose(assembly: Assembly, study: Study) -> Mapping[str, Asked]:
    """Return what was asked by what for.

    What the trials asked is as in their records where no process that evaluates has reached the
    ledger, as on machines of a cluster that do not share the run directory.
    """
    found = assembly.ledger.by_purpose()
    if any(purpose in found for purpose in OF_TRIALS):
        return found
    counts = asked_in_trials(study.header, study.trials)
    told = sum(_by_trial(study.header, study.trials).values(), NOTHING_ASKED)
    return {
        **found,
        **{purpose: Asked(count, count) for purpose, count in counts.items()},
        TRIALS: told,
    }


def _by_trial(header: StudyHeader, trials: tuple[Trial, ...] | list[Trial]) -> dict[str, Asked]:
    """Return what each trial that ended had answered, as far as its record tells."""
    found = {}
    for trial in trials:
        count = asked_in_trials(header, [trial])[TRIALS]
        tokens = count * trial.metrics.get(CONTEXT_TOKENS, 0.0)
        if count:
            found[key_of_evaluation(trial.asked)] = Asked(count, count, 0, tokens)
    return found
