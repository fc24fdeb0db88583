"""Parameters on the command line: JSON in place, a YAML file, or a run directory."""

from __future__ import annotations

import json
from typing import Any

from tuner.core.errors import InputError

_WRITE = 'write for example \'{"graph_weight": 0.6, "top_k": 10}\''


def read_params(text: str, option: str) -> dict[str, Any]:
    """Read what stands after ``option``: a file's parameters are its ``params``, or all of it.

    Raises:
        InputError: not JSON, no such file, a run directory without a result, or no mapping.
    """
    from tuner.config.params import read_params_file

    if not text.strip():
        raise InputError(f"{option} is empty; {_WRITE}, or name a file or a run directory")
    # No file is called like JSON by chance; one that is can be written as ./[1].
    return _from_json(text, option) if text.lstrip()[0] in "{[" else read_params_file(text)


def _from_json(text: str, option: str) -> dict[str, Any]:
    try:
        params = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"{option} is not valid JSON: {reason}{place}; {_WRITE}") from error
    if not isinstance(params, dict):
        raise InputError(f"{option} must be a JSON object of parameters, got a list; {_WRITE}")
    return params
