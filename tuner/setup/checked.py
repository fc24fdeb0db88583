"""Whether a configuration that is about to be written would pass `tuner check`."""

from __future__ import annotations

from tuner.config import config_of
from tuner.config.source import source_of
from tuner.core.steps import Phases, Say
from tuner.run.assembly import Assembly, assemble
from tuner.run.planning import make_plan
from tuner.run.tunable import check_can_tune


def check(text: str, file: str, *, say: Say, phases: Phases) -> Assembly:
    """Check a text as `tuner check` does the file that it is written to; the index is built.

    Raises:
        InputError: every problem that was found, with the line where it would stand.
        TunerError: the system could not start.
    """
    config, source = config_of(source_of(text, file))
    plan = make_plan(config, source, to_run=True)
    assembly = assemble(config, source, plan, say=say, phases=phases)
    check_can_tune(assembly)
    return assembly
