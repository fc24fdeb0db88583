"""The examples of docs/extending.md: short, typed, within their contracts, one line in a table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, flags=re.DOTALL))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package, to add kinds to."""
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("tuner", "docs", "configs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def add_line(file: Path, after: str, line: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(after) == 1
    file.write_text(text.replace(after, f"{after}\n    {line}"), encoding="utf-8")


def run(folder: Path, *command: str) -> str:
    """Run Python with a command's words, on the package of a folder; return what it printed."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def run_python(folder: Path, code: str) -> str:
    return run(folder, "-c", code)


def test_each_example_has_20_to_50_lines() -> None:
    examples = {name for name in FILES if not name.startswith("test_")}
    assert examples == {"rbp.py", "my_forest.py", "my_tsv.py", "my_execution.py"}
    for name in examples - {"my_execution.py"}:
        assert 20 <= FILES[name].count("\n") <= 50, name


def test_a_metric_is_one_file_and_one_line(checkout: Path) -> None:
    (checkout / "tuner" / "metrics" / "rbp.py").write_text(FILES["rbp.py"], encoding="utf-8")
    add_line(checkout / "tuner" / "metrics" / "base.py", "FILES = (", '"tuner.metrics.rbp",')
    # Relevant at ranks 1 and 3: (1 + .8 ** 2) * .2 = .328
    code = (
        "from tuner import evaluate_run\n"
        "found = evaluate_run({'q': {'a': 1, 'b': 1}}, {'q': ['a', 'x', 'b']}, 'rbp@3')\n"
        "print(round(found['q'], 6))"
    )
    assert run_python(checkout, code) == "0.328"
    evaluate = "from tuner.cli import main\nmain(['evaluate', 'c.yaml', '--json'])"
    (checkout / "c.yaml").write_text(
        "study: {name: c}\ndataset: {path: 'builtin:atlas'}\n"
        "space: {top_k: {type: integer, low: 3, high: 20}}\n"
        "objective: {maximize: {rbp@10: 1.0}}\n"
        "baseline: {top_k: 10}\n",
        encoding="utf-8",
    )
    assert '"rbp@10"' in run_python(checkout, evaluate)
    assert run(checkout, "docs/generate.py") == "docs/metrics.md is new"
    ranking = (checkout / "docs" / "metrics.md").read_text(encoding="utf-8")
    ranking = ranking.partition("### The ranking")[2].partition("\n### ")[0]
    assert "| `rbp`, `rbp@k` | Precision for a reader who may stop at each rank. |" in ranking


@pytest.mark.slow
def test_a_search_is_one_file_and_one_line(checkout: Path) -> None:
    (checkout / "tuner" / "backends" / "forest.py").write_text(
        FILES["my_forest.py"], encoding="utf-8"
    )
    add_line(
        checkout / "tuner" / "backends" / "base.py",
        "KINDS = {",
        '"forest": "tuner.backends.forest:Forest",',
    )
    code = (
        "from tuner.core import registry\n"
        "assert 'forest' in registry.kinds('backends')\n"
        "print(registry.load('backends', 'forest').__name__)"
    )
    assert run_python(checkout, code) == "Forest"


@pytest.mark.slow
def test_the_examples_are_typed_and_in_house_style(checkout: Path) -> None:
    places = {
        "rbp.py": "tuner/metrics/rbp.py",
        "my_forest.py": "tuner/backends/my_forest.py",
        "my_tsv.py": "tuner/datasets/my_tsv.py",
        "my_execution.py": "tuner/execution/local/my_execution.py",
    }
    for name, place in places.items():
        (checkout / place).write_text(FILES[name], encoding="utf-8")
    run(checkout, "-m", "ruff", "check", *places.values())
    run(checkout, "-m", "ruff", "format", "--check", *places.values())
    modules = [place.removesuffix(".py").replace("/", ".") for place in places.values()]
    named = [word for module in modules for word in ("-p", module)]
    run(checkout, "-m", "mypy", "--strict", "--follow-imports=silent", *named)


@pytest.mark.slow
def test_the_search_keeps_its_contract(tmp_path: Path) -> None:
    for name in ("my_forest.py", "test_my_forest.py"):
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "12 passed" in done.stdout, done.stdout
