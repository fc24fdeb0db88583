"""Sheets survive spreadsheets: formulas, ids that look like numbers, and what people do to rows."""

import csv
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.datasets.lines import ProblemLog
from tuner.evalset.sheets import (
    COLUMNS,
    Row,
    grade_of,
    protect,
    read_sheet,
    unprotect,
    write_sheet,
)

ROWS = [
    Row("q1", "=1+1", "00123", "@title", "-2 degrees\r\nand\u2028rising"),
    Row("q1", "=1+1", "405e34", "巴黎", '"quoted", with comma'),
]


@pytest.fixture
def sheet(tmp_path):
    file = tmp_path / "sheet.csv"
    write_sheet(file, ROWS)
    return file


def lines_of(file):
    return file.read_text(encoding="utf-8-sig").splitlines()


def test_the_columns_are_those_that_annotators_see_and_nothing_else(sheet):
    table = list(csv.reader(lines_of(sheet)))
    assert tuple(table[0]) == COLUMNS
    assert table[1] == ["q1", "'=1+1", "'00123", "'@title", "'-2 degrees and rising", "", ""]
    assert table[2][2:5] == ["'405e34", "巴黎", '"quoted", with comma']
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")


def test_it_reads_back(sheet):
    read = read_sheet(sheet)
    assert list(read.rows) == [("q1", "00123"), ("q1", "405e34")]
    assert read.rows["q1", "00123"].row.query == "=1+1"
    assert [row.number for row in read.rows.values()] == [2, 3]


@pytest.mark.parametrize("text", ["=x", "+x", "-x", "@x", "\tx", "\rx", "＝x", "＋", "－", "＠"])
def test_formulas_are_never_the_first_character_of_a_cell(text):
    assert protect(text) == f"'{text}"


@pytest.mark.parametrize("text", ["00123", "405e34", "3-4", "1.5", "MAR1", "Dec-2", "true"])
def test_ids_that_a_spreadsheet_would_change_are_kept(text):
    assert protect(text, is_id=True) == f"'{text}"
    assert protect(text) == text


@given(st.text(alphabet="'=+-@＝a1\t", max_size=6), st.booleans())
def test_what_is_protected_comes_back(text, is_id):
    assert unprotect(protect(text, is_id=is_id), is_id=is_id) == text
    assert protect(text)[:1] not in tuple("=+-@＝\t")


def test_a_sheet_that_is_there_is_never_overwritten(sheet):
    with pytest.raises(InputError, match="is there already, and may hold grades"):
        write_sheet(sheet, ROWS)


def test_a_passage_longer_than_a_cell_is_cut(tmp_path):
    write_sheet(tmp_path / "long.csv", [Row("q", "?", "d", "", "x" * 40_000)])
    (row,) = read_sheet(tmp_path / "long.csv").rows.values()
    assert len(row.row.passage) == 32_000
    assert row.row.passage.endswith("x…")


def test_sheets_come_back_with_other_delimiters_orders_and_cut_rows(tmp_path):
    file = tmp_path / "back.csv"
    file.write_text(
        "Grade;comment;document_id;query_id;mood\r\n2.0;'=fine;'00123;q1;good\r\n;;;;\r\n1;;d2;q1\r\n",
        encoding="utf-8",
    )
    read = read_sheet(file)
    log = ProblemLog()
    grades = {key: grade_of(row, "grade", read.file, log) for key, row in read.rows.items()}
    assert grades == {("q1", "00123"): 2, ("q1", "d2"): 1}
    assert read.rows["q1", "00123"].cells["comment"] == "=fine"
    assert read.rows["q1", "d2"].number == 4
    assert not log.problems()


def test_every_broken_row_is_named(tmp_path):
    file = tmp_path / "back.csv"
    file.write_text("query_id,document_id,grade\nq1,d1,1\nq1,,2\nq1,d1,0\nq1,d2,1,ok\n")
    with pytest.raises(InputError) as caught:
        read_sheet(file)
    said = str(caught.value)
    assert "back.csv:3: document_id must not be blank" in said
    assert "back.csv:4: query 'q1', document 'd1' is there twice, first in row 2" in said
    assert "back.csv:5: 4 cells, but the header has 3" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "columns 'query_id', 'document_id', 'grade' are missing; the columns are: none"),
        ("query_id,document_id\n", "column 'grade' is missing"),
        ("query_id,document_id,grade\n", "holds no row to grade"),
    ],
)
def test_sheets_without_rows_or_columns_are_refused(tmp_path, text, message):
    file = tmp_path / "back.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_sheet(file)


def test_a_workbook_is_named_as_such(tmp_path):
    file = tmp_path / "anna.xlsx"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(InputError) as caught:
        read_sheet(file)
    assert (
        str(caught.value) == f"{file}: is a workbook or a zip archive; save it as CSV or plain text"
    )


@pytest.mark.parametrize("written", ["", "4", "-1", "1.5", "two", "１", "1e0", "nan"])
def test_what_is_no_grade_is_reported_with_its_row(tmp_path, written):
    file = tmp_path / "back.csv"
    file.write_text(f"query_id,document_id,grade\nq1,d1,{written}\n", encoding="utf-8")
    read = read_sheet(file)
    log = ProblemLog()
    assert grade_of(read.rows["q1", "d1"], "grade", read.file, log) is None
    (problem,) = log.problems()
    assert problem.line == 2
    assert "write one of 0, 1, 2, 3" in problem.message
