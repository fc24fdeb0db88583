"""The pages that are made from the program are up to date, and say everything."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from tuner.abtest.experiment import ExperimentConfig
from tuner.cli import main
from tuner.cli import tuner as command_line
from tuner.config import Config
from tuner.core import registry
from tuner.evaluation.system_metrics import SYSTEM_METRICS
from tuner.metrics.names import known_names
from tuner.scoring.answer_metrics import SIMILARITIES

ROOT = Path(__file__).resolve().parents[2]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_files_are_up_to_date(generate: ModuleType) -> None:
    stale = [
        name
        for name, text in generate.generated().items()
        if (ROOT / name).read_text(encoding="utf-8") != text
    ]
    assert not stale, f"{', '.join(stale)}: renew by `python docs/generate.py`"


def test_a_mark_too_many_or_too_few_is_named(generate: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"docs/metrics.md: .*'ranking'"):
        generate.filled("docs/metrics.md", {})
    parts = dict.fromkeys(generate.metric_parts(), ())
    with pytest.raises(SystemExit, match="no_such"):
        generate.filled("docs/metrics.md", {**parts, "no_such": ()})


def every_command(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{path} {name}")


def test_every_command_option_and_help_text_stands_in_its_page() -> None:
    parts = re.split(r"^## ", page("commands.md"), flags=re.MULTILINE)
    by_name = {part.partition("\n")[0].strip("`"): part for part in parts}
    found = dict(every_command(command_line, "tuner"))
    assert {name for name in by_name if name.startswith("tuner ")} == set(found)
    for name, command in found.items():
        first = inspect.cleandoc(command.help or "").split("\n\n")[0]
        assert " ".join(first.split()) in by_name[name]
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts}: no help text"
                assert re.search(rf"[`>]{re.escape(parameter.opts[0])}\b", by_name[name])


def test_every_exit_code_has_its_line() -> None:
    listed = re.findall(r"^\| `(\d+)` \|", page("commands.md"), flags=re.MULTILINE)
    said = re.findall(r"(\d+):", inspect.getdoc(main) or "")
    assert listed == said
    assert len(listed) >= 8


@pytest.mark.parametrize("model", [Config, ExperimentConfig])
def test_every_key_stands_in_its_page_with_a_sentence(model: Any) -> None:
    text = page("configuration.md")
    schema = model.model_json_schema()
    sections = [schema, *schema["$defs"].values()]
    for section in sections:
        for name, own in section["properties"].items():
            assert own.get("description"), f"{section['title']}.{name}: no description"
            assert re.search(rf"^(### `{name}`|\| `(\w+\.)*{name}` \|)", text, re.MULTILINE), name


def options_of(family: str, kind: str) -> Iterator[tuple[str, Any]]:
    for name, found in inspect.signature(registry.load(family, kind)).parameters.items():
        if found.kind is found.KEYWORD_ONLY:
            yield name, found.default


@pytest.mark.parametrize("family", ["backends", "execution"])
def test_every_kind_stands_in_its_page_with_its_options(family: str) -> None:
    part = page("configuration.md").partition(f"### `{family}`")[2].partition("\n### ")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", part, flags=re.MULTILINE))
    for kind in registry.kinds(family):
        options = dict(options_of(family, kind))
        names = ", ".join(f"`{name}`" for name in options) or "–"
        wanted = f"write into docs/configuration.md, below `{family}`: "
        row = f"{wanted}| `{kind}` | what it does | {names} |"
        assert kind in listed, row
        assert set(re.findall(r"`(\w+)`", listed[kind])) == set(options), row
        for name, default in options.items():
            if isinstance(default, int | float):
                begun = f"| `{name}` | `{kind}` | `{default}` |"
                assert begun in part, f"{wanted}{begun} what it does |"


def test_every_kind_of_retriever_stands_in_its_page() -> None:
    for kind in registry.kinds("retrieval"):
        assert f"#### `kind: {kind}`" in page("configuration.md"), (
            f"{kind}: where it has a section in tuner/config, run `python docs/generate.py`"
        )


def test_every_metric_stands_in_its_page() -> None:
    text = page("metrics.md")
    for name in [*known_names(), *SYSTEM_METRICS, *SIMILARITIES]:
        assert f"`{name}`" in text, name


def test_the_page_on_metrics_names_no_metric_that_does_not_exist() -> None:
    names = re.findall(r"^\| `([a-z0-9_]+(?:@k)?)`", page("metrics.md"), flags=re.MULTILINE)
    known = {*known_names(), *SYSTEM_METRICS, *SIMILARITIES}
    assert set(names) - known <= {"max_grade"}
