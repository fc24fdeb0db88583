"""The index that a system of the user's builds for some parameters: made once, whole, in a folder.

Its folder is complete when its manifest is there, which is written last and names its content; so
it is brought to other machines as all folders of the cache are.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tuner.core.brought import MANIFEST
from tuner.core.corpus import Corpus, corpus_fingerprint
from tuner.core.files import write_whole
from tuner.core.json_text import digest_of
from tuner.core.trial import Params
from tuner.retrieval.indexes.building import alone, cannot_keep, empty
from tuner.retrieval.indexes.record import OWN, files_of


def place_of(cache_dir: Path, kind: str, system: str, corpus: Corpus, params: Params) -> Path:
    """Return the folder for the index that a system builds of a corpus with parameters.

    ``system`` is how the user names it. Where its code has changed, the folder is filled anew.
    """
    corpus_name = corpus.fingerprint or corpus_fingerprint(corpus)
    name = digest_of([kind, system, corpus_name, dict(sorted(params.items()))], 24)
    return Path(cache_dir).absolute() / OWN / name


def made_once(
    folder: Path,
    made_from: str,
    make: Callable[[], str],
    is_there: Callable[[str], bool] = lambda _: True,
) -> str:
    """Have ``make`` fill a folder, unless it did so before from the same; return what it told.

    Of several processes that want it one makes it, and the others wait. One that dies half-way
    leaves nothing that would be taken for an index. ``is_there`` says of what was told whether that
    still holds.

    Raises:
        TunerError: the folder cannot be written.
        Exception: whatever ``make`` raises.
    """
    told = _told(folder, made_from)
    if told is not None and is_there(told):
        return told
    with alone(folder):
        told = _told(folder, made_from)
        if told is not None and is_there(told):
            return told
        empty(folder)
        try:
            told = make()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)  # it may be what fills the disk
            raise
        # The time tells it from another one that was made from the same.
        record = {"made_from": made_from, "told": told, "at": time.time()}
        try:
            write_whole(folder / MANIFEST, json.dumps({**record, "files": files_of(folder)}))
        except OSError as error:
            raise cannot_keep(folder, error) from error
        return told


def _told(folder: Path, made_from: str) -> str | None:
    """Return what was told of a whole index; None where there is none, or one of other code."""
    try:
        record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return str(record["told"]) if record["made_from"] == made_from else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
