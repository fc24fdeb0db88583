"""Start test runs from a process that has the libraries loaded already.

Loading them takes longer than most runs: a run is a copy (fork) of a process that has them, but
nothing of the package under test. That process takes a line of JSON a run from its input, and
answers with the run's process id, and with its exit code when it is over.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import json
import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path


def libraries(root: Path, package: str) -> list[str]:
    """List the modules that the package imports from what its pyproject.toml requires."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    except (OSError, KeyError):
        return []
    required = {_plain(line) for line in project.get("dependencies", [])}
    tops = {
        top
        for top, owners in importlib.metadata.packages_distributions().items()
        if required & {_plain(owner) for owner in owners}
    }
    found: set[str] = set()
    for path in (root / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Import(names=names):
                    found |= {alias.name for alias in names}
                case ast.ImportFrom(module=str() as module, level=0):
                    found.add(module)
    return sorted(name for name in found if name.partition(".")[0] in tops)


def _plain(requirement: str) -> str:
    name = "".join(sign if sign.isalnum() or sign in "-_." else " " for sign in requirement)
    return name.split()[0].lower().replace("_", "-").replace(".", "-")


def serve(modules: Sequence[str]) -> None:
    """Load modules, and start a run for each line of the input; return in the run's process."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError:  # of another system, or not installed
            continue
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            _become(order)
            return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit(0)


def _become(order: dict[str, str]) -> None:
    os.setsid()
    said = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["pytest", *order["arguments"]]


if __name__ == "__main__":
    serve(sys.argv[1:])
    import pytest

    sys.exit(pytest.main())
