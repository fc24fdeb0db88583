"""The README is short and begins with two commands; the configurations that ship are right.

That its examples run, and its links lead somewhere, is tested with all pages in tests/docs.
"""

from __future__ import annotations

import re
from pathlib import Path

from tuner.config import load_config
from tuner.run.planning import make_plan

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short():
    assert len(README.encode()) <= 10_000


def test_the_two_commands_of_a_newcomer_stand_first():
    blocks = re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    assert blocks[0].strip() == "pip install . && python -m tuner run configs/graphrag.yaml"
    assert blocks[1].strip() == "pip install '.[test]' && pytest"


def test_every_configuration_that_ships_is_right():
    paths = sorted((ROOT / "configs").glob("*.yaml"))
    assert [path.name for path in paths] == [
        "beir.yaml",
        "graphrag.yaml",
        "my_function.yaml",
        "quick.yaml",
    ]
    for path in paths:
        config, source = load_config(path)
        assert make_plan(config, source).arms
        assert str(path.relative_to(ROOT)) in path.read_text(encoding="utf-8")
