"""Reading our own evaluation samples."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.core.corpus import Query, Triple
from tuner.core.errors import InputError
from tuner.core.rankings import Rankings
from tuner.datasets import open_dataset
from tuner.datasets.dataset import Evidence
from tuner.datasets.samples import Samples
from tuner.evalset.writing import write_dataset
from tuner.evaluation.evaluator import Evaluator

Write = Callable[[Path, list[object]], None]

CORPUS = [{"_id": name, "title": f"On {name}", "text": "Text."} for name in ("01", "1e5", "d3")]
SAMPLE = {
    "id": "7",
    "query": "谁写了程序?",
    "relevant_docs": ["01", "1e5"],
    "grades": {"1e5": 2, "d3": 0},
    "relevant_entities": ["Ada"],
    "relevant_paths": [[["Ada", "wrote", "program"], ["program", "for", "engine"]]],
    "expected_answer": "Ada",
    "answer_aliases": ["A. L."],
    "difficulty": "hard",
    "query_type": "bridge",
    "group": "engines",
}


@pytest.fixture
def write(tmp_path: Path, write_lines: Write) -> Callable[..., Path]:
    def write_samples(*samples: object, corpus: list[Any] = CORPUS) -> Path:
        write_lines(tmp_path / "corpus.jsonl", corpus)
        write_lines(tmp_path / "samples.jsonl", list(samples))
        return tmp_path

    return write_samples


def problems_of(path: Path, split: str | None = None) -> list[str]:
    folder = path if path.is_dir() else path.parent
    with pytest.raises(InputError) as caught:
        open_dataset(path, format="samples", split_name=split)
    return [str(problem).removeprefix(f"{folder}").lstrip("/") for problem in caught.value.problems]


class TestWhatIsRead:
    def test_a_full_sample(self, write: Callable[..., Path]) -> None:
        dataset = Samples.read(write(SAMPLE))
        assert dataset.queries == (Query("7", "谁写了程序?", "bridge", "hard", "engines"),)
        assert dataset.qrels == {"7": {"01": 1.0, "1e5": 2.0, "d3": 0.0}}
        path = (("Ada", "wrote", "program"), ("program", "for", "engine"))
        assert dataset.evidences == {"7": Evidence(("Ada",), (path,))}
        assert dataset.answers == {"7": ("Ada", "A. L.")}
        assert [document.id for document in dataset.corpus.documents] == ["01", "1e5", "d3"]
        assert dataset.warnings == ()

    def test_the_least_there_may_be(self, write: Callable[..., Path]) -> None:
        dataset = Samples.read(write({"query": "Who?", "relevant_docs": ["d3"]}))
        (query,) = dataset.queries
        assert query == Query(query.id, "Who?")
        assert dataset.qrels == {query.id: {"d3": 1.0}}
        assert (dataset.evidences, dataset.answers) == ({}, {})

    def test_the_file_reads_as_its_folder_does(self, write: Callable[..., Path]) -> None:
        folder = write(SAMPLE)
        assert Samples.read(folder / "samples.jsonl").fingerprint == (
            open_dataset(folder).fingerprint
        )

    def test_facts_beside_the_corpus(self, write: Callable[..., Path], write_lines: Write) -> None:
        folder = write(SAMPLE)
        fact = {"doc_id": "d3", "subject": "Paris", "relation": "in", "object": "France"}
        write_lines(folder / "triples.jsonl", [fact])
        write_lines(folder / "entities.jsonl", [{"doc_id": "d3", "entities": ["Paris"]}])
        corpus = open_dataset(folder).corpus
        assert corpus.triples == (Triple("d3", "Paris", "in", "France"),)
        assert corpus.entities == {"d3": ("Paris",)}

    def test_several_files(self, write: Callable[..., Path], write_lines: Write) -> None:
        folder = write(SAMPLE)
        write_lines(folder / "dev.jsonl", [{**SAMPLE, "id": "8"}])
        assert Samples.read(folder).queries[0].id == "7"
        assert Samples.read(folder, split="dev").queries[0].id == "8"
        (folder / "samples.jsonl").rename(folder / "test.jsonl")
        assert problems_of(folder) == [
            ": several files of samples: dev, test; choose one with --qrels "
            "(in Python: split_name), or keep only one"
        ]
        assert problems_of(folder, split="tets") == [
            ": no samples named 'tets', as asked for by --qrels; did you mean 'test'?"
        ]

    def test_samples_without_a_relevant_document_are_left_out(
        self, write: Callable[..., Path]
    ) -> None:
        none: dict[str, Any] = {"id": "8", "query": "Who?", "relevant_docs": []}
        dataset = Samples.read(write(SAMPLE, none))
        assert [query.id for query in dataset.queries] == ["7"]
        assert dataset.warnings == (
            "1 of 2 questions have no relevant document and were left out (in line 2)",
        )

    def test_samples_that_label_names_or_paths_alone_are_judged_by_these(
        self, write: Callable[..., Path]
    ) -> None:
        names = {"query": "Who was it?", "relevant_entities": ["Ada"]}
        paths = {"query": "What?", "relevant_paths": [[["Ada", "wrote", "program"]]]}
        folder = write(names, paths, SAMPLE)
        dataset = open_dataset(folder)  # known as samples by its first line
        first, second, third = (query.id for query in dataset.queries)
        assert dataset.qrels[first] == dataset.qrels[second] == {}
        assert dataset.evidences.keys() == {first, second, third}
        assert dataset.warnings == ()
        copy = write_dataset(dataset, folder / "copy", layout="samples")
        assert copy.fingerprint == dataset.fingerprint

        class Finds:
            def retrieve(self, queries: Any, params: Any) -> Rankings:
                ids = [query.id for query in queries]
                return Rankings.from_ids(
                    ids, [["01"]] * len(ids), entities=[("Ada",)] * 3, paths=[()] * 3
                )

        measured = Evaluator.build(
            Finds(),  # type: ignore[arg-type]  # nothing else is asked of it
            dataset.queries,
            dataset.qrels,
            ["graphrag_recall", "entity_recall", "recall@5"],
            document_ids=["01", "1e5", "d3"],
            evidences=dataset.evidences,
        )({})
        # names alone: 1; paths alone: 0; all three: (.4 * 1/2 + .3 * 1 + .3 * 0) / 1
        assert measured.per_query["graphrag_recall"] == pytest.approx([1.0, 0.0, 0.5])
        assert measured.per_query["recall@5"] == pytest.approx([np.nan, np.nan, 0.5], nan_ok=True)
        assert measured.metrics["recall@5"] == pytest.approx(0.5)

    def test_a_sample_without_any_label_is_told(self, write: Callable[..., Path]) -> None:
        (problem,) = problems_of(write(SAMPLE, {"query": "Who?"}))
        assert problem == "samples.jsonl:2: 'relevant_docs' is missing; the keys are: query"


class TestProblems:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"id": 7}, 'id: must be a string, got the number 7; write "7"'),
            ({"query": None}, "query: must not be empty"),
            ({"relevant_docs": "01"}, "relevant_docs: must be a list, got a string"),
            ({"relevant_docs": [1]}, "relevant_docs: must be a list of strings"),
            ({"relevant_docs": ["1"]}, "unknown document '1': not in the corpus"),
            ({"grades": [1, 2]}, "grades: must be an object of document id and grade, got a list"),
            ({"grades": {"d3": "2"}}, "grades['d3']: must be a finite number such as 0, 1 or 2, "
             "got a string"),
            ({"grades": {"d3": float("nan")}}, "grades['d3']: must be a finite number such as 0, "
             "1 or 2, got the number nan"),
            ({"grades": {"d3": True}}, "grades['d3']: must be a finite number such as 0, 1 or 2, "
             "got true or false"),
            ({"grades": {"x": 1}}, "unknown document 'x': not in the corpus"),
            ({"grades": {"01": 0}}, "grades: '01' is in 'relevant_docs', but its grade is below 1"),
            ({"relevant_entities": "Ada"}, "relevant_entities: must be a list of strings"),
            ({"relevant_paths": [["Ada", "wrote", "it"]]}, "relevant_paths: must be a list of "
             "paths, each a list of [subject, relation, object] strings"),
            ({"expected_answer": 4}, 'expected_answer: must be a string, got the number 4; write '
             '"4"'),
            ({"difficulty": 3}, 'difficulty: must be a string, got the number 3; write "3"'),
        ],
    )  # fmt: skip
    def test_one(self, write: Callable[..., Path], changes: dict[str, Any], expected: str) -> None:
        assert problems_of(write({**SAMPLE, **changes})) == [f"samples.jsonl:1: {expected}"]

    def test_all_at_once(self, write: Callable[..., Path]) -> None:
        corpus = [*CORPUS, {"_id": "01", "text": "Again."}, "{"]
        lacking = {"id": "8", "relevant_docs": ["x"]}
        folder = write(SAMPLE, "", lacking, SAMPLE, corpus=corpus)
        assert problems_of(folder) == [
            "corpus.jsonl:4: duplicate _id '01', first on line 1",
            "corpus.jsonl:5: invalid JSON: Expecting property name enclosed in double quotes at "
            "column 2",
            "samples.jsonl:3: unknown document 'x': not in the corpus",
            "samples.jsonl:3: 'query' is missing; the keys are: id, relevant_docs",
            "samples.jsonl:4: duplicate id '7', first in line 1",
        ]

    def test_a_document_that_is_listed_twice(self, write: Callable[..., Path]) -> None:
        assert problems_of(write({**SAMPLE, "relevant_docs": ["01", "01", "1e5"]})) == [
            "samples.jsonl:1: relevant_docs: the document '01' is there 2 times"
        ]

    def test_what_is_odd_is_told_with_every_line(self, write: Callable[..., Path]) -> None:
        rows = [
            {**SAMPLE, "id": str(n), "difficulty": "insane", "relevant_doc": []} for n in range(3)
        ]
        assert Samples.read(write(SAMPLE, *rows)).warnings == (
            "3 samples have the unknown key 'relevant_doc'; did you mean 'relevant_docs'? "
            "(in lines 2-4)",
            "3 samples have the difficulty 'insane', not easy, medium, hard (in lines 2-4)",
        )

    def test_what_is_odd_is_told_beside_what_is_wrong(self, write: Callable[..., Path]) -> None:
        none: dict[str, Any] = {"id": "8", "query": "Who?", "relevant_docs": []}
        broken = {**SAMPLE, "id": "9", "difficulty": "insane", "query": ""}
        assert problems_of(write(SAMPLE, none, broken, {**none, "id": "10"})) == [
            "samples.jsonl:3: query: must not be empty",
            ": warning: 2 of 4 questions have no relevant document and were left out "
            "(in lines 2, 4)",
        ]

    def test_a_missing_corpus_is_said_beside_what_else_is_wrong(
        self, write: Callable[..., Path]
    ) -> None:
        folder = write({**SAMPLE, "query": ""})
        (folder / "corpus.jsonl").unlink()
        missing, empty = problems_of(folder)
        assert missing.startswith("corpus.jsonl: not found; expected a folder with corpus.jsonl")
        assert empty == "samples.jsonl:1: query: must not be empty"

    def test_an_unknown_document_in_the_facts(
        self, write: Callable[..., Path], write_lines: Write
    ) -> None:
        folder = write(SAMPLE)
        write_lines(folder / "entities.jsonl", [{"doc_id": "d9", "entities": []}])
        assert problems_of(folder) == ["entities.jsonl:1: unknown document 'd9'"]


def test_what_a_data_set_holds_can_be_written_and_read_back(
    published: Any, write: Callable[..., Path]
) -> None:
    source = open_dataset(published.sample("2wiki.json"))
    samples = [
        {
            "id": query.id,
            "query": query.text,
            "relevant_docs": list(source.qrels[query.id]),
            "relevant_entities": source.evidences[query.id].entities,
            "relevant_paths": source.evidences[query.id].paths,
            "expected_answer": source.answers[query.id][0],
            "query_type": query.query_type,
        }
        for query in source.queries
    ]
    corpus = [{"_id": d.id, "title": d.title, "text": d.text} for d in source.corpus.documents]
    folder = write(*json.loads(json.dumps(samples)), corpus=corpus)
    assert Samples.read(folder).fingerprint == source.fingerprint
