"""Reading TREC judgements, runs and test collections."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.trec import Trec, read_trec_qrels, read_trec_run

Grades = dict[str, dict[str, float]]

# Whatever trec_eval would take as one field: no ASCII white space, but all else.
IDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\v\f\r\ufeff"), min_size=1
)
TABLES = st.dictionaries(
    IDS,
    st.dictionaries(IDS, st.integers(-9, 9).map(float), min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels.txt").write_text("q1 0 d#1 2\nq1\t0\td2\t0\n  q2  Q0  d2  1\n")
    (tmp_path / "topics.txt").write_text("q1\tWho wrote it?\nq2\tWhich engine?\n")
    (tmp_path / "collection.tsv").write_text("d#1\tAda\tAda wrote it.\nd2\tAn engine.\n")
    return tmp_path


def problems_of(read: Callable[[Path], object], path: Path) -> list[str]:
    folder = path if path.is_dir() else path.parent
    with pytest.raises(InputError) as caught:
        read(path)
    return [str(p).removeprefix(f"{folder}").lstrip(os.sep) for p in caught.value.problems]


def run_file(folder: Path, *lines: str) -> Path:
    file = folder / "run.txt"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


class TestQrels:
    def test_blanks_and_tabs_part_the_fields(self, folder: Path) -> None:
        expected = {"q1": {"d#1": 2.0, "d2": 0.0}, "q2": {"d2": 1.0}}
        assert read_trec_qrels(folder / "qrels.txt") == expected

    @given(TABLES)
    def test_ids_are_whatever_has_no_blank(
        self, tmp_path_factory: pytest.TempPathFactory, grades: Grades
    ) -> None:
        file = tmp_path_factory.mktemp("qrels") / "qrels.txt"
        lines = [f"{q} 0 {d} {g:g}\n" for q, judged in grades.items() for d, g in judged.items()]
        file.write_bytes("".join(lines).encode())
        assert read_trec_qrels(file) == grades

    def test_gzip_bom_crlf_and_blank_lines_make_no_difference(self, folder: Path) -> None:
        plain = read_trec_qrels(folder / "qrels.txt")
        text = "\ufeff" + (folder / "qrels.txt").read_text().replace("\n", "\r\n\r\n")
        file = folder / "qrels.gz"
        file.write_bytes(gzip.compress(text.encode()))
        assert read_trec_qrels(file) == plain

    def test_no_relevant_document_is_for_the_caller_to_judge(self, tmp_path: Path) -> None:
        (tmp_path / "qrels").write_text("q1 0 d1 -1\n")
        assert read_trec_qrels(tmp_path / "qrels") == {"q1": {"d1": -1.0}}

    def test_all_problems_at_once(self, tmp_path: Path) -> None:
        lines = ["q1 0 d1 1", "q1 0 d2", "q1 0 d1 2", "q1 0 d3 high", "q1 0 d4 nan", "q 0 d 1 5"]
        (tmp_path / "qrels.txt").write_text("\n".join(lines))
        fields = "expected 4 fields (query id, iteration, document id, grade)"
        assert problems_of(read_trec_qrels, tmp_path / "qrels.txt") == [
            f"qrels.txt:2: {fields}; got 3: 'q1 0 d2'",
            f"qrels.txt:6: {fields}; got 5: 'q 0 d 1 5'",
            "qrels.txt:3: grade 2 of query 'q1' and document 'd1' conflicts with 1 on line 1",
            "qrels.txt:4: invalid grade 'high': must be a finite number such as 0, 1 or 2",
            "qrels.txt:5: invalid grade 'nan': must be a finite number such as 0, 1 or 2",
        ]

    def test_an_empty_or_absent_file(self, tmp_path: Path) -> None:
        (tmp_path / "qrels.txt").write_text("\n\n")
        assert problems_of(read_trec_qrels, tmp_path / "qrels.txt") == [
            "qrels.txt: holds no judgement"
        ]
        assert problems_of(read_trec_qrels, tmp_path / "none.txt") == [
            "none.txt: cannot be read: No such file or directory"
        ]


class TestRun:
    def test_lines_in_any_order(self, tmp_path: Path) -> None:
        file = run_file(
            tmp_path,
            "q2\tQ0\td#1\t9\t 1e-3\tname",
            "q1 Q0 文档 2 -0.5 name",
            "q2 Q0 d2 1 .25 name",
            "q1 Q0 b\u00a0c 1 7 name",
        )
        assert read_trec_run(file) == {
            "q2": {"d#1": 0.001, "d2": 0.25},
            "q1": {"文档": -0.5, "b\u00a0c": 7.0},
        }

    @pytest.mark.parametrize("score", ["nan", "NaN", "inf", "-inf", "high", "1_0", "٣", "1e999"])
    def test_a_score_that_is_no_finite_number(self, tmp_path: Path, score: str) -> None:
        file = run_file(tmp_path, "q1 Q0 d1 1 1.0 name", f"q1 Q0 d2 2 {score} name")
        assert problems_of(read_trec_run, file) == [
            f"run.txt:2: invalid score {score!r}: must be a finite number"
        ]

    def test_all_problems_at_once(self, tmp_path: Path) -> None:
        file = run_file(
            tmp_path, "q1 Q0 d1 1 nan name", "", "q1 Q0 d1 2 0.5 name", "q1 Q0 d2 3 0.25"
        )
        assert problems_of(read_trec_run, file) == [
            "run.txt:1: invalid score 'nan': must be a finite number",
            "run.txt:3: duplicate ranking of query 'q1' and document 'd1', first on line 1",
            "run.txt:4: expected 6 fields (query id, Q0, document id, rank, score, run name); "
            "got 5: 'q1 Q0 d2 3 0.25'",
        ]

    def test_an_encoding_that_is_not_utf8(self, tmp_path: Path) -> None:
        file = tmp_path / "run.txt"
        file.write_bytes(b"q1 Q0 caf\xe9 1 1.0 name\n")
        assert problems_of(read_trec_run, file) == [
            "run.txt:1: invalid UTF-8: byte 0xe9 at position 10; save the file as UTF-8"
        ]


class TestCollection:
    def test_a_folder(self, folder: Path) -> None:
        dataset = Trec.read(folder)
        assert dataset.corpus.documents == (
            Document("d#1", "Ada", "Ada wrote it."),
            Document("d2", "", "An engine."),
        )
        assert dataset.queries == (Query("q1", "Who wrote it?"), Query("q2", "Which engine?"))
        assert dataset.qrels == {"q1": {"d#1": 2.0, "d2": 0.0}, "q2": {"d2": 1.0}}
        assert dataset.warnings == ()

    def test_the_judgements_stand_for_the_folder(self, folder: Path) -> None:
        assert Trec.read(folder / "qrels.txt").fingerprint == open_dataset(folder).fingerprint

    def test_beir_texts_and_trec_judgements(
        self, folder: Path, write_lines: Callable[[Path, list[object]], None]
    ) -> None:
        for name in ("topics.txt", "collection.tsv"):
            (folder / name).unlink()
        write_lines(
            folder / "queries.jsonl.gz",
            [
                {"_id": "q1", "text": "Who wrote it?", "query_type": "bridge", "answer": "Ada"},
                {"_id": "q2", "text": "Which engine?"},
            ],
        )
        write_lines(
            folder / "corpus.jsonl", [{"_id": name, "text": name} for name in ("d#1", "d2")]
        )
        dataset = open_dataset(folder)
        assert dataset.queries[0] == Query("q1", "Who wrote it?", "bridge")
        assert dataset.answers == {"q1": ("Ada",)}
        assert dataset.qrels["q2"] == {"d2": 1.0}

    def test_topics_in_markup(self, folder: Path) -> None:
        (folder / "topics.txt").write_text(
            "<top>\n<num> Number: q1\n<title> Topic: Who\n wrote it?\n<desc> Description:\nLong.\n"
            "</top>\n\n<top>\n<num>q2</num>\n<title>Which engine?</title>\n</top>\n"
        )
        assert Trec.read(folder).queries == (
            Query("q1", "Who wrote it?"),
            Query("q2", "Which engine?"),
        )

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (
                '<top lang="en">\n<num> Number: q1\n<title> Who\n wrote &amp; signed it?\n\n'
                "<desc> Description:\nLong.\n</top>",
                "<TOP lang='en' year=2009><NUM>q2</NUM><TITLE>Which engine?\n<narr>x</TOP>",
            ),
            (
                "<?xml version='1.0'?>\n<!-- <topic> -->\n<topics task='x'>\n"
                '<topic number="q1" type="t">\n<query>Who wrote &#38; signed <b>it</b>?</query>\n'
                "<question>Longer?</question></topic>",
                "<topic number='q2'><question>Which engine?</question></topic>\n</topics>",
            ),
            (
                "<topics><topic><number>q1</number><query>Who wrote &amp; signed it?</query>"
                "<description>Long.</description></topic>",
                "<topic>\n<description>Long.</description><title><![CDATA[Which engine?]]></title>"
                "\n<number> q2 </number></topic></topics>",
            ),
            (
                "<topics><topic lang='en'><identifier>q1</identifier>"
                "<EN-title>Who wrote &amp; signed it?</EN-title></topic>",
                '<topic number="q2">\n  Which engine?\n</topic></topics>',
            ),
            (
                "<top>\n<num> Number: q1\n<title>\n<desc> Who wrote & signed it?\n</top>",
                "<top><num>q2</num><title></title><desc>Which engine?</desc></top>",
            ),
        ],
        ids=["attributes", "number as attribute", "number as tag", "other names", "empty title"],
    )
    def test_markup_of_other_tracks(self, folder: Path, first: str, second: str) -> None:
        (folder / "topics.txt").write_text(f"{first}\n{second}\n")
        (folder / "topics.txt").rename(folder / "topics.xml")
        assert Trec.read(folder).queries == (
            Query("q1", "Who wrote & signed it?"),
            Query("q2", "Which engine?"),
        )

    def test_a_sign_that_begins_no_tag_ends_no_question(self, folder: Path) -> None:
        (folder / "topics.txt").write_text(
            "<top>\n<num> Number: q1\n<title> Is 3 < 5, and a<5?\n<desc> Long.\n</top>\n"
            "<top>\n<num> Number: q2\n<title> I <3 engines\n</top>\n"
        )
        assert [query.text for query in Trec.read(folder).queries] == [
            "Is 3 < 5, and a<5?",
            "I <3 engines",
        ]

    def test_fields_in_quotes_are_read_without_them(self, folder: Path) -> None:
        (folder / "topics.txt").write_text('"q1"\t"Who wrote ""it""?"\n"q2"\t"Which engine?"\n')
        (folder / "collection.tsv").write_text('"d#1"\t"Ada"\t"Wrote it."\n"d2"\t"E."\t"An."\n')
        dataset = Trec.read(folder)
        assert dataset.queries[0] == Query("q1", 'Who wrote "it"?')
        assert dataset.corpus.documents[0] == Document("d#1", "Ada", "Wrote it.")

    def test_a_question_that_begins_with_a_quote_keeps_it(self, folder: Path) -> None:
        (folder / "topics.txt").write_text('q1\t"It" is by whom?\nq2\t"Engine"\n')
        assert Trec.read(folder).queries[0].text == '"It" is by whom?'
        assert Trec.read(folder).queries[1].text == '"Engine"'

    def test_splits(self, folder: Path) -> None:
        (folder / "qrels.txt").rename(folder / "qrels.dev.txt")
        assert len(Trec.read(folder).queries) == 2
        (folder / "qrels-test.txt").write_text("q2 0 d2 1\n")
        assert len(Trec.read(folder).queries) == 1
        assert len(Trec.read(folder, split="dev").queries) == 2
        (folder / "qrels-test.txt").rename(folder / "qrels_train")
        assert problems_of(Trec.read, folder) == [
            ": several files of judgements: dev, train; choose one with --qrels "
            "(in Python: split_name), or keep only one"
        ]
        (folder / "qrels.dev.tsv").write_text("q2 0 d2 1\n")
        (folder / "qrels_train").unlink()
        assert problems_of(Trec.read, folder) == [
            ": holds the judgements twice: qrels.dev.tsv, qrels.dev.txt; keep one"
        ]

    def test_topics_without_judgements_are_left_out(self, folder: Path) -> None:
        (folder / "qrels.txt").write_text("q1 0 d2 0\nq1 0 d#1 1\n")
        dataset = Trec.read(folder)
        assert [query.id for query in dataset.queries] == ["q1"]
        assert dataset.warnings == (
            "1 of 2 queries have no judgement and were left out (in line 2)",
        )


class TestProblems:
    def test_everything_that_does_not_fit(self, folder: Path) -> None:
        (folder / "qrels.txt").write_text("q1 0 d9 1\nq7 0 d2 1\nq1 0 d2 x\n")
        (folder / "topics.txt").write_text("q1 Who?\nq1\tWho?\nq1\tWho?\nq2\t\n")
        (folder / "collection.tsv").write_text("d2\ta\tb\tc\nd2\tText.\n\tText.\n")
        assert problems_of(Trec.read, folder) == [
            "topics.txt:1: expected id, text, separated by tabs; got 'q1 Who?'",
            "topics.txt:3: duplicate id 'q1', first on line 2",
            "topics.txt:4: 'q2' has no text",
            "collection.tsv:1: expected id, text or id, title, text, separated by tabs; got "
            "'d2\\ta\\tb\\tc'",
            "collection.tsv:3: expected id, text or id, title, text, separated by tabs; got "
            "'\\tText.'",
            "qrels.txt:1: unknown document 'd9': not in the collection",
            "qrels.txt:2: unknown query 'q7': not in the topics",
            "qrels.txt:3: invalid grade 'x': must be a finite number such as 0, 1 or 2",
        ]

    def test_markup_that_is_not_read_is_one_report(self, folder: Path) -> None:
        (folder / "topics.txt").write_text(
            "<questions>\n<q>Who?</q>\n<q>Which?</q>\n</questions>\n"
        )
        (folder / "collection.tsv").write_text("<DOC>\n<DOCNO> d2 </DOCNO>\nText.\n</DOC>\n" * 9)
        assert problems_of(Trec.read, folder) == [
            "topics.txt:1: is in markup (<questions>…), which is not read here; write id, text, "
            "separated by tabs, a line each",
            "collection.tsv:1: is in markup (<DOC>…), which is not read here; write id, text or "
            "id, title, text, separated by tabs, a line each",
        ]

    def test_of_marked_up_topics(self, folder: Path) -> None:
        (folder / "topics.txt").write_text(
            "<top>\n<num> q1\n<title> Who?\n</top>\n"
            "<top>\n<num> q2\n</top>\n<top>\n<num> q1\n<title> Who?\n"
        )
        assert problems_of(Trec.read, folder) == [
            "topics.txt:5: a topic needs a number (<num>, <number>, or <topic number=…>) and a "
            "text (<title>, <query> or <question>)",
            "topics.txt:8: duplicate id 'q1', first on line 1",
            "qrels.txt:3: unknown query 'q2': not in the topics",
        ]

    def test_nothing_is_relevant(self, folder: Path) -> None:
        (folder / "qrels.txt").write_text("q1 0 d2 0\n")
        assert problems_of(Trec.read, folder) == [
            "qrels.txt: no document is relevant: no grade reaches 1"
        ]

    def test_judgements_alone(self, tmp_path: Path) -> None:
        (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq1 0\n")
        topics, texts, broken = problems_of(Trec.read, tmp_path / "qrels.txt")
        assert topics.startswith(": judgements alone are no data set; add topics* or queries.tsv")
        assert texts.startswith(": judgements alone are no data set; add collection* or corpus.tsv")
        assert broken.startswith("qrels.txt:2: expected 4 fields")

    def test_several_collections(self, folder: Path) -> None:
        (folder / "corpus.jsonl").write_text('{"_id": "d2", "text": "Text."}\n')
        (problem,) = problems_of(Trec.read, folder)
        assert problem.endswith("corpus.jsonl: collection.tsv, corpus.jsonl; keep one")

    def test_a_run_is_no_data_set(self, tmp_path: Path) -> None:
        assert problems_of(Trec.read, run_file(tmp_path, "q1 Q0 d1 1 0.5 name")) == [
            "run.txt: is a run, not a data set; score it: tuner score --qrels QRELS --run RUN"
        ]


class TestPublishedSamples:
    def test_counts(self, published: Any) -> None:
        qrels = read_trec_qrels(published.sample("trec_qrels.txt"))
        graded = read_trec_qrels(published.sample("trec_qrels_graded.txt"))
        run = read_trec_run(published.sample("trec_run.txt"))
        judged, ranked = (30, 30) if published.is_ours else (3681, 1500)
        for table, count in ((qrels, judged), (graded, judged), (run, ranked)):
            assert sum(map(len, table.values())) == count
            assert len(table) == 3
        assert {grade for judged in qrels.values() for grade in judged.values()} == {0.0, 1.0}
        levels = {grade for judged in graded.values() for grade in judged.values()}
        assert levels == {-1.0, 0.0, 1.0, 2.0, 3.0, 4.0}
        if published.is_ours:
            assert run["601"]["VM748-0001"] == 2.9
        else:
            assert run["301"]["FR940202-2-00150"] == 2.129133

    def test_pytrec_eval_reads_the_same(self, published: Any) -> None:
        pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
        with published.sample("trec_qrels_graded.txt").open() as stream:
            qrels = pytrec_eval.parse_qrel(stream)
        with published.sample("trec_run.txt").open() as stream:
            run = pytrec_eval.parse_run(stream)
        assert read_trec_qrels(published.sample("trec_qrels_graded.txt")) == qrels
        assert read_trec_run(published.sample("trec_run.txt")) == run
