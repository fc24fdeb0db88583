"""Read 2WikiMultihopQA: HotpotQA's records, and the triples that lead to each answer."""

from __future__ import annotations

from pathlib import Path

from tuner.datasets.dataset import Dataset, Evidence, Step
from tuner.datasets.folders import refuse_folder
from tuner.datasets.hotpotqa import QUESTION_KEYS, read_supported
from tuner.datasets.items import Item, is_texts, peek_keys
from tuner.datasets.texts import join_steps, names_in

_COLUMNS = ("fact", "relation", "entity")


class Wiki2:
    """2WikiMultihopQA, as published and as Hugging Face nests it. See `Wiki2.read`."""

    layout = (
        "a JSON array or JSON lines of 2WikiMultihopQA records: _id, question, answer, type, "
        "supporting_facts, context, evidences"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the first record of a file has HotpotQA's keys, and evidences."""
        return peek_keys(path) >= QUESTION_KEYS | {"evidences"}

    @staticmethod
    def read(path: Path) -> Dataset:
        """Read and check a file, as HotpotQA's, and its evidences.

        - evidences: ``[subject, relation, object]`` triples, or columns ``{"fact", "relation",
          "entity"}``. Triples are joined to a path where the object of one is the subject of
          another, letter case apart; subjects and objects are the query's entities.

        Context, supporting facts and evidences may be strings of JSON, too, as in some mirrors.

        Raises:
            InputError: everything that is wrong, with file and record, all at once.
        """
        path = Path(path)
        refuse_folder(path, Wiki2.detect, Wiki2.layout)
        return read_supported(path, _evidence)


def _evidence(item: Item, _: tuple[str, ...]) -> Evidence:
    steps = _steps(item)
    return Evidence(names_in(steps), join_steps(steps))


def _steps(item: Item) -> list[Step]:
    key = "evidences"
    triples = item.get(key, (list, dict), "a list of [subject, relation, object] triples")
    if isinstance(triples, dict):
        columns = [triples.get(name) for name in _COLUMNS]
        if not all(isinstance(column, list) for column in columns):
            item.report("columns", f"must have the lists {', '.join(map(repr, _COLUMNS))}", key)
            return []
        if len({len(column or []) for column in columns}) > 1:
            item.report("columns", "must have columns of the same length", key)
        triples = [list(row) for row in zip(*(column or [] for column in columns), strict=False)]
    found = []
    for i, triple in enumerate(triples or []):
        if is_texts(triple) and len(triple) == 3:
            found.append((triple[0], triple[1], triple[2]))
        else:
            message = "must be three strings [subject, relation, object]"
            item.report("triple", message, f"{key}[{i}]")
    return found
