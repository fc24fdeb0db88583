"""What a study knows of its indexes: which were built for it, and which could not be.

A trial says what its index took once it is told. Where a run is killed before that, the journal's
notes say that the index was built for this study, and does not count as found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tuner.core.index_costs import has_failed_index
from tuner.core.policy import POLICY
from tuner.retrieval.indexes import indexed_in
from tuner.run.assembly import Assembly
from tuner.run.builds import unnoted
from tuner.study.study import Study

INDEX_NOTE = "index_built"


@contextmanager
def noting_builds(assembly: Assembly, study: Study) -> Iterator[None]:
    """Write down which indexes are built for the study while the block runs, and its first one."""

    def note(name: str) -> None:
        study.note(INDEX_NOTE, index=name)

    indexed = indexed_in(assembly.retriever)
    if indexed is not None and indexed.new_first is not None:
        note(indexed.new_first)
    assembly.builds.built = note
    try:
        yield
    finally:
        assembly.builds.built = unnoted


def remember_indexes(assembly: Assembly, study: Study) -> None:
    """Let no index be built again that could not be, and those count as new that no trial told of.

    What failed for trials that are to be retried may be built again.
    """
    indexed = indexed_in(assembly.retriever)
    if indexed is None:
        return
    for trial in study.trials:
        if has_failed_index(trial) and trial.error is not None and POLICY not in trial.params:
            indexed.remember_failed({**assembly.fixed, **trial.params}, trial.error)
    uses = [use for trial in study.trials if trial.index is not None for use in trial.index.each]
    told = {use.name for use in uses if use.is_new}
    notes = [note for note in study.earlier.notes if note.get("kind") == INDEX_NOTE]
    indexed.remember_built({str(note.get("index")) for note in notes} - told)
