"""Two annotators' sheets become one grade a passage, and a data set."""

import csv

import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.core.errors import InputError
from tuner.evalset.adjudication import (
    compare_sheets,
    judged_dataset,
    read_grades,
    write_adjudication,
)

HEADER = "query_id,query,document_id,title,passage,grade,comment\n"
CORPUS = Corpus(
    tuple(Document(f"d{i}", "", f"text {i}") for i in range(1, 5)),
    (Triple("d1", "a", "b", "c"),),
    {"d1": ("a",)},
)
QUERIES = [Query("q1", "one?", "fact", "easy"), Query("q2", "two?")]


@pytest.fixture
def sheet(tmp_path):
    def write(name, *grades, ids=("q1,d1", "q1,d2", "q2,d3", "q2,d4")):
        lines = []
        for pair, grade in zip(ids, grades, strict=False):
            query, document = pair.split(",")
            lines.append(f"{query},{query}?,{document},,p,{grade},by {name}\n")
        file = tmp_path / name
        file.write_text(HEADER + "".join(lines))
        return file

    return write


def table_of(file):
    return list(csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines()))


def test_disagreements_come_first_the_widest_before_all(sheet, tmp_path):
    compared = compare_sheets(sheet("a", 0, 3, 1, 2), sheet("b", 0, 2, 3, 2))
    # quadratic: observed 1 + 4 = 5; expected, over the 16 pairs of a grade of a and one of b:
    # 0: 0+4+9+4 = 17; 3: 9+1+0+1 = 11; 1: 1+1+4+1 = 7; 2: 4+0+1+0 = 5; 40/4 = 10; 1 - 5/10 = .5
    assert compared.agreement.kappa == pytest.approx(0.5)
    assert [pair.row.document_id for pair in compared.disagreements] == ["d3", "d2"]
    write_adjudication(tmp_path / "settle.csv", compared)
    table = table_of(tmp_path / "settle.csv")
    assert list(table[0]) == [
        "query_id", "query", "document_id", "title", "passage",
        "grade_a", "grade_b", "adjudicated", "comment_a", "comment_b",
    ]  # fmt: skip
    found = [(r["document_id"], r["grade_a"], r["grade_b"], r["adjudicated"]) for r in table]
    assert found == [
        ("d3", "1", "3", ""), ("d2", "3", "2", ""), ("d1", "0", "0", "0"), ("d4", "2", "2", "2"),
    ]  # fmt: skip
    assert (table[0]["comment_a"], table[0]["comment_b"]) == ("by a", "by b")


def test_sheets_in_another_order_are_compared_by_id(sheet):
    ids = ("q2,d4", "q2,d3", "q1,d2", "q1,d1")
    compared = compare_sheets(sheet("a", 0, 3, 1, 2), sheet("b", 2, 1, 3, 0, ids=ids))
    assert compared.agreement.kappa == pytest.approx(1.0)
    assert compared.disagreements == ()


def test_everything_incomplete_is_named_with_file_and_row(sheet):
    first = sheet("a.csv", 0, "", 1)
    second = sheet("b.csv", 9, 1, 1, 1)
    with pytest.raises(InputError) as caught:
        compare_sheets(first, second)
    said = str(caught.value).splitlines()
    assert len(said) == 3
    assert f"{first}:3: query 'q1', document 'd2': grade is missing" in said[0]
    assert f"{second}:2: query 'q1', document 'd1': '9' is no grade" in said[1]
    assert f"{second}:5: query 'q2', document 'd4' is not in {first}" in said[2]


def test_a_sheet_is_not_compared_with_itself(sheet):
    file = sheet("a", 0, 1, 2, 3)
    with pytest.raises(InputError, match="the same file"):
        compare_sheets(file, file)


def test_settled_grades_become_judgements_zeros_included(sheet, tmp_path):
    compared = compare_sheets(sheet("a", 0, 3, 1, 2), sheet("b", 0, 2, 3, 2))
    file = tmp_path / "settle.csv"
    write_adjudication(file, compared)
    with pytest.raises(InputError) as caught:
        read_grades(file)
    assert "settle.csv:2: query 'q2', document 'd3': adjudicated is missing" in str(caught.value)
    assert "settle.csv:3: " in str(caught.value)

    text = file.read_text(encoding="utf-8-sig")
    file.write_text(text.replace(",1,3,,", ",1,3,3,").replace(",3,2,,", ",3,2,2,"))
    dataset = judged_dataset(file, corpus=CORPUS, queries=[*QUERIES, Query("q3", "unjudged?")])
    assert dataset.qrels == {"q1": {"d1": 0.0, "d2": 2.0}, "q2": {"d3": 3.0, "d4": 2.0}}
    assert dataset.queries == tuple(QUERIES)
    assert dataset.corpus.triples == CORPUS.triples
    assert dataset.corpus.entities == CORPUS.entities


def test_one_annotators_sheet_can_be_judged_from_too(sheet):
    assert read_grades(sheet("a", 0, 3, 1, 2)) == (
        {"q1": {"d1": 0.0, "d2": 3.0}, "q2": {"d3": 1.0, "d4": 2.0}},
        "grade",
    )


def test_ids_that_are_not_in_the_corpus_or_the_queries_are_named(sheet):
    file = sheet("a", 1, 1, ids=("q9,d1", "q1,4.05E+36"))
    with pytest.raises(InputError) as caught:
        judged_dataset(file, corpus=CORPUS, queries=QUERIES)
    assert f"{file}:2: unknown query 'q9'" in str(caught.value)
    assert f"{file}:3: unknown document '4.05E+36'; a spreadsheet may have" in str(caught.value)


def test_a_sheet_of_other_queries_and_another_corpus_is_told_once(sheet):
    file = sheet("anna.csv", 1, 2, 0, 1)
    with pytest.raises(InputError) as caught:
        judged_dataset(
            file, corpus=Corpus((Document("other", "", "x"),)), queries=[Query("q9", "Who?")]
        )
    assert str(caught.value).splitlines() == [
        f"{file}: none of its query ids is in the queries; was the sheet pooled from others?",
        f"{file}: none of its document ids is in the corpus; was the sheet pooled from others?",
    ]


def test_a_sheet_without_any_relevant_passage_is_refused(sheet):
    with pytest.raises(InputError, match="no passage is relevant"):
        judged_dataset(sheet("a", 0, 0, 0, 0), corpus=CORPUS, queries=QUERIES)


def test_a_sheet_without_grades_is_refused(tmp_path):
    file = tmp_path / "s.csv"
    file.write_text("query_id,document_id,mood\nq1,d1,good\n")
    with pytest.raises(InputError, match="no column 'adjudicated' or 'grade'"):
        read_grades(file)


def test_a_comparison_as_plain_data_says_whether_it_passes(sheet):
    compared = compare_sheets(sheet("a.csv", 0, 1, 2, 3), sheet("b.csv", 0, 1, 0, 3))
    record = compared.to_record(0.99)
    assert (record["pairs"], record["same"], record["passed"]) == (4, 0.75, False)
    assert record["disagreements"] == [{"query_id": "q2", "document_id": "d3", "a": 2, "b": 0}]
    assert compared.to_record(0.0)["passed"] is True
    assert record["kappa"] == compared.agreement.kappa
    assert str(record["gate"]) in record["verdict"]
