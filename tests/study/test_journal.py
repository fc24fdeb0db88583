"""The journal: what is written comes back, torn ends are cut off, broken lines are named."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.errors import InputError, TunerError
from tuner.core.journal import per_query_if_whole, read_journal, read_per_query
from tuner.core.trial import Outcome, Trial, TrialState, best_trial
from tuner.execution.local.inline import Inline
from tuner.study.journal import Journal
from tuner.study.loop import run_study

TOLD = Trial(
    0,
    "tpe",
    {"k": 3, "mode": "graph", "weight": 0.1, "flag": True, "none": None},
    state=TrialState.FINISHED,
    objective=0.1 + 0.2,
    violation=0.5,
    metrics={"ndcg@10": 1 / 3, "undefined": math.nan},
    seconds={"total": 0.25},
    asked_at=1.5,
    told_at=2.5,
)
ASKED = Trial(0, "tpe", TOLD.params, asked_at=1.5)


def write(path: Path, toy: ModuleType) -> None:
    with Journal.create(path, toy.header()) as journal:
        journal.asked(ASKED)
        journal.told(TOLD, {"ndcg@10": np.array([0.5, math.nan])})
        journal.asked(Trial(1, "tpe", {"k": 4}, asked_at=3.0))


def test_what_is_written_comes_back(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "new" / "journal.jsonl"
    write(path, toy)
    content = read_journal(path)
    assert content.header == toy.header()
    assert math.isnan(content.trials[0].metrics["undefined"])
    expected = {**TOLD.to_record(), "metrics": {"ndcg@10": 1 / 3}}
    record = content.trials[0].to_record()
    del record["metrics"]["undefined"]
    assert record == expected
    assert content.trials[1].state is TrialState.RUNNING
    assert [note["kind"] for note in content.notes] == ["started"]
    assert content.torn_bytes == 0
    np.testing.assert_array_equal(read_per_query(path, 0)["ndcg@10"], [0.5, math.nan])
    assert read_per_query(path, 1) == {}


def test_lines_are_strict_json(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, toy)
    with Journal.resume(path)[0] as journal:
        journal.note("bad", value=math.inf)
    assert b"NaN" not in path.read_bytes()
    assert b"Infinity" not in path.read_bytes()
    events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert events == ["header", "note", "asked", "told", "asked", "note", "note"]


def test_every_torn_tail_is_read_and_cut_off(tmp_path: Path, toy: ModuleType) -> None:
    whole = tmp_path / "whole.jsonl"
    write(whole, toy)
    raw = whole.read_bytes()
    line_ends = [i + 1 for i, byte in enumerate(raw) if byte == ord("\n")]
    path = tmp_path / "journal.jsonl"
    for end in range(line_ends[0], len(raw) + 1):
        path.write_bytes(raw[:end])
        complete = max(line_end for line_end in line_ends if line_end <= end)
        content = read_journal(path)
        assert content.torn_bytes == end - complete
        states = [trial.state.value for trial in content.trials.values()]
        is_complete = sum(line_end <= end for line_end in line_ends)
        assert (
            states == [[], [], ["running"], ["finished"], ["finished", "running"]][is_complete - 1]
        )
    for end in (line_ends[2] + 1, line_ends[2] + 40, line_ends[3] - 1, line_ends[4] - 1):
        path.write_bytes(raw[:end])
        journal, content = Journal.resume(path)
        journal.close()
        assert content.torn_bytes > 0
        again = read_journal(path)
        assert again.torn_bytes == 0
        assert again.trials.keys() == content.trials.keys()
        assert again.notes[-1]["kind"] == "resumed"
        assert again.notes[-1]["cut_off_bytes"] == content.torn_bytes


def test_a_study_goes_on_from_any_torn_tail(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "whole" / "journal.jsonl"
    study = toy.create(path, 6)
    run_study(study, Inline(), toy.evaluate)
    study.close()
    expected = [(t.params, t.state, t.objective) for t in study.trials]
    raw = path.read_bytes()
    lines = raw.split(b"\n")
    last = sum(len(line) + 1 for line in lines[-6:-1])
    for end in range(len(raw) - last, len(raw), 29):
        torn = tmp_path / str(end) / "journal.jsonl"
        torn.parent.mkdir()
        torn.write_bytes(raw[:end])
        resumed = toy.resume(torn, 6)
        assert run_study(resumed, Inline(), toy.evaluate) == "finished"
        resumed.close()
        assert [(t.params, t.state, t.objective) for t in resumed.trials] == expected
        assert list(read_journal(torn).trials.values()) == resumed.trials


@pytest.mark.parametrize(
    ("line", "broken", "reason"),
    [
        (1, b'{"event": "note", "kind": "x"}', "one header"),
        (2, b"\x00\x00\x00", "Expecting value"),
        (3, b'{"event": "asked"', "Expecting"),
        (3, b'{"event": "asked", "trial": 5, "arm": "tpe", "params": {}}', "trial 5 where 0"),
        (4, b'{"event": "told", "trial": 0}', "arm is missing"),
        (4, b'{"event": "told", "trial": NaN}', "NaN is not JSON"),
        (4, b"[1, 2]", "list indices"),
        (5, None, "told already"),
    ],
)
def test_a_broken_line_is_named(
    tmp_path: Path, toy: ModuleType, line: int, broken: bytes | None, reason: str
) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, toy)
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = lines[3] if broken is None else broken
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError) as caught:
        read_journal(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert reason in str(caught.value)


def test_a_later_format_is_refused(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, toy)
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":99', 1))
    with pytest.raises(InputError, match="later version"):
        read_journal(path)


def test_no_journal_and_no_study(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    with pytest.raises(InputError, match="no journal to resume"):
        Journal.resume(path)
    with pytest.raises(InputError, match="No such file"):
        read_journal(path)
    path.write_bytes(b'{"event": "hea')
    with pytest.raises(InputError, match="ends before its first line"):
        Journal.resume(path)
    write(path, toy)  # a run that was killed within its first line has no study to lose
    assert len(read_journal(path).trials) == 2
    with pytest.raises(InputError, match="holds a study already"):
        Journal.create(path, toy.header())


def test_a_second_writer_is_refused(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal.create(path, toy.header())
    for open_again in (Journal.resume, lambda p: Journal.create(p, toy.header())):
        with pytest.raises(InputError, match=r"another run is writing this journal \(process \d+"):
            open_again(path)
    assert read_journal(path).header == toy.header()  # reading needs no lock
    journal.close()
    journal.close()
    Journal.resume(path)[0].close()


def test_outcomes_keep_undefined_metrics(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    study = toy.create(path, 2)
    (trial,) = study.ask(1)
    (told,) = study.tell(trial, Outcome({"score": 0.5, "odd": math.inf}))
    study.close()
    assert math.isnan(told.metrics["odd"])
    assert math.isnan(read_journal(path).trials[0].metrics["odd"])


def test_a_full_disk_leaves_the_journal_whole(tmp_path: Path, toy: ModuleType) -> None:
    resource = pytest.importorskip("resource", reason="limits on file sizes are of POSIX")
    path = tmp_path / "journal.jsonl"
    journal = Journal.create(path, toy.header())
    journal.asked(ASKED)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (0, 25):  # nothing is taken, or a part of the line
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
        try:
            with pytest.raises(TunerError, match="cannot write the journal: File too large"):
                journal.told(TOLD, {})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
    journal.told(TOLD, {})
    journal.close()
    assert read_journal(path).trials[0].is_told


def test_a_full_disk_is_explained_for_notes_and_new_journals(
    tmp_path: Path, toy: ModuleType
) -> None:
    resource = pytest.importorskip("resource", reason="limits on file sizes are of POSIX")
    path = tmp_path / "journal.jsonl"
    journal = Journal.create(path, toy.header())
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    refusal = "cannot write the journal: File too large"
    for room in (0, 25):
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
        try:
            with pytest.raises(TunerError, match=refusal):
                journal.note("ended", state="finished", padding="x" * 100)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
    journal.close()
    new = tmp_path / "new.jsonl"
    resource.setrlimit(resource.RLIMIT_FSIZE, (25, limits[1]))
    try:
        with pytest.raises(TunerError, match=refusal):
            Journal.create(new, toy.header())
        with pytest.raises(TunerError, match=refusal):
            Journal.resume(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    for resumed in (Journal.create(new, toy.header()), Journal.resume(path)[0]):
        resumed.close()  # the failed attempts left no lock behind


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path, toy: ModuleType) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        TunerError, match=r"cannot write the journal: (Not a directory|File exists)"
    ):
        Journal.create(tmp_path / "file" / "journal.jsonl", toy.header())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is of POSIX")
@pytest.mark.parametrize("action", ["note", "asked", "told", "close"])
def test_a_forked_child_neither_writes_nor_unlocks(
    tmp_path: Path, toy: ModuleType, action: str
) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal.create(path, toy.header())
    before = path.read_bytes()
    child = os.fork()
    if child == 0:
        try:
            match action:
                case "note":
                    journal.note("child")
                case "asked":
                    journal.asked(ASKED)
                case "told":
                    journal.told(TOLD, {})
                case "close":
                    journal.close()
        finally:
            os._exit(77)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="another run is writing"):
        Journal.resume(path)
    journal.close()


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(max_examples=300)
@given(data=st.data(), odd=ODD)
def test_wrong_types_are_named_or_read(
    tmp_path_factory: pytest.TempPathFactory, toy: ModuleType, data: st.DataObject, odd: object
) -> None:
    path = tmp_path_factory.mktemp("odd") / "journal.jsonl"
    write(path, toy)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    place = data.draw(st.sampled_from(records))
    while True:  # replaces a value at any depth
        key = data.draw(st.sampled_from(sorted(place)))
        if not (isinstance(place[key], dict) and place[key]) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = odd
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    try:
        content = read_journal(path)
    except InputError as error:
        assert str(error).startswith(str(path))  # noqa: PT017  # either is right
        return
    assert json.dumps([trial.to_record() for trial in content.trials.values()])
    best_trial(list(content.trials.values()))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"objective": "0.3"}, "objective is '0.3'"),
        ({"metrics": {"a": [1]}}, "metrics.a is [1]"),
        ({"metrics": []}, "metrics is []"),
        ({"seconds": 3}, "seconds is 3"),
        ({"params": 3}, "params is 3"),
        ({"error": {}}, "error is {}"),
        ({"told_at": "now"}, "told_at is 'now'"),
        ({"trial": [0]}, "number is [0]"),
        ({"violation": None}, "violation is None"),
    ],
)
def test_wrong_types_in_a_told_line_are_named(
    tmp_path: Path, toy: ModuleType, change: dict[str, object], reason: str
) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, toy)
    lines = path.read_text().splitlines()
    lines[3] = json.dumps({**json.loads(lines[3]), **change})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError) as caught:
        read_journal(path)
    assert str(caught.value).startswith(f"{path}:4: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 cut off"])
def test_a_damaged_file_of_values_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "7.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"7\.npz: this file of values by query is damaged"):
        read_per_query(path, 7)
    assert per_query_if_whole(path, 7) == {}


def test_a_note_may_hold_what_is_undefined_or_no_whole_text(
    tmp_path: Path, toy: ModuleType
) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal.create(path, toy.header()) as journal:
        journal.note("odd", a=math.nan, b=[math.inf, 1.5], c={"d": (-math.inf, "caf\udce9")})
    note = read_journal(path).notes[-1]
    assert {name: note[name] for name in "abc"} == {
        "a": None,
        "b": [None, 1.5],
        "c": {"d": [None, "caf\udce9"]},
    }


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_run_whose_lock_was_deleted_writes_no_more(
    tmp_path: Path, toy: ModuleType, is_replaced: bool
) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, toy)
    first, _ = Journal.resume(path)
    (tmp_path / "journal.jsonl.lock").unlink()
    if is_replaced:
        second, _ = Journal.resume(path)
        second.note("second")
    before = path.read_bytes()
    with pytest.raises(TunerError, match="was deleted or replaced while this run held it"):
        first.note("first")
    first.close()
    assert path.read_bytes() == before
    if is_replaced:
        second.note("goes on")
        second.close()
        assert [note["kind"] for note in read_journal(path).notes][-2:] == ["second", "goes on"]
