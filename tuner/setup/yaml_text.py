"""Values and keys as a configuration writes them in one line."""

from __future__ import annotations

from typing import Any

import yaml


def in_one_line(value: Any) -> str:
    """Return a value as YAML in one line.

    >>> in_one_line({"type": "real", "low": 0.0}), in_one_line("a: b"), in_one_line(None)
    ('{type: real, low: 0.0}', "'a: b'", 'null')
    """
    written = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    return written.removesuffix("...\n").strip()


def key_text(name: str) -> str:
    """Return a name as a key.

    >>> key_text("top_k"), key_text("a: b")
    ('top_k', "'a: b'")
    """
    return yaml.safe_dump(name, allow_unicode=True, width=10_000).split("\n")[0]
