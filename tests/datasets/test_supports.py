"""Supporting texts: which formats bring them, and where they stand in their documents."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.grades import GradeScale
from tuner.datasets import open_dataset
from tuner.datasets.dataset import Dataset
from tuner.datasets.evidence import find_supporting
from tuner.evalset.writing import write_dataset

DATA = Path(__file__).resolve().parents[1] / "data"
EVIDENCE = GradeScale(judge="evidence")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("formats/hotpotqa.json", "hotpotqa"),
        ("formats/hotpotqa_huggingface.json", "hotpotqa"),
        ("formats/2wiki.json", "wiki2"),
        ("formats/musique.jsonl", "musique"),
        ("2wiki", "beir"),
    ],
)
def test_every_supporting_text_stands_in_its_document(name, format):
    dataset = open_dataset(DATA / name, format=format, scale=EVIDENCE)
    assert dataset.supports
    assert not any("word for word" in warning for warning in dataset.warnings)
    texts = {document.id: document.text for document in dataset.corpus.documents}
    for query, by_document in dataset.supports.items():
        assert by_document.keys() <= dataset.qrels[query].keys()
        for document, wanted in by_document.items():
            begin, end = dataset.spans[query][document]
            held = texts[document][begin:end]
            assert all(text in held for text in wanted)
            assert any(held.startswith(text) for text in wanted)
            assert any(held.endswith(text) for text in wanted)


def test_sentences_of_hotpotqa(tmp_path):
    record = {
        "_id": "1",
        "question": "Who?",
        "supporting_facts": [["Ada", 1], ["Ada", 2], ["Holm", 0]],
        "context": [["Ada", ["One.", " Two  words.", " Three."]], ["Holm", ["Here."]]],
    }
    (tmp_path / "asked.json").write_text(json.dumps([record]), encoding="utf-8")
    dataset = open_dataset(tmp_path / "asked.json", scale=EVIDENCE)
    ada, holm = dataset.corpus.documents
    assert dataset.supports == {"1": {ada.id: ("Two words.", "Three."), holm.id: ("Here.",)}}
    # "One. Two words. Three."
    assert dataset.spans == {"1": {ada.id: (5, 22), holm.id: (0, 5)}}


def test_facts_of_multihop_rag(tmp_path):
    article = {"title": "T", "body": "First line.\nIt opens\non Monday. End.", "url": "u"}
    evidence = {"title": "T", "url": "u", "fact": "It opens on Monday."}
    asked = {
        "query": "When?",
        "question_type": "x",
        "answer": "Monday",
        "evidence_list": [evidence],
    }
    for name, record in (("corpus", article), ("asked", asked)):
        (tmp_path / f"{name}.json").write_text(json.dumps([record]), encoding="utf-8")
    dataset = open_dataset(tmp_path, scale=EVIDENCE)
    ((found,),) = (by_document.values() for by_document in dataset.spans.values())
    assert article["body"][slice(*found)] == "It opens\non Monday."


def test_a_text_that_is_not_there_leaves_the_document_whole():
    made = Dataset.create(
        "made",
        "",
        documents=[Document("d", "", "A b c."), Document("e", "", "D.")],
        queries=[Query("q", "?")],
        qrels={"q": {"d": 1, "e": 1}},
        supports={"q": {"d": ["A b", "x"], "e": ["D."], "gone": ["y"]}},
    )
    assert made.supports == {"q": {"d": ("A b", "x"), "e": ("D.",)}}
    judged = made.with_scale(EVIDENCE)
    assert judged.spans == {"q": {"e": (0, 2)}}
    (warning,) = judged.warnings
    assert warning.startswith("1 judged documents do not hold their supporting text word for word")
    assert judged.fingerprint != made.fingerprint
    assert judged.select(["q"]).spans == judged.spans


def test_texts_that_nobody_judges_change_no_fingerprint():
    made = Dataset.create(
        "made",
        "",
        documents=[Document("d", "", "A b c.")],
        queries=[Query("q", "?")],
        qrels={"q": {"d": 1}},
        supports={"q": {"d": ["A b"]}},
    )
    bare = replace(made, supports={})
    assert bare.select(["q"]).fingerprint == made.fingerprint


def test_first_and_last_of_several():
    document = Document("d", "", "Zero. One. Two.")
    found = find_supporting({"q": {"d": ["Two.", "Zero."]}}, [document])
    assert found.spans == {"q": {"d": (0, 15)}}
    assert found.missing == ()


@pytest.mark.parametrize("layout", ["beir", "samples"])
def test_they_are_written_and_read_again(layout, tmp_path):
    dataset = open_dataset(DATA / "formats" / "2wiki.json")
    copy = write_dataset(dataset, tmp_path / "copy", layout=layout)
    assert copy.supports == dataset.supports


def test_a_data_set_without_any_cannot_be_judged_by_them():
    with pytest.raises(InputError, match="this data set has none; leave `judge` out"):
        open_dataset(DATA / "musique", scale=EVIDENCE)


@pytest.mark.parametrize("told", [7, ["x"], [{"doc_id": "1"}], [{"doc_id": 1, "text": "x"}]])
def test_evidences_of_another_shape_are_told(told, tmp_path):
    (tmp_path / "qrels").mkdir()
    for name, row in {
        "corpus.jsonl": {"_id": "1", "text": "One."},
        "queries.jsonl": {"_id": "q", "text": "?"},
        "evidences.jsonl": {"query_id": "q", "supporting": told},
    }.items():
        (tmp_path / name).write_text(json.dumps(row), encoding="utf-8")
    (tmp_path / "qrels" / "test.tsv").write_text("q\t1\t1\n", encoding="utf-8")
    with pytest.raises(InputError, match="'supporting' must be a list of"):
        open_dataset(tmp_path)


def test_samples_of_another_shape_are_told(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "1", "text": "One."}', encoding="utf-8")
    row = {"query": "?", "relevant_docs": ["1"], "supporting_texts": {"1": "One."}}
    (tmp_path / "samples.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(InputError, match="must be a list of strings"):
        open_dataset(tmp_path)
