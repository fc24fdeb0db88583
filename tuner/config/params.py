"""Parameters in a file: any YAML of parameters, best.yaml, policy.yaml, or a run directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuner.config.source import read_source
from tuner.core.errors import InputError
from tuner.core.run_files import BEST_FILE

_SUFFIXES = (".yaml", ".yml", ".json")


def is_json(written: str) -> bool:
    """Say whether parameters are written in place.

    No file is called like JSON by chance; one that is can be written as ./[1].
    """
    return written.lstrip()[:1] in ("{", "[")


def is_point(source: str | Mapping[str, Any]) -> bool:
    """Say whether what a study starts from is one set of parameters, written out or in a file."""
    return not isinstance(source, str) or Path(source).suffix.lower() in _SUFFIXES


def read_params_file(written: str) -> dict[str, Any]:
    """Read a file's parameters: its ``params``, or all of it; of a run directory, its best.yaml.

    Raises:
        InputError: no such file, not YAML, a run directory without a result, or no mapping.
    """
    path = Path(written).expanduser()
    if path.is_dir():
        path = path / BEST_FILE
        if not path.is_file():
            raise InputError(f"{written}: this folder holds no {BEST_FILE}")
    data = read_source(path).data
    params = data.get("params", data)
    if not isinstance(params, dict):
        raise InputError("must be a mapping of parameters", file=str(path), key=("params",))
    return params
