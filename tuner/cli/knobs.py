"""tuner knobs: what a kind of retriever can be tuned by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from tuner.core import registry
from tuner.core.errors import InputError, Problem

if TYPE_CHECKING:
    from tuner.retrieval.base import Knob


@click.command("knobs", short_help="What a kind of retriever can be tuned by.")
@click.argument("kind")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the retriever, such as function=my_module:search; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(kind: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Print the knobs of KIND, such as hybrid, as a table and as a `space:` section to copy.

    A knob of the stage `index` costs an index for each of its values; the others cost queries only.
    """
    from tuner.config.source import Source, with_overrides
    from tuner.systems import declared_knobs

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
            "knobs": [_record(knob) for knob in knobs],
            "space": {knob.name: mapping for knob in knobs if (mapping := _parameter(knob))},
        }
        click.echo(json.dumps(record, indent=2, ensure_ascii=False))
        return
    if not knobs:
        click.echo(f"{kind} takes whatever parameters the `space:` and the `baseline:` name")
        return
    _print(knobs)
    click.echo("\nspace:")
    for line in _space_lines(knobs):
        click.echo(line)


def _record(knob: Knob) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(knob), "choices": list(knob.choices)}


def _print(knobs: Sequence[Knob]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tuner.cli._console import console

    table = Table("knob", "kind", "default", "values", "stage", "what it is", box=None)
    for knob in knobs:
        cells = (knob.name, knob.kind, str(knob.default), _values(knob), knob.stage)
        table.add_row(*map(escape, cells), escape(knob.description))
    console().print(table)


def _values(knob: Knob) -> str:
    if knob.kind == "categorical":
        return ", ".join(map(str, knob.choices))
    low = "any" if knob.low is None else f"{knob.low:g}"
    high = "any" if knob.high is None else f"{knob.high:g}"
    return f"{low} to {high}" + (", log" if knob.scale == "log" else "")


def _parameter(knob: Knob) -> dict[str, Any] | None:
    """Return a knob as a space writes it; None where its range is open, or a single value."""
    from tuner.core.space import Categorical, Integer, Real

    if knob.kind == "categorical":
        return Categorical(knob.choices).to_mapping() if len(knob.choices) > 1 else None
    if knob.low is None or knob.high is None or knob.low >= knob.high:
        return None
    try:
        if knob.kind == "integer":
            return Integer(int(knob.low), int(knob.high), scale=knob.scale).to_mapping()
        return Real(knob.low, knob.high, scale=knob.scale).to_mapping()
    except InputError as error:  # a range that cannot be searched, such as a log scale from 0
        raise InputError(f"knob {knob.name!r}: {error}") from error


def _space_lines(knobs: Sequence[Knob]) -> Iterator[str]:
    import yaml

    for knob in knobs:
        name = yaml.safe_dump(knob.name).split("\n")[0]
        mapping = _parameter(knob)
        if mapping is None:
            is_open = knob.kind != "categorical" and None in (knob.low, knob.high)
            remark = "choose low and high" if is_open else "it has this value only"
            yield f"  # {name}: {knob.kind}, {knob.default} by default; {remark}"
            continue
        shown = yaml.safe_dump(
            mapping, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
        ).strip()
        stage = "   # an index for each value" if knob.stage == "index" else ""
        yield f"  {name}: {shown}{stage}"
