"""The page of each kind of retriever names its options and knobs, with the defaults they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tuner.cli import tuner as command_line
from tuner.config import Config

ROOT = Path(__file__).resolve().parents[2]
BRANCHES = Config.model_json_schema()["$defs"]["RetrieverSection"]["allOf"]
OPTIONS: dict[str, dict[str, Any]] = {
    branch["if"]["properties"]["kind"]["const"]: branch["then"]["properties"] for branch in BRANCHES
}


def page(kind: str) -> str:
    return (ROOT / "docs" / "your-system" / f"{kind}.md").read_text(encoding="utf-8")


def row_of(name: str, text: str) -> str | None:
    """Return the row of a table that is about an option or a knob."""
    rows = (line for line in text.splitlines() if line.startswith("|"))
    return next((row for row in rows if f"`{name}`" in row.split("|")[1]), None)


def knobs_of(kind: str) -> list[dict[str, Any]]:
    """Return the knobs of a kind that has the same for every configuration, else none."""
    done = CliRunner().invoke(command_line, ["knobs", kind, "--json"])
    knobs: list[dict[str, Any]] = json.loads(done.stdout)["knobs"] if done.exit_code == 0 else []
    return knobs


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_option_stands_in_the_page_of_its_kind(kind: str) -> None:
    text = page(kind)
    for name, own in OPTIONS[kind].items():
        row = row_of(name, text)
        if row is None:  # an example or a sentence may say it all
            assert f"`{name}`" in text or f"{name}:" in text, name
        elif (default := own.get("default")) not in (None, "."):
            assert str(default) in row, f"{name} is {default} by default: {row}"


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_knob_stands_in_the_page_of_its_kind(kind: str) -> None:
    text = page(kind)
    for knob in knobs_of(kind):
        row = row_of(knob["name"], text)
        if row is None:
            assert f"`{knob['name']}`" in text or f"{knob['name']}:" in text, knob["name"]
            continue
        default = knob["default"]
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        assert shown in row.replace(",", ""), f"{knob['name']} is {shown} by default: {row}"


def test_most_kinds_have_the_same_knobs_for_every_configuration() -> None:
    kinds = {kind for kind in OPTIONS if knobs_of(kind)}
    assert {"hybrid", "lightrag", "graph_retriever", "ms_graphrag_local"} <= kinds
