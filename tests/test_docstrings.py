"""Every example in a docstring of the package gives what stands below it."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import tuner

ROOT = Path(tuner.__file__).parent


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = [
    name_of(path) for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "tuner":
            raise
        pytest.skip(f"{name} needs {error.name}")
    found = doctest.testmod(module)
    assert found.attempted
    assert found.failed == 0
