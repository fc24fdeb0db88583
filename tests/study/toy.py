"""A small study for the tests of this folder, also runnable as a process that can be killed.

As a script: ``toy.py '{"run_dir": …, "kind": "inline", …}'`` begins the study or resumes it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.backends.grid import Grid
from tuner.backends.random import Random
from tuner.core import registry
from tuner.core.space import SearchSpace
from tuner.core.study_record import AHEAD, ArmRecord, StudyHeader
from tuner.core.trial import Outcome, Params
from tuner.evaluation.objective import Objective
from tuner.study.arms import Arm
from tuner.study.loop import Event, run_study
from tuner.study.spec import StudySpec
from tuner.study.study import Study

# 60 points: the random arm meets points of the grid arm's, so that results are shared.
SPACE = SearchSpace.from_mapping(
    {
        "hops": {"type": "integer", "low": 1, "high": 5},
        "weight": {"type": "real", "low": 0.0, "high": 1.1, "step": 0.1},
    }
)
OBJECTIVE = Objective({"score": 1.0}, {}, {})
BASELINE: Params = {"hops": 2, "weight": 0.5}


def header(trials: int = 30, *, seed: int = 7, ahead: int = AHEAD) -> StudyHeader:
    return StudyHeader(
        study_id="toy",
        name="toy",
        created_at=0.0,
        seed=seed,
        arms=(ArmRecord("grid", "grid", trials), ArmRecord("random", "random", trials)),
        space=SPACE.to_mapping(),
        objective=OBJECTIVE.to_mapping(),
        baseline=BASELINE,
        fingerprints={"space": SPACE.fingerprint, "dataset": "d1"},
        versions={"numpy": "1"},
        ahead=ahead,
    )


def arms(trials: int = 30) -> list[Arm]:
    grid, random = Grid(budget=trials, coarse=trials), Random(budget=trials)
    return [Arm("grid", grid, trials), Arm("random", random, trials)]


def spec(trials: int = 30, **options: object) -> StudySpec:
    return StudySpec(arms(trials), SPACE, OBJECTIVE, **options)  # type: ignore[arg-type]


def create(path: Path | None, trials: int = 30, *, ahead: int = AHEAD, **options: object) -> Study:
    return Study.create(header(trials, ahead=ahead), spec(trials, **options), path)


def resume(path: Path, trials: int = 30) -> Study:
    return Study.resume(header(trials), spec(trials), path)


def score(params: Params) -> float:
    return float(params["hops"]) * 0.1 - (float(params["weight"]) - 0.6) ** 2  # type: ignore[arg-type]


def evaluate(params: Params) -> Outcome:
    return Outcome({"score": score(params)})


@dataclass(frozen=True)
class Recording:
    """Evaluates for some time and then adds the params to a file; hangs where told to.

    After ``hold_after`` evaluations each one waits until there is a file called ``release``. Params
    with ``crash_at_hops`` hops end the process.
    """

    file: str
    sleep_s: float
    hang: bool = False
    hold_after: int | None = None
    crash_at_hops: int | None = None

    def __call__(self, params: Params) -> Outcome:
        if params["hops"] == self.crash_at_hops:
            os._exit(9)
        time.sleep(self.sleep_s)
        while self.hang or self._must_wait():  # short waits: a signal just before one is not lost
            time.sleep(0.005)
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, (json.dumps(params) + "\n").encode())
        os.close(descriptor)
        return evaluate(params)

    def _must_wait(self) -> bool:
        file = Path(self.file)
        if self.hold_after is None or not file.exists() or (file.parent / "release").exists():
            return False
        return len(file.read_text().splitlines()) >= self.hold_after


def main(options: dict[str, Any]) -> None:
    run_dir = Path(options["run_dir"])
    path, trials = run_dir / "journal.jsonl", options["trials"]
    is_new = not path.exists() or b"\n" not in path.read_bytes()
    study = create(path, trials) if is_new else resume(path, trials)
    execution = registry.load("execution", options["kind"])(workers=options["workers"])
    recording = Recording(
        str(run_dir / "evaluated"),
        options["sleep_s"],
        hang=options.get("hang", False),
        hold_after=options.get("hold_after"),
        crash_at_hops=options.get("crash_at_hops"),
    )

    def say(*words: str) -> None:
        # Several threads tell, and a signal's handler between them: each line is one write.
        os.write(1, (" ".join(words) + "\n").encode())

    def show(event: Event) -> None:
        say(event.kind, event.text)

    say("ready")
    grace_s = options.get("grace_s", 60.0)
    state = run_study(study, execution, recording, on_event=show, grace_s=grace_s)
    study.close()
    say("state", str(state))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
