"""Tells a policy from plain parameters, without what a policy is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The parameter that names a policy where a study's baseline is one.
POLICY = "policy"


def is_policy(params: Mapping[str, Any]) -> bool:
    """Say whether what stands in the place of parameters is a policy."""
    return "types" in params
