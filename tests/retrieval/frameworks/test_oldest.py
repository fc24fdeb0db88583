"""The oldest version that a kind accepts is the one that its extra asks for."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("kind", ["haystack", "langchain", "llama_index", "neo4j_graphrag"])
def test_a_kind_accepts_what_its_extra_installs(kind: str) -> None:
    module = import_module(f"tuner.retrieval.adapters.frameworks.{kind}")
    (requirement,) = EXTRAS[kind]
    assert requirement.partition(">=")[2] == ".".join(map(str, module.OLDEST))
