"""What a study starts from: known points, asked first, and trials of earlier studies, as history.

Where the data changed since, what they measured counts no more, but where they found it does: the
best of them are asked again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tuner.config import START_FROM
from tuner.config.params import is_point
from tuner.core.errors import InputError, TunerError
from tuner.core.files import read_lines, write_whole
from tuner.core.journal import JournalContent, read_journal
from tuner.core.json_text import json_text, read_as
from tuner.core.run_files import BEST_FILE, EARLIER_FILE, JOURNAL_FILE
from tuner.core.shown import counted
from tuner.core.steps import Say
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Params, Trial, TrialState, best_trial, params_key
from tuner.evaluation.objective import Objective
from tuner.run.assembly import Assembly
from tuner.run.known_points import known_points
from tuner.run.planning import measuring
from tuner.study.results import EARLIER_ARM
from tuner.tracking.mlflow.tracker import Mlflow

# So many of the best on other data are asked again: the champion's rivals, not the whole search.
STARTING_POINTS = 5
# What has to be equal for an earlier objective to mean the same now. The split is among them:
# a study of another split has been tuned on queries that this one holds out.
SAME = ("space", "dataset", "split", "fixed", "retriever")

# The key of a line that holds a starting point, in place of a trial.
_START = "start"


@dataclass(frozen=True)
class Earlier:
    """What a study starts from.

    Attributes:
        trials: on the same data, as history. They are scored anew by this study's objective, so
            that it may differ. Their numbers count up to -1, their arm is ``earlier``.
        starts: known points, and the parameters of the best trials on other data, best first; they
            are asked again.
    """

    trials: tuple[Trial, ...] = ()
    starts: tuple[Params, ...] = ()

    @property
    def asked(self) -> tuple[Params, ...]:
        """Return what is asked before the search, each once, by the arm ``earlier``.

        The best of the earlier trials is evaluated again, to compete with the new ones.
        """
        best = best_trial(list(self.trials))
        is_new = best is not None and best.params not in self.starts
        return (best.params, *self.starts) if best is not None and is_new else self.starts


def _never(header: StudyHeader) -> bool:  # noqa: ARG001  # the form of a rule
    return False


def gather(
    assembly: Assembly, *, say: Say, is_apart: Callable[[StudyHeader], bool] = _never
) -> Earlier:
    """Return the scored trials of the configured earlier studies, each set of parameters once.

    A trial that lacks one of the objective's metrics is left out. Where the documents, queries or
    judgements of a study were others, only its best parameters are taken. ``is_apart`` says of a
    study with another split whether it was tuned on other queries than those held out now.

    Raises:
        InputError: no such study, or one of another space, split, system or way of measuring; or
            a known point that is none of the space.
        TunerError: MLflow cannot be reached.
    """
    sources = assembly.config.start_from
    known = known_points(assembly, sources)
    if known:
        are = "is" if len(known) == 1 else "are"
        points = counted(len(known), "known point")
        say(f"{START_FROM}: {points} {are} asked before the search")
    found: dict[str, Trial] = {}
    starts: dict[str, Params] = {}
    for index, source in enumerate(sources):
        if not isinstance(source, str) or is_point(source) or source in sources[:index]:
            continue
        key = (START_FROM, index)
        content = _content(assembly, source, key)
        is_other_data = _check_same(assembly, content, source, key, is_apart)
        scored = list(_rescored(content.trials.values(), assembly.plan.objective))
        of_it = f"of {content.header.name} ({source})"
        if is_other_data:
            best = _best(assembly, scored)
            starts |= {
                params_key(params): params for params in best if params_key(params) not in starts
            }
            say(
                f"{START_FROM}: the data are others now: the best {len(best)} {of_it} are asked "
                "again"
            )
            continue
        say(f"{START_FROM}: {counted(len(scored), 'trial')} {of_it} to learn from")
        for trial in scored:
            if assembly.plan.space.contains(trial.params):
                found.setdefault(params_key(trial.params), trial)
    new = [params for key_of_it, params in starts.items() if key_of_it not in found]
    again = [*known, *(params for params in new[:STARTING_POINTS] if params not in known)]
    return Earlier(_numbered(list(found.values())), tuple(again))


def write_earlier(run_dir: Path, earlier: Earlier) -> None:
    """Keep the earlier trials in the run directory: what they came from may go away."""
    records = [trial.to_record() for trial in earlier.trials]
    records += [{_START: params} for params in earlier.starts]
    if records:
        lines = (json_text(record) + "\n" for record in records)
        write_whole(run_dir / EARLIER_FILE, "".join(lines))


def read_earlier(run_dir: Path) -> Earlier:
    """Read what ``write_earlier`` wrote; nothing where the study began cold.

    Raises:
        InputError: a line that cannot be read.
    """
    path = run_dir / EARLIER_FILE
    found = list(read_lines(path, _trial_or_start, "earlier trial", "; restore it, or remove it"))
    trials = tuple(one for one in found if isinstance(one, Trial))
    return Earlier(trials, tuple(one for one in found if not isinstance(one, Trial)))


def _trial_or_start(record: Any) -> Trial | Params:
    if _START not in record:
        return Trial.from_record(record)
    start: Params = read_as(Params, record[_START])
    return start


def _best(assembly: Assembly, scored: Sequence[Trial]) -> list[Params]:
    """Return the parameters of the best trials, best first, but for the baseline: it is asked."""
    baseline = assembly.params(assembly.baseline or {})
    left = [
        trial
        for trial in scored
        if assembly.plan.space.contains(trial.params) and assembly.params(trial.params) != baseline
    ]
    best: list[Params] = []
    while left and len(best) < STARTING_POINTS and (first := best_trial(left)) is not None:
        best.append(first.params)
        left = [trial for trial in left if trial.params not in best]
    return best


def _rescored(trials: Iterable[Trial], objective: Objective) -> Iterable[Trial]:
    for trial in trials:
        if not trial.is_scored or trial.shared_from is not None:
            continue
        try:
            score = objective.score(trial.metrics)
        except InputError:
            continue
        yield replace(
            trial,
            state=TrialState.FINISHED,
            objective=score.objective,
            violation=score.violation,
            metrics={name: trial.metrics[name] for name in objective.metric_names},
        )


def _numbered(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    first = -len(trials)
    return tuple(
        replace(trial, number=first + place, arm=EARLIER_ARM, seconds={})
        for place, trial in enumerate(trials)
    )


def _content(assembly: Assembly, source: str, key: tuple[str | int, ...]) -> JournalContent:
    folder = Path(source).expanduser()
    if (folder / JOURNAL_FILE).is_file():
        return read_journal(folder / JOURNAL_FILE)
    tracking = assembly.config.tracking
    if folder.exists() or not re.fullmatch(r"[0-9a-f]{32}", source) or tracking is None:
        message = (
            f"{source!r} is neither a run directory (with a {JOURNAL_FILE}), nor a file of "
            "parameters such as best.yaml, nor an MLflow run id"
        )
        if tracking is None:
            message += ", and there is no `tracking:` to look a run up in"
        raise InputError(message, key=key)
    with TemporaryDirectory() as temporary:
        try:
            return read_journal(Mlflow.fetch(tracking.uri, source, JOURNAL_FILE, Path(temporary)))
        except InputError:
            raise
        except TunerError as error:
            raise InputError(str(error), key=key) from error


def _check_same(
    assembly: Assembly,
    content: JournalContent,
    source: str,
    key: tuple[str | int, ...],
    is_apart: Callable[[StudyHeader], bool],
) -> bool:
    """Check that a study was of the same thing; return whether only its data were others."""
    now, then = assembly.fingerprints(), content.header.fingerprints
    changed = [name for name in SAME if then.get(name) != now.get(name)]
    config = assembly.config.model_dump(mode="json")
    if measuring(content.header.config) != measuring(config):
        changed.append("measuring")
    is_other_data = "dataset" in changed
    # The index is built of the documents; the system itself is what its section says.
    if is_other_data and content.header.config.get("retriever") == config["retriever"]:
        changed = [name for name in changed if name != "retriever"]
    if is_other_data and "split" in changed and is_apart(content.header):
        changed.remove("split")
    if is_other_data and changed == ["dataset"]:
        return True
    if changed:
        reason = {
            "space": "the search space",
            "dataset": "the data set",
            "split": "the split (seed or share of the holdout)",
            "fixed": "the parameters that are not tuned",
            "retriever": "the retriever or its index",
            "measuring": "the budget of tokens, the tokenizer or the weights of `context`",
        }
        raise InputError(
            f"{source!r} is of something else: {', '.join(reason[name] for name in changed)} "
            "changed since; its objectives would mislead. To ask its winner first, and learn from "
            f"that alone: {START_FROM}: [{Path(source) / BEST_FILE}]",
            key=key,
        )
    return False
