"""The README says what is true: its examples run, its commands and configurations exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tuner.cli import tuner as command_line
from tuner.config import load_config
from tuner.evaluation.system_metrics import SYSTEM_METRICS
from tuner.metrics.names import known_names
from tuner.run.planning import make_plan

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "docs/metrics.md"])
def test_examples_with_answers_give_these_answers(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    found = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    assert found.examples
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(found)
    assert runner.failures == 0


def test_every_command_is_named_and_every_named_command_exists():
    named = set(re.findall(r"`tuner ([a-z]+)", README)) | set(
        re.findall(r"^tuner +([a-z]+)", README, flags=re.MULTILINE)
    )
    assert named == set(command_line.list_commands(None))


def test_every_metric_is_named():
    for name in [*known_names(), *SYSTEM_METRICS]:
        assert f"`{name}`" in README, name


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


def test_links_to_files_lead_somewhere():
    for name in re.findall(r"`((?:configs|docs|experiments|tuner|notebooks)/[\w./-]+)`", README):
        assert (ROOT / name).exists(), name
