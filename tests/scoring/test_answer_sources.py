"""Answers of two sides: what fits together, and what is refused before anything is asked."""

from __future__ import annotations

import json

import pytest

from tuner.core.errors import InputError
from tuner.scoring.answer_sources import AnswerSources


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "a river"}\n')
    queries = [
        {"_id": "q1", "text": "which river", "answer": "old river"},
        {"_id": "q2", "text": "which town", "answer": "new town"},
        {"_id": "q3", "text": "which hill", "answer": "high hill"},
    ]
    (data / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (data / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td1\t1\n" for n in (1, 2, 3))
    )
    (tmp_path / "a.json").write_text('{"q1": "old river", "q2": "a town"}')
    (tmp_path / "b.json").write_text('{"q1": "old river", "q2": "new town"}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def duel(*names, config="data", keep=None, similarities=()):
    def load():
        raise AssertionError("two files need no configuration")

    sources = AnswerSources(names, keep=keep)
    return sources.duel(config, load, part="all", similarities=similarities, say=print)


def test_two_files_are_compared_on_what_either_holds(folder):
    found = duel("a.json", "b.json", similarities=["exact_match"])
    assert [query.id for query in found.queries] == ["q1", "q2"]  # neither holds q3
    ((name, (comparison, _)),) = found.metrics.items()
    assert name == "exact_match"
    assert (comparison.control_mean, comparison.treatment_mean) == (0.5, 1.0)
    assert found.changes == [(1, 1.0)]
    assert found.looks == ()


def test_the_usual_similarities_are_two(folder):
    assert list(duel("a.json", "b.json").metrics) == ["token_f1", "exact_match"]


@pytest.mark.parametrize(
    ("names", "config", "keep", "message"),
    [
        (["a.json"], "data", None, "give a second --answers"),
        (["a.json"] * 3, "data", None, "names at most two"),
        (["a.json", "m:f"], "data", None, "'data' is a data set; a function needs"),
        (["a.json", "none.json"], "data", None, "none.json: there is no such file"),
        (["a.json", "b.json"], "data", "kept", "these are files already"),
        (["m:f"], "config.yaml", "a.json", "this is a file; name a folder"),
    ],
)
def test_what_does_not_fit_is_refused(folder, names, config, keep, message):
    with pytest.raises(InputError, match=message):
        duel(*names, config=config, keep=None if keep is None else folder / keep)
