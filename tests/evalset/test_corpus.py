"""A corpus opens without questions and judgements, or out of any data set."""

import json

import pytest

from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.evalset.corpus import open_corpus

CORPUS = '{"_id": "d1", "title": "Ada", "text": "Ada wrote."}\n{"_id": "d2", "text": "x"}\n'


def test_a_folder_a_file_and_what_lies_beside_it(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(CORPUS)
    (tmp_path / "triples.jsonl").write_text(
        '{"doc_id": "d1", "subject": "Ada", "relation": "wrote", "object": "it"}\n'
    )
    (tmp_path / "entities.jsonl").write_text('{"doc_id": "d1", "entities": ["Ada"]}\n')
    corpus = open_corpus(tmp_path)
    assert [document.id for document in corpus.documents] == ["d1", "d2"]
    assert corpus.triples[0].relation == "wrote"
    assert corpus.entities == {"d1": ("Ada",)}
    again = open_corpus(tmp_path / "corpus.jsonl")
    assert again.fingerprint == corpus.fingerprint != ""


def test_any_data_set_will_do():
    assert open_corpus("builtin:atlas") == open_dataset("builtin:atlas").corpus


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        open_corpus(tmp_path / "none")
    file = tmp_path / "passages.jsonl"
    file.write_text(CORPUS + '{"_id": "d1", "text": "again"}\n')
    with pytest.raises(InputError, match=r"passages\.jsonl:3: duplicate _id 'd1'"):
        open_corpus(file)
    with pytest.raises(InputError, match="not a data set in a known format"):
        open_corpus(tmp_path)


def test_openie_results_need_no_questions(tmp_path):
    file = tmp_path / "openie.json"
    docs = [
        {
            "title": "Ada",
            "text": "Ada was born in London.",
            "extracted_entities": ["Ada", "London"],
            "extracted_triples": [["Ada", "born in", "London"]],
        }
    ]
    file.write_text(json.dumps({"docs": docs}), encoding="utf-8")
    corpus = open_corpus(file)
    assert [(t.subject, t.relation, t.object) for t in corpus.triples] == [
        ("Ada", "born in", "London")
    ]
    assert list(corpus.entities.values()) == [("Ada", "London")]
    assert open_corpus(tmp_path) == corpus
    file.write_text(json.dumps({"docs": [{**docs[0], "title": 3}]}), encoding="utf-8")
    with pytest.raises(InputError, match=r"openie\.json: record 1\.title: must be a string"):
        open_corpus(file)
