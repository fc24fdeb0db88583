"""One study's runs in MLflow: what is there already, and how what is missing gets there.

Every write is safe to repeat: a run ends only after everything in it was logged, so a run that has
not ended is filled again, and what the store already holds is left alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError
from tuner.core.journal import read_journal
from tuner.core.run_files import CONFIG_FILE, JOURNAL_FILE
from tuner.core.steps import Say
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.core.trial import Trial, TrialState, best_trial
from tuner.tracking.mlflow.client import Client, FoundRun
from tuner.tracking.mlflow.note import arm_note, study_note
from tuner.tracking.mlflow.quiet import Timeouts
from tuner.tracking.mlflow.records import (
    ARM,
    IS_BEST,
    IS_WINNER,
    PARENT_RUN,
    ROLE,
    RUN_NAME,
    TRIAL,
    Curve,
    Point,
    RunContent,
    SystemSample,
    arm_content,
    finished_arm,
    finished_study,
    study_content,
    trial_content,
)
from tuner.tracking.mlflow.results import (
    RESULTS,
    describe,
    describe_experiment,
    register_winner,
    trace_queries,
    upload_result,
    uploaded,
)
from tuner.tracking.mlflow.saved_views import links
from tuner.tracking.mlflow.values import masked_header

# What a run of a trial that failed holds, and one that was evaluated anew must not.
_OF_A_FAILURE = ("tuner.error", "tuner.shared_from")


@dataclass(frozen=True)
class Target:
    """A study and the store to show it in."""

    uri: str
    experiment: str
    header: StudyHeader
    run_dir: Path
    timeouts: Timeouts

    def to_record(self) -> dict[str, Any]:
        """Return the target as a JSON-ready mapping."""
        return {**asdict(self), "header": self.header.to_record(), "run_dir": str(self.run_dir)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Target:
        """Read a target back."""
        parts = {
            "header": StudyHeader.from_record(record["header"]),
            "run_dir": Path(record["run_dir"]),
            "timeouts": Timeouts(**record["timeouts"]),
        }
        return cls(**{**record, **parts})


@dataclass
class _Arm:
    run: FoundRun
    logged_steps: Mapping[str, set[int]] = field(default_factory=dict)
    curve: Curve = field(default_factory=Curve)
    pending: list[Point] = field(default_factory=list)


def open_view(target: Target, *, say: Say) -> StudyView:
    """Connect to the store and find, or begin, the study's runs there."""
    client = Client.open(target.uri, target.experiment)
    for note in client.notes:
        say(note)
    return StudyView(client, target.header, target.run_dir)


class StudyView:
    """The runs of one study: the parent, a child for each arm, a grandchild for each trial."""

    def __init__(self, client: Client, header: StudyHeader, run_dir: Path) -> None:
        self._client = client
        self._header = header
        self._run_dir = run_dir
        self._known: dict[int, Trial] = {}
        self._superseded = _superseded(run_dir / JOURNAL_FILE)
        self.added = 0
        self.repaired = 0
        self.artifact_error: str | None = None
        found = self._survey()
        self._parent = found.get(("study", "", "")) or self._new_parent()
        self._trials = {int(key[2]): run for key, run in found.items() if key[0] == "trial"}
        names = dict.fromkeys([arm.name for arm in header.arms])
        names |= dict.fromkeys(name for role, name, _ in found if role == "arm")
        self._arms = {name: self._open_arm(name, found.get(("arm", name, ""))) for name in names}
        self._start_parent()
        self._adopt()

    @property
    def run_id(self) -> str:
        """Return the parent run's id."""
        return self._parent.run_id

    @property
    def experiment_id(self) -> str:
        """Return the id of the experiment that holds the runs."""
        return self._client.experiment_id

    def resume(self) -> None:
        """Mark the study's and the arms' runs as running again, where they had ended."""
        for run in (self._parent, *(arm.run for arm in self._arms.values())):
            if run.is_terminated:
                self._client.reopen(run.run_id)
                run.status = "RUNNING"

    def write_trial(self, trial: Trial) -> None:
        """Add one told trial, or fill in its run where that was left half-written."""
        arm = self._arm(trial.arm)
        run = self._trials.get(trial.number)
        if run is not None and run.is_terminated and _is_told_anew(run, trial):
            self._client.untag(run.run_id, [name for name in _OF_A_FAILURE if name in run.tags])
            self._set_tags(run, dict(trial_content(self._header, trial).tags))
            self._fill(run, trial, arm)
        elif run is None or not run.is_terminated:
            self._fill(run, trial, arm)

    def add_to_curve(self, trial: Trial) -> None:
        """Count a trial in its arm's curve: every one of the study, in the order of telling."""
        arm = self._arm(trial.arm)
        passed_over = self._superseded.get(trial.arm, [])
        while passed_over and passed_over[0] <= (trial.told_at or trial.asked_at):
            arm.curve = replace(arm.curve, told=arm.curve.told + 1)
            passed_over.pop(0)
        arm.curve, points = arm.curve.add(trial)
        logged = arm.logged_steps
        arm.pending += [point for point in points if point.step not in logged.get(point.name, ())]
        self._known[trial.number] = trial

    def write_curves(self) -> None:
        """Add what the trials written so far mean for the arms' convergence curves."""
        for arm in self._arms.values():
            if arm.pending:
                self._client.log(arm.run.run_id, {}, arm.pending)
                self.added += len(arm.pending)
                arm.pending = []

    def write_system(self, samples: Iterable[SystemSample]) -> None:
        """Add system metrics to the study's run."""
        began_at = self._header.created_at
        points = [point for sample in samples for point in sample.points(began_at)]
        self._client.log(self.run_id, {}, points)

    def close(self, summary: StudySummary, *, end_ms: int) -> None:
        """Add the end of the study: best and winner, the run directory's files, and the states."""
        for tag, found in ((IS_BEST, summary.best), (IS_WINNER, summary.winner)):
            self._mark(tag, None if found is None else found.trial)
        for name, arm in self._arms.items():
            best = best_trial([trial for trial in self._known.values() if trial.arm == name])
            self._finish(arm.run, finished_arm(self._header, summary, name, best, end_ms))
            describe(self._client, arm.run, arm_note(self._header, summary, name))
        for name in RESULTS:  # one by one: what cannot be stored keeps no other away
            with self._artifacts():
                self._upload(name)
        with self._artifacts("registered model"):
            self.added += register_winner(
                self._client, self.run_id, self._header, summary, self._run_dir
            )
        with self._artifacts("traces"):
            self.added += trace_queries(
                self._client, self.run_id, self._header, summary, self._run_dir
            )
        note = study_note(
            self._header,
            summary,
            files=uploaded(self._run_dir),
            links=links(self._header, self.experiment_id),
            run_dir=self._run_dir,
        )
        describe(self._client, self._parent, note)
        with self._artifacts("description"):
            describe_experiment(self._client, self._header, summary, self.run_id)
        content = finished_study(self._header, summary, end_ms)
        self._rename(content.name)
        self._finish(self._parent, content)

    def abandon(self, *, end_ms: int) -> None:
        """End what is still marked as running of a study that ended without a summary."""
        for run in (*(arm.run for arm in self._arms.values()), self._parent):
            if not run.is_terminated:
                self._client.end(run.run_id, "KILLED", end_ms)
                run.status = "KILLED"
                self.repaired += 1

    def _survey(self) -> dict[tuple[str, str, str], FoundRun]:
        """Index the runs that exist by role, arm and trial number; delete duplicates."""
        runs = self._client.runs(self._header.study_id)
        children = Counter(run.tags.get(PARENT_RUN, "") for run in runs)
        best: dict[tuple[str, str, str], FoundRun] = {}
        for run in sorted(runs, key=lambda run: _preference(run, children)):
            role = run.tags.get(ROLE, "")
            key = (role, run.tags.get(ARM, "") if role == "arm" else "", run.tags.get(TRIAL, ""))
            if key in best:
                # Made by a request that was given up although the server carried it out.
                self._client.delete(run.run_id)
                self.repaired += 1
            else:
                best[key] = run
        return best

    def _new_parent(self) -> FoundRun:
        self.added += 1
        return self._client.create(study_content(self._header), None)

    def _start_parent(self) -> None:
        content = study_content(self._header)
        self._log_missing(self._parent, content)
        self._set_tags(self._parent, _budgets(content))
        if self._parent.tags.get("tuner.described") == "true":
            return
        self._client.log_dataset(self.run_id, self._header)
        with self._artifacts("views"):
            self._client.save_views(self._header)
        records: dict[str, dict[str, Any]] = {
            "environment.json": dict(self._header.versions),
            "study.json": masked_header(self._header),
        }
        if not (self._run_dir / CONFIG_FILE).is_file():
            records[CONFIG_FILE] = records["study.json"]["config"]
        with self._artifacts():
            self._upload(CONFIG_FILE)
            for name, record in records.items():
                self._client.log_json(self.run_id, record, name)
            self._set_tags(self._parent, {"tuner.described": "true"})

    def _upload(self, name: str) -> None:
        upload_result(self._client, self.run_id, self._header, self._run_dir, name)

    @contextmanager
    def _artifacts(self, what: str = "artifacts") -> Iterator[None]:
        # Artifacts may live in another store than the runs; that one's trouble stops no trial.
        try:
            yield
        except Exception as error:
            self.artifact_error = self.artifact_error or f"{what}: {error}"

    def _open_arm(self, name: str, run: FoundRun | None) -> _Arm:
        content = arm_content(self._header, name)
        if run is None:
            self.added += 1
            run = self._client.create(content, self.run_id)
            self._log_missing(run, content)
            return _Arm(run)
        self._log_missing(run, content)
        self._set_tags(run, _budgets(content))
        steps: dict[str, set[int]] = {
            metric: self._client.steps(run.run_id, metric)
            for metric in ("objective", "best_so_far")
            if metric in run.metrics
        }
        return _Arm(run, steps)

    def _arm(self, name: str) -> _Arm:
        if name not in self._arms:
            self._arms[name] = self._open_arm(name, None)
        return self._arms[name]

    def _adopt(self) -> None:
        """Hang children under the run that stands for their parent, where it is another one."""
        for arm in self._arms.values():
            self._set_tags(arm.run, {PARENT_RUN: self.run_id})
        for run in self._trials.values():
            arm_name = run.tags.get(ARM, "")
            if arm_name in self._arms:
                self._set_tags(run, {PARENT_RUN: self._arms[arm_name].run.run_id})

    def _fill(self, run: FoundRun | None, trial: Trial, arm: _Arm) -> None:
        content = trial_content(self._header, trial)
        if run is None:
            run = self._client.create(content, arm.run.run_id)
            self._trials[trial.number] = run
            self.added += 1
        else:
            self.repaired += 1
        self._log_missing(run, content)
        if content.long_params:
            with self._artifacts():
                self._client.log_json(run.run_id, dict(content.long_params), "long_params.json")
        self._client.end(run.run_id, content.status, content.end_ms)
        run.status = content.status

    def _log_missing(self, run: FoundRun, content: RunContent) -> None:
        """Log the params and metrics that the run lacks or, for metrics, holds another value of."""
        params = {key: value for key, value in content.params.items() if key not in run.params}
        metrics = {
            name: value for name, value in content.metrics.items() if run.metrics.get(name) != value
        }
        time_ms = content.start_ms if content.end_ms is None else content.end_ms
        points = [Point(name, value, 0, time_ms) for name, value in metrics.items()]
        if params or points:
            self._client.log(run.run_id, params, points)
            run.params |= params
            run.metrics |= metrics

    def _set_tags(self, run: FoundRun, tags: Mapping[str, str]) -> None:
        changed = {name: value for name, value in tags.items() if run.tags.get(name) != value}
        if changed:
            self._client.tag(run.run_id, changed)
            run.tags |= changed

    def _mark(self, tag: str, number: int | None) -> None:
        """Tag the run of one trial, and no other's; None: no trial's."""
        for trial_number, run in self._trials.items():
            if trial_number == number:
                self._set_tags(run, {tag: "true"})
            elif run.tags.get(tag) == "true":
                self._set_tags(run, {tag: "false"})

    def _rename(self, name: str) -> None:
        """Name the study's run, unless somebody has given it another name than one of ours."""
        ours = study_content(self._header).name
        current = self._parent.tags.get(RUN_NAME, ours)
        if current != name and (current == ours or current.endswith(f" · {ours}")):
            self._client.rename(self.run_id, name)
            self._parent.tags[RUN_NAME] = name

    def _finish(self, run: FoundRun, content: RunContent) -> None:
        self._set_tags(run, content.tags)
        # A param cannot change once it is logged, so those of best and winner of a study that may
        # be continued stay in tags (tuner.best.*, tuner.winner.*), which can.
        is_final = content.status == "FINISHED"
        of_before = {
            name.partition(".")[0]
            for name, value in content.params.items()
            if run.params.get(name, value) != value
        }
        self._set_tags(
            run,
            {
                f"tuner.{name}_params": f"continued since: see the tags tuner.{name}.*"
                for name in of_before
            },
        )
        self._log_missing(run, content if is_final else replace(content, params={}))
        if content.long_params:
            with self._artifacts():
                self._client.log_json(run.run_id, dict(content.long_params), "long_params.json")
        if run.status != content.status:
            self._client.end(run.run_id, content.status, content.end_ms)
            run.status = content.status


def _budgets(content: RunContent) -> dict[str, str]:
    """Return the tags that change where a study is given more trials."""
    return {name: tag for name, tag in content.tags.items() if name.startswith("tuner.budget")}


def _is_told_anew(run: FoundRun, trial: Trial) -> bool:
    """Say whether a run shows a failure that another result has taken the place of."""
    if run.tags.get("tuner.state") != TrialState.FAILED.value:
        return False
    return trial.state is not TrialState.FAILED or run.tags.get("tuner.error") != trial.error


def _preference(run: FoundRun, children: Mapping[str, int]) -> tuple[int, bool, int, str]:
    """Sort first the duplicate to keep: with most children, ended, oldest."""
    return (-children.get(run.run_id, 0), not run.is_terminated, run.start_ms, run.run_id)


def _superseded(journal: Path) -> dict[str, list[float]]:
    """Return, by arm, when results were told that a later one took the place of, in order.

    They count in an arm's curve, whose steps are the order of telling.
    """
    times: dict[str, list[float]] = defaultdict(list)
    with suppress(InputError):  # whoever opens the study says what is wrong with its journal
        for trial in read_journal(journal).superseded:
            times[trial.arm].append(trial.told_at or trial.asked_at)
    return {arm: sorted(found) for arm, found in times.items()}
