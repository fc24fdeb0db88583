"""Reading the BEIR layout: what is accepted, and how every mistake is reported."""

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Document, Query, Triple
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.beir import Beir
from tuner.datasets.dataset import Dataset, Evidence

Write = Callable[[Path, list[object]], None]
DOCUMENT = {"_id": "d4", "title": "", "text": "More."}


def append(file: Path, *lines: object) -> None:
    with file.open("ab") as stream:
        for line in lines:
            text = line if isinstance(line, str | bytes) else json.dumps(line)
            stream.write((text if isinstance(text, bytes) else text.encode()) + b"\n")


def problems_of(folder: Path, split: str | None = None) -> list[str]:
    with pytest.raises(InputError) as caught:
        open_dataset(folder, format="beir", split_name=split)
    return [str(problem).removeprefix(f"{folder}{os.sep}") for problem in caught.value.problems]


class TestWhatIsRead:
    def test_records(self, folder: Path) -> None:
        dataset = Beir.read(folder)
        assert dataset.name == "small"
        assert dataset.path == str(folder)
        assert dataset.corpus.documents == (
            Document("00123", "Ada Lovelace", "Ada wrote a program."),
            Document("405e34", "Analytical Engine", "Babbage designed it."),
            Document("d3", "", "巴黎是法国的首都。"),
        )
        assert dataset.queries == (
            Query("q1", "Who wrote it?", "bridge", "hard"),
            Query("q2", "Which engine?", "", "", "engines"),
        )
        assert dataset.qrels == {"q1": {"00123": 2.0, "405e34": 0.0}, "q2": {"405e34": 1.0}}
        assert dataset.warnings == ()
        assert (dataset.evidences, dataset.answers) == ({}, {})

    def test_optional_files(self, folder: Path, write_lines: Write) -> None:
        write_lines(
            folder / "triples.jsonl.gz",
            [{"doc_id": "d3", "subject": "Paris", "relation": "capital of", "object": "France"}],
        )
        write_lines(folder / "entities.jsonl", [{"doc_id": "d3", "entities": ["Paris", "France"]}])
        path = [["Ada", "wrote", "program"], ["program", "for", "Engine"]]
        write_lines(
            folder / "evidences.jsonl",
            [{"query_id": "q1", "entities": ["Ada"], "paths": [path], "steps": [1]}],
        )
        dataset = Beir.read(folder)
        assert dataset.corpus.triples == (Triple("d3", "Paris", "capital of", "France"),)
        assert dataset.corpus.entities == {"d3": ("Paris", "France")}
        steps = (("Ada", "wrote", "program"), ("program", "for", "Engine"))
        assert dataset.evidences == {"q1": Evidence(("Ada",), (steps,))}

    def test_answers_keep_the_preferred_one_first_and_each_once(self, folder: Path) -> None:
        append(
            folder / "queries.jsonl",
            {"_id": "q3", "text": "Who?", "answer": "Ada", "answer_aliases": ["A. L.", "Ada"]},
        )
        append(folder / "qrels/test.tsv", "q3\t00123\t1")
        assert Beir.read(folder).answers == {"q3": ("Ada", "A. L.")}

    def test_gzip_bom_crlf_blank_lines_and_header_make_no_difference(
        self, folder: Path, write_lines: Write
    ) -> None:
        plain = Beir.read(folder)
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
            content = (folder / name).read_bytes()
            if name.endswith("tsv"):
                content = content.split(b"\n", 1)[1]  # without the header
            content = b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n") + b"\r\n\r\n"
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            (folder / name).unlink()
        again = Beir.read(folder)
        assert again.corpus == plain.corpus
        assert (again.queries, again.qrels) == (plain.queries, plain.qrels)
        assert again.fingerprint == plain.fingerprint

    @pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\x0b"])
    def test_only_a_line_feed_ends_a_line(self, folder: Path, separator: str) -> None:
        record = {**DOCUMENT, "text": f"a{separator}b"}
        # A bare vertical tab is no valid JSON, so that one is escaped in any case.
        append(folder / "corpus.jsonl", json.dumps(record, ensure_ascii=separator == "\x0b"))
        assert Beir.read(folder).corpus.documents[-1].text == f"a{separator}b"

    @pytest.mark.parametrize(
        ("written", "grade"), [("1", 1.0), ("2.5", 2.5), ("-1", -1.0), (" 3 ", 3.0), ("1e0", 1.0)]
    )
    def test_grades(self, folder: Path, written: str, grade: float) -> None:
        append(folder / "qrels/test.tsv", f"q2\td3\t{written}")
        assert Beir.read(folder).qrels["q2"]["d3"] == grade

    @pytest.mark.parametrize(
        "header", ["query_id\tdoc_id\trelevance", "Query-ID\tCorpus-ID\tScore"]
    )
    def test_header_in_other_spelling(self, folder: Path, write_lines: Write, header: str) -> None:
        write_lines(folder / "qrels/test.tsv", [header, "q1\td3\t1"])
        assert Beir.read(folder).qrels == {"q1": {"d3": 1.0}}

    def test_a_query_named_like_a_header_is_a_query(self, folder: Path, write_lines: Write) -> None:
        append(folder / "queries.jsonl", {"_id": "query", "text": "What is a query?"})
        write_lines(folder / "qrels/test.tsv", ["query\td3\t1"])
        assert Beir.read(folder).qrels == {"query": {"d3": 1.0}}

    def test_queries_without_judgements_are_left_out_with_a_warning(self, folder: Path) -> None:
        append(folder / "queries.jsonl", {"_id": "q3", "text": "Nobody judged me"})
        dataset = Beir.read(folder)
        assert [query.id for query in dataset.queries] == ["q1", "q2"]
        assert dataset.warnings == (
            "1 of 3 queries have no judgement and were left out (in line 3)",
        )

    def test_queries_without_a_relevant_document_stay_with_a_warning(self, folder: Path) -> None:
        append(folder / "queries.jsonl", {"_id": "q3", "text": "Nothing answers me"})
        append(folder / "qrels/test.tsv", "q3\td3\t0")
        dataset = Beir.read(folder)
        assert dataset.qrels["q3"] == {"d3": 0.0}
        assert dataset.warnings == (
            "1 of 3 queries have judgements but no relevant document (in line 3)",
        )


class TestSplits:
    def test_test_is_preferred(self, folder: Path, write_lines: Write) -> None:
        write_lines(folder / "qrels/dev.tsv", ["q1\td3\t1"])
        assert set(Beir.read(folder).qrels) == {"q1", "q2"}
        assert Beir.read(folder, split="dev").qrels == {"q1": {"d3": 1.0}}

    def test_the_only_one_is_taken_whatever_its_name(self, folder: Path) -> None:
        (folder / "qrels/test.tsv").rename(folder / "qrels/train.tsv")
        assert set(Beir.read(folder).qrels) == {"q1", "q2"}

    def test_unknown_split_lists_those_there_are(self, folder: Path, write_lines: Write) -> None:
        write_lines(folder / "qrels/dev.tsv.gz", ["q1\td3\t1"])
        assert problems_of(folder, split="tset") == [
            "qrels: no judgements named 'tset', as asked for by --qrels; did you mean 'test'?"
        ]

    def test_several_without_test_must_be_named(self, folder: Path, write_lines: Write) -> None:
        (folder / "qrels/test.tsv").rename(folder / "qrels/train.tsv")
        write_lines(folder / "qrels/dev.tsv", ["q1\td3\t1"])
        assert problems_of(folder) == [
            "qrels: several files of judgements: dev, train; choose one with --qrels "
            "(in Python: split_name), or keep only one"
        ]


class TestProblems:
    """One mistake, one line: the list of problems is compared in full."""

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (
                '{"_id": "d4", "text": "x" "y"}',
                "invalid JSON: Expecting ',' delimiter at column 27",
            ),
            ('["d4", "text"]', "a line must be a JSON object, got a list"),
            ("null", "a line must be a JSON object, got null"),
            ('{"id": "d4", "text": "x"}', "'_id' is missing; the keys are: id, text"),
            (
                '{"_id": 00777, "text": "x"}',
                "invalid JSON: Expecting ',' delimiter at column 10; "
                'write it as a string: "_id": "00777"',
            ),
            (
                '{"_id": 777e3, "text": "x"}',
                "'_id' must be a string, got the number 777000.0; "
                'write it as a string: "_id": "777e3"',
            ),
            ('{"_id": true, "text": "x"}', "'_id' must be a string, got true or false"),
            ('{"_id": " ", "text": "x"}', "'_id' is empty"),
            (
                '{"_id": "d4", "title": " "}',
                "document 'd4' has no title and no text; its keys are: _id, title",
            ),
            ('{"_id": "d4", "text": ["x"]}', "'text' must be a string, got a list"),
            ('{"_id": "d4", "text": 7}', "'text' must be a string, got the number 7; write \"7\""),
            ('{"_id": "d3", "text": "x"}', "duplicate _id 'd3', first on line 3"),
            (
                '{"_id": "d4", "text": "\\ud83d"}',
                "holds half of a surrogate pair (\\ud800 to \\udfff)",
            ),
            (
                b'{"_id": "d4", "text": "caf\xe9"}',
                "invalid UTF-8: byte 0xe9 at position 27; save the file as UTF-8",
            ),
        ],
    )
    def test_corpus_line(self, folder: Path, line: str | bytes, message: str) -> None:
        append(folder / "corpus.jsonl", line)
        assert problems_of(folder) == [f"corpus.jsonl:4: {message}"]

    @pytest.mark.parametrize("nested", ["[" * 100_000, "1" * 5000])
    def test_json_that_python_refuses(self, folder: Path, nested: str) -> None:
        append(folder / "corpus.jsonl", nested)
        (problem,) = problems_of(folder)
        assert problem.startswith("corpus.jsonl:4: invalid JSON: ")

    @pytest.mark.parametrize(
        ("record", "message"),
        [
            ({"_id": "q3", "text": " "}, "query 'q3' has no text"),
            ({"_id": "q3", "query": "x"}, "query 'q3' has no text; its keys are: _id, query"),
            ({"_id": "q1", "text": "x"}, "duplicate _id 'q1', first on line 1"),
            (
                {"_id": "q3", "text": "x", "difficulty": 3},
                "'difficulty' must be a string, got the number 3; write \"3\"",
            ),
            (
                {"_id": "q3", "text": "x", "answer_aliases": ["a", 1]},
                "'answer_aliases' must be a list of strings",
            ),
        ],
    )
    def test_query_line(self, folder: Path, record: object, message: str) -> None:
        append(folder / "queries.jsonl", record)
        assert problems_of(folder) == [f"queries.jsonl:3: {message}"]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("q9\td3\t1", "unknown query 'q9': not in the queries"),
            ("q2\td9\t1", "unknown document 'd9': not in the corpus"),
            ("q2\t d3\t1", "unknown document ' d3': not in the corpus"),
            ("q2\td3\thigh", "invalid grade 'high': must be a finite number such as 0, 1 or 2"),
            ("q2\td3\tx\r", "invalid grade 'x': must be a finite number such as 0, 1 or 2"),
            ("q2\td3\tnan", "invalid grade 'nan': must be a finite number such as 0, 1 or 2"),
            ("q2\td3\t1e999", "invalid grade '1e999': must be a finite number such as 0, 1 or 2"),
            ("q2\td3\t1_0", "invalid grade '1_0': must be a finite number such as 0, 1 or 2"),
            ("q2\td3\t٣", "invalid grade '٣': must be a finite number such as 0, 1 or 2"),
            ("q2\td3\t", "invalid grade '': must be a finite number such as 0, 1 or 2"),
            (
                "q2 d3 1",
                "expected query id, document id and grade, separated by tabs; got 1 field",
            ),
            (
                "q2\t0\td3\t1",
                "expected query id, document id and grade, separated by tabs; got 4 fields",
            ),
            (
                "q2\t405e34\t1.0",
                "duplicate judgement of query 'q2' and document '405e34', first on line 4",
            ),
            (
                "q2\t405e34\t2",
                "grade 2 of query 'q2' and document '405e34' conflicts with 1 on line 4",
            ),
        ],
    )
    def test_qrels_line(self, folder: Path, line: str, message: str) -> None:
        append(folder / "qrels/test.tsv", line)
        assert problems_of(folder) == [f"qrels/test.tsv:5: {message}".replace("/", os.sep, 1)]

    def test_a_header_in_the_middle_is_no_header(self, folder: Path) -> None:
        append(folder / "qrels/test.tsv", "query-id\tcorpus-id\tscore")
        assert [problem.split(": ")[1] for problem in problems_of(folder)] == [
            "unknown query 'query-id'",
            "unknown document 'corpus-id'",
            "invalid grade 'score'",
        ]

    @pytest.mark.parametrize(
        ("name", "record", "message"),
        [
            ("triples", {"doc_id": "d9", "subject": "a", "object": "b"}, "unknown document 'd9'"),
            (
                "triples",
                {"doc_id": "d3", "subject": "", "relation": "r", "object": "b"},
                "a triple needs a subject and an object",
            ),
            ("entities", {"doc_id": "d9", "entities": []}, "unknown document 'd9'"),
            (
                "entities",
                {"doc_id": "d3", "entities": "Paris"},
                "'entities' must be a list of strings",
            ),
            ("evidences", {"query_id": "q9"}, "unknown query 'q9'"),
            (
                "evidences",
                {"query_id": "q1", "paths": [["a", "r", "b"]]},
                "'paths' must be a list of paths, each a list of [subject, relation, object] "
                "strings",
            ),
            ("evidences", {"_id": "q1"}, "'query_id' is missing; the keys are: _id"),
        ],
    )
    def test_optional_line(
        self, folder: Path, write_lines: Write, name: str, record: object, message: str
    ) -> None:
        write_lines(folder / f"{name}.jsonl", [record])
        assert problems_of(folder) == [f"{name}.jsonl:1: {message}"]

    @pytest.mark.parametrize("name", ["entities", "evidences"])
    def test_a_second_line_for_the_same_id(
        self, folder: Path, write_lines: Write, name: str
    ) -> None:
        key, id_ = ("doc_id", "d3") if name == "entities" else ("query_id", "q1")
        write_lines(folder / f"{name}.jsonl", [{key: id_}, "", {key: id_}])
        assert problems_of(folder) == [f"{name}.jsonl:3: duplicate {key} '{id_}', first on line 1"]

    def test_everything_at_once(self, folder: Path) -> None:
        append(folder / "corpus.jsonl", "{", {"_id": "d3", "text": "again"})
        append(folder / "queries.jsonl", {"_id": "q3", "text": ""})
        append(folder / "qrels/test.tsv", "q1\tnowhere\t1", "q1\td3\tbad")
        places = [problem.split(": ")[0] for problem in problems_of(folder)]
        test_tsv = os.path.join("qrels", "test.tsv")
        assert places == [
            "corpus.jsonl:4",
            "corpus.jsonl:5",
            "queries.jsonl:3",
            f"{test_tsv}:5",
            f"{test_tsv}:6",
        ]

    def test_a_broken_line_is_not_reported_again_where_its_id_is_used(self, folder: Path) -> None:
        append(
            folder / "corpus.jsonl",
            '{"_id": "d4", "text": }',
            '{"_id": 5, "text": "x"}',
            b'{"_id": "d6", "text": "\xff"}',
        )
        append(folder / "qrels/test.tsv", "q1\td4\t1", "q1\t5\t1", "q1\td6\t1")
        places = sorted(problem.split(": ")[0] for problem in problems_of(folder))
        assert places == ["corpus.jsonl:4", "corpus.jsonl:5", "corpus.jsonl:6"]

    def test_lines_that_are_no_json_at_all_are_shown(self, folder: Path) -> None:
        append(folder / "corpus.jsonl", "d4\tParis\tParis lies on the Seine.")
        assert problems_of(folder)[0] == (
            "corpus.jsonl:4: a line must be a JSON object with '_id': "
            r"'d4\tParis\tParis lies on the Seine.'"
        )

    def test_of_many_alike_the_first_are_told_whole_and_the_rest_by_line(
        self, folder: Path
    ) -> None:
        append(folder / "qrels/test.tsv", *(f"q1\tunknown-{i}\t1" for i in range(53)), "q1\td3\tx")
        problems = problems_of(folder)
        file = os.path.join("qrels", "test.tsv")
        assert [problem.split(": ")[0] for problem in problems[:3]] == [
            f"{file}:5",
            f"{file}:6",
            f"{file}:7",
        ]
        assert problems[3] == f"{file}: and 50 more like this, in lines 8-57 (53 in all)"
        assert "invalid grade 'x'" in problems[4]


class TestFiles:
    @pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
    def test_missing_file_says_what_the_layout_is(self, folder: Path, name: str) -> None:
        (folder / name).unlink()
        assert problems_of(folder) == [f"{name}: not found; expected {Beir.layout}"]

    def test_missing_qrels(self, folder: Path) -> None:
        (folder / "qrels/test.tsv").unlink()
        assert problems_of(folder) == [f"qrels: holds no .tsv file; expected {Beir.layout}"]

    def test_a_file_in_two_forms_is_ambiguous(self, folder: Path, write_lines: Write) -> None:
        write_lines(folder / "corpus.jsonl.gz", [DOCUMENT])
        assert problems_of(folder) == [
            "corpus.jsonl: is there with and without .gz (corpus.jsonl.gz); remove one"
        ]

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("corpus.jsonl", "holds no document"),
            ("queries.jsonl", "holds no query"),
            ("qrels/test.tsv", "holds no judgement, so no query can be scored"),
        ],
    )
    @pytest.mark.parametrize("content", ["", "\n\r\n"])
    def test_empty_file(self, folder: Path, name: str, message: str, content: str) -> None:
        (folder / name).write_text(content, encoding="utf-8", newline="")
        assert problems_of(folder) == [f"{name.replace('/', os.sep)}: {message}"]

    def test_only_a_header(self, folder: Path, write_lines: Write) -> None:
        write_lines(folder / "qrels/test.tsv", ["query-id\tcorpus-id\tscore"])
        (problem,) = problems_of(folder)
        assert problem.endswith("holds no judgement, so no query can be scored")

    def test_nothing_relevant(self, folder: Path, write_lines: Write) -> None:
        write_lines(folder / "qrels/test.tsv", ["q1\td3\t0", "q2\td3\t-1", "q1\t00123\t0.5"])
        (problem,) = problems_of(folder)
        assert problem.endswith(
            "no document is relevant: no grade reaches 1, the highest is 0.5; set relevant_from, "
            "such as 0.25"
        )

    @pytest.mark.parametrize("how", ["not gzip", "cut short", "garbled"])
    def test_corrupt_gzip_is_one_problem(self, folder: Path, how: str) -> None:
        content = (folder / "corpus.jsonl").read_bytes()
        packed = bytearray(gzip.compress(content))
        packed[20] ^= 0xFF
        broken = {
            "not gzip": content,
            "cut short": gzip.compress(content)[:-12],
            "garbled": bytes(packed),
        }
        (folder / "corpus.jsonl.gz").write_bytes(broken[how])
        (folder / "corpus.jsonl").unlink()
        (problem,) = problems_of(folder)
        assert problem.startswith("corpus.jsonl.gz: corrupt gzip file: ")

    def test_utf16_is_one_problem(self, folder: Path) -> None:
        text = (folder / "queries.jsonl").read_text(encoding="utf-8")
        (folder / "queries.jsonl").write_text(text, encoding="utf-16")
        assert problems_of(folder) == ["queries.jsonl: is UTF-16; save it as UTF-8"]


class TestDetect:
    def test_a_complete_folder(self, folder: Path) -> None:
        assert Beir.detect(folder)

    def test_a_folder_with_one_part_so_that_reading_says_what_is_missing(
        self, tmp_path: Path, write_lines: Write
    ) -> None:
        write_lines(tmp_path / "corpus.jsonl.gz", [DOCUMENT])
        assert Beir.detect(tmp_path)

    def test_other_things(self, folder: Path, tmp_path: Path) -> None:
        assert not Beir.detect(folder / "corpus.jsonl")
        assert not Beir.detect(tmp_path)
        assert not Beir.detect(tmp_path / "nowhere")


class TestPublishedSets:
    # Counts from the tables of the sets' own README.
    @pytest.mark.parametrize(
        ("name", "documents", "queries", "judgements", "triples", "types"),
        [
            (
                "2wiki",
                3301,
                500,
                1260,
                0,
                {
                    "bridge_comparison": 130,
                    "comparison": 104,
                    "compositional": 202,
                    "inference": 64,
                },
            ),
            ("hotpotqa", 3945, 400, 800, 0, {"bridge": 297, "comparison": 103}),
            (
                "musique",
                1890,
                100,
                237,
                17204,
                {"2hop": 68, "3hop1": 24, "3hop2": 3, "4hop1": 3, "4hop3": 2},
            ),
        ],
    )
    def test_counts(
        self,
        shared_data: Path,
        name: str,
        documents: int,
        queries: int,
        judgements: int,
        triples: int,
        types: dict[str, int],
    ) -> None:
        dataset = Beir.read(shared_data / name)
        summary = dataset.summary()
        assert dataset.warnings == ()
        assert summary.documents == documents
        assert summary.queries == summary.evidences == len(dataset.answers) == queries
        assert summary.judgements == summary.relevant == judgements
        assert summary.triples == triples
        assert summary.query_types == types

    def test_hotpotqa_difficulties(self, shared_data: Path) -> None:
        difficulties = Beir.read(shared_data / "hotpotqa").summary().difficulties
        assert difficulties == {"easy": 16, "hard": 315, "medium": 69}

    @pytest.mark.parametrize(("name", "paths"), [("2wiki", 804), ("hotpotqa", 0), ("musique", 120)])
    def test_evidence_paths(self, shared_data: Path, name: str, paths: int) -> None:
        evidences = Beir.read(shared_data / name).evidences.values()
        assert sum(len(evidence.paths) for evidence in evidences) == paths

    def test_hops_are_no_difficulty(self, shared_data: Path) -> None:
        assert Beir.read(shared_data / "musique").summary().difficulties == {"": 100}

    def test_published_judgements(self, published: Any, tmp_path: Path, write_lines: Write) -> None:
        source = published.sample("beir_qrels.tsv")
        rows = [line.split("\t") for line in source.read_text(encoding="utf-8").splitlines()[1:]]
        (tmp_path / "qrels").mkdir()
        (tmp_path / "qrels/dev.tsv").write_bytes(source.read_bytes())
        documents = sorted({row[1] for row in rows})
        queries = sorted({row[0] for row in rows})
        write_lines(tmp_path / "corpus.jsonl", [{"_id": id_, "text": "x"} for id_ in documents])
        write_lines(tmp_path / "queries.jsonl", [{"_id": id_, "text": "x"} for id_ in queries])
        dataset: Dataset = Beir.read(tmp_path)
        count = 20 if published.is_ours else 500
        assert dataset.summary().judgements == len(rows) == count
        assert dataset.qrels[rows[0][0]][rows[0][1]] == float(rows[0][2])


def test_a_corpus_is_read_line_by_line(tmp_path: Path, write_lines: Write) -> None:
    texts = [
        {"_id": str(number), "text": f"{number} " + "of words " * 120} for number in range(2000)
    ]
    write_lines(tmp_path / "corpus.jsonl", texts)
    write_lines(tmp_path / "queries.jsonl", [{"_id": "q", "text": "who?"}])
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("q\t1\t1\n")
    Beir.read(tmp_path)
    tracemalloc.start()
    try:
        dataset = Beir.read(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(dataset.corpus.documents) == 2000
    # The texts themselves, what holds them, and a thousand of them while they are hashed.
    assert peak < 2.5 * (tmp_path / "corpus.jsonl").stat().st_size
