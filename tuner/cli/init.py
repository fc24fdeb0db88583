"""tuner init: a first configuration from a data set and a system."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tuner.cli.options import note, showing
from tuner.cli.out import echo
from tuner.core.errors import InputError, Problem, TunerError
from tuner.core.shown import counted

if TYPE_CHECKING:
    from tuner.core.trial import Params
    from tuner.setup.data import FoundData
    from tuner.setup.system import FoundSystem

FILE = "tuner.yaml"
_PARAMETERS = "Parameters that it takes, with today's values, such as: top_k=10 alpha=0.5"
_NOT_WRITTEN = (
    "nothing was written: options of the retriever are given by --set OPTION=VALUE, what a "
    "parameter is set to today by --baseline NAME=VALUE"
)
Found = TypeVar("Found")


@click.command("init", short_help="Write a first configuration, asked or by options.")
@click.argument("file", default=FILE, metavar="[FILE]")
@click.option("--dataset", metavar="PATH", help="A folder or file of data, or builtin:atlas.")
@click.option(
    "--retriever",
    "retrievers",
    multiple=True,
    metavar="SYSTEM",
    help="What is tuned: a kind such as hybrid, module:function, a URL, a folder of LightRAG or "
    "GraphRAG, a command line, or, given more than once, run files. By default the built-in "
    "engine, hybrid.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the retriever, such as embedder=my_models:embed. May be repeated.",
)
@click.option(
    "--baseline",
    "today",
    multiple=True,
    metavar="NAME=VALUE",
    help="What a parameter is set to today, such as top_k=10. May be repeated.",
)
@click.option("-y", "--yes", is_flag=True, help="Ask nothing; take what can be found.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def command(
    file: str,
    dataset: str | None,
    retrievers: tuple[str, ...],
    settings: tuple[str, ...],
    today: tuple[str, ...],
    yes: bool,
    force: bool,
) -> None:
    """Look at a data set and a system, and write a configuration with comments to FILE.

    In a terminal it asks for what is not given; with --yes, or without a terminal, it asks nothing,
    and what it cannot find is an error. What it writes has passed `tuner check`. FILE is tuner.yaml
    where it is left out; one that is there is kept, unless you give --force.
    """
    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    target = Path(file)
    _refuse_target(target, force=force, asks=asks)
    from tuner.config.source import Source, with_overrides
    from tuner.setup.writing import Draft, study_name

    options = with_overrides(Source("", {}), settings).data
    params = _values(today)
    data = _data(dataset, asks=asks)
    system = _system(retrievers, options, params, target.parent, data, asks=asks)
    draft = Draft(
        study_name(Path(data.path.rpartition(":")[2]).stem, data.dataset.name), data, system
    )
    _write(target, draft.text)
    echo(f"{file} is written: {_summary(draft)}")
    echo("")
    echo(f"tuner check {file} --probe   how long a study takes, and what it asks")
    echo(f"tuner run {file}             the study itself")


def _refuse_target(target: Path, *, force: bool, asks: bool) -> None:
    """Keep a file that is there, unless the user says otherwise."""
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file in it: {target / FILE}")
    if not target.exists() or force:
        return
    if asks and click.confirm(f"{target} is there. Write over it?", default=False, err=True):
        return
    raise InputError(f"{target} is there; write over it by --force, or name another file")


def _data(dataset: str | None, *, asks: bool) -> FoundData:
    from tuner.setup.data import find_data, near

    def found(path: str) -> FoundData:
        with showing("reading") as advance:
            return find_data(path, advance)

    if dataset is not None:
        data = found(dataset)
    else:
        places = near(Path())
        if asks:
            if len(places) > 1:
                note(f"data sets here: {', '.join(places)}")
            question = "Data set, a folder or a file with documents and judged queries"
            data = _asked(question, places[0] if places else "builtin:atlas", found)
        elif len(places) == 1:
            data = found(places[0])
        else:
            here = f"there are {', '.join(places)}" if places else "none is in this folder"
            raise InputError(
                f"which data set? {here}; give --dataset PATH (builtin:atlas ships with the tuner)"
            )
    note(f"data set {data.path}: {data.told}")
    for warning in data.warnings():
        note(f"warning: {warning}")
    return data


def _system(
    retrievers: Sequence[str],
    options: dict[str, Any],
    today: Params,
    folder: Path,
    data: FoundData,
    *,
    asks: bool,
) -> FoundSystem:
    from tuner.setup.recognising import find_system, tells_no_knobs
    from tuner.setup.system import ENGINE, names_of

    def look(named: Sequence[str]) -> FoundSystem:
        given = dict(today)
        if asks and not given and tells_no_knobs(named):
            given = click.prompt(_PARAMETERS, value_proc=_parameters, err=True)
        return find_system(named, options, given, folder, data.dataset)

    def found(text: str) -> FoundSystem:
        return look([text])

    if retrievers:
        system = look(retrievers)
    elif asks:
        question = (
            "System to tune: a kind such as hybrid, module:function, a URL, a folder of LightRAG "
            "or GraphRAG, or a command line"
        )
        system = _asked(question, ENGINE, found)
    else:
        system = found(ENGINE)
    if not system.searched:
        raise InputError(
            f"nothing to tune is known of {system.told}: name its parameters with today's values, "
            "--baseline top_k=10"
        )
    note(f"system {system.kind}: {system.told}")
    note(f"searched: {names_of(system.searched)}")
    return system


def _values(settings: Sequence[str]) -> Params:
    """Read ``name=value`` of parameters, whose names may have dots.

    Raises:
        InputError: no such form, or a value that no parameter can have.
    """
    from tuner.config.source import Source, with_overrides

    values: Params = {}
    for setting in settings:
        name, separator, text = (part.strip() for part in setting.partition("="))
        if not separator or not name:
            raise InputError(f"--baseline {setting}: write it as name=value, such as top_k=10")
        value = with_overrides(Source("", {}), [f"value={text}"]).data["value"]
        if not isinstance(value, bool | int | float | str | None):
            raise InputError(
                f"--baseline {setting}: a parameter is a number, a text or true or false"
            )
        values[name] = value
    return values


def _parameters(text: str) -> Params:
    """Read what was typed in answer to ``_PARAMETERS``."""
    words = text.replace(",", " ").split()
    if not words or not all(re.fullmatch(r"[^=]+=.+", word) for word in words):
        raise click.UsageError(f"write name=value, with spaces between, not {text!r}")
    return _values(words)


def _asked(question: str, default: str, found: Callable[[str], Found]) -> Found:
    """Ask until an answer can be used."""

    def taken(text: str) -> Found:
        try:
            return found(text.strip())
        except TunerError as error:
            raise click.UsageError(str(error)) from error

    answer: Found = click.prompt(question, default=default, value_proc=taken, err=True)
    return answer


def _write(target: Path, text: str) -> None:
    """Write the configuration where it passes the check."""
    from tuner.core.files import write_whole
    from tuner.core.steps import Phases
    from tuner.run.progress import progress_for
    from tuner.setup.checked import check

    with progress_for() as progress:
        phases = Phases(progress.step)
        try:
            check(text, str(target), say=progress.say, phases=phases)
        except InputError as error:
            raise InputError(problems=[*error.problems, Problem(_NOT_WRITTEN)]) from error
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, text)


def _summary(draft: Any) -> str:
    searched, others = len(draft.system.searched), len(draft.system.others)
    more = f", {others} more as comments" if others else ""
    return f"{counted(searched, 'parameter')} to search{more}"
