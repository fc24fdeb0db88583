"""Reading MultiHop-RAG's articles and questions."""

import json
from pathlib import Path
from typing import Any

import pytest

from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.multihop_rag import MultihopRag

URL = "https://example.org/"


def article(name: str, **changes: Any) -> dict[str, Any]:
    return {"title": f"On {name}", "body": f"All\n\nof {name}.", "url": URL + name, **changes}


def question(**changes: Any) -> dict[str, Any]:
    good = {
        "query": "What of a and b?",
        "answer": "Yes",
        "question_type": "comparison_query",
        "evidence_list": [{"url": URL + "a", "title": "On a"}, {"title": " On  b"}],
    }
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


ARTICLES = [article("a"), article("b"), article("c")]


def write(folder: Path, articles: list[Any], questions: list[Any]) -> Path:
    (folder / "corpus.json").write_text(json.dumps(articles))
    (folder / "MultiHopRAG.json").write_text(json.dumps(questions))
    return folder


def problems_of(folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        open_dataset(folder, format="multihop_rag")
    return [str(problem).removeprefix(f"{folder}").lstrip("/") for problem in caught.value.problems]


class TestWhatIsRead:
    def test_records(self, tmp_path: Path) -> None:
        dataset = MultihopRag.read(write(tmp_path, ARTICLES, [question()]))
        first, second, _ = dataset.corpus.documents
        assert (first.title, first.text) == ("On a", "All\n\nof a.")
        (query,) = dataset.queries
        assert (query.text, query.query_type) == ("What of a and b?", "comparison_query")
        assert dataset.qrels == {query.id: {first.id: 1.0, second.id: 1.0}}
        assert dataset.answers == {query.id: ("Yes",)}

    def test_another_file_of_the_folder_is_refused(self, tmp_path: Path) -> None:
        folder = write(tmp_path, ARTICLES, [question()])
        (folder / "notes.json").write_text("{}")
        with pytest.raises(InputError, match=r"notes.json: does not belong here"):
            MultihopRag.read(folder / "notes.json")

    def test_either_file_finds_the_other(self, tmp_path: Path) -> None:
        folder = write(tmp_path, ARTICLES, [question()])
        (folder / "notes.json").write_text("{}")
        prints = {
            MultihopRag.read(folder / name).fingerprint
            for name in ("corpus.json", "MultiHopRAG.json", "")
        }
        assert len(prints) == 1

    def test_null_queries_are_left_out_with_a_warning(self, tmp_path: Path) -> None:
        null = question(query="Who?", question_type="null_query", evidence_list=[])
        dataset = MultihopRag.read(write(tmp_path, ARTICLES, [question(), null]))
        assert len(dataset.queries) == 1
        assert dataset.warnings[0].startswith("1 of 2 questions have no relevant document and were")

    def test_a_question_that_is_there_twice_is_read_once(self, tmp_path: Path) -> None:
        dataset = MultihopRag.read(write(tmp_path, ARTICLES, [question(), question()]))
        assert len(dataset.queries) == 1
        assert "1 records repeat an earlier question" in dataset.warnings[0]


class TestProblems:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"query": ""}, "record 2.query: must not be empty"),
            ({"evidence_list": ...}, "record 2: 'evidence_list' is missing; the keys are: query, "
             "answer, question_type"),
            ({"evidence_list": {}}, "record 2.evidence_list: must be a list of objects, got an "
             "object"),
            ({"evidence_list": [3]}, "record 2.evidence_list[0]: must be an object with the url, "
             "or the title, of one of the articles"),
            ({"evidence_list": [{"url": URL + "x", "title": "On a"}]}, "record 2.evidence_list[0]: "
             "must be an object with the url, or the title, of one of the articles; got "
             "'https://example.org/x'"),
            ({"evidence_list": [{"title": "On x"}]}, "record 2.evidence_list[0]: must be an "
             "object with the url, or the title, of one of the articles; got 'On x'"),
            ({"question_type": 1}, 'record 2.question_type: must be a string, got the number 1; '
             'write "1"'),
        ],
    )  # fmt: skip
    def test_of_a_question(self, tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
        folder = write(tmp_path, ARTICLES, [question(query="Good?"), question(**changes)])
        assert problems_of(folder / "MultiHopRAG.json") == [f": {expected}"]

    def test_of_the_articles_and_the_questions_together(self, tmp_path: Path) -> None:
        articles = [*ARTICLES, article("d", body=None), article("x", url=URL + "a")]
        assert problems_of(write(tmp_path, articles, [question(answer=5)])) == [
            "corpus.json: record 4.body: must not be empty",
            "corpus.json: record 5.url: another article has this url: record 1",
            'MultiHopRAG.json: record 1.answer: must be a string, got the number 5; write "5"',
        ]

    def test_a_missing_file(self, tmp_path: Path) -> None:
        (write(tmp_path, ARTICLES, [question()]) / "corpus.json").unlink()
        (problem,) = problems_of(tmp_path / "MultiHopRAG.json")
        assert "no file of articles here; expected a folder with MultiHop-RAG's" in problem

    def test_too_many_files(self, tmp_path: Path) -> None:
        folder = write(tmp_path, ARTICLES, [question()])
        (folder / "more.json").write_text(json.dumps(ARTICLES))
        assert problems_of(folder) == [
            ": holds several files of articles: corpus.json, more.json; keep one"
        ]
        assert len(MultihopRag.read(folder / "more.json").queries) == 1
        assert not MultihopRag.detect(folder)


def test_published_layout(published: Any) -> None:
    dataset = open_dataset(published.sample("multihop_rag_queries.json"))
    summary = dataset.summary()
    counts = (10, 9, 18) if published.is_ours else (3, 2, 4)
    assert (summary.documents, summary.queries, summary.relevant) == counts
    types = {"inference_query": 1, "temporal_query": 1}
    if published.is_ours:
        types = {"comparison_query": 2, "inference_query": 5, "temporal_query": 2}
    assert summary.query_types == types
    other = open_dataset(published.sample("multihop_rag_corpus.json"))
    assert other.fingerprint == dataset.fingerprint
    (warning,) = dataset.warnings
    count = 10 if published.is_ours else 3
    assert warning.startswith(f"1 of {count} questions have no relevant document and were left out")
