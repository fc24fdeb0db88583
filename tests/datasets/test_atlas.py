"""The data set that ships with the project: complete, consistent, and what its generator writes."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ATLAS = ROOT / "tuner" / "datasets" / "atlas"
EXPERIMENT = ROOT / "experiments" / "atlas"
FILES = ("corpus.jsonl", "queries.jsonl", "evidences.jsonl", "qrels/test.tsv")
TYPES = {"direct", "bridge2", "bridge3", "comparison", "intersection", "plain"}

Record = dict[str, Any]


def records(name: str) -> list[Record]:
    return [json.loads(line) for line in (ATLAS / name).read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def corpus() -> dict[str, Record]:
    return {document["_id"]: document for document in records("corpus.jsonl")}


@pytest.fixture(scope="module")
def queries() -> dict[str, Record]:
    return {query["_id"]: query for query in records("queries.jsonl")}


@pytest.fixture(scope="module")
def evidences() -> dict[str, Record]:
    return {evidence["query_id"]: evidence for evidence in records("evidences.jsonl")}


@pytest.fixture(scope="module")
def judgements() -> dict[str, dict[str, int]]:
    header, *lines = (ATLAS / "qrels" / "test.tsv").read_text("utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in lines:
        query, document, grade = line.split("\t")
        assert document not in found[query], f"{query} judges {document} twice"
        found[query][document] = int(grade)
    return found


@pytest.fixture(scope="module")
def names() -> dict[str, set[str]]:
    """Every name of an entity, from the fact tables: title, title without parenthesis, aliases."""
    found: dict[str, set[str]] = {}
    for table in (EXPERIMENT / "facts").glob("*.tsv"):
        with table.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                if "name" in row:
                    aliases = [alias.strip() for alias in (row["aliases"] or "").split("|")]
                    base = re.sub(r" \([^)]*\)$", "", row["name"])
                    found[row["name"]] = {name for name in (base, *aliases) if len(name) > 2}
    return found


def holds(text: str, name: str) -> bool:
    pattern = rf"(?<!\w){re.escape(name.casefold())}(?!\w)"
    return re.search(pattern, text.casefold()) is not None


def test_it_is_small_enough_to_ship() -> None:
    assert sum((ATLAS / name).stat().st_size for name in FILES) < 2_000_000


def test_ids_and_texts_are_unique_and_filled(
    corpus: dict[str, Record], queries: dict[str, Record]
) -> None:
    assert len(corpus) == len(records("corpus.jsonl")) >= 1_200
    assert len(queries) == len(records("queries.jsonl")) >= 300
    assert len({document["title"] for document in corpus.values()}) == len(corpus)
    assert len({query["text"].casefold() for query in queries.values()}) == len(queries)
    assert all(d["title"].strip() and len(d["text"].split()) >= 25 for d in corpus.values())
    assert all(q["text"].strip() and q["answer"].strip() for q in queries.values())
    assert all(isinstance(key, str) for key in (*corpus, *queries))


def test_types_and_difficulties_are_all_well_filled(queries: dict[str, Record]) -> None:
    types = Counter(query["query_type"] for query in queries.values())
    assert types.keys() == TYPES
    assert min(types.values()) >= 30
    difficulties = Counter(query["difficulty"] for query in queries.values())
    assert difficulties.keys() == {"easy", "medium", "hard"}
    assert min(difficulties.values()) >= 30
    for query_type, hops in (("direct", 1), ("plain", 1), ("bridge2", 2), ("bridge3", 3)):
        found = {q["hops"] for q in queries.values() if q["query_type"] == query_type}
        assert found == {hops}, query_type


def test_every_query_is_judged_within_the_corpus(
    corpus: dict[str, Record], queries: dict[str, Record], judgements: dict[str, dict[str, int]]
) -> None:
    assert judgements.keys() == queries.keys()
    for query_id, graded in judgements.items():
        assert graded.keys() <= corpus.keys()
        assert set(graded.values()) <= {1, 2}
        needed = sum(grade == 2 for grade in graded.values())
        query = queries[query_id]
        if query["query_type"].startswith("bridge"):
            assert needed == query["hops"]
        elif query["query_type"] in ("direct", "plain"):
            assert needed == 1
        else:
            assert needed >= 2


def test_evidence_paths_connect_and_end_in_the_answer(
    queries: dict[str, Record], evidences: dict[str, Record]
) -> None:
    assert evidences.keys() == queries.keys()
    for query_id, evidence in evidences.items():
        assert evidence["entities"]
        assert evidence["paths"]
        for path in evidence["paths"]:
            assert all(len(step) == 3 for step in path)
            for before, after in pairwise(path):
                assert before[2] == after[0], query_id
        if queries[query_id]["query_type"] in ("direct", "bridge2", "bridge3"):
            assert evidence["paths"][0][-1][2] == queries[query_id]["answer"]


def test_a_bridge_question_names_its_first_entity_only(
    queries: dict[str, Record], evidences: dict[str, Record], names: dict[str, set[str]]
) -> None:
    checked = 0
    for query_id, query in queries.items():
        if not query["query_type"].startswith("bridge"):
            continue
        (path,) = evidences[query_id]["paths"]
        for subject, _, _ in path[1:]:
            named = [name for name in names[subject] if holds(query["text"], name)]
            assert not named, f"{query_id} names {subject}"
            checked += 1
    assert checked >= 200


def test_the_answer_stands_in_a_passage_of_the_last_step(
    corpus: dict[str, Record],
    queries: dict[str, Record],
    evidences: dict[str, Record],
    names: dict[str, set[str]],
) -> None:
    by_title = {document["title"]: document["text"] for document in corpus.values()}
    for query_id, query in queries.items():
        if query["query_type"] not in ("direct", "bridge2", "bridge3"):
            continue
        subject, _, answer = evidences[query_id]["paths"][0][-1]
        # A passage may write the answer by an alias or a surname, and a list with "and".
        parts = {answer, *answer.split(", ")}
        spellings = parts | {answer.split()[-1]}
        for title, others in names.items():
            if re.sub(r" \([^)]*\)$", "", title) in parts:
                spellings |= others
        assert any(holds(by_title[subject], spelling) for spelling in spellings), query_id


def test_plain_questions_hold_no_capital_letter(queries: dict[str, Record]) -> None:
    plain = [q["text"] for q in queries.values() if q["query_type"] == "plain"]
    assert plain == [text.lower() for text in plain]


def test_some_other_questions_are_lower_case_too(queries: dict[str, Record]) -> None:
    named = [
        query["text"]
        for query in queries.values()
        if query["query_type"] in ("direct", "bridge2", "bridge3")
    ]
    share = sum(text == text.lower() for text in named) / len(named)
    assert 0.15 <= share <= 0.2


@pytest.mark.slow
def test_the_generator_writes_the_committed_bytes(tmp_path: Path) -> None:
    if not EXPERIMENT.is_dir():
        pytest.skip("experiments/atlas is not part of this distribution")
    subprocess.run([sys.executable, EXPERIMENT / "generate.py", tmp_path], check=True)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (ATLAS / name).read_bytes(), name


@pytest.mark.slow
def test_another_world_has_other_questions_and_passages_of_the_same_sorts(
    tmp_path: Path, queries: dict[str, Record], corpus: dict[str, Record]
) -> None:
    if not EXPERIMENT.is_dir():
        pytest.skip("experiments/atlas is not part of this distribution")
    environment = {**os.environ, "ATLAS_WORLD": "2"}
    command = [sys.executable, EXPERIMENT / "generate.py", tmp_path]
    subprocess.run(command, check=True, env=environment)
    made, passages = (
        [json.loads(line) for line in (tmp_path / name).read_text("utf-8").splitlines()]
        for name in ("queries.jsonl", "corpus.jsonl")
    )
    types = Counter(query["query_type"] for query in made)
    assert types == Counter(query["query_type"] for query in queries.values())
    assert len(passages) == len(corpus)
    # The hand-written questions are the same.
    shared = {query["text"] for query in made} & {query["text"] for query in queries.values()}
    assert len(shared) < len(made) / 4
    texts = {document["text"] for document in corpus.values()}
    assert len(texts & {passage["text"] for passage in passages}) < len(passages) / 20
