"""Read MuSiQue: questions with paragraphs, and the simpler questions they are composed of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tuner.core.corpus import Query
from tuner.datasets.collected import Collected, one_line
from tuner.datasets.dataset import Dataset, Evidence, Step
from tuner.datasets.folders import refuse_folder
from tuner.datasets.items import Item, peek_keys, read_items
from tuner.datasets.texts import join_steps, names_in

_REFERENCE = re.compile(r"#(\d+)")


class Musique:
    """MuSiQue, as published. See `Musique.read`."""

    layout = (
        "JSON lines or a JSON array of MuSiQue records: id, question, answer, answer_aliases, "
        "paragraphs, question_decomposition"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the first record of a file has MuSiQue's keys."""
        return peek_keys(path) >= {"question", "paragraphs", "paragraph_text"}

    @staticmethod
    def read(path: Path) -> Dataset:
        """Read and check a file; the corpus is every paragraph of its questions, each once.

        - paragraphs: ``{"title", "paragraph_text", "is_supporting"}``; those that are supporting
          are relevant, with grade 1, and each is its own supporting text as a whole.
        - question_decomposition, optional: ``{"question", "answer"}``, the steps of the path. A
          question ``subject >> relation`` is split there. In a plain question, the relation is
          the question, and the subject is the first answer it refers to, or empty. ``#1`` and so
          on stand for the answers of earlier steps and are replaced by them.
        - id: its part before ``__``, such as ``2hop`` or ``3hop1``, becomes the query type.

        Questions that are marked as not answerable, or that have no supporting paragraph, are
        left out with a warning.

        Raises:
            InputError: everything that is wrong, with file and line, all at once.
        """
        path = Path(path)
        refuse_folder(path, Musique.detect, Musique.layout)
        collected = Collected()
        for item in read_items(path, collected.log):
            _add(item, collected)
        return collected.dataset(path)


def _add(item: Item, collected: Collected) -> None:
    relevant = _relevant(item, collected)
    steps = _steps(item)
    id_ = item.id("id", "_id")
    answers = [item.text("answer"), *item.texts("answer_aliases")]
    text = one_line(item.text("question", is_required=True))
    if item.values.get("answerable") is False:
        collected.odd("questions are marked as not answerable and were left out", item)
        return
    query = Query(id_, text, id_.split("__")[0] if "__" in id_ else "")
    evidence = Evidence(names_in(steps), join_steps(steps))
    graded = dict.fromkeys(relevant, 1.0)
    collected.add_query(item, query, graded, evidence, answers=answers, supports=relevant)


def _relevant(item: Item, collected: Collected) -> dict[str, list[str]]:
    """Add the record's paragraphs; return the texts of those that are supporting, by their ids."""
    found = {}
    for place, paragraph in _objects(item, "paragraphs"):
        title, text = paragraph.get("title") or "", paragraph.get("paragraph_text")
        is_supporting = paragraph.get("is_supporting", False)
        if not isinstance(title, str) or not isinstance(text, str):
            item.report("paragraph", "'title' and 'paragraph_text' must be strings", place)
            continue
        if not isinstance(is_supporting, bool):
            item.report("supporting", "'is_supporting' must be true or false", place)
        title, text = one_line(title), one_line(text)
        if not (title or text):
            item.report("empty", "has no title and no text", place)
            continue
        id_ = collected.add_document(title, text)
        if is_supporting is True:
            found[id_] = [text]
    return found


def _steps(item: Item) -> list[Step]:
    if item.values.get("question_decomposition") is None:
        return []
    steps: list[Step] = []
    answers: list[str] = []
    for place, step in _objects(item, "question_decomposition"):
        question, answer = step.get("question"), step.get("answer")
        if not isinstance(question, str) or not isinstance(answer, str):
            item.report("step", "'question' and 'answer' must be strings", place)
            question, answer = "", ""  # keeps the numbers of the steps after it
        steps.append(_step(question, answer, answers))
        answers.append(answer)
    return steps


def _step(question: str, answer: str, earlier: list[str]) -> Step:
    subject, arrow, relation = question.partition(" >> ")
    if arrow:
        return _filled(subject, earlier).strip(), _filled(relation, earlier).strip(), answer
    references = [int(number) for number in _REFERENCE.findall(question)]
    known = [earlier[n - 1] for n in references if 0 < n <= len(earlier)]
    return known[0] if known else "", _filled(question, earlier), answer


def _filled(text: str, earlier: list[str]) -> str:
    def answer(reference: re.Match[str]) -> str:
        number = int(reference[1])
        # "#1" may also be meant literally, as in a chart: then there is no such step before it.
        return earlier[number - 1] if 0 < number <= len(earlier) else reference[0]

    return _REFERENCE.sub(answer, text)


def _objects(item: Item, key: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects of a list, each with its place in the record."""
    found = []
    for i, value in enumerate(item.get(key, list, "a list of objects") or []):
        if isinstance(value, dict):
            found.append((f"{key}[{i}]", value))
        else:
            item.report("field type", "must be an object", f"{key}[{i}]")
    return found
