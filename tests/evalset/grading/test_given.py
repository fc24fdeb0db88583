"""What people gave is on the disk before it is told, and comes back as it was."""

from __future__ import annotations

import json
import threading

import pytest

from tuner.core.errors import InputError
from tuner.core.files import write_whole
from tuner.evalset.grading.given import Given, Opinion
from tuner.evalset.grading.names import checked_name
from tuner.evalset.grading.serving import what_is_known
from tuner.evalset.sheets import Row, write_sheet


def grades_of(grading, name):
    given = grading.person(name).given
    return [given.get(row.key, Given()).grade for row in grading.rows]


def lines_of(grading):
    return [json.loads(line) for line in grading.journal.read_text(encoding="utf-8").splitlines()]


def test_a_grade_is_in_the_file_when_it_is_given(opened, sheet):
    grading = opened(sheet)
    assert grading.journal == sheet.parent / "sheet.grades.jsonl"
    grading.give("anna", 1, 2, "well")
    (line,) = lines_of(grading)
    assert line["event"] == "graded"
    assert (line["by"], line["time"]) == ("anna", "second 0")
    assert (line["query_id"], line["document_id"], line["grade"], line["comment"]) == (
        "q1", "d2", 2, "well",
    )  # fmt: skip


def test_everybody_has_grades_of_their_own_which_come_back(opened, sheet):
    grading = opened(sheet)
    for at, grade in enumerate([3, 1, 0]):
        grading.give("anna", at, grade)
    grading.give("ben", 0, 2)
    grading.give("anna", 1, 2)  # another grade for what has one
    grading = opened(sheet)
    assert grades_of(grading, "anna") == [3, 2, 0, None, None]
    assert grades_of(grading, "ben") == [2, None, None, None, None]
    assert [person.name for person in grading.people()] == ["anna", "ben"]


def test_undo_takes_back_step_by_step_also_after_a_restart(opened, sheet):
    grading = opened(sheet)
    grading.give("anna", 0, 1)
    grading.give("anna", 1, 2)
    grading.give("anna", 0, 3)
    grading.give("ben", 2, 0)
    assert grading.undo("anna") == 0
    assert grades_of(grading, "anna")[:2] == [1, 2]
    grading = opened(sheet)
    assert grading.undo("anna") == 1
    assert grading.undo("anna") == 0
    assert grades_of(grading, "anna") == [None] * 5
    assert grading.undo("anna") is None
    assert grades_of(grading, "ben")[2] == 0
    # Nothing is erased: what was given and taken back stands in the file.
    events = [line["event"] for line in lines_of(grading)]
    assert events == ["graded"] * 4 + ["undone"] * 3


@pytest.mark.parametrize(("at", "grade"), [(5, 1), (-1, 1), (0, 4), (0, -1)])
def test_what_is_no_passage_or_no_grade_is_refused(opened, sheet, at, grade):
    grading = opened(sheet)
    with pytest.raises(InputError, match=r"there is no passage|is no grade; give one of 0, 1, 2"):
        grading.give("anna", at, grade)
    assert not grading.journal.exists()


def test_a_sheet_may_have_other_grades(opened, sheet):
    grading = opened(sheet, grades=(0, 1, 2, 3, 4))
    grading.give("anna", 0, 4)
    assert grades_of(grading, "anna")[0] == 4


def test_what_was_graded_differently_comes_with_the_widest_apart_first(opened, sheet):
    grading = opened(sheet)
    for name, grades in {"anna": [1, 0, 2, 3], "ben": [2, 3, 2, 2]}.items():
        for at, grade in enumerate(grades):
            grading.give(name, at, grade, f"{name} {at}")
    found = grading.disputed()
    assert [one.at for one in found] == [1, 0, 3]
    assert found[0].opinions == (Opinion("anna", 0, "anna 1"), Opinion("ben", 3, "ben 1"))
    (together,) = grading.together()
    assert (together.first, together.second, together.agreement.pairs) == ("anna", "ben", 4)
    assert together.agreement.same == 0.25  # the third of four


def test_what_is_settled_stays_and_says_by_whom(opened, sheet):
    grading = opened(sheet)
    grading.give("anna", 0, 1)
    grading.give("ben", 0, 3)
    grading.give("anna", 1, 2)
    grading.give("ben", 1, 2)
    grading.settle("carla", 0, 3)
    grading.settle("carla", 0, 2)
    assert grading.unsettle("anna") is None  # who settled nothing
    assert grading.unsettle("carla") == 0
    grading = opened(sheet)
    (one,) = grading.disputed()
    assert (one.settled.grade, one.settled.by) == (3, "carla")
    holds = {key: given.grade for key, given in grading.holding().items()}
    assert holds == {("q1", "00123"): 3, ("q1", "d2"): 2}
    # Settled once, it holds also where they then agree.
    grading.give("ben", 0, 1)
    assert grading.holding()["q1", "00123"].grade == 3


def test_what_is_taken_back_is_settled_by_whoever_did_it_before(opened, sheet):
    grading = opened(sheet)
    grading.give("anna", 0, 1)
    grading.give("ben", 0, 3)
    grading.settle("carla", 0, 3)
    grading.settle("dan", 0, 2)
    assert grading.unsettle("dan") == 0
    for found in (grading, opened(sheet)):
        (one,) = found.disputed()
        assert (one.settled.grade, one.settled.by) == (3, "carla")


def test_kappa_is_of_each_two_people_who_graded_the_same(opened, sheet):
    grading = opened(sheet)
    assert grading.together() == []
    for name, places in {"anna": (0, 1), "ben": (1, 2), "carla": (3,)}.items():
        for at in places:
            grading.give(name, at, at % 3)
    assert [(one.first, one.second, one.agreement.pairs) for one in grading.together()] == [
        ("anna", "ben", 1)
    ]


def test_a_torn_line_is_left_out_and_said(opened, sheet):
    grading = opened(sheet)
    grading.give("anna", 0, 1)
    grading.give("anna", 1, 2)
    whole = grading.journal.read_bytes()
    grading.journal.write_bytes(whole[:-30])
    grading = opened(sheet)
    assert grading.torn == 1
    assert "torn by a crash, and not used: 1 line of" in list(what_is_known(grading))[2]
    assert grades_of(grading, "anna")[:2] == [1, None]
    grading.give("anna", 1, 3)
    grading = opened(sheet)
    assert grades_of(grading, "anna")[:2] == [1, 3]


def test_grades_of_nobody_are_not_used_and_said(opened, tmp_path):
    file = tmp_path / "graded.csv"
    write_whole(file, "query_id,document_id,grade\nq,d,3\n")
    grading = opened(file)
    assert grades_of(grading, "anna") == [None]
    said = list(what_is_known(grading))[-1]
    assert "holds 1 grade already, of nobody who is named" in said
    assert "copy it to graded.NAME.csv" in said


@pytest.mark.parametrize("text", ['{"event": "sold", "by": "a", "time": ""}', "[]", "grades"])
def test_a_file_of_another_kind_is_refused_with_its_line(opened, sheet, text):
    sheet.with_suffix(".grades.jsonl").write_text(f"\n{text}\n")
    with pytest.raises(InputError, match=r"sheet.grades.jsonl:2: this line holds no grade"):
        opened(sheet)


def test_a_sheet_that_has_changed_keeps_its_grades(opened, sheet):
    grading = opened(sheet)
    for at in range(3):
        grading.give("anna", at, at)
    sheet.unlink()
    rows = [Row("q1", "Where was Ada born?", "d2", "London", "Another text."),
            Row("q9", "New?", "d9")]  # fmt: skip
    write_sheet(sheet, rows)
    grading = opened(sheet)
    assert grades_of(grading, "anna") == [1, None]
    assert (grading.strange, grading.changed) == (2, 1)
    said = list(what_is_known(grading))
    assert said[:2] == [f"2 passages to grade for 2 queries: {sheet}", "anna has graded 1"]
    assert "not on the sheet any more: 2 graded passages; their grades are kept in" in said[2]
    assert "another text than when it was graded: 1 passage; look at the grades again" in said[3]
    assert grading.undo("anna") == 0  # what is not on the sheet cannot be shown, nor taken back


def test_passages_of_a_query_stand_together(opened, tmp_path):
    file = tmp_path / "mixed.csv"
    write_sheet(file, [Row(q, q, d) for q, d in [("b", "1"), ("a", "1"), ("b", "2"), ("a", "2")]])
    grading = opened(file)
    assert [row.key for row in grading.rows] == [("b", "1"), ("b", "2"), ("a", "1"), ("a", "2")]
    assert grading.starts == (0, 2)


def test_a_second_program_on_the_sheet_is_refused(opened, sheet):
    opened(sheet)
    from tuner.evalset.grading.given import Grading

    refused = pytest.raises(InputError, match="is written by another `tuner dataset grade`; go on")
    with refused, Grading.open(sheet):
        pass


def test_many_at_once_lose_nothing(opened, sheet):
    grading = opened(sheet)

    def work(name):
        for turn in range(40):
            grading.give(name, turn % 5, turn % 4)
            grading.disputed()
            if turn % 7 == 6:
                grading.undo(name)

    names = ["anna", "ben", "carla"]
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = {name: grades_of(grading, name) for name in names}
    assert len(lines_of(grading)) == 3 * (40 + 5)
    grading = opened(sheet)
    assert {name: grades_of(grading, name) for name in names} == kept


@pytest.mark.parametrize(
    "name", ["", "  ", "../up", "a/b", ".hidden", "settled", "SETTLED", "x" * 41, "a\0b/", "a.", 7]
)
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InputError, match="the name"):
        checked_name(name)


@pytest.mark.parametrize("name", ["anna", "Anna-Lena B.2", "阿达", "Zoë", "7", "أحمد"])
def test_people_are_called_as_they_are(name):
    assert checked_name(name) == name


def test_one_name_in_two_spellings_is_one_person(opened, sheet):
    grading = opened(sheet)
    grading.give(grading.name_of("Anna"), 0, 1)
    assert grading.name_of(" anna ") == "Anna"
