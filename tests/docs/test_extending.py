"""The examples of docs/extending.md: short, within their contracts, one line in a table each."""

from __future__ import annotations

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
    shutil.copytree(ROOT / "tuner", tmp_path / "tuner", ignore=ignored)
    return tmp_path


def add_line(file: Path, after: str, line: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(after) == 1
    file.write_text(text.replace(after, f"{after}\n    {line}"), encoding="utf-8")


def run_python(folder: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


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
        "print(registry.kinds('backends'), registry.load('backends', 'forest').__name__)"
    )
    assert run_python(checkout, code) == "['forest', 'gp', 'grid', 'random', 'tpe'] Forest"


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
    assert "11 passed" in done.stdout, done.stdout
