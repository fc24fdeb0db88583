"""One way out for text: no command prints past it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tuner import cli

PRINTERS = {"_out.py", "_console.py"}
FILES = sorted(path for path in Path(cli.__file__).parent.glob("*.py") if path.name not in PRINTERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_printed_past_the_way_out(path):
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name)
    }
    assert not names & {"secho", "Console"}
    assert "click.echo" not in path.read_text(encoding="utf-8")
