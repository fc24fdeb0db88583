"""What a result depends on: the versions of packages, and the commit of the working folder."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

_PACKAGES = ("graphrag-tuner", "numpy", "scipy", "scikit-optimize", "optuna", "joblib", "mlflow")
_TIMEOUT_S = 5.0
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


def versions() -> dict[str, str]:
    """Return the versions that a result depends on; ``git`` is the working folder's commit."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if (commit := git_commit(Path.cwd())) is not None:
        found["git"] = commit
    return found


def git_commit(folder: Path) -> str | None:
    """Return the commit that a folder's checkout is at; None without git, checkout or commit."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "HEAD"],
            cwd=folder,
            # A folder within a checkout counts, whatever checkout a hook or a caller is in.
            env={key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    found = done.stdout.strip()
    return found if done.returncode == 0 and _COMMIT.fullmatch(found) else None
