"""Read HotpotQA: questions that bring their paragraphs and supporting sentences along."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tuner.core.checks import is_whole
from tuner.core.corpus import Query
from tuner.datasets.collected import Collected, one_line
from tuner.datasets.dataset import Dataset, Evidence
from tuner.datasets.folders import refuse_folder
from tuner.datasets.items import Item, is_texts, peek_keys, read_items

QUESTION_KEYS = frozenset({"question", "context", "supporting_facts"})


class Hotpotqa:
    """HotpotQA, as published and as Hugging Face nests it. See `Hotpotqa.read`."""

    layout = (
        "a JSON array or JSON lines of HotpotQA records: _id, question, answer, type, level, "
        "supporting_facts, context"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the first record of a file has HotpotQA's keys, and no evidences."""
        keys = peek_keys(path)
        return keys >= QUESTION_KEYS and "evidences" not in keys

    @staticmethod
    def read(path: Path) -> Dataset:
        """Read and check a file; the corpus is every paragraph of its questions, each once.

        - context: ``[title, [sentence, ...]]`` pairs, or columns ``{"title", "sentences"}``.
        - supporting_facts: ``[title, sentence index]`` pairs, or ``{"title", "sent_id"}``. The
          paragraphs that hold these sentences are relevant, with grade 1, and their titles are
          the query's entities. The sentences are the supporting texts.
        - _id or id: where both are missing, the id is made from the question's text.
        - type becomes the query type, level the difficulty.

        A question whose record lacks a supporting paragraph, as many in the full-wiki files do,
        is left out with a warning; so is a question without supporting facts.

        Raises:
            InputError: everything that is wrong, with file and record, all at once.
        """
        path = Path(path)
        refuse_folder(path, Hotpotqa.detect, Hotpotqa.layout)
        return read_supported(path, _titles)


def _titles(_: Item, titles: tuple[str, ...]) -> Evidence:
    return Evidence(titles)


def read_supported(path: Path, evidence_of: Callable[[Item, tuple[str, ...]], Evidence]) -> Dataset:
    """Read records with context and supporting facts.

    ``evidence_of`` takes the record and its supporting titles.

    Raises:
        InputError: everything that is wrong, with file and record, all at once.
    """
    collected = Collected()
    for item in read_items(path, collected.log):
        _add(item, evidence_of, collected)
    return collected.dataset(path)


def _add(
    item: Item,
    evidence_of: Callable[[Item, tuple[str, ...]], Evidence],
    collected: Collected,
) -> None:
    paragraphs = _paragraphs(item, collected)
    facts = _facts(item)
    titles = tuple(dict.fromkeys(title for title, _ in facts))
    supports = _supports(item, paragraphs, facts, collected)
    question = one_line(item.text("question", is_required=True))
    id_ = item.id("_id", "id")
    query_type, difficulty, answer = (item.text(key) for key in ("type", "level", "answer"))
    evidence = evidence_of(item, titles)
    if supports is None:
        collected.odd(
            "questions have a supporting title without a paragraph and were left out", item
        )
        return
    query = Query(id_, question, query_type, difficulty)
    relevant = dict.fromkeys(supports, 1.0)
    collected.add_query(item, query, relevant, evidence, answers=[answer], supports=supports)


class _Paragraph(NamedTuple):
    title: str
    document_id: str
    sentences: list[str]


def pairs(item: Item, key: str, first: str, second: str) -> list[tuple[str, Any, Any]]:
    """Return the pairs of a list, or of two columns, each with its place in the record."""
    value = item.get(key, (list, dict), f"a list of [{first}, {second}] pairs, or two columns")
    if value is None:
        return []
    if isinstance(value, dict):
        columns = value.get(first), value.get(second)
        if not all(isinstance(column, list) for column in columns):
            item.report("columns", f"must have the lists {first!r} and {second!r}", key)
            return []
        left, right = (column or [] for column in columns)
        if len(left) != len(right):
            message = f"{first!r} has {len(left)} entries but {second!r} has {len(right)}"
            item.report("columns", message, key)
        return [(f"{key}[{i}]", *pair) for i, pair in enumerate(zip(left, right, strict=False))]
    found = []
    for i, pair in enumerate(value):
        if isinstance(pair, list) and len(pair) == 2:
            found.append((f"{key}[{i}]", *pair))
        else:
            item.report("pairs", f"must be a pair [{first}, {second}]", f"{key}[{i}]")
    return found


def _paragraphs(item: Item, collected: Collected) -> list[_Paragraph]:
    found = []
    context = pairs(item, "context", "title", "sentences")
    joint = _joint(sentences for _, _, sentences in context)
    for place, title, sentences in context:
        if not isinstance(title, str) or not is_texts(sentences):
            item.report("paragraph", "must be a title and a list of sentences", place)
            continue
        text = one_line(joint.join(sentences))
        if not (title.strip() or text):
            item.report("empty", "has no title and no text", place)
            continue
        title = one_line(title)
        found.append(_Paragraph(title, collected.add_document(title, text), sentences))
    return found


def _joint(paragraphs: Iterable[Any]) -> str:
    """Return what goes between two sentences of a record.

    HotpotQA's sentences begin with their space, where there is one; 2WikiMultihopQA's have none.
    """
    later = [part for sentences in paragraphs if is_texts(sentences) for part in sentences[1:]]
    return "" if any(part[:1].isspace() for part in later) else " "


def _facts(item: Item) -> list[tuple[str, int]]:
    found = []
    for place, title, sentence in pairs(item, "supporting_facts", "title", "sent_id"):
        is_index = is_whole(sentence) and sentence >= 0
        if isinstance(title, str) and is_index:
            found.append((one_line(title), sentence))
        else:
            item.report("fact", "must be a title and a sentence index from 0", place)
    return found


def _supports(
    item: Item, paragraphs: list[_Paragraph], facts: list[tuple[str, int]], collected: Collected
) -> dict[str, list[str]] | None:
    """Return the supporting sentences by the id of their paragraph; None where one is missing."""
    found: dict[str, list[str]] = {}
    for title, number in facts:
        titled = [paragraph for paragraph in paragraphs if paragraph.title == title]
        holding = [paragraph for paragraph in titled if number < len(paragraph.sentences)]
        if not titled:
            return None  # judged by the others alone, the question would look easier than it is
        if not holding:
            # Some of HotpotQA's own indices lie past the end; the paragraph is meant all the same.
            collected.odd("supporting facts name a sentence past the paragraph's end", item)
        for paragraph in holding or titled:
            texts = found.setdefault(paragraph.document_id, [])
            if holding and (sentence := one_line(paragraph.sentences[number])):
                texts.append(sentence)
    return found
