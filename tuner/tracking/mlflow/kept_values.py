"""Values by query of a study's trials as one file among its artifacts: packed, and unpacked."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tuner.core.errors import InputError
from tuner.core.journal import JournalContent, per_query_path, read_journal
from tuner.core.run_files import ASKED_FILE, JOURNAL_FILE
from tuner.core.trial import Trial

VALUES_FILE = "trials.zip"
# In bytes, packed: 200 trials of 1,000 queries take a half of it.
MOST = 25_000_000
# In bytes, unpacked: far more than packs into so little.
_MOST_UNPACKED = 2_000_000_000
_MEMBER = re.compile(r"trials/[0-9]+\.npz")


def pack_values(run_dir: Path, target: Path, *, most: int = MOST) -> bool:
    """Pack the values by query of as many trials as fit into ``most`` bytes; say whether any did.

    The baseline comes first, then the best. Equal values make an equal file.

    Raises:
        InputError: the journal is damaged.
    """
    content = read_journal(run_dir / JOURNAL_FILE)
    packed, count = 0, 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        queries = run_dir / ASKED_FILE
        if queries.is_file():
            packed += _add(archive, ASKED_FILE, queries)
        for file in _files(content, run_dir / JOURNAL_FILE):
            if packed >= most:
                break
            packed += _add(archive, f"{file.parent.name}/{file.name}", file)
            count += 1
    return count > 0


def unpack_values(packed: Path, run_dir: Path) -> None:
    """Unpack what ``pack_values`` packed into a folder, as a run directory has it.

    Raises:
        InputError: it is damaged, or something else; what came before that is there.
    """
    try:
        with zipfile.ZipFile(packed) as archive:
            members = [one for one in archive.infolist() if _is_ours(one.filename)]
            if sum(one.file_size for one in members) > _MOST_UNPACKED:
                raise ValueError("it is too large")
            for one in members:
                path = run_dir / one.filename
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(archive.read(one))
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        message = f"these values by query cannot be unpacked ({error})"
        raise InputError(message, file=str(packed)) from error


def _is_ours(name: str) -> bool:
    return name == ASKED_FILE or _MEMBER.fullmatch(name) is not None


def _add(archive: zipfile.ZipFile, name: str, file: Path) -> int:
    # With a date of its own: a file of the same content is the same file.
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return archive.getinfo(name).compress_size


def _files(content: JournalContent, journal: Path) -> Iterator[Path]:
    """Yield the files of values that are there, those to keep first."""
    arms = {arm.name for arm in content.header.arms}

    def place(trial: Trial) -> tuple[bool, float, int]:
        worth = trial.worth
        return (trial.arm in arms, float("inf") if worth is None else -worth, trial.number)

    trials = sorted((one for one in content.trials.values() if one.is_told), key=place)
    for number in dict.fromkeys(trial.evaluated_as for trial in trials):
        file = per_query_path(journal, number)
        if file.is_file():
            yield file
