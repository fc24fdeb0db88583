"""The life of every study, configured or from Python: opened, searched, summed up, closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tuner.core.run_files import JOURNAL_FILE
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.run.folder import SUMMARY_NOTE
from tuner.study.loop import State
from tuner.study.spec import StudySpec
from tuner.study.study import Study
from tuner.tracking.base import Tracker


def open_study(header: StudyHeader, spec: StudySpec, run_dir: Path | None) -> Study:
    """Begin a study in a folder, or go on with the one whose journal is there.

    Without a folder nothing is written down.

    Raises:
        InputError: the folder holds another study, or another run is writing it.
    """
    journal = None if run_dir is None else run_dir / JOURNAL_FILE
    if journal is not None and journal.is_file():
        return Study.resume(header, spec, journal)
    return Study.create(header, spec, journal)


@contextmanager
def closed_on_error(study: Study) -> Iterator[None]:
    """Let go of the journal where a session does not come about: its lock would stay held."""
    try:
        yield
    except BaseException:
        study.close()
        raise


def carry_through(
    study: Study,
    search: Callable[[], State],
    sum_up: Callable[[State], StudySummary],
    *,
    tracker: Tracker | None,
    meanwhile: AbstractContextManager[object],
    afterwards: Callable[[StudySummary], StudySummary],
) -> StudySummary:
    """Run an open study to its end, or until interrupted, write down what it came to, and close it.

    ``meanwhile`` is entered for as long as ``search`` goes on; ``tracker``, which needs a journal,
    is started in it. ``afterwards`` finishes it, and does what else there is to do with a summary
    that is in the journal; it returns the summary, perhaps with what was only known then.
    """
    try:
        with meanwhile:
            if tracker is not None and study.journal is not None:
                tracker.start(study.header, study.journal.path.parent)
            state = search()
        summary = sum_up(state)
        study.note(SUMMARY_NOTE, **summary.to_record())
        return afterwards(summary)
    finally:
        study.close()
