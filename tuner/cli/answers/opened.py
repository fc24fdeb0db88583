"""What ``tuner answers`` is given: a study or a configuration, and a function or files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.cli.options import load
from tuner.core.errors import InputError
from tuner.core.run_files import CONFIG_FILE
from tuner.core.steps import Phases
from tuner.run.progress import progress_for

if TYPE_CHECKING:
    from tuner.answers.answerer import Answerer
    from tuner.core.journal import JournalContent

KEPT = "replies.jsonl"


def opened(source: str, settings: tuple[str, ...]) -> tuple[Any, JournalContent | None, Path]:
    """Open a study or a configuration; return where its answers are kept, too.

    Raises:
        InputError: it is neither, or something changed since the study was run.
    """
    from tuner.run.folder import read_run, remembering
    from tuner.run.judged_policy import check_same_data

    run_dir = Path(source)
    content = read_run(run_dir)[0] if run_dir.is_dir() else None
    if content is not None and settings:
        raise InputError("--set is for a CONFIG; a study is taken as it was run")
    config = source if content is None else str(run_dir / CONFIG_FILE)
    with progress_for() as progress:
        phases = Phases(progress.step)
        assembly = load(config, settings, say=progress.say, phases=phases)
        if content is not None:
            check_same_data(content.header, assembly)
    folder = run_dir
    if content is None:
        study = assembly.config.study
        folder = Path(study.runs_dir) / f"{study.name}-answers"
        folder.mkdir(parents=True, exist_ok=True)
    return remembering(assembly, folder), content, folder


def function_of(name: str) -> Answerer:
    """Import the function that answers.

    Raises:
        InputError: there is none of that name, or it is a file.
    """
    from tuner.answers.answerer import Answerer

    if ":" not in name:
        raise InputError(f"--answers {name}: name a function as module:function")
    return Answerer.load(name)


def files_of(answers: Sequence[str]) -> list[Path]:
    """Return the files that are named; none where a function is.

    Raises:
        InputError: a file that does not exist, or both.
    """
    found = [name for name in answers if Path(name).expanduser().is_file()]
    for name in answers:
        if name not in found and (":" not in name or name.endswith((".jsonl", ".json"))):
            raise InputError(
                f"--answers {name}: there is no such file; write FILE.jsonl, or module:function"
            )
    if found and len(found) < len(answers):
        raise InputError("--answers: give files, or one function, not both")
    if not found and len(answers) > 1:
        raise InputError("--answers: give one function; its quality is what is compared with")
    return [Path(name).expanduser() for name in found]
