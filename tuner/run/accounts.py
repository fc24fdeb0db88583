"""What a study has spent: from the ledger in its run directory, and from its trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tuner.config.budget import CostSection
from tuner.core.calls import OF_TRIALS, TIMED_IN_TRIALS, TRIALS
from tuner.core.journal import JournalContent
from tuner.core.ledger import NOTHING_ASKED, Asked, Ledger, key_of_evaluation
from tuner.core.money import priced, total
from tuner.core.spent import Spent, spent_on
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.core.trial import Trial
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.assembly import Assembly
from tuner.run.budget import Budget, HasTrials, Need, ReadTrials
from tuner.run.needs import keeps_answers, needed
from tuner.study.results import BASELINE_ARM, asked_in_trials
from tuner.study.study import Study

LEDGER_DIR = "asked"
# Below it, what was asked, the indexes that were begun, and what was asked by other commands.
_QUERIES, _INDEXES, _BESIDE = "queries", "indexes", "beside"


def accounting(assembly: Assembly, run_dir: Path) -> Assembly:
    """Let what is asked from here on be counted in the run directory, with what was before."""
    assembly.builds.ledger = _moved(assembly.builds.ledger, run_dir / LEDGER_DIR / _INDEXES)
    return replace(assembly, ledger=_moved(assembly.ledger, run_dir / LEDGER_DIR / _QUERIES))


def accounting_beside(assembly: Assembly, run_dir: Path) -> Assembly:
    """Let what a further command asks for a run be counted there, apart from what the run spent."""
    return replace(assembly, ledger=_moved(assembly.ledger, run_dir / LEDGER_DIR / _BESIDE))


def _moved(before: Ledger, folder: Path) -> Ledger:
    """Return a ledger in a folder, with what was added up in memory so far."""
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(folder.resolve())
    for purpose, asked in before.by_purpose().items():
        ledger.add(purpose, asked)
    return ledger


def reopened(assembly: Assembly, run_dir: Path, summary: StudySummary | None) -> Assembly:
    """Go on with a run directory's ledger; where an earlier version left none, with its counts."""
    is_new = not (run_dir / LEDGER_DIR).is_dir()
    assembly = accounting(assembly, run_dir)
    if is_new and summary is not None:
        for purpose, count in summary.queries_asked.items():
            if purpose not in OF_TRIALS:
                assembly.ledger.add(purpose, Asked(count, count))
    return assembly


@dataclass(frozen=True, eq=False)
class Books:
    """What a study has asked: by its ledger, and by the records of trials that are not in there.

    Those ran where the run directory is not seen, as on other machines of a cluster: of them it is
    known what they had answered, once they are told.
    """

    ledger: Ledger
    header: StudyHeader
    study: HasTrials
    _keys: dict[int, str] = field(default_factory=dict)

    @property
    def total(self) -> Asked:
        """Return all that was asked so far."""
        return sum(self.by_purpose().values(), NOTHING_ASKED)

    def by_key(self) -> Mapping[str, Asked]:
        """Return what was asked so far by evaluation."""
        known = self.ledger.by_key()
        return {**known, **{self._key(trial): asked for trial, asked, _ in self._besides(known)}}

    def by_purpose(self) -> Mapping[str, Asked]:
        """Return what was asked so far, by what for."""
        found = dict(self.ledger.by_purpose())
        for _, asked, timed in self._besides(self.ledger.by_key()):
            found[TRIALS] = found.get(TRIALS, NOTHING_ASKED) + asked
            if timed:
                besides = found.get(TIMED_IN_TRIALS, NOTHING_ASKED)
                found[TIMED_IN_TRIALS] = besides + Asked(timed, timed)
        return found

    def _besides(self, known: Mapping[str, Asked]) -> Iterator[tuple[Trial, Asked, int]]:
        """Yield the trials that the ledger has not heard of: what was asked, and what timed."""
        for trial in self.study.trials:
            if self._key(trial) in known:
                continue
            counts = asked_in_trials(self.header, [trial])
            if count := counts[TRIALS]:
                tokens = count * trial.metrics.get(CONTEXT_TOKENS, 0.0)
                yield trial, Asked(count, count, 0, tokens), counts.get(TIMED_IN_TRIALS, 0)

    def _key(self, trial: Trial) -> str:
        if trial.number not in self._keys:
            self._keys[trial.number] = key_of_evaluation(trial.asked)
        return self._keys[trial.number]


def books_of(assembly: Assembly, study: Study) -> Books:
    """Return what an open study has asked."""
    return Books(assembly.ledger, study.header, study)


def unopened_budget(
    assembly: Assembly, run_dir: Path, content: JournalContent, elapsed_s: float
) -> Budget:
    """Return the limits of a study that is not open, and what it has spent; writes nothing."""
    study, folder = ReadTrials(list(content.trials.values())), run_dir / LEDGER_DIR
    begun = Ledger(folder / _INDEXES)
    books = Books(Ledger(folder / _QUERIES), content.header, study)
    return _budget(assembly, study, books, begun, lambda: elapsed_s)


def queries_asked(assembly: Assembly, study: Study) -> dict[str, int]:
    """Return how many queries were sent, by what for; those of the trials also where none was."""
    asked = {purpose: one.sent for purpose, one in books_of(assembly, study).by_purpose().items()}
    return {TRIALS: 0, **{purpose: count for purpose, count in asked.items() if count}}


def spent(assembly: Assembly, study: Study) -> Spent:
    """Return what a study has spent so far, in all its sessions."""
    books = books_of(assembly, study)
    by_key = books.by_key()
    baselines = [trial for trial in study.trials if trial.arm == BASELINE_ARM]
    keys = {key_of_evaluation(trial.params) for trial in baselines}
    baseline = sum((by_key.get(key, NOTHING_ASKED) for key in keys), NOTHING_ASKED)
    section = assembly.config.cost
    return spent_on(
        books.by_purpose(),
        baseline,
        cost=None if section is None else section.cost,
        indexes=assembly.builds.ledger.total.sent,
        index_money=_index_money(section, study.trials, assembly.builds.ledger.total.sent),
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


def _index_money(section: CostSection | None, trials: Sequence[Trial], begun: int) -> float:
    """Return what indexes have cost: what the system says of those it built, else by ``cost``."""
    if section is None:
        return 0.0
    told: dict[str, float] = {}
    for trial in trials:
        for use in () if trial.index is None else trial.index.each:
            if use.is_new and use.money is not None:
                told[use.name] = use.money
    others = max(0, begun - len(told))
    return total([*told.values(), priced(float(section.per_index), others)])


def budget_of(assembly: Assembly, study: Study, elapsed_s: Callable[[], float]) -> Budget:
    """Return the limits of a configured study, and what it has spent of them."""
    books = books_of(assembly, study)
    return _budget(assembly, study, books, assembly.builds.ledger, elapsed_s)


def _budget(
    assembly: Assembly,
    study: HasTrials,
    books: Books,
    begun: Ledger,
    elapsed_s: Callable[[], float],
) -> Budget:
    section = assembly.config.cost

    def need() -> Need:
        baselines = (trial.params for trial in study.trials if trial.arm == BASELINE_ARM)
        return needed(assembly, keeps=keeps_answers(assembly), baseline=next(baselines, None))

    return Budget(
        assembly.config.budget,
        study,
        books,
        elapsed_s,
        need,
        None if section is None else section.cost,
        lambda: _index_money(section, study.trials, begun.total.sent),
        keeps_answers=isinstance(assembly.retriever, Remembered),
    )
