"""The configured baseline: its parameters, or its policy, and what it was tuned on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tuner.config import Config, Source
from tuner.config.params import is_json, read_params_file
from tuner.config.source import read_source
from tuner.core.errors import InputError
from tuner.core.json_text import digest_of
from tuner.core.policy import POLICY, Policy, is_policy
from tuner.core.run_files import BEST_FILE
from tuner.core.trial import Params
from tuner.retrieval.base import Knob
from tuner.retrieval.knobs import knob_params
from tuner.verdict.looks import TunedOn


def origin_of(written: str) -> TunedOn | None:
    """Return what parameters in a file or run directory were tuned on; None: not said."""
    if is_json(written):
        return None
    path = Path(written).expanduser()
    return TunedOn.from_record(
        read_source(path / BEST_FILE if path.is_dir() else path).data.get("tuned_on")
    )


def baseline_origin(config: Config, source: Source) -> TunedOn | None:
    """Return what the baseline was tuned on, where it comes from a file that says so."""
    written = source.data.get("baseline")
    # A night's champion may have taken the place of what the file holds.
    if not isinstance(written, str) or read_params_file(written) != config.baseline:
        return None
    return origin_of(written)


def read_baseline(config: Config, knobs: Sequence[Knob]) -> tuple[Params | None, Policy | None]:
    """Return the baseline's parameters and, where it is a policy, that policy."""
    given = config.baseline
    if given is None or isinstance(given, str):  # a file's name is read with the configuration
        return None, None
    if not is_policy(given):
        return knob_params(given, knobs, ("baseline",)), None
    if any(knob.name == POLICY for knob in knobs):
        raise InputError(f"the retriever has a parameter {POLICY!r}, so a policy cannot be it")
    policy = read_policy(given, lambda params: knob_params(params, knobs))
    return {POLICY: f"{policy.told} ({digest_of(policy.to_record(), 6)})"}, policy


def read_policy(
    record: Mapping[str, Any], checked: Callable[[Mapping[str, Any]], Params]
) -> Policy:
    """Read a policy whose parameters are all ``checked``."""
    policy = Policy.from_record(record)
    types = {name: checked(params) for name, params in policy.types.items()}
    return Policy(checked(policy.default), types, policy.rule)
