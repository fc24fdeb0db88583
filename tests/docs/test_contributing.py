"""CONTRIBUTING.md names files, folders and commands that exist."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_what_is_named_exists() -> None:
    named = re.findall(r"`([\w./-]*[/.][\w./-]+)`", TEXT)
    assert len(named) > 10
    for name in named:
        assert name.startswith("v0.") or (ROOT / name).exists(), name
    for name in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (ROOT / name).is_file(), name


def test_the_check_names_what_is_checked() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("ruff format", "ruff check", "mypy", "lint-imports", "pytest"):
        assert command in script
        assert command in TEXT
