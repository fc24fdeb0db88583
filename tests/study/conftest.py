from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import tuner

TOY = Path(__file__).with_name("toy.py")

Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def toy() -> ModuleType:
    """The module beside this file: tests are not a package that could be imported."""
    spec = importlib.util.spec_from_file_location("toy_study", TOY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["toy_study"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start toy.py as a process with its options; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []
    root = str(Path(tuner.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}

    def start(**options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(TOY), json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
