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
from tuner.run.builds import BEGUN, BUILT, unnoted
from tuner.study.study import Study


@contextmanager
def noting_builds(assembly: Assembly, study: Study) -> Iterator[None]:
    """Write down which indexes are built for the study while the block runs, and its first one."""

    def note(kind: str, name: str) -> None:
        study.note(kind, index=name)

    indexed = indexed_in(assembly.retriever)
    if indexed is not None and indexed.new_first is not None:
        note(BUILT, indexed.new_first)
    assembly.builds.note = note
    try:
        yield
    finally:
        assembly.builds.note = unnoted


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
    built, begun = (
        {str(note.get("index")) for note in study.earlier.notes if note.get("kind") == kind}
        for kind in (BUILT, BEGUN)
    )
    # The process that builds ends by itself: one that was begun may be there although the run was
    # killed before it heard so.
    untold = built - {use.name for use in uses if use.is_new}
    indexed.remember_built(untold | (begun - built - {use.name for use in uses}))
