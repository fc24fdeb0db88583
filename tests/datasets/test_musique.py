"""Reading MuSiQue: supporting paragraphs, and paths from the decomposition."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.dataset import Evidence
from tuner.datasets.musique import Musique

Write = Callable[[Path, list[object]], None]


def paragraph(title: str, text: str, is_supporting: object = False) -> dict[str, object]:
    return {"idx": 0, "title": title, "paragraph_text": text, "is_supporting": is_supporting}


def record(**changes: Any) -> dict[str, Any]:
    good = {
        "id": "2hop__1_2",
        "question": "Where was the author of Brand born?",
        "answer": "Skien",
        "answer_aliases": ["Skien, Norway", "Skien"],
        "answerable": True,
        "paragraphs": [
            paragraph("Brand", "Ibsen wrote it.", True),
            paragraph("Paris", "A city."),
            paragraph("Ibsen", "Born in  Skien.", True),
        ],
        "question_decomposition": [
            {"id": 1, "question": "Brand >> author", "answer": "Henrik Ibsen"},
            {"id": 2, "question": "Where was #1 born?", "answer": "Skien"},
        ],
    }
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


def steps(*questions: str) -> list[dict[str, object]]:
    """Return a decomposition whose answers are A1, A2 and so on."""
    return [
        {"question": text, "answer": f"A{number}"} for number, text in enumerate(questions, start=1)
    ]


@pytest.fixture
def write(tmp_path: Path, write_lines: Write) -> Callable[..., Path]:
    def write_records(*records: object) -> Path:
        write_lines(tmp_path / "musique.jsonl", list(records))
        return tmp_path / "musique.jsonl"

    return write_records


def problems_of(file: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        Musique.read(file)
    return [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems]


class TestWhatIsRead:
    def test_a_record(self, write: Callable[..., Path]) -> None:
        dataset = Musique.read(write(record()))
        brand, _, ibsen = dataset.corpus.documents
        assert ibsen.text == "Born in Skien."
        text = "Where was the author of Brand born?"
        assert dataset.queries == (Query("2hop__1_2", text, "2hop"),)
        assert dataset.qrels == {"2hop__1_2": {brand.id: 1.0, ibsen.id: 1.0}}
        assert dataset.answers == {"2hop__1_2": ("Skien", "Skien, Norway")}
        path = (
            ("Brand", "author", "Henrik Ibsen"),
            ("Henrik Ibsen", "Where was Henrik Ibsen born?", "Skien"),
        )
        evidence = Evidence(("Brand", "Henrik Ibsen", "Skien"), (path,))
        assert dataset.evidences == {"2hop__1_2": evidence}
        assert dataset.warnings == ()

    def test_a_json_array_reads_the_same(self, write: Callable[..., Path], tmp_path: Path) -> None:
        other = tmp_path / "musique.json"
        other.write_text(json.dumps([record()], indent=1))
        assert Musique.read(other).fingerprint == Musique.read(write(record())).fingerprint

    @pytest.mark.parametrize(
        ("questions", "last"),
        [
            (["x >> r", "#1 Court >> r"], ("A1 Court", "r", "A2")),
            (["x >> r", "y >> s", "Midway, #2 , #1 >> r"], ("Midway, A2 , A1", "r", "A3")),
            (["x >> r", "y >> s", "Is #2 in #1?"], ("A2", "Is A2 in A1?", "A3")),
            (["Who was it?"], ("", "Who was it?", "A1")),
            # There is no earlier step of that number: the words are meant as they are.
            (["x >> r", "Who sang the #1 hit #7?"], ("A1", "Who sang the A1 hit #7?", "A2")),
            (["Who sang the #1 hit?"], ("", "Who sang the #1 hit?", "A1")),
            (["x >> r", "#0 >> s"], ("#0", "s", "A2")),
        ],
    )
    def test_references(
        self, write: Callable[..., Path], questions: list[str], last: tuple[str, str, str]
    ) -> None:
        dataset = Musique.read(write(record(question_decomposition=steps(*questions))))
        found = [step for path in dataset.evidences["2hop__1_2"].paths for step in path]
        assert [step for step in found if step[2] == f"A{len(questions)}"] == [last]

    @pytest.mark.parametrize(
        ("id_", "query_type"), [("3hop1__1_2_3", "3hop1"), ("plain", ""), ("4hop3__9", "4hop3")]
    )
    def test_query_type(self, write: Callable[..., Path], id_: str, query_type: str) -> None:
        assert Musique.read(write(record(id=id_))).queries[0].query_type == query_type

    def test_without_a_decomposition_there_is_no_evidence(self, write: Callable[..., Path]) -> None:
        assert Musique.read(write(record(question_decomposition=...))).evidences == {}

    def test_unanswerable_questions_are_left_out(self, write: Callable[..., Path]) -> None:
        dataset = Musique.read(write(record(), record(id="2hop__3_4", answerable=False)))
        assert [query.id for query in dataset.queries] == ["2hop__1_2"]
        assert dataset.warnings == (
            "1 questions are marked as not answerable and were left out (in line 2)",
        )


class TestProblems:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"id": 7}, '1: id: must be a string, got the number 7; write "7"'),
            ({"question": ""}, "1: question: must not be empty"),
            ({"paragraphs": ...}, "1: 'paragraphs' is missing; the keys are: id, question, "
             "answer, answer_aliases, answerable, question_decomposition"),
            ({"paragraphs": [3]}, "1: paragraphs[0]: must be an object"),
            ({"paragraphs": [{"title": "Paris"}]}, "1: paragraphs[0]: 'title' and "
             "'paragraph_text' must be strings"),
            ({"paragraphs": [paragraph("", " ")]}, "1: paragraphs[0]: has no title and no text"),
            ({"paragraphs": [paragraph("a", "b", 1)]}, "1: paragraphs[0]: 'is_supporting' must "
             "be true or false"),
            ({"question_decomposition": "x"}, "1: question_decomposition: must be a list of "
             "objects, got a string"),
            ({"question_decomposition": ["x"]}, "1: question_decomposition[0]: must be an object"),
            ({"question_decomposition": [{"question": "x"}]}, "1: question_decomposition[0]: "
             "'question' and 'answer' must be strings"),
            ({"answer_aliases": "Skien"}, "1: answer_aliases: must be a list of strings"),
            ({"answer": 35}, '1: answer: must be a string, got the number 35; write "35"'),
        ],
    )  # fmt: skip
    def test_one(self, write: Callable[..., Path], changes: dict[str, Any], expected: str) -> None:
        assert problems_of(write(record(**changes))) == [expected]

    def test_all_at_once(self, write: Callable[..., Path]) -> None:
        file = write(record(), '{"id"', record(question=""), record(), "7")
        assert problems_of(file) == [
            "2: invalid JSON: Expecting ':' delimiter at column 6",
            "5: a record must be a JSON object, got the number 7",
            "3: question: must not be empty",
            "3: duplicate id '2hop__1_2', first in line 1",
            "4: duplicate id '2hop__1_2', first in line 1",
        ]


class TestPublishedSample:
    def test_counts(self, published: Any) -> None:
        dataset = open_dataset(published.sample("musique.jsonl"))
        summary = dataset.summary()
        counts = (36, 10, 28) if published.is_ours else (393, 20, 59)
        assert (summary.documents, summary.queries, summary.relevant) == counts
        each = (4, 2, 2, 1, 1) if published.is_ours else (6, 6, 3, 3, 2)
        types = ("2hop", "3hop1", "3hop2", "4hop1", "4hop3")
        assert summary.query_types == dict(zip(types, each, strict=True))
        assert dataset.warnings == ()

    def test_the_converted_set_says_the_same(self, published: Any) -> None:
        sample = open_dataset(published.sample("musique.jsonl"))
        whole = open_dataset(published.folder / "musique").select(sample.qrels)
        assert {q.id: q for q in whole.queries} == {q.id: q for q in sample.queries}
        assert (whole.qrels, whole.evidences) == (sample.qrels, sample.evidences)
        assert whole.answers == sample.answers
        assert set(sample.corpus.documents) <= set(whole.corpus.documents)
