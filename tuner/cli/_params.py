"""Parameters on the command line: JSON in place, a YAML file, or a run directory."""

from __future__ import annotations

import json
from typing import Any

from tuner.core.errors import InputError


def read_params(text: str, option: str) -> dict[str, Any]:
    """Read what stands after ``option``: a file's parameters are its ``params``, or all of it.

    Raises:
        InputError: not JSON, no such file, a run directory without a result, or no mapping.
    """
    from tuner.config.params import read_params_file

    return _from_json(text, option) if text.lstrip().startswith("{") else read_params_file(text)


def _from_json(text: str, option: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, RecursionError) as error:
        place = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(
            f"{option} is not valid JSON: {reason}{place}; write for example "
            '\'{"graph_weight": 0.6, "top_k": 10}\''
        ) from error
