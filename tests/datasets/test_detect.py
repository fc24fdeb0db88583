"""Telling the formats apart: of every sample, exactly one format says that it is its own."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tuner.core import registry
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.items import peek_keys

FORMATS = {
    "hotpotqa.json": "hotpotqa",
    "hotpotqa_huggingface.json": "hotpotqa",
    "2wiki.json": "wiki2",
    "musique.jsonl": "musique",
    "multihop_rag_corpus.json": "multihop_rag",
    "multihop_rag_queries.json": "multihop_rag",
    "hipporag_corpus.json": "openie",
    "hipporag_openie.json": "openie",
    "trec_qrels.txt": "trec",
    "trec_qrels_graded.txt": "trec",
    "trec_run.txt": "trec",
}

BEIR_CORPUS = '{"_id": "d1", "title": "", "text": "Text."}\n'
SAMPLE = '{"query": "Who?", "relevant_docs": ["d1"]}\n'
BEIR_QUERY = '{"_id": "q1", "text": "Who?"}\n'


def detected(path: Path) -> list[str]:
    kinds = registry.kinds("datasets")
    return [kind for kind in kinds if registry.load("datasets", kind).detect(path)]


@pytest.mark.parametrize(("name", "expected"), FORMATS.items())
def test_every_sample_is_of_exactly_one_format(published: Any, name: str, expected: str) -> None:
    assert detected(published.sample(name)) == [expected]


def test_the_only_other_sample_is_a_part_of_a_beir_folder(published: Any, tmp_path: Path) -> None:
    beir = published.sample("beir_qrels.tsv")
    known = {published.sample(name) for name in FORMATS}
    assert set((published.folder / "formats").iterdir()) - known == {beir}
    (tmp_path / "qrels").mkdir()
    shutil.copy(beir, tmp_path / "qrels/test.tsv")
    assert detected(tmp_path) == ["beir"]


@pytest.mark.parametrize("name", ["2wiki", "hotpotqa", "musique"])
def test_whole_sets(published: Any, name: str) -> None:
    assert detected(published.folder / name) == ["beir"]


def test_a_folder_of_many_sets_is_none_but_names_those_in_it(published: Any) -> None:
    assert detected(published.folder / "formats") == []
    named = re.escape(published.sample("2wiki.json").name)
    with pytest.raises(InputError, match=rf"did you mean '[^\n]*{named}'"):
        open_dataset(published.folder / "formats")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"corpus.jsonl": BEIR_CORPUS}, ["beir"]),
        ({"corpus.jsonl": BEIR_CORPUS, "queries.jsonl": BEIR_QUERY}, ["beir"]),
        ({"corpus.jsonl": BEIR_CORPUS, "samples.jsonl": SAMPLE}, ["samples"]),
        ({"corpus.jsonl": BEIR_CORPUS, "notes.jsonl": "{}\n"}, ["beir"]),
        ({"corpus.jsonl": BEIR_CORPUS, "qrels.txt": "q1 0 d1 1\n"}, ["trec"]),
        ({"corpus.jsonl": BEIR_CORPUS, "qrels.txt": "", "samples.jsonl": SAMPLE}, ["trec"]),
        ({"corpus.jsonl": BEIR_CORPUS, "qrels/dev.tsv": "", "samples.jsonl": SAMPLE}, ["beir"]),
        ({"qrels/dev.tsv": "q1\td1\t1\n", "qrels.txt": "q1 0 d1 1\n"}, ["beir"]),
        ({"a.json": '[{"query": 1, "evidence_list": []}]'}, []),
        ({"a.json": '[{"title": "", "text": ""}]'}, []),
        ({"a.json": '{"docs": [{"extracted_triples": []}]}'}, ["openie"]),
        ({"a.json": '{"docs": [{"extracted_triples": []}]}', "b.json": "[]"}, []),
        ({"notes.txt": "nothing\n"}, []),
        ({}, []),
    ],
)
def test_folders_that_share_a_part(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert detected(tmp_path) == expected


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff\xfe", b"[", b"{", b"[[{", b'"question context"', b"q 0 d"]
)
def test_other_files_are_of_no_format(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.json").write_bytes(content)
    assert detected(tmp_path / "file.json") == []
    assert detected(tmp_path / "nowhere.json") == []


class TestPeek:
    def test_only_the_first_record_counts(self, tmp_path: Path) -> None:
        file = tmp_path / "a.json"
        file.write_text('[{"a": {"b": [1]}}, {"c": 2}]')
        assert peek_keys(file) == {"a", "b"}

    def test_quoted_text_is_no_key(self, tmp_path: Path) -> None:
        file = tmp_path / "a.json"
        file.write_text(json.dumps({"a": 'He said: {"evidences": 3}, "b": 4'}))
        assert peek_keys(file) == {"a"}

    def test_a_broken_or_endless_record_tells_what_it_can(self, tmp_path: Path) -> None:
        file = tmp_path / "a.json"
        file.write_text('{"a": 1, "b": oops')
        assert peek_keys(file) == {"a", "b"}
        file.write_text(json.dumps({"a": "x" * 10, "b": "y" * 1_000_000, "c": 1}))
        assert peek_keys(file) == {"a", "b"}


BROKEN = {
    "an array": ("[", ":1: invalid JSON: Expecting value at column 2"),
    "one object": ('{"id": "q1", "question": "Wh', ":1: invalid JSON: Unterminated string"),
    "a later line": ('{"id": 1}\n{"id": 2\n', ":2: invalid JSON: Expecting ',' delimiter"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_json_is_told_instead_of_an_unknown_format(tmp_path: Path, case: str) -> None:
    content, expected = BROKEN[case]
    (tmp_path / "set.jsonl").write_text(content)
    with pytest.raises(InputError) as caught:
        open_dataset(tmp_path / "set.jsonl")
    assert f"set.jsonl{expected}" in str(caught.value)
    assert "known formats" not in str(caught.value)


def test_the_current_folder_is_meant_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "corpus.jsonl").write_text(BEIR_CORPUS)
    (tmp_path / "notes.txt").write_text("notes")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"did you mean '\.'\?"):
        open_dataset("notes.txt")


@pytest.mark.parametrize("format", ["musique", "hotpotqa", "wiki2"])
def test_a_folder_for_a_format_of_one_file_names_the_files_in_it(
    published: Any, format: str
) -> None:
    names = [published.sample(name).name for name, kind in FORMATS.items() if kind == format]
    with pytest.raises(InputError) as caught:
        open_dataset(published.folder / "formats", format=format)
    assert "is a folder; this format is a file" in str(caught.value)
    assert all(name in str(caught.value) for name in names)
