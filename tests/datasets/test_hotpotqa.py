"""Reading HotpotQA in both nestings, and what is common to all files of JSON records."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.dataset import Evidence
from tuner.datasets.hotpotqa import Hotpotqa

ADA = ["Ada Lovelace", ["Ada wrote a program.", " She was born in London."]]
ENGINE = ["Analytical Engine", ["Babbage designed it.", " It was never built."]]
PARIS = ["Paris", ["Paris is a city.", " It is in France."]]


def record(**changes: Any) -> dict[str, Any]:
    good = {
        "_id": "00123",
        "question": "Who wrote for the engine?",
        "answer": "Ada",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Ada Lovelace", 0], ["Analytical Engine", 1]],
        "context": [PARIS, ADA, ENGINE],
    }
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


def write(folder: Path, *records: object) -> Path:
    file = folder / "questions.json"
    file.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
    return file


def problems_of(file: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        Hotpotqa.read(file)
    return [str(problem).removeprefix(f"{file}: ") for problem in caught.value.problems]


class TestWhatIsRead:
    def test_records(self, tmp_path: Path) -> None:
        dataset = Hotpotqa.read(write(tmp_path, record()))
        assert dataset.name == "questions"
        paris, ada, engine = dataset.corpus.documents
        # printf 'Paris\nParis is a city. It is in France.' | sha1sum | cut -c 1-12
        assert paris == Document("057bd9be06b6", "Paris", "Paris is a city. It is in France.")
        assert dataset.queries == (Query("00123", "Who wrote for the engine?", "bridge", "hard"),)
        assert dataset.qrels == {"00123": {ada.id: 1.0, engine.id: 1.0}}
        assert dataset.evidences == {"00123": Evidence(("Ada Lovelace", "Analytical Engine"))}
        assert dataset.answers == {"00123": ("Ada",)}
        assert dataset.warnings == ()

    def test_columns_read_as_pairs_do(self, tmp_path: Path) -> None:
        pairs = Hotpotqa.read(write(tmp_path, record()))
        nested = record(
            context={
                "title": [title for title, _ in (PARIS, ADA, ENGINE)],
                "sentences": [sentences for _, sentences in (PARIS, ADA, ENGINE)],
            },
            supporting_facts={"title": ["Ada Lovelace", "Analytical Engine"], "sent_id": [0, 1]},
        )
        assert Hotpotqa.read(write(tmp_path, nested)).fingerprint == pairs.fingerprint

    def test_lines_gzip_bom_and_the_key_id_make_no_difference(self, tmp_path: Path) -> None:
        array = Hotpotqa.read(write(tmp_path, record(), record(_id="q2", question="And?")))
        lines = [record(_id=..., id="00123"), record(_id="q2", question="And?")]
        text = "\ufeff" + "\r\n\r\n".join(json.dumps(line) for line in lines)
        file = tmp_path / "questions.jsonl.gz"
        file.write_bytes(gzip.compress(text.encode()))
        assert Hotpotqa.detect(file)
        again = Hotpotqa.read(file)
        assert (again.fingerprint, again.name) == (array.fingerprint, array.name)

    def test_a_paragraph_of_two_questions_is_in_the_corpus_once(self, tmp_path: Path) -> None:
        dataset = Hotpotqa.read(write(tmp_path, record(), record(_id="q2", context=[ENGINE, ADA])))
        assert [document.title for document in dataset.corpus.documents] == [
            "Paris",
            "Ada Lovelace",
            "Analytical Engine",
        ]

    def test_sentences_without_their_spaces_are_parted(self, tmp_path: Path) -> None:
        bare = [[title, [part.strip() for part in parts]] for title, parts in (ADA, ENGINE)]
        dataset = Hotpotqa.read(write(tmp_path, record(context=bare)))
        assert dataset.corpus.documents[0].text == "Ada wrote a program. She was born in London."

    def test_an_id_is_made_from_the_question(self, tmp_path: Path) -> None:
        file = write(tmp_path, record(_id=..., question="Who?"), record(_id=..., question="When?"))
        ids = [query.id for query in Hotpotqa.read(file).queries]
        # printf 'Who?' | sha1sum | cut -c 1-12
        assert ids[0] == "q-c3d8cf2ba69e"
        assert len(set(ids)) == 2
        swapped = write(
            tmp_path, record(_id=..., question="When?"), record(_id=..., question="Who?")
        )
        assert [query.id for query in Hotpotqa.read(swapped).queries] == ids[::-1]


class TestOddities:
    def test_the_same_question_without_ids_is_read_once(self, tmp_path: Path) -> None:
        dataset = Hotpotqa.read(write(tmp_path, record(_id=...), record(_id=...)))
        assert len(dataset.queries) == 1
        assert dataset.warnings == (
            "1 records repeat an earlier question and were left out (in record 2)",
        )

    def test_a_question_that_lacks_a_supporting_paragraph_is_left_out(self, tmp_path: Path) -> None:
        dataset = Hotpotqa.read(write(tmp_path, record(_id="q0", context=[PARIS, ADA]), record()))
        assert [query.id for query in dataset.queries] == ["00123"]
        assert dataset.warnings == (
            "1 questions have a supporting title without a paragraph and were left out "
            "(in record 1)",
        )

    def test_a_question_without_supporting_facts_is_left_out(self, tmp_path: Path) -> None:
        dataset = Hotpotqa.read(write(tmp_path, record(), record(_id="q2", supporting_facts=[])))
        assert [query.id for query in dataset.queries] == ["00123"]
        assert dataset.warnings == (
            "1 of 2 questions have no relevant document and were left out (in record 2)",
        )

    def test_a_sentence_past_the_end_still_means_its_paragraph(self, tmp_path: Path) -> None:
        dataset = Hotpotqa.read(write(tmp_path, record(supporting_facts=[["Paris", 7]])))
        assert dataset.qrels["00123"] == {dataset.corpus.documents[0].id: 1.0}
        assert "past the paragraph's end" in dataset.warnings[0]

    def test_of_two_paragraphs_with_one_title_the_one_with_the_sentence(
        self, tmp_path: Path
    ) -> None:
        short = ["Paris", ["Paris is a name."]]
        file = write(tmp_path, record(context=[short, PARIS], supporting_facts=[["Paris", 1]]))
        dataset = Hotpotqa.read(file)
        assert dataset.qrels["00123"] == {dataset.corpus.documents[1].id: 1.0}


class TestProblems:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"question": ...}, "record 1: 'question' is missing; the keys are: _id, answer, type, "
             "level, supporting_facts, context"),
            ({"question": " "}, "record 1.question: must not be empty"),
            ({"question": ["Who?"]}, "record 1.question: must be a string, got a list"),
            ({"_id": 123}, 'record 1._id: must be a string, got the number 123; write "123"'),
            ({"_id": ""}, "record 1._id: must not be empty"),
            ({"type": 2}, 'record 1.type: must be a string, got the number 2; write "2"'),
            ({"level": True}, "record 1.level: must be a string, got true or false"),
            ({"context": ...}, "record 1: 'context' is missing; the keys are: _id, question, "
             "answer, type, level, supporting_facts"),
            ({"context": None}, "record 1.context: must be a list of [title, sentences] pairs, or "
             "two columns, got null"),
            ({"context": [ADA, ["Paris"]]}, "record 1.context[1]: must be a pair "
             "[title, sentences]"),
            ({"context": [ADA, ENGINE, ["Paris", "A city."]]}, "record 1.context[2]: must be a "
             "title and a list of sentences"),
            ({"context": [ADA, ENGINE, ["Paris", ["A city.", None]]]}, "record 1.context[2]: must "
             "be a title and a list of sentences"),
            ({"context": [ADA, ENGINE, [" ", []]]}, "record 1.context[2]: has no title and no "
             "text"),
            ({"context": {"title": ["Paris"]}}, "record 1.context: must have the lists 'title' "
             "and 'sentences'"),
            ({"context": {"title": ["Paris", "Rome"], "sentences": [["A city."]]}},
             "record 1.context: 'title' has 2 entries but 'sentences' has 1"),
            ({"supporting_facts": "Paris"}, "record 1.supporting_facts: must be a list of "
             "[title, sent_id] pairs, or two columns, got a string"),
            ({"supporting_facts": [["Paris"]]}, "record 1.supporting_facts[0]: must be a pair "
             "[title, sent_id]"),
            ({"supporting_facts": [["Paris", "0"]]}, "record 1.supporting_facts[0]: must be a "
             "title and a sentence index from 0"),
            ({"supporting_facts": [["Paris", -1]]}, "record 1.supporting_facts[0]: must be a "
             "title and a sentence index from 0"),
            ({"question": "\ud800?"}, "record 1: holds half of a surrogate pair (\\ud800 to "
             "\\udfff)"),
        ],
    )  # fmt: skip
    def test_one(self, tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
        file = tmp_path / "questions.json"
        file.write_text(json.dumps([record(**changes)]))  # in ASCII, so that surrogates survive
        assert problems_of(file) == [expected]

    def test_all_at_once(self, tmp_path: Path) -> None:
        bad = record(_id="q2", question=None, supporting_facts=[3])
        assert problems_of(write(tmp_path, record(), bad, "text", record())) == [
            "record 3: a record must be a JSON object, got a string",
            "record 2.supporting_facts[0]: must be a pair [title, sent_id]",
            "record 2.question: must not be empty",
            "record 4: duplicate id '00123', first in record 1",
        ]

    def test_lines_are_numbered_as_in_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "questions.jsonl"
        lines = [record(), "", record(_id="q2", question=""), record()]
        text = "\n".join(json.dumps(line) if line else "" for line in lines) + '\n{"_id": \n'
        file.write_text(text)
        assert [text.removeprefix(f"{file}:") for text in problems_of(file)] == [
            "5: invalid JSON: Expecting value at column 9",
            "3: question: must not be empty",
            "4: duplicate id '00123', first in line 1",
        ]

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"", "holds no record"),
            (b"[]", "holds no record"),
            (b'[{"_id": "q1"},\n {"_id" "q2"}]', ":2: invalid JSON: Expecting ':' delimiter at "
             "column 9"),
            (b'{\n "data": []\n}', "is one JSON object; expected an array of records, or one "
             "record a line"),
            (b'[{"question": "\xff"}]', ":1: invalid UTF-8: byte 0xff at position 16; save the "
             "file as UTF-8"),
            (b"\xff\xfe[\x00]\x00", "is UTF-16; save it as UTF-8"),
            (b"[" * 100_000, "invalid JSON: maximum recursion depth exceeded while decoding a "
             "JSON array from a unicode string"),
        ],
    )  # fmt: skip
    def test_a_broken_file(self, tmp_path: Path, content: bytes, expected: str) -> None:
        file = tmp_path / "questions.json"
        file.write_bytes(content)
        assert problems_of(file)[0].removeprefix(str(file)) == expected

    def test_a_gzip_file_that_is_none(self, tmp_path: Path) -> None:
        file = tmp_path / "questions.json.gz"
        file.write_bytes(b"[]")
        assert "corrupt gzip file" in problems_of(file)[0]

    def test_what_is_wrong_with_one_key_does_not_hide_what_is_with_another(
        self, tmp_path: Path
    ) -> None:
        records = [record(_id=f"q{i}", supporting_facts=...) for i in range(5)]
        problems = problems_of(write(tmp_path, *records, record(_id="q9", context=...)))
        assert any(problem.startswith("record 6: 'context' is missing") for problem in problems)

    def test_of_many_alike_the_first_are_shown(self, tmp_path: Path) -> None:
        records = [record(_id=f"q{i}", supporting_facts=...) for i in range(80)]
        problems = problems_of(write(tmp_path, *records))
        assert len(problems) == 4
        assert problems[-1] == "and 77 more like this, in records 4-80 (80 in all)"

    def test_no_question_can_be_scored(self, tmp_path: Path) -> None:
        file = write(tmp_path, record(supporting_facts=[]))
        assert problems_of(file) == ["no question has a relevant document, so none can be scored"]

    def test_a_split_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(
            InputError, match="no judgements named 'dev': this format holds one set"
        ):
            open_dataset(write(tmp_path, record()), split_name="dev")


class TestPublishedSamples:
    def test_official(self, published: Any) -> None:
        dataset = open_dataset(published.sample("hotpotqa.json"))
        summary = dataset.summary()
        counts = (32, 10, 20) if published.is_ours else (200, 20, 40)
        assert (summary.documents, summary.queries, summary.relevant) == counts
        bridges, comparisons = (7, 3) if published.is_ours else (12, 8)
        assert summary.query_types == {"bridge": bridges, "comparison": comparisons}
        easy, medium, hard = (2, 2, 6) if published.is_ours else (5, 8, 7)
        assert summary.difficulties == {"easy": easy, "hard": hard, "medium": medium}
        assert dataset.warnings == ()

    def test_hugging_face(self, published: Any) -> None:
        dataset = open_dataset(published.sample("hotpotqa_huggingface.json"))
        summary = dataset.summary()
        counts = (32, 10, 20) if published.is_ours else (100, 10, 20)
        assert (summary.documents, summary.queries, summary.relevant) == counts
        assert summary.query_types == {"bridge": 7, "comparison": 3}
        question = "Were Scott Derrickson and Ed Wood of the same nationality?"
        titles: tuple[str, ...] = ("Scott Derrickson", "Ed Wood")
        if published.is_ours:
            question = "Which river flows into the Corrin Sea at the capital of Velmora?"
            titles = ("Velmora", "Port Assel")
        assert dataset.queries[0].text == question
        assert dataset.evidences[dataset.queries[0].id].entities == titles
        assert dataset.warnings == ()

    # The true samples of the two forms have other questions.
    @pytest.mark.parametrize("published", ["invented"], indirect=True)
    def test_both_forms_say_the_same(self, published: Any) -> None:
        official = open_dataset(published.sample("hotpotqa.json"))
        nested = open_dataset(published.sample("hotpotqa_huggingface.json"))
        assert nested.corpus.documents == official.corpus.documents
        for one, other in zip(official.queries, nested.queries, strict=True):
            assert replace(one, id=other.id) == other
            assert official.qrels[one.id] == nested.qrels[other.id]
            assert official.evidences[one.id] == nested.evidences[other.id]
            assert official.answers[one.id] == nested.answers[other.id]

    def test_the_converted_set_says_the_same(self, published: Any) -> None:
        sample = open_dataset(published.sample("hotpotqa.json"))
        whole = open_dataset(published.folder / "hotpotqa").select(sample.qrels)
        assert {q.id: q for q in whole.queries} == {q.id: q for q in sample.queries}
        assert (whole.qrels, whole.evidences) == (sample.qrels, sample.evidences)
        assert whole.answers == sample.answers
        assert set(sample.corpus.documents) <= set(whole.corpus.documents)
