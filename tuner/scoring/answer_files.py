"""Files of answers: read, and written as they come in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tuner.core.files import append_lines
from tuner.core.json_text import json_text
from tuner.core.steps import Say
from tuner.datasets import Dataset
from tuner.datasets.lines import ProblemLog, read_text
from tuner.datasets.tables import json_rows
from tuner.scoring.answers import Answers

_ID_KEYS = ("query_id", "id", "_id")


def read_answers(path: Path, dataset: Dataset, *, say: Say) -> Answers:
    """Read ``{"id": …, "answer": …}`` a line, or one object of id and answer.

    Raises:
        InputError: lines that are wrong, an id twice, or no id of the data set.
    """
    log = ProblemLog()
    texts: dict[str, str] = {}
    for line, record in _records(read_text(path.expanduser(), log) or "", path, log):
        id_ = next((str(record[key]) for key in _ID_KEYS if record.get(key) is not None), None)
        if id_ is None or "answer" not in record:
            there = ", ".join(record) or "none"
            log.add("keys", f"needs an id and an answer; the keys are: {there}", path, line)
        elif id_ in texts:
            log.add("twice", f"query {id_!r} is answered twice", path, line)
        else:
            texts[id_] = "" if record["answer"] is None else str(record["answer"])
    known = {query.id for query in dataset.queries}
    if not log.mentions(path) and not known & texts.keys():
        some = f", such as {next(iter(texts))!r}" if texts else ""
        message = f"answers no query of the data set {dataset.name!r}: it holds {len(texts)} ids"
        log.add("none", f"{message}{some}", path)
    log.refuse()
    if len(texts.keys() - known):
        say(f"note: {path}: {len(texts.keys() - known)} ids are of no query and left out")
    return Answers(texts, {})


def _records(
    text: str, path: Path, log: ProblemLog
) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict) and "answer" not in whole:
        return iter([(None, {"id": id_, "answer": answer}) for id_, answer in whole.items()])
    return json_rows(text, path, log)


@contextmanager
def keeping(folder: Path | None, *, say: Say) -> Iterator[Callable[[int, str, str], None]]:
    """Write every answer as soon as it is there: it may have cost money, and the next may fail."""
    if folder is None:
        yield lambda side, query_id, text: None  # noqa: ARG005
        return
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "a.jsonl", folder / "b.jsonl"]
    for path in paths:
        path.write_bytes(b"")

    def keep(side: int, query_id: str, text: str) -> None:
        record = {"id": query_id, "answer": text}
        append_lines(paths[side], json_text(record))

    yield keep
    say(f"answers: {paths[0]}, {paths[1]}")
