"""Writes into the documents what they tell of the program, from the program itself.

    python docs/generate.py

renews what stands between ``<!-- generated: NAME -->`` and ``<!-- end of generated -->`` in
``docs/configuration.md``, ``docs/commands.md`` and ``docs/metrics.md``; what is around it is
written by hand. It renews ``configs/schema.json`` too. ``tests/docs/test_generated.py`` fails where
one of them is stale.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import yaml

from tuner.abtest.experiment import ExperimentConfig
from tuner.cli import tuner as command_line
from tuner.config import Config
from tuner.evaluation.system_metrics import SYSTEM_METRICS, is_better_lower
from tuner.metrics.names import descriptions, known_names, parse
from tuner.scoring.answer_metrics import SIMILARITIES

ROOT = Path(__file__).resolve().parents[1]
_PART = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)


def main() -> None:
    """Write every file that has changed, and name it."""
    for name, text in generated().items():
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{name} is new\n")


def generated() -> dict[str, str]:
    """Return the whole text of every file with generated parts, by its path below the root."""
    parts = {
        "docs/configuration.md": configuration_parts(),
        "docs/commands.md": command_parts(),
        "docs/metrics.md": metric_parts(),
    }
    texts = {name: filled(name, found) for name, found in parts.items()}
    schema = json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False)
    return {**texts, "configs/schema.json": f"{schema}\n"}


def filled(name: str, parts: Mapping[str, Iterable[str]]) -> str:
    """Return a page with every part in its place."""
    page = (ROOT / name).read_text(encoding="utf-8")
    places = [found[1] for found in _PART.findall(page)]
    if sorted(places) != sorted(parts):
        wrong = sorted(set(places) ^ set(parts)) or "a name twice"
        raise SystemExit(
            f"{name}: the marks <!-- generated: NAME --> lack or have too many: {wrong}"
        )
    texts = {place: "\n".join(lines).strip("\n") for place, lines in parts.items()}
    return _PART.sub(lambda found: f"{found[1]}\n{texts[found[2]]}\n\n{found[3]}", page)


# How a page is written


def code(text: object) -> str:
    """Return a text as code; a bar would end the cell of a table."""
    written = str(text)
    if "|" not in written:
        return f"`{written}`"
    return f"<code>{written.replace('<', '&lt;').replace('|', '&#124;')}</code>"


def sentence(text: str) -> str:
    """Return a text with a capital letter, unless it begins with a name, and a full stop."""
    text = " ".join(text.split()).replace("|", "&#124;")
    is_name = re.search(r"[_.:`/\d]", text.partition(" ")[0])
    begun = text if is_name else text[:1].upper() + text[1:]
    return begun if begun.endswith((".", "!", "?", ".)")) else f"{begun}."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, or nothing where it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    rule = f"| {' | '.join('---' for _ in head)} |"
    return [f"| {' | '.join(head)} |", rule, *lines, ""] if lines else []


def flow(value: Any) -> str:
    """Return a value as it is written in YAML, in one line."""
    text = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    return text.removesuffix("...\n").strip()


def anchor(heading: str) -> str:
    """Return a heading's anchor, which code hosts and MkDocs make alike of headings of code."""
    kept = re.sub(r"[^\w -]", "", heading.lower())
    return kept.replace(" ", "-")


# docs/configuration.md


def configuration_parts() -> dict[str, list[str]]:
    """Return a part for every key of a configuration, and one for an experiment's keys."""
    schema = Config.model_json_schema()
    parts = {name: list(top(schema, name, own)) for name, own in schema["properties"].items()}
    branches = schema["$defs"]["RetrieverSection"]["allOf"]
    parts["retriever-kinds"] = [line for branch in branches for line in retriever_kind(branch)]
    experiment = ExperimentConfig.model_json_schema()
    lines = keys(experiment, experiment, (), " of an experiment")
    return {**parts, "experiment": list(lines)}


def top(schema: Mapping[str, Any], name: str, own: Mapping[str, Any]) -> Iterator[str]:
    """Yield what there is to say of one key at the top of a configuration."""
    yield sentence(own["description"])
    yield ""
    inner = section(schema, own)
    if inner is not None:
        yield from keys(schema, inner, (name,))
        return
    is_required = name in schema["required"]
    default = "Required." if is_required else f"Default: {default_of(schema, own)}."
    yield f"Values: {values(own)}. {default}"


def keys(
    schema: Mapping[str, Any], of: Mapping[str, Any], path: tuple[str, ...], after: str = ""
) -> Iterator[str]:
    """Yield the table of the keys of one section, then those of the sections below it.

    Headings end in ``after``, as the keys of two files have names in common.
    """
    rows, below = [], []
    for name, own in of["properties"].items():
        where = ".".join((*path, name))
        default = "required" if name in of.get("required", ()) else default_of(schema, own)
        inner = section(schema, own)
        kind = values(own)
        if inner is not None:
            below.append((where, own, inner))
            kind = kind.replace("section", f"[section](#{anchor(where + after)})")
        rows.append((code(name), kind, default, sentence(own["description"])))
    yield from table(("key", "values", "default", "what it does"), rows)
    for where, own, inner in below:
        yield f"#### {code(where)}{after}"
        yield ""
        yield sentence(inner["description"])
        yield ""
        name = where.rpartition(".")[2]
        inside = (*path, name, "NAME") if own.get("type") == "object" else (*path, name)
        yield from keys(schema, inner, inside, after)


def section(schema: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the section that a key holds, also in a list or a mapping; None for plain values."""
    parts = [own, *own.get("anyOf", ()), own.get("items"), own.get("additionalProperties")]
    for part in parts:
        if isinstance(part, Mapping) and "$ref" in part:
            found: Mapping[str, Any] = schema["$defs"][part["$ref"].rpartition("/")[2]]
            return found
    return None


def values(own: Mapping[str, Any]) -> str:
    """Return in words which values a key takes."""
    if "enum" in own:
        return ", ".join(map(code, own["enum"]))
    match own:
        case {"$ref": _}:
            return "section"
        case {"const": constant}:
            return code(constant)
        case {"anyOf": parts}:
            told = dict.fromkeys(map(values, parts))
            if "number" in told:  # which a whole number is too
                told.pop("whole number", None)
            return " or ".join(told) + bounds(own)
        case {"type": "integer" | "number" as kind}:
            return ("whole number" if kind == "integer" else "number") + bounds(own)
        case {"type": "string", "pattern": pattern}:
            return written_as(pattern)
        case {"type": "string"}:
            return "text"
        case {"type": "array", "items": items}:
            return f"list of: {values(items)}"
        case {"type": "object", "additionalProperties": dict() as inner}:
            names = own.get("propertyNames", {}).get("enum", ())
            return f"mapping from {', '.join(map(code, names)) or 'names'} to: {values(inner)}"
        case {"type": "object"}:
            return "mapping"
        case {"type": "null"}:
            return "`null`"
    return "value"


def bounds(own: Mapping[str, Any]) -> str:
    """Return in words between which bounds a number lies: `` (above 0 and at most 3,600)``."""
    words = {
        "at least": "minimum",
        "above": "exclusiveMinimum",
        "at most": "maximum",
        "below": "exclusiveMaximum",
    }
    found = [(word, own[name]) for word, name in words.items() if name in own]
    told = [f"{word} {'2^63' if bound == 2**63 else f'{bound:,}'}" for word, bound in found]
    return f" ({' and '.join(told)})" if told else ""


def written_as(pattern: str) -> str:
    """Return in words what a text must look like."""
    name = re.fullmatch(r"\^\[A-Za-z0-9\]\[A-Za-z0-9( ?)\._-\]\{0,(\d+)\}\$", pattern)
    if pattern.endswith("%$"):
        return "a share such as `2%`"
    if name is None:
        return f"text that matches {code(pattern)}"
    signs = "blanks, `.`, `_` and `-`" if name[1] else "`.`, `_` and `-`"
    return f"text (at most {int(name[2]) + 1} letters, digits, {signs})"


def default_of(schema: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Return a key's default as it is written in YAML."""
    default = own.get("default")
    match default:
        case dict() if section(schema, own) is not None:
            return "as below"
        case list():
            plain = [_without_nulls(part) for part in default]
            return code(flow(plain))
        case None:
            empty = {"array": code("[]"), "object": code("{}")}
            return empty.get(own.get("type", ""), "none")
    return code(flow(default))


def _without_nulls(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    return {key: value for key, value in part.items() if value is not None}


def retriever_kind(branch: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of one kind of retriever."""
    kind = branch["if"]["properties"]["kind"]["const"]
    yield f"#### `kind: {kind}`"
    yield ""
    yield f"[Its page](your-system/{kind}.md) has a whole example."
    yield ""
    rows = []
    for name, own in branch["then"]["properties"].items():
        default = own.get("default", "required")
        shown = (
            default if "default" not in own else "none" if default is None else code(flow(default))
        )
        rows.append((code(name), shown, sentence(own["description"])))
    yield from table(("option", "default", "what it is"), rows)


# docs/commands.md

ARGUMENTS = {
    "CONFIG": "a configuration file, see [configuration](configuration.md)",
    "RUN_DIR": "the run directory of a study, such as `runs/quick-20260131-120000`",
    "abtest CONFIG": "an experiment, see "
    "[its keys](configuration.md#an-experiment-on-live-traffic)",
    "abtest plan BASELINE": "a file of what users did in the weeks before the experiment",
    "abtest assign IDS": "a file of ids, one a line; left out: standard input",
    "abtest analyze RESULTS": "a file of what users did during the experiment",
    "answers correlate RUN_DIR|CONFIG": "a study's run directory, or a configuration",
    "answers positions CONFIG|RUN_DIR": "a configuration, or a study's run directory",
    "ask QUESTION": "any text, or a query of the data set by its id or its words",
    "init FILE": "the file to write; `tuner.yaml` where it is left out",
    "dataset PATH": "a folder or file in any known format, or `builtin:atlas`",
    "dataset OUT": "a new folder",
    "dataset build LOG": "a query log, as CSV or JSON lines",
    "dataset build QUERIES": "the file of queries that `tuner dataset build sample` wrote",
    "dataset build SHEET": "a graded sheet",
    "dataset build SHEET_A": "the first annotator's sheet",
    "dataset build SHEET_B": "the second annotator's sheet",
    "dataset build from-graph PATH": "a folder with triples, or a data set that has some",
    "dataset grade SHEET": "a sheet, as `tuner dataset build pool` writes it",
    "drift SOURCE": "a file of figures, a run directory, or a folder of run directories",
    "history RUNS_DIR|CONFIG": "the folder of the run directories, or the configuration of the "
    "nights",
    "knobs KIND": "a kind of retriever; left out: the kinds are listed",
    "report RUN_DIR|RUN_ID|RUNS_DIR": "a run directory, the MLflow run of a study, several of "
    "these, or a folder with nights",
    "score RUN": "a run file, as after `--run`",
    "ui CONFIG|RUN_DIR": "whose store is shown; left out: `sqlite:///mlflow.db`",
}


def command_parts() -> dict[str, list[str]]:
    """Return the list of commands, and a part for all of them."""
    found = list(commands(command_line, ()))
    rows = [
        (
            f"[`tuner {' '.join(path)}`](#tuner-{'-'.join(path)})",
            sentence(command.get_short_help_str(limit=200)),
        )
        for path, command in found
    ]
    details = [line for path, command in found for line in command_part(path, command)]
    return {"list": table(("command", "what it does"), rows), "commands": details}


def commands(
    group: click.Group, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and group below a group with its path, in alphabetical order."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise SystemExit(f"there is no command {name!r}")
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def command_part(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    """Yield the part on one command: its usage, help text, arguments and options."""
    context = click.Context(command)
    name = " ".join(("tuner", *path))
    yield f"## `{name}`"
    yield ""
    usage = " ".join((name, *command.collect_usage_pieces(context)))
    yield from ("```text", usage.strip(), "```", "")
    yield from help_text(command)
    shown = [
        found.make_metavar(context).removesuffix("...").strip("[]")
        for found in command.params
        if isinstance(found, click.Argument)
    ]
    arguments = [(code(name), argument_text(path, name)) for name in shown if name]
    yield from table(("argument", "what it is"), arguments)
    options = [option for option in command.params if isinstance(option, click.Option)]
    yield from table(("option", "default", "what it does"), map(option_row, options))


def help_text(command: click.Command) -> Iterator[str]:
    """Yield a help text; click marks a paragraph that keeps its lines."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield from ("```text", *paragraph.split("\n")[1:], "```", "")
        else:
            yield from (" ".join(paragraph.split()), "")


def argument_text(path: tuple[str, ...], name: str) -> str:
    """Return the sentence on an argument: the command's own, or that of a group above it."""
    for length in range(len(path), -1, -1):
        text = ARGUMENTS.get(" ".join((*path[:length], name)))
        if text is not None:
            return sentence(text)
    raise SystemExit(f"ARGUMENTS lacks {' '.join((*path, name))!r}")


def option_row(option: click.Option) -> tuple[str, str, str]:
    """Return how an option is written, its default, and what it does."""
    names = ", ".join((*option.opts, *option.secondary_opts))
    takes = "" if option.is_flag else f" {option_values(option)}"
    default = option.to_info_dict()["default"]
    if option.required:
        told = "required"
    elif not option.show_default or default is None or default in ("", [], ()):
        told = "–"
    elif isinstance(default, list | tuple):
        told = code(" ".join(map(str, default)))
    else:
        told = code(f"{default:g}" if isinstance(default, float) else default)
    return code(names + takes), told, sentence(option.help or "") + number_range(option.type)


def option_values(option: click.Option) -> str:
    """Return what stands for an option's value."""
    if option.metavar is not None:
        return option.metavar
    match option.type:
        case click.Choice(choices=choices):
            return "|".join(map(str, choices))
        case click.types.FloatParamType():
            return "NUMBER"
        case click.types.IntParamType():
            return "N"
        case click.Path():
            return "FILE"
    return "TEXT"


def number_range(kind: Any) -> str:
    """Return the range of a number in words: `` Above 0 and at most 1.``."""
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return ""
    low = "" if kind.min is None else f"{'above' if kind.min_open else 'at least'} {kind.min:,g}"
    high = "" if kind.max is None else f"{'below' if kind.max_open else 'at most'} {kind.max:,.10g}"
    return f" {' and '.join(filter(None, (low, high))).capitalize()}."


# docs/metrics.md

NEEDS: dict[str, str] = {
    "ranking": "judgements",
    "graph": "labelled names or paths",
    "text": "texts",
}
"""By what a metric reads (``MetricFamily.kind``)."""
NEEDS_MORE = {
    "entity_recall": "labelled names",
    "path_recall": "labelled paths",
    "route_recall": "labelled paths",
    "graphrag_recall": "one of: judgements, labelled names, labelled paths",
    "graphrag_recall_by_route": "one of: judgements, labelled names, labelled paths",
    "density": "texts, judgements",
    "context_efficiency": "texts, judgements",
}
PLACES = {"ranking": "ranking", "graph": "graph", "text": "efficiency"}
"""In which table a metric stands whose file has no table of its own, by what it reads."""
SOURCES = {
    "context_tokens": "the retriever, or a count of the texts",
    "retrieved": "the ranking",
    "graph_used": "the retriever",
    "index": "the retriever, of its index as a whole",
    "latency_ms": "a clock: up to 20 of the queries are asked alone, one after the other",
}


def metric_parts() -> dict[str, list[str]]:
    """Return a table for each subject, for the answering and answers, and what is waste."""
    spelled: dict[str, list[str]] = {}
    for name in sorted(known_names(), key=len):
        spelled.setdefault(name.partition("@")[0], []).append(name)
    rows: dict[str, list[tuple[str, ...]]] = {}
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    places = {found[1] for found in _PART.findall(page)}
    lower = [name for name in SYSTEM_METRICS if is_better_lower(name)]
    for family, text in descriptions().items():
        metric = parse(spelled[family][0].replace("@k", "@10"))
        function = metric.function
        while isinstance(function, partial):
            function = function.func
        file = function.__module__.rpartition(".")[2]
        row = (
            ", ".join(map(code, spelled[family])),
            sentence(text),
            f"0 to {metric.highest:g}",
            "lower" if metric.lower_is_better else "higher",
            NEEDS_MORE.get(family, NEEDS[metric.kind]),
        )
        place = file if file in places else PLACES[metric.kind]
        rows.setdefault(place, []).append(row)
        lower += spelled[family] if metric.lower_is_better else []
    head = ("metric", "what it measures", "range", "better", "needs")
    answering = [
        (
            code(name),
            sentence(metric.description),
            "0 to 1" if metric.source == "graph_used" else "from 0",
            "lower" if is_better_lower(name) else "higher",
            SOURCES[metric.source],
        )
        for name, metric in SYSTEM_METRICS.items()
    ]
    answers = [
        (code(name), sentence(_first_line(of).removeprefix("Return ")))
        for name, of in SIMILARITIES.items()
    ]
    return {
        **{place: table(head, found) for place, found in rows.items()},
        "answering": table((*head[:-1], "comes from"), answering),
        "answers": table(("similarity", "what it measures"), answers),
        "lower": [f"Lower is better for: {', '.join(map(code, sorted(lower)))}."],
    }


def _first_line(function: Any) -> str:
    return inspect.cleandoc(function.__doc__ or "").partition("\n")[0]


if __name__ == "__main__":
    main()
