"""Nights on the data set that ships with the project, with dates of their own, in this process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tuner.config import load_config
from tuner.nightly.night import run_night, write_score
from tuner.nightly.records import Records, read_records
from tuner.study.loop import Event

PROJECT = Path(__file__).resolve().parents[2]

CONFIG: dict[str, Any] = {
    "study": {"name": "small", "seed": 3},
    "dataset": {"path": "builtin:atlas"},
    "space": {
        "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
        "max_hops": {"type": "integer", "low": 1, "high": 3},
    },
    "objective": {"maximize": {"ndcg@10": 1.0}},
    "metrics": ["ndcg@10"],
    # Far from what the space has to offer.
    "baseline": {"graph_weight": 0.0, "max_hops": 1, "top_k": 10, "temperature": 0.05},
    "backends": [{"kind": "random", "trials": 3}, {"kind": "tpe", "trials": 5}],
    "execution": {"kind": "inline"},
    "nightly": {"promote": "auto"},
    # With few trials to count, and a clear winner among them.
    "free": "off",
    "tracking": None,
}


def _tracking_conftest() -> ModuleType:
    """Load the tracking tests' fixtures: the same real server, and a link to cut."""
    path = PROJECT / "tests" / "tracking" / "conftest.py"
    spec = importlib.util.spec_from_file_location("tracking_conftest", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tracking_conftest"] = module
    spec.loader.exec_module(module)
    return module


_tracking = _tracking_conftest()
server = _tracking.server
link = _tracking.link
wait_until = _tracking.wait_until
unused_port = _tracking.unused_port


@dataclass
class Listener:
    """Takes what a night says, and calls ``on_told`` with the number of trials told so far."""

    on_told: Callable[[int], None] = lambda told: None
    told: int = 0
    lines: list[str] = field(default_factory=list)

    def show(self, event: Event) -> None:
        if event.trial is not None:
            self.told += 1
            self.on_told(self.told)

    def say(self, message: str) -> None:
        self.lines.append(message)


@dataclass
class Nights:
    """A folder with a configuration, and a way to let nights pass."""

    folder: Path
    config: dict[str, Any]

    @property
    def path(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def runs_dir(self) -> Path:
        return self.folder / "runs"

    def configure(self, **sections: Any) -> None:
        """Replace sections of the configuration."""
        self.config.update(sections)
        study = {**self.config["study"], "runs_dir": str(self.runs_dir)}
        text = yaml.safe_dump({**self.config, "study": study}, sort_keys=False)
        self.path.write_text(text, encoding="utf-8")

    def __call__(
        self,
        night: str,
        *settings: str,
        on_told: Callable[[int], None] = lambda told: None,
    ) -> dict[str, Any]:
        """Let a night pass, and return its summary."""
        config, source = load_config(self.path, settings)
        listener = Listener(on_told)

        return run_night(
            config,
            source,
            night=date.fromisoformat(night),
            say=listener.say,
            follow=lambda session: listener.show,
        )

    @property
    def records(self) -> Records:
        return read_records(self.runs_dir, self.config["study"]["name"])

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.runs_dir / "nights.jsonl").read_text(encoding="utf-8").splitlines()
        return [record for record in map(json.loads, lines) if record["event"] == kind]

    def repeat_the_score(self, *, days: int) -> None:
        """Let the last night's champion have had the same score on each of the days before."""
        records = self.records
        score = records.scores[-1]
        for back in range(days, 0, -1):
            earlier = replace(score, night=score.night - timedelta(days=back))
            write_score(records, earlier)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tuner", *arguments]

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(self.folder), str(PROJECT)]),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def nights(
    tmp_path: Path,
    index_dir: Path,
    written_by_a_thread: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Nights:
    monkeypatch.setenv("TUNER_CACHE_DIR", str(index_dir))
    # Drawing the report's pictures for MLflow would be a third of each night; no test here looks.
    monkeypatch.setattr("tuner.report.writing.write_png", lambda group, path: path.touch())
    made = Nights(tmp_path, json.loads(json.dumps(CONFIG)))
    made.configure()
    return made
