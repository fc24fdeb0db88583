"""The commit of the code and configuration that a study was started with, where there is one."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

_TIMEOUT_S = 5.0
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


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
