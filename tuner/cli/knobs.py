"""tuner knobs: what a kind of retriever can be tuned by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.completion import retrievers
from tuner.cli.out import echo
from tuner.core import registry
from tuner.core.errors import InputError, Problem
from tuner.core.json_text import json_text

if TYPE_CHECKING:
    from tuner.retrieval.build_options import BuildOption
    from tuner.retrieval.knobs import Knob


@click.command("knobs", short_help="Show what a kind of retriever can be tuned by.")
@click.argument("kind", required=False, shell_complete=retrievers)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the retriever, such as function=my_module:search. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(kind: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Show what a retriever of KIND, such as hybrid, can be tuned by.

    Its knobs are the parameters that can be tuned: they are printed as a table, and as a `space:`
    section to copy. A knob of the stage `index` needs an index for each of its values; the others
    need queries only. Between the two stand the options of the `retriever:` section, which are
    fixed for a study. Without KIND the kinds are listed.
    """
    if kind is None:
        _print_kinds(as_json=as_json)
        return
    from tuner.config.source import Source, with_overrides
    from tuner.retrieval.knobs import constraints_of, space_of
    from tuner.run.systems import declared_knobs, options_of

    options = with_overrides(Source("", {}), settings).data
    if "kind" in options:
        raise InputError("name the kind before the options: tuner knobs KIND")
    try:
        knobs = declared_knobs(kind, options)
    except InputError as error:
        if kind not in registry.kinds("retrieval"):
            raise
        hint = Problem(f"options are given as: tuner knobs {kind} --set option=value")
        raise InputError(problems=[*error.problems, hint]) from error
    if as_json:
        record = {
            "kind": kind,
            "knobs": [asdict(knob) for knob in knobs],
            "space": space_of(knobs),
            "space_constraints": constraints_of(knobs),
            "options": [_option_record(option) for option in options_of(kind)],
        }
        echo(json_text(record, indent=2))
        return
    built = options_of(kind)
    if knobs:
        _print_table(knobs)
    if all(knob.is_guess for knob in knobs):
        besides = "besides, " if knobs else ""
        echo(
            f"{besides}{kind} can be tuned by any parameters: those that `space:` and `baseline:` "
            "name"
        )
        if not knobs and any(option.name == "index" for option in built):
            echo("those of an index are the ones that `index` names: give it by --set index=…")
    if built:
        echo("\noptions of the `retriever:` section, fixed for a study:")
        _print_options(built)
    if knobs:
        _print_space(knobs)


def _print_space(knobs: Sequence[Knob]) -> None:
    from tuner.retrieval.knobs import constraints_of
    from tuner.setup.yaml_text import in_one_line

    echo("\nspace:")
    for line in _space_lines(knobs):
        echo(line)
    if constraints := constraints_of(knobs):
        echo(f"space_constraints: {in_one_line(constraints)}")


def _print_kinds(*, as_json: bool) -> None:
    kinds = {kind: registry.load("retrieval", kind) for kind in registry.kinds("retrieval")}
    told = {name: _first_words(kind.__doc__ or "") for name, kind in kinds.items()}
    if as_json:
        echo(json_text({"kinds": told}, indent=2))
        return
    from rich.table import Table

    from tuner.cli.console import console

    table = Table("kind", "what it is", box=None)
    for name, text in told.items():
        table.add_row(name, text)
    console().print(table)
    echo("\ntuner knobs KIND shows what each can be tuned by")


def _first_words(text: str) -> str:
    """Return what a docstring says first, without how the class is made."""
    first = text.strip().partition("\n")[0].replace("``", "`")
    return first.partition(";")[0].partition(". ")[0].rstrip(".")


def _option_record(option: BuildOption) -> dict[str, Any]:
    return {
        "name": option.name,
        "default": option.default,
        "is_required": option.is_required,
        "description": option.description,
    }


def _print_options(options: Sequence[BuildOption]) -> None:
    from rich.table import Table

    from tuner.cli.console import console

    table = Table("option", "default", "what it is", box=None)
    for option in options:
        default = "required" if option.is_required else _shown(option.default)
        table.add_row(option.name, default, option.description)
    console().print(table)


def _shown(default: Any) -> str:
    return "–" if default is None else str(default)


def _print_table(knobs: Sequence[Knob]) -> None:
    from rich.table import Table

    from tuner.cli.console import console

    has_conditions = any(knob.when for knob in knobs)
    conditions = ["only when"] if has_conditions else []
    columns = ("knob", "kind", "default", "values", "stage", *conditions, "what it is")
    table = Table(*columns, box=None)
    for knob in knobs:
        conditions = [_condition(knob)] if has_conditions else []
        kind = "any" if _is_unvalued(knob) else knob.kind
        cells = (knob.name, kind, _shown(knob.default), _values(knob), knob.stage, *conditions)
        table.add_row(*cells, knob.description)
    console().print(table)


def _condition(knob: Knob) -> str:
    """Say under which values of other knobs this one counts: ``mode: local, global``."""
    return "; ".join(f"{name}: {', '.join(map(str, v))}" for name, v in knob.when.items())


def _values(knob: Knob) -> str:
    if _is_unvalued(knob):
        return "any"
    if knob.kind == "categorical":
        return ", ".join(map(str, knob.choices))
    low = "any" if knob.low is None else f"{knob.low:g}"
    high = "any" if knob.high is None else f"{knob.high:g}"
    return f"{low} to {high}" + (", log" if knob.scale == "log" else "")


def _is_unvalued(knob: Knob) -> bool:
    """Say whether a parameter is known by its name alone."""
    return knob.kind == "categorical" and not knob.choices and not knob.is_open


def _space_lines(knobs: Sequence[Knob]) -> Iterator[str]:
    from tuner.retrieval.knobs import space_of
    from tuner.setup.yaml_text import in_one_line, key_text

    space = space_of(knobs)
    for knob in knobs:
        name = key_text(knob.name)
        stage = "   # an index for each value" if knob.stage == "index" else ""
        if _is_unvalued(knob):
            yield f"  # {name}: {{type: …}}{stage}"
            continue
        if knob.name not in space:
            is_open = knob.kind != "categorical" and None in (knob.low, knob.high)
            remark = "choose low and high" if is_open else "it has this value only"
            yield f"  # {name}: {knob.kind}, {knob.default} by default; {remark}"
            continue
        yield f"  {name}: {in_one_line(space[knob.name])}{stage}"
