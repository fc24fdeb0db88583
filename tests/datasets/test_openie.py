"""Reading HippoRAG's passages, OpenIE results and questions."""

import json
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Triple
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.items import read_items
from tuner.datasets.lines import ProblemLog
from tuner.datasets.openie import Openie

PASSAGES: list[dict[str, Any]] = [
    {"title": "Ada", "text": "Ada wrote a program."},
    {"title": "Engine", "text": "Babbage designed it.", "idx": 1},
    {"title": "Paris", "text": "A city."},
    {"title": "Paris", "text": "A name."},
]
SAMPLE = {"id": "q1", "query": "Who wrote?", "relevant_docs": ["Ada", "Engine"]}


def doc(number: int, **changes: Any) -> dict[str, Any]:
    passage = PASSAGES[number]
    good = {
        "title": passage["title"],
        "text": passage["text"],
        "passage": f"{passage['title']}\n{passage['text']}",
        "extracted_entities": [f"entity {number}"],
        "extracted_triples": [[f"subject {number}", "relation", "object"]],
    }
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


def hotpotqa(**changes: Any) -> dict[str, Any]:
    return {
        "_id": "h1",
        "question": "Who wrote for the engine?",
        "answer": "Ada",
        "supporting_facts": [["Ada", 0]],
        "context": [["Ada", ["Ada wrote a program."]], ["Rome", ["Another city."]]],
        **changes,
    }


def write(
    folder: Path, *, passages: Any = PASSAGES, docs: Any = ..., questions: Any = (SAMPLE,)
) -> Path:
    if passages is not None:
        (folder / "corpus.json").write_text(json.dumps(passages))
    results = {"docs": [doc(i) for i in range(4)] if docs is ... else docs, "avg": float("nan")}
    (folder / "openie.json").write_text(json.dumps(results, indent=1))
    if questions is not None:
        (folder / "questions.json").write_text(json.dumps(questions))
    return folder


def problems_of(path: Path, **options: str) -> list[str]:
    folder = path if path.is_dir() else path.parent
    with pytest.raises(InputError) as caught:
        Openie.read(path, **options)
    return [str(problem).removeprefix(f"{folder}").lstrip("/") for problem in caught.value.problems]


class TestWhatIsRead:
    def test_passages_facts_and_samples(self, tmp_path: Path) -> None:
        dataset = Openie.read(write(tmp_path))
        ada, engine, *_ = dataset.corpus.documents
        assert [d.title for d in dataset.corpus.documents] == ["Ada", "Engine", "Paris", "Paris"]
        assert dataset.corpus.triples[0] == Triple(ada.id, "subject 0", "relation", "object")
        assert dataset.corpus.entities[engine.id] == ("entity 1",)
        assert dataset.qrels == {"q1": {ada.id: 1.0, engine.id: 1.0}}
        assert dataset.warnings == ()

    def test_any_of_the_files_stands_for_the_folder(self, tmp_path: Path) -> None:
        folder = write(tmp_path)
        (folder / "settings.json").write_text("{}")
        prints = {Openie.read(folder / name).fingerprint for name in ("corpus.json", "openie.json")}
        assert prints == {Openie.read(folder).fingerprint}

    def test_without_a_corpus_the_results_are_the_passages(self, tmp_path: Path) -> None:
        with_corpus = Openie.read(write(tmp_path)).fingerprint
        (tmp_path / "corpus.json").unlink()
        assert Openie.read(tmp_path).fingerprint == with_corpus

    def test_a_passage_in_one_string(self, tmp_path: Path) -> None:
        plain = Openie.read(write(tmp_path)).fingerprint
        docs = [doc(i, title=..., text=..., idx=f"chunk-{i}") for i in range(4)]
        assert Openie.read(write(tmp_path, docs=docs)).fingerprint == plain
        assert Openie.read(write(tmp_path, docs=docs, passages=None)).fingerprint == plain

    def test_questions_of_a_published_set(self, tmp_path: Path) -> None:
        dataset = Openie.read(write(tmp_path, questions=[hotpotqa()]))
        ada = dataset.corpus.documents[0]
        assert len(dataset.corpus.documents) == 4  # its distractor "Rome" is no passage here
        assert dataset.qrels == {"h1": {ada.id: 1.0}}
        assert dataset.evidences["h1"].entities == ("Ada",)
        assert dataset.answers == {"h1": ("Ada",)}

    def test_a_question_about_another_passage_is_left_out(self, tmp_path: Path) -> None:
        other = hotpotqa(_id="h2", supporting_facts=[["Ada", 0], ["Rome", 0]])
        dataset = Openie.read(write(tmp_path, questions=[hotpotqa(), other]))
        assert [query.id for query in dataset.queries] == ["h1"]
        assert dataset.warnings == (
            "1 questions have a relevant paragraph that is no passage here and were left out "
            "('h2')",
        )

    def test_why_no_question_is_left_is_told(self, tmp_path: Path) -> None:
        other = hotpotqa(_id="h2", supporting_facts=[["Ada", 0], ["Rome", 0]])
        assert problems_of(write(tmp_path, questions=[other])) == [
            ": no question has a relevant document, so none can be scored; 1 questions have a "
            "relevant paragraph that is no passage here and were left out ('h2')"
        ]

    def test_several_files_of_questions(self, tmp_path: Path) -> None:
        folder = write(tmp_path)
        (folder / "hotpotqa.json").write_text(json.dumps([hotpotqa()]))
        assert Openie.read(folder, split="hotpotqa").queries[0].id == "h1"
        assert Openie.read(folder, split="questions").queries[0].id == "q1"
        assert problems_of(folder) == [
            ": several files of questions: hotpotqa, questions; choose one with --qrels "
            "(in Python: split_name), or keep only one"
        ]
        assert problems_of(folder, split="dev") == [
            ": no questions named 'dev', as asked for by --qrels; known: hotpotqa, questions"
        ]


class TestOddities:
    def test_what_a_language_model_got_wrong_is_left_out_and_counted(self, tmp_path: Path) -> None:
        good = ["Ada", "wrote", "program"]
        triples = [good, ["a", "b"], ["a", "b", "c", "d"], [], ["a", "b", 3], "abc", ["", "b", "c"]]
        docs = [
            doc(0, extracted_triples=[*triples, good], extracted_entities=["Ada", 3, "", "Ada"]),
            *(doc(i) for i in range(1, 4)),
        ]
        dataset = Openie.read(write(tmp_path, docs=docs))
        ada = dataset.corpus.documents[0].id
        assert [t for t in dataset.corpus.triples if t.document_id == ada] == [Triple(ada, *good)]
        assert dataset.corpus.entities[ada] == ("Ada",)
        assert dataset.warnings == (
            "1 entities are not strings and were left out (in record 1)",
            "6 triples do not have three parts (subject, relation, object) and were left out "
            "(in record 1)",
        )

    def test_passages_and_results_that_do_not_cover_each_other(self, tmp_path: Path) -> None:
        docs = [doc(0), doc(1), doc(2, title="Rome", text="Another.")]
        assert Openie.read(write(tmp_path, docs=docs)).warnings == (
            "1 OpenIE results are not about a passage here and were left out (in record 3)",
            "2 passages have no OpenIE result (in records 3, 4)",
        )

    def test_a_passage_that_is_there_twice(self, tmp_path: Path) -> None:
        dataset = Openie.read(write(tmp_path, passages=[*PASSAGES, PASSAGES[0]]))
        assert len(dataset.corpus.documents) == 4
        assert dataset.warnings == (
            "1 passages are the same as an earlier one and were left out (in record 5)",
        )


class TestProblems:
    def test_without_questions_it_says_what_to_add(self, tmp_path: Path) -> None:
        assert problems_of(write(tmp_path, questions=None)) == [
            ": no questions, so nothing can be scored; add a file of questions in the same folder: "
            "the HotpotQA, 2WikiMultihopQA or MuSiQue JSON that the passages come from, or JSON "
            "lines with query and relevant_docs (titles or document ids)"
        ]

    def test_without_results(self, tmp_path: Path) -> None:
        (write(tmp_path) / "openie.json").unlink()
        (problem,) = problems_of(tmp_path / "corpus.json")
        assert problem.startswith(": no OpenIE results here; expected a folder with HippoRAG's")

    def test_two_files_of_results(self, tmp_path: Path) -> None:
        folder = write(tmp_path)
        (folder / "more.json").write_text((folder / "openie.json").read_text())
        assert problems_of(folder) == [
            ": holds several files of OpenIE results: more.json, openie.json; keep one"
        ]

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"extracted_entities": ...}, "record 1: 'extracted_entities' is missing; the keys "
             "are: title, text, passage, extracted_triples"),
            ({"extracted_triples": {}}, "record 1.extracted_triples: must be a list of triples, "
             "got an object"),
            ({"title": 3}, 'record 1.title: must be a string, got the number 3; write "3"'),
            ({"title": ..., "text": ..., "passage": ""}, "record 1.passage: must not be empty"),
            ({"title": "", "text": None}, "record 1: has no title and no text"),
        ],
    )  # fmt: skip
    def test_of_a_result(self, tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
        docs = [doc(0, **changes), *(doc(i) for i in range(1, 4))]
        assert f"openie.json: {expected}" in problems_of(write(tmp_path, docs=docs))

    def test_of_all_files_at_once(self, tmp_path: Path) -> None:
        folder = write(
            tmp_path,
            passages=[*PASSAGES, {"title": "", "text": ""}],
            docs=[3, doc(0)],
            questions=[{**SAMPLE, "relevant_docs": ["Rome", "Paris"]}],
        )
        unknown = "no passage has this id, and not just one has this title"
        assert problems_of(folder) == [
            "corpus.json: record 5: has no title and no text",
            "openie.json: record 1: a record must be a JSON object, got the number 3",
            f"questions.json: record 1: unknown document 'Rome': {unknown}",
            f"questions.json: record 1: unknown document 'Paris': {unknown}",
            ": warning: 3 passages have no OpenIE result (in records 2-4)",
        ]

    def test_of_a_published_set_too(self, tmp_path: Path) -> None:
        folder = write(tmp_path, docs=[3, doc(0)], questions=[hotpotqa(question="")])
        assert problems_of(folder) == [
            "openie.json: record 1: a record must be a JSON object, got the number 3",
            "questions.json: record 1.question: must not be empty",
        ]

    def test_results_about_other_texts(self, tmp_path: Path) -> None:
        docs = [doc(i, text=f"Other {i}.") for i in range(4)]
        assert problems_of(write(tmp_path, docs=docs)) == [
            "openie.json: is about other texts: no document has title and text of one in "
            "corpus.json",
            ": warning: 4 OpenIE results are not about a passage here and were left out "
            "(in records 1-4)",
            ": warning: 4 passages have no OpenIE result (in records 1-4)",
        ]

    @pytest.mark.parametrize("content", ['{"docs": 3}', "[1]", "3", '{"docs": null}'])
    def test_results_of_another_shape(self, tmp_path: Path, content: str) -> None:
        file = tmp_path / "openie.json"
        file.write_text(content)
        log = ProblemLog()
        assert read_items(file, log, list_key="docs") == []
        assert [problem.message for problem in log.problems()] == [
            "must be an object with a list of records 'docs'"
        ]


class TestPublishedSample:
    def test_counts(self, published: Any) -> None:
        questions = published.sample("musique.jsonl").stem
        dataset = open_dataset(published.sample("hipporag_openie.json"), split_name=questions)
        summary = dataset.summary()
        counts = (10, 4, 9) if published.is_ours else (50, 3, 8)
        assert (summary.documents, summary.queries, summary.relevant) == counts
        # One of ours, and 7 of the true 30, are not among the passages.
        assert len(dataset.corpus.entities) == (9 if published.is_ours else 23)
        assert summary.triples == (19 if published.is_ours else 189)
        told = [2, 1, 1, 6] if published.is_ours else [4, 7, 27, 17]
        assert [int(warning.split()[0]) for warning in dataset.warnings] == told

    def test_all_results(self, published: Any, tmp_path: Path) -> None:
        for name in ("hipporag_openie.json", "musique.jsonl"):
            (tmp_path / name).symlink_to(published.sample(name).resolve())
        dataset = open_dataset(tmp_path)
        assert dataset.summary().documents == (10 if published.is_ours else 30)
        # README of the samples: so many triples have 2, 4 or 5 parts.
        broken = 2 if published.is_ours else 9
        assert dataset.warnings[0].startswith(f"{broken} triples do not have three parts")

    def test_the_converted_set_says_the_same(self, published: Any) -> None:
        questions = published.sample("musique.jsonl").stem
        corpus = open_dataset(published.sample("hipporag_openie.json"), split_name=questions).corpus
        whole = open_dataset(published.folder / "musique").corpus
        assert set(corpus.documents) <= set(whole.documents)
        ours = [triple for triple in whole.triples if triple.document_id in corpus.entities]
        assert set(ours) == set(corpus.triples)
        for document_id, names in corpus.entities.items():
            assert names == whole.entities[document_id]
