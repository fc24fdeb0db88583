"""What is written is what `agree` and `judge` read; what was edited there is read back."""

from __future__ import annotations

import csv
import shutil

import pytest

from tuner.core.errors import InputError
from tuner.core.files import write_whole
from tuner.evalset.adjudication import SETTLED, compare_sheets, read_grades
from tuner.evalset.grading.written import write_sheets
from tuner.evalset.sheets import read_sheet, write_sheet


def graded(grading, **people):
    for name, grades in people.items():
        for at, grade in enumerate(grades):
            if grade is not None:
                grading.give(name, at, grade, f"{name} {at}")


def table(path):
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return list(csv.DictReader(lines, delimiter=";" if ";" in lines[0] else ","))


def edit(path, document_id, **cells):
    """Change a row, and save it as a spreadsheet does: with another delimiter, and no mark."""
    rows = table(path)
    for row in rows:
        if row["document_id"].removeprefix("'") == document_id:
            row.update(cells)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


def test_agree_reads_what_two_people_gave(opened, sheet):
    grading = opened(sheet)
    graded(grading, anna=[3, 1, 0, 2, 0], ben=[3, 0, 0, 2, 1])
    paths = write_sheets(grading)
    assert [path.name for path in paths] == [
        "sheet.anna.csv", "sheet.ben.csv", "sheet.settled.csv",
    ]  # fmt: skip
    compared = compare_sheets(*paths[:2])
    assert compared.agreement.pairs == 5
    assert {pair.row.document_id for pair in compared.disagreements} == {"d2", "d5"}
    assert compared.pairs[1].comments == ("anna 1", "ben 1")
    assert compared.agreement.kappa == grading.together()[0].agreement.kappa


def test_judge_reads_what_was_settled_and_names_what_was_not(opened, sheet):
    grading = opened(sheet)
    graded(grading, anna=[3, 1, 0, 2, 0], ben=[3, 0, 0, 2, 1])
    grading.settle("carla", 1, 1)
    *_, settled = write_sheets(grading)
    with pytest.raises(InputError, match=r"document 'd5': adjudicated is missing") as caught:
        read_grades(settled)
    assert len(caught.value.problems) == 1
    grading.settle("carla", 4, 0)
    write_sheets(grading)
    grades, column = read_grades(settled)
    assert column == SETTLED
    assert grades == {"q1": {"00123": 3, "d2": 1, "d3": 0}, "q2": {"d4": 2, "d5": 0}}
    by = {row["document_id"]: row["settled_by"] for row in table(settled)}
    assert by == {"'00123": "", "d2": "carla", "d3": "", "d4": "", "d5": "carla"}


def test_the_sheet_of_one_person_is_what_judge_reads_alone(opened, sheet):
    grading = opened(sheet)
    graded(grading, anna=[3, 1, 0, 2, 0])
    (path,) = write_sheets(grading)
    assert read_grades(path)[1] == "grade"
    # Passages, ids and the order of the sheet are as they were.
    first, second = read_sheet(sheet), read_sheet(path)
    assert [one.row for one in first.rows.values()] == [one.row for one in second.rows.values()]


def test_nothing_is_written_where_nothing_is_new(opened, sheet):
    grading = opened(sheet)
    graded(grading, anna=[3])
    (path,) = write_sheets(grading)
    path.touch()
    before, lines = path.stat().st_mtime_ns, grading.journal.read_bytes()
    write_sheets(grading)
    write_sheets(opened(sheet))
    assert path.stat().st_mtime_ns == before
    assert grading.journal.read_bytes() == lines
    path.unlink()
    assert write_sheets(grading) == [path]
    assert table(path)[0]["grade"] == "3"


def test_who_gave_nothing_has_no_sheet(opened, sheet):
    grading = opened(sheet)
    grading.person("anna")
    assert write_sheets(grading) == []


def test_grades_that_were_changed_in_a_sheet_are_taken_over(opened, sheet):
    grading = opened(sheet)
    graded(grading, anna=[3, 1, 0])
    (path,) = write_sheets(grading)
    edit(path, "d2", grade="2.0", comment="=seen again")
    edit(path, "d3", grade="")
    grading.give("anna", 3, 1)  # after the sheet was written
    write_sheets(grading)
    for found in (grading, opened(sheet)):
        given = found.person("anna").given
        assert (given["q1", "d2"].grade, given["q1", "d2"].comment) == (2, "=seen again")
        assert given["q1", "d3"].grade is None
        assert given["q2", "d4"].grade == 1
    assert [row["grade"] for row in table(path)] == ["3", "2", "", "1", ""]


def test_a_sheet_that_somebody_began_in_a_spreadsheet_goes_on(opened, sheet):
    mine = sheet.with_name("sheet.anna.csv")
    shutil.copy(sheet, mine)
    edit(mine, "00123", grade="3")
    grading = opened(sheet)
    grading.give(grading.name_of("anna"), 1, 2)
    write_sheets(grading)
    assert [row["grade"] for row in table(mine)] == ["3", "2", "", "", ""]


def test_settled_grades_that_were_changed_by_hand_are_taken_over(opened, sheet):
    grading = opened(sheet)
    graded(grading, anna=[3, 1], ben=[3, 0])
    *_, settled = write_sheets(grading)
    edit(settled, "d2", adjudicated="1")
    write_sheets(grading)
    edit(settled, "00123", adjudicated="2")  # against both
    write_sheets(grading)
    for found in (grading, opened(sheet)):
        assert {key[1]: given.grade for key, given in found.holding().items()} == {
            "00123": 2, "d2": 1,
        }  # fmt: skip


def test_a_change_of_mind_is_no_edit_of_the_settled_sheet(opened, sheet):
    grading = opened(sheet)
    graded(grading, anna=[3, 1], ben=[3, 0])
    *_, settled = write_sheets(grading)
    grading.give("ben", 1, 1)  # now they agree
    grading.give("ben", 0, 2)  # now they do not
    edit(settled, "d3", comment_a="a note")  # somebody saves the file, without another grade
    write_sheets(grading)
    assert grading.settled.given == {}
    assert [row[SETTLED] for row in table(settled)] == ["", "1", "", "", ""]


def test_an_edited_sheet_that_cannot_be_read_is_left_alone_and_the_others_are_written(
    opened, sheet
):
    grading = opened(sheet)
    graded(grading, anna=[3, 1], ben=[1, 1])
    anna, ben, _ = write_sheets(grading)
    edit(anna, "d2", grade="seven")
    text = anna.read_bytes()
    grading.give("ben", 2, 2)
    with pytest.raises(InputError, match=r"sheet.anna.csv:3: .*'seven' is no grade; write one of"):
        write_sheets(grading)
    assert anna.read_bytes() == text
    assert table(ben)[2]["grade"] == "2"
    edit(anna, "d2", grade="0")
    write_sheets(grading)
    assert grading.person("anna").given["q1", "d2"].grade == 0


def test_columns_of_ones_own_stay(opened, tmp_path):
    file = tmp_path / "own.csv"
    write_whole(file, "query_id;document_id;mood;grade\nq1;d1;good;\nq1;d2;=bad;2\n")
    grading = opened(file)
    grading.give("anna", 0, 1)
    (path,) = write_sheets(grading)
    rows = table(path)
    assert [(row["mood"], row["grade"]) for row in rows] == [("good", "1"), ("'=bad", "")]


def test_a_sheet_of_annotators_is_never_written_by_the_pool(opened, sheet):
    grading = opened(sheet)
    graded(grading, anna=[3])
    (path,) = write_sheets(grading)
    with pytest.raises(InputError, match="may hold grades"):
        write_sheet(path, [])
