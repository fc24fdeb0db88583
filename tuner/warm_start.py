"""Warm start: trials of earlier studies of the same thing, as history that costs nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tuner.assemble import Assembly
from tuner.core.errors import InputError, TunerError
from tuner.core.files import write_whole
from tuner.core.json_text import json_text
from tuner.core.run_files import EARLIER_FILE, JOURNAL_FILE
from tuner.core.trial import Trial, TrialState
from tuner.evaluation.objective import Objective
from tuner.study.reading import JournalContent, read_journal
from tuner.tracking.mlflow import Mlflow

EARLIER_ARM = "earlier"
# What has to be equal for an earlier objective to mean the same now. The split is among them:
# a study of another split has been tuned on queries that this one holds out.
_SAME = ("space", "dataset", "split", "fixed", "retriever")

Say = Callable[[str], None]


def gather(assembly: Assembly, *, say: Say) -> list[Trial]:
    """Return the scored trials of the configured earlier studies, each set of parameters once.

    They are scored anew by this study's objective, so that it may differ; a trial that lacks one
    of its metrics is left out. Their numbers count up to -1, their arm is ``earlier``.

    Raises:
        InputError: no such study, or one of another space, data set, split or index.
        TunerError: MLflow cannot be reached.
    """
    sources = list(dict.fromkeys(assembly.config.warm_start))
    found: dict[str, Trial] = {}
    for index, source in enumerate(sources):
        key = ("warm_start", index)
        content = _content(assembly, source, key)
        _check_same(assembly, content, source, key)
        scored = list(_rescored(content.trials.values(), assembly.plan.objective))
        say(f"warm start: {len(scored)} trials of {content.header.name} ({source})")
        for trial in scored:
            if assembly.plan.space.contains(trial.params):
                found.setdefault(json.dumps(trial.params, sort_keys=True), trial)
    return _numbered(list(found.values()))


def write_earlier(run_dir: Path, trials: Sequence[Trial]) -> None:
    """Keep the earlier trials in the run directory: what they came from may go away."""
    if trials:
        lines = (json_text(trial.to_record()) + "\n" for trial in trials)
        write_whole(run_dir / EARLIER_FILE, "".join(lines))


def read_earlier(run_dir: Path) -> list[Trial]:
    """Read what ``write_earlier`` wrote; ``[]`` where the study began cold.

    Raises:
        InputError: a line that cannot be read.
    """
    path = run_dir / EARLIER_FILE
    if not path.is_file():
        return []
    trials = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            trials.append(Trial.from_record(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            message = f"not an earlier trial: {error}"
            raise InputError(message, file=str(path), line=number) from error
    return trials


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


def _numbered(trials: Sequence[Trial]) -> list[Trial]:
    first = -len(trials)
    return [
        replace(trial, number=first + place, arm=EARLIER_ARM, seconds={})
        for place, trial in enumerate(trials)
    ]


def _content(assembly: Assembly, source: str, key: tuple[str | int, ...]) -> JournalContent:
    folder = Path(source).expanduser()
    if (folder / JOURNAL_FILE).is_file():
        return read_journal(folder / JOURNAL_FILE)
    tracking = assembly.config.tracking
    if folder.exists() or not re.fullmatch(r"[0-9a-f]{32}", source) or tracking is None:
        message = (
            f"{source!r} is neither a run directory (with a {JOURNAL_FILE}) nor an MLflow run id"
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
    assembly: Assembly, content: JournalContent, source: str, key: tuple[str | int, ...]
) -> None:
    now, then = assembly.fingerprints(), content.header.fingerprints
    changed = [name for name in _SAME if then.get(name) != now.get(name)]
    measuring = _measuring(assembly.config.model_dump(mode="json"))
    if _measuring(content.header.config) != measuring:
        changed.append("measuring")
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
            "changed since; its objectives would mislead",
            key=key,
        )


def _measuring(config: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return what decides the values of metrics, besides their names."""
    context = {name: v for name, v in (config.get("context") or {}).items() if v is not None}
    return (config.get("objective") or {}).get("budget_tokens"), context
