"""YAML -> Config, with every problem named by file, line and key.

Its names are loaded on first use: who reads a file of parameters needs no model of configurations.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuner.config.loading import START_FROM, config_of, load_config, parse_config
    from tuner.config.model import Config
    from tuner.config.source import Source

__all__ = ["START_FROM", "Config", "Source", "config_of", "load_config", "parse_config"]

_HOMES = {
    "START_FROM": "tuner.config.loading",
    "Config": "tuner.config.model",
    "Source": "tuner.config.source",
    "config_of": "tuner.config.loading",
    "load_config": "tuner.config.loading",
    "parse_config": "tuner.config.loading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tuner.config' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
