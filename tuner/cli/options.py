"""Arguments and options that several commands share."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tuner.cli.completion import files
from tuner.cli.out import echo
from tuner.core.errors import InputError
from tuner.core.shown import counted
from tuner.core.steps import INDEX, START, Advance, Phases, Say, duration
from tuner.run.progress import progress_for

_WRITE = 'write for example \'{"graph_weight": 0.6, "top_k": 10}\''
_PICTURES = (".pdf", ".png", ".svg")
BASELINE = "baseline"

config_argument = click.argument("config", metavar="CONFIG", shell_complete=files)

set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override one value, such as study.seed=7. May be repeated.",
)


def baseline_is_default(
    ctx: click.Context,  # noqa: ARG001  # click's signature
    param: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> str | None:
    """Take the word ``baseline`` for an option's default, where that is the baseline."""
    return None if value is not None and value.strip() == BASELINE else value


class FiniteRange(click.FloatRange):
    """A number in a range: click's own lets NaN through, as it compares with no bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; a value that is none, not finite or out of range is refused."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def load(
    config: str,
    settings: tuple[str, ...],
    *,
    say: Say,
    phases: Phases | None = None,
    to_run: bool = False,
) -> Any:
    """Read, check and assemble a configuration; see ``tuner.run.assembly``."""
    phases = phases or Phases()
    with phases.phase(START):  # to import what the study needs takes seconds on a busy machine
        from tuner.config import load_config
        from tuner.run.assembly import assemble
        from tuner.run.planning import make_plan

        loaded, source = load_config(config, settings)
        plan = make_plan(loaded, source, to_run=to_run)
    return assemble(loaded, source, plan, say=say, phases=phases)


def load_shown(config: str, settings: tuple[str, ...], *, to_run: bool = False) -> Any:
    """Load a configuration, and show how far reading and indexing are where they take long."""
    with progress_for() as progress:
        phases = Phases(progress.step)
        return load(config, settings, say=progress.say, phases=phases, to_run=to_run)


@contextmanager
def showing(phase: str) -> Iterator[Advance]:
    """Show how far a block is, where it takes long."""
    with progress_for() as progress, Phases(progress.step).phase(phase) as advance:
        yield advance


def have_ready(assembly: Any, *choices: Any) -> None:
    """Have the indexes that choices need built, show how far that is, and say what they took."""
    from tuner.core.index_costs import size

    for choice in choices:
        before = assembly.builds.seconds
        with showing(INDEX) as advance:
            use = assembly.ready(choice, advance)
        for one in () if use is None else use.each:
            # That of the baseline was built, and shown, when the configuration was loaded.
            if one.is_new and assembly.builds.seconds > before:
                took = f"{duration(one.seconds)} and {size(one.megabytes)}"
                note(f"an index of {counted(one.documents, 'document')} was built: {took}")


def note(message: str) -> None:
    """Print a line for people, apart from the output."""
    echo(message, err=True)


def check_plot(path: Path) -> None:
    """Check ahead of the measuring that a picture can be written.

    Raises:
        InputError: another kind of file, or no such folder.
    """
    if path.suffix.lower() not in _PICTURES:
        raise InputError(f"--plot {path}: write a file that ends in {', '.join(_PICTURES)}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"--plot {path}: there is no folder {path.parent}")


def read_params(text: str, option: str) -> dict[str, Any]:
    """Read what stands after ``option``: a file's parameters are its ``params``, or all of it.

    Raises:
        InputError: not JSON, no such file, a run directory without a result, or no mapping.
    """
    from tuner.config.params import is_json, read_params_file

    if not text.strip():
        raise InputError(f"{option} is empty; {_WRITE}, or name a file or a run directory")
    return _from_json(text, option) if is_json(text) else read_params_file(text)


def _from_json(text: str, option: str) -> dict[str, Any]:
    try:
        params = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"{option} is not valid JSON: {reason}{place}; {_WRITE}") from error
    if not isinstance(params, dict):
        raise InputError(f"{option} must be a JSON object of parameters, got a list; {_WRITE}")
    return params
