"""What is asked is added up by every process that asks, and kept when one of them dies."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

from tuner.core.ledger import (
    NO_KEY,
    Asked,
    Ledger,
    current_key,
    evaluating,
    heard_by,
    hearer,
    hearing,
    key_of_evaluation,
    teller,
)
from tuner.core.rankings import Rankings

ASKS_AND_DIES = """
import os, signal, sys
from pathlib import Path
from tuner.core.ledger import Asked, Ledger
ledger = Ledger(Path(sys.argv[1]))
for _ in range(7):
    ledger.add("trials", Asked(sent=1), "one")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_asked_is_counted_with_that_of_others(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.add("trials", Asked(sent=2, answered=1, tokens=0.1), "one")
    ledger.add("holdout", Asked(kept=4))
    done = subprocess.run([sys.executable, "-c", ASKS_AND_DIES, str(tmp_path)], timeout=900)
    assert done.returncode == -signal.SIGKILL
    assert ledger.by_purpose() == {
        "trials": Asked(9, 1, 0, 0.1),  # 2 + 7
        "holdout": Asked(kept=4),
    }
    assert ledger.by_key() == {"one": Asked(9, 1, 0, 0.1)}
    assert ledger.calls == {"trials": 9}
    assert Ledger(tmp_path).total == Asked(9, 1, 4, 0.1)


def test_a_copy_in_another_process_counts_in_the_same_folder(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    copy = pickle.loads(pickle.dumps(ledger))
    copy.add("verdict", Asked(sent=3))
    assert ledger.calls == {"verdict": 3}


def test_without_a_folder_a_process_counts_its_own(tmp_path: Path) -> None:
    for ledger in (Ledger(), Ledger(tmp_path / "elsewhere")):
        ledger.add("trials", Asked(sent=1), "one")
        assert (ledger.calls, ledger.by_key()) == ({"trials": 1}, {"one": Asked(sent=1)})
        assert pickle.loads(pickle.dumps(ledger)).calls == {}


def test_a_damaged_line_costs_itself_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.add("trials", Asked(sent=1))
    (tmp_path / "other.txt").write_bytes(b"trials - 1 0 0 0\ntri\xff\ntrials - x 0 0 0\ntrials - 5")
    assert ledger.calls == {"trials": 2}
    with (tmp_path / "other.txt").open("ab") as stream:
        stream.write(b" 0 0 0\n")  # the line was not whole yet
    assert ledger.calls == {"trials": 7}


def test_who_sends_tells_who_counts_and_no_other() -> None:
    heard: list[int] = []
    teller()(1)
    with heard_by(heard.append):
        tell = teller()
        tell(2)
        with heard_by(lambda queries: None):
            teller()(3)
    teller()(4)
    tell(5)  # as from a thread that goes on
    assert heard == [2, 5]


def test_answers_are_heard_by_all_who_listen() -> None:
    outer, inner = list[Rankings](), list[Rankings]()
    answer = Rankings.from_ids(["q1"], [["a"]])
    hearer()(answer)
    with hearing(outer.append):
        with hearing(inner.append):
            hear = hearer()
        hearer()(answer)
    hear(answer)  # as from a thread that goes on
    assert (len(outer), len(inner)) == (2, 1)


def test_an_evaluation_is_known_by_its_parameters_in_whatever_order() -> None:
    assert current_key() == NO_KEY
    with evaluating({"a": 1, "b": 2.5}):
        assert current_key() == key_of_evaluation({"b": 2.5, "a": 1})
    assert current_key() == NO_KEY
    assert key_of_evaluation({"a": 1}) != key_of_evaluation({"a": 2})


def test_a_forked_process_writes_a_file_of_its_own(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.add("trials", Asked(sent=1))
    child = os.fork()
    if child == 0:
        ledger.add("trials", Asked(sent=1))
        os._exit(0)
    os.waitpid(child, 0)
    assert (ledger.calls, len(list(tmp_path.iterdir()))) == ({"trials": 2}, 2)
