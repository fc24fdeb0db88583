"""What experiments measured lies beside them as CSV files, each of which its README names."""

from __future__ import annotations

import csv
import doctest
import importlib.util
import io
import re
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"
WITH_RESULTS = sorted(folder.parent for folder in EXPERIMENTS.glob("*/results"))

PRINTED = """
## atlas: 4 pairs

| values | queries | deploy | gain |
| --- | ---: | ---: | --- |
| alike, r = .3 | 1,720 | 2.3 ± 0.5 % | +.06 [-.01, +.13] |
| **shuffled** | 60 | 1.0 ± 0.2 % | – |

| queries | covered |
| --- | ---: |
| 30 | 93.7 % |

## musique

| queries | covered |
| --- | ---: |
| 30 | 95.2 % |
"""


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("_tables", EXPERIMENTS / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_tables_become_files_that_a_program_reads(tables, tmp_path, monkeypatch, capsys):
    first, second = tmp_path / "first.csv", tmp_path / "of" / "second.csv"
    monkeypatch.setattr(sys, "argv", ["tables.py", str(first), str(second)])
    monkeypatch.setattr(sys, "stdin", io.StringIO(PRINTED))
    tables.main()
    assert capsys.readouterr().out == PRINTED
    assert rows(first) == [
        ["values", "queries", "deploy %", "deploy % ±", "gain", "gain, low", "gain, high"],
        ["alike, r = 0.3", "1720", "2.3", "0.5", "0.06", "-0.01", "0.13"],
        ["shuffled", "60", "1.0", "0.2", "", "", ""],
    ]
    assert rows(second) == [
        ["section", "queries", "covered %"],
        ["atlas", "30", "93.7"],
        ["musique", "30", "95.2"],
    ]


def test_the_examples_of_the_tables_are_true(tables):
    assert doctest.testmod(tables).attempted
    assert not doctest.testmod(tables).failed


def test_a_file_without_a_table_is_refused(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tables.py", str(tmp_path / "none.csv")])
    monkeypatch.setattr(sys, "stdin", io.StringIO("no table\n"))
    with pytest.raises(SystemExit, match="1 files, but only 0 tables"):
        tables.main()


@pytest.mark.parametrize("folder", WITH_RESULTS, ids=lambda folder: folder.name)
def test_the_readme_names_every_file_and_every_script(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+\.csv)`", text))
    assert named == {path.name for path in (folder / "results").iterdir()}
    for script in re.findall(r"`([a-z_]+\.py)\b", text):
        assert (folder / script).is_file(), script
    for path in (folder / "results").iterdir():
        names, *found = rows(path)
        assert found, path
        assert all(len(row) == len(names) for row in found), path
        assert len(set(names)) == len(names), path


@pytest.mark.parametrize("page", sorted(EXPERIMENTS.glob("**/*.md")), ids=lambda page: page.name)
def test_pages_are_short_and_their_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    for link in re.findall(r"\]\(([^)#\s]+)\)", text):
        assert link.startswith("http") or (page.parent / link).is_file(), link
    prose = re.sub(r"`[^`]*`|```.*?```", "", text, flags=re.DOTALL)
    assert not re.findall(r"(?<![\w.…)\]/])[+-]?\.\d+", prose)
