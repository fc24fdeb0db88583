"""Write the Atlas data set: ``python experiments/atlas/generate.py [FOLDER]``.

Fact tables in, corpus, questions, judgements and evidence paths out (BEIR layout). The same tables
give the same bytes everywhere.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import comparisons
import described
import intersections
import questions
from asking import NEEDED, Question, World, reveals
from distractors import distractors
from passages import omitted, write_passage
from questions import lowered, select
from supporting import supporting
from tables import FACTS, Atlas, load, shuffled

OUTPUT = Path(__file__).parents[2] / "tuner" / "datasets" / "atlas"
PASSAGE_COUNT = 1500
DISTRACTOR_COUNT = 220
PLAIN_COUNT = 72


def document_id(title: str) -> str:
    """Return a short id that stays the same when other passages come or go."""
    return hashlib.sha1(title.encode()).hexdigest()[:6]


def plain_questions(world: World, folder: Path) -> list[Question]:
    """Read the hand-written questions that hold no capital letter and no name."""
    found = []
    with (folder / "plain.tsv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            entity, text = world.atlas.entities[row["entity"]], row["question"]
            if text != text.lower() or reveals(text, entity):
                raise ValueError(
                    f"plain.tsv: {text!r} has a capital letter or gives its answer away"
                )
            path = ((entity.name, "is described by", text),)
            found.append(
                Question(
                    text,
                    row["answer"],
                    "plain",
                    {entity.name: NEEDED},
                    (path,),
                    entity.kind,
                    (entity.name,),
                    (entity.name,),
                    entities=(entity.name,),
                )
            )
    return found


def all_questions(world: World, folder: Path) -> list[Question]:
    """Choose the questions of each type, few about one entity or of one pattern."""
    used: Counter[str] = Counter()
    plain = shuffled_by_text(plain_questions(world, folder))[:PLAIN_COUNT]
    used.update(title for question in plain for title in question.gold)
    picks = {
        "bridged": (comparisons.bridged_comparisons(world), 28, 6, 1),
        "described": (described.described_questions(world), 60, 25, 1),
        "shared": (intersections.shared_questions(world), 10, 2, 1),
        "meeting": (intersections.intersection_questions(world), 40, 7, 2),
        "bridge3": (questions.bridge_questions(world, 3), 65, 2, 1),
        "bridge2": (questions.bridge_questions(world, 2), 75, 2, 1),
        "named": (comparisons.comparison_questions(world), 16, 2, 1),
        "direct": (questions.direct_questions(world), 40, 2, 1),
    }
    found = {
        name: select(pool, count, per_pattern=per_pattern, per_start=per_start, used=used)
        for name, (pool, count, per_pattern, per_start) in picks.items()
    }
    small = lowered([*found.pop("direct"), *found.pop("bridge2"), *found.pop("bridge3")], 0.18)
    chosen = [*small, *(question for group in found.values() for question in group), *plain]
    return shuffled_by_text(chosen)


def shuffled_by_text(chosen: list[Question]) -> list[Question]:
    """Put questions into an order that depends on nothing but their wording."""
    by_text = {question.text: question for question in chosen}
    if len(by_text) != len(chosen):
        raise ValueError("two questions have the same text")
    return [by_text[text] for text in shuffled(by_text, "order")]


def check(world: World, chosen: list[Question]) -> None:
    """Stop where a question gives a hidden entity away or its path is broken."""
    for question in chosen:
        for name in question.hidden:
            if reveals(question.text, world.atlas.entities[name]):
                raise ValueError(f"{question.text!r} names {name!r}")
        for path in question.paths:
            for before, after in pairwise(path):
                if before[2] != after[0]:
                    raise ValueError(f"{question.text!r}: {before} does not lead to {after}")


def kept_entities(atlas: Atlas, chosen: list[Question], count: int) -> list[str]:
    """Keep what the questions need, then the entities with the most links, up to ``count``."""
    needed = dict.fromkeys(
        name
        for question in chosen
        for name in (*question.entities, *question.gold, *question.rivals)
    )
    degree: Counter[str] = Counter()
    for entity in atlas.entities.values():
        for values in entity.values.values():
            targets = [target for value in values if (target := atlas.linked(value))]
            degree.update([target.name for target in targets])
            degree[entity.name] += len(targets)
    rest = sorted(shuffled(atlas.entities, "keep"), key=lambda name: -degree[name])
    return list(dict.fromkeys([*needed, *rest]))[:count]


def build(folder: Path = FACTS) -> dict[str, str]:
    """Return the text of each file of the data set by its relative path."""
    atlas = load(folder)
    skip = omitted(atlas)
    world = World(
        atlas, {name: write_passage(atlas, entity, skip) for name, entity in atlas.entities.items()}
    )
    chosen = all_questions(world, folder)
    check(world, chosen)
    kept = World(
        atlas, {name: world.passages[name] for name in kept_entities(atlas, chosen, PASSAGE_COUNT)}
    )
    subjects = [name for question in chosen for name in question.starts]
    passages = shuffled_documents(
        [*kept.passages.values(), *distractors(kept, subjects, DISTRACTOR_COUNT)]
    )
    ids = {passage.title: document_id(passage.title) for passage in passages}
    if len(set(ids.values())) != len(ids):
        raise ValueError("two titles share a document id: lengthen document_id")
    files: dict[str, list[str]] = {
        "corpus.jsonl": [],
        "queries.jsonl": [],
        "evidences.jsonl": [],
        "qrels/test.tsv": ["query-id\tcorpus-id\tscore"],
    }
    files["corpus.jsonl"] = [
        line({"_id": ids[p.title], "title": p.title, "text": p.text}) for p in passages
    ]
    for number, question in enumerate(chosen, start=1):
        query_id = f"q{number:03d}"
        files["queries.jsonl"].append(line({
            "_id": query_id, "text": question.text, "answer": question.answer, "query_type": question.query_type,
            "difficulty": question.difficulty, "hops": question.hops,
        }))  # fmt: skip
        files["evidences.jsonl"].append(line({
            "query_id": query_id, "entities": list(question.entities), "paths": question.paths,
            "supporting": [
                {"doc_id": ids[title], "text": text} for title, text in supporting(world, question)
            ],
        }))  # fmt: skip
        files["qrels/test.tsv"] += [
            f"{query_id}\t{ids[title]}\t{grade}" for title, grade in sorted(question.gold.items())
        ]
    return {name: "\n".join(lines) + "\n" for name, lines in files.items()}


def shuffled_documents(passages: list) -> list:
    by_title = {passage.title: passage for passage in passages}
    return [by_title[title] for title in shuffled(by_title, "documents")]


def line(record: dict[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False)


def write(folder: Path, facts: Path = FACTS) -> None:
    """Write the data set into a folder."""
    for name, text in build(facts).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT)
