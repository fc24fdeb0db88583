"""Which version a promotion takes, what the verdict on it says first, and what it then needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tuner.cli.promote import command
from tuner.config import load_config
from tuner.core.errors import InputError, TunerError
from tuner.nightly.deciding import promote
from tuner.tracking.registry import CHALLENGER, CHAMPION, Registry

PROJECT = Path(__file__).resolve().parents[2]
GUARD_RAIL = (  # only deeper rankings are in reach, and these cost more tokens
    "space.top_k={type: integer, low: 11, high: 20}",
    "verdict.guardrails={context_tokens: {max_increase: 0.0}}",
    "nightly.promote=never",
)


@pytest.fixture
def store(nights: Any, fresh_store: Path) -> str:
    path = nights.folder / "mlflow.db"
    shutil.copy(fresh_store, path)
    uri = f"sqlite:///{path}"
    nights.configure(tracking={"uri": uri, "experiment": "nights"})
    return uri


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_the_challenger_is_the_version_with_the_alias_and_its_verdict_counts(
    nights: Any, store: str
) -> None:
    registry = Registry(store, "small")
    better = nights("2026-03-01", "nightly.promote=never")
    worse = nights("2026-03-02", *GUARD_RAIL)
    assert [better["challenger"]["version"], worse["challenger"]["version"]] == [1, 2]
    assert worse["verdict"]["outcome"] == "keep the baseline"
    config, _ = load_config(nights.path)
    shown: list[str] = []
    with pytest.raises(InputError, match=r"version 2 was not found to be better .*--force"):
        promote(config, "challenger", why="", say=pytest.fail, show=shown.append)
    (line,) = shown
    assert line.startswith("verdict on version 2: Keep the baseline: ")
    for target in ("2", "2026-03-02"):  # by whatever name
        with pytest.raises(InputError, match="--force"):
            promote(config, target, why="", say=pytest.fail)
    assert nights.records.promotions == []
    assert registry.get(CHAMPION) is None

    # Nothing better was found, so there is no new version, and the challenger is who it was.
    idle = nights("2026-03-03", "budget.trials=0")
    assert idle["challenger"] is None
    assert [one.version for one in registry.versions()] == [2, 1]

    # Who has the alias in MLflow is the challenger: here another one than the last night's.
    registry.set_alias(CHALLENGER, 1)
    moved = promote(config, "challenger", why="reads well", say=pytest.fail, show=shown.append)
    assert moved.to.params == better["challenger"]["params"]
    assert shown[-1].startswith("verdict on version 1: Deploy: ")
    champion = registry.get(CHAMPION)
    assert champion is not None
    assert (champion.version, champion.tags["tuner.promoted_why"]) == (1, "reads well")

    done = CliRunner().invoke(command, [str(nights.path), "--to", "2", "--reason", "me", "--force"])
    said, moved_to = done.output.splitlines()
    assert said.startswith("verdict on version 2: Keep the baseline: ")
    assert moved_to == "the champion of small is version 2 now"
    assert nights.records.promotions[-1].why == "me (forced: keep the baseline)"
    back = promote(config, "1", why="", say=pytest.fail)  # who was it before needs no force
    assert (back.to.version, back.why) == (1, "tuner promote --to 1")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_without_a_version_there_is_no_challenger(
    nights: Any, store: str, unused_port: int
) -> None:
    config, _ = load_config(nights.path)
    with pytest.raises(InputError, match="no version of small has the alias challenger"):
        promote(config, "challenger", why="", say=pytest.fail)
    down, _ = load_config(nights.path, [f"tracking.uri=http://127.0.0.1:{unused_port}"])
    with pytest.raises(TunerError, match="name the date of a night instead"):
        promote(down, "challenger", why="", say=pytest.fail)


def test_without_mlflow_the_verdict_counts_too(nights: Any) -> None:
    nights("2026-03-01", *GUARD_RAIL)
    config, _ = load_config(nights.path)
    for target in ("challenger", "2026-03-01"):
        with pytest.raises(InputError, match="keep the baseline"):
            promote(config, target, why="", say=pytest.fail)
    promote(config, "challenger", why="", say=pytest.fail, is_forced=True)
    assert nights.records.champion is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_what_the_page_on_mlflow_loads_is_there_after_a_plain_run(nights: Any, store: str) -> None:
    """A plain run makes a challenger; a champion is made by whoever approves of it."""
    page = (PROJECT / "docs" / "report-and-mlflow.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(import mlflow\n.*?)```", page, flags=re.DOTALL)
    assert "models:/graphrag-atlas@challenger" in code
    assert "tuner promote configs/graphrag.yaml --to challenger" in page
    del nights.config["nightly"]
    nights.configure(study={"name": "graphrag-atlas", "seed": 3})
    _call(nights, "-m", "tuner", "run", "config.yaml", "--quiet")
    *lines, answer = code.strip().splitlines()
    script = "\n".join([*lines, f"print(len({answer}))"])
    assert _call(nights, "-c", script) == "10"
    promoted = _call(nights, "-m", "tuner", "promote", "config.yaml", "--to", "challenger")
    assert promoted.splitlines()[-1] == "the champion of graphrag-atlas is version 1 now"
    assert _call(nights, "-c", script.replace("@challenger", "@champion")) == "10"


def _call(nights: Any, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=nights.folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
