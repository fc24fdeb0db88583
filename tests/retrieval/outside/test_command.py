"""The command adapter against real processes: right answers, every kind of fault, a sure end."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tuner.core.corpus import Query
from tuner.core.errors import InputError, TunerError
from tuner.core.space import Categorical, SearchSpace
from tuner.retrieval.adapters.command import Command
from tuner.retrieval.adapters.command.process import idle_processes
from tuner.testing import RetrieverCase
from tuner.testing.retrievers import CHECKS

# Ranks by shared words; fails in all the ways that a parameter tells it to.
SCRIPT = """
import json, os, subprocess, sys, time

TEXTS = {"d0": "lima rimac", "d1": "cairo nile", "d2": "paris seine", "d3": "rome tiber"}
print("ready", file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    params, words = request["params"], request["query"].lower().split()
    fault = params["fault"]
    if fault == "only q2" and request["id"] == "q2":
        fault = "error"
    if fault == "crash":
        print("Traceback: the index is on fire", file=sys.stderr, flush=True)
        os._exit(3)
    if fault == "killed":
        os.kill(os.getpid(), 9)
    if fault == "hang":
        time.sleep(600)
    if fault == "garbage":
        print("Loading model … 100 %", flush=True)
        continue
    if fault == "closes":
        sys.stdout.flush(); os.close(1); time.sleep(600)
    answer = {"id": request["id"]}
    if fault == "wrong id":
        answer["id"] = "q99"
    scored = sorted(
        ((-len(set(words) & set(text.split())), id_) for id_, text in TEXTS.items()),
    )
    answer["results"] = [
        {"id": id_, "score": -score} for score, id_ in scored if score
    ][: params["top_k"]]
    if fault == "error":
        answer["error"] = "no such collection"
    if fault == "unknown ids":
        answer["results"] = ["zz"]
    if fault == "nan":
        answer["results"] = [{"id": "d0", "score": float("nan")}]
    if fault == "empty":
        answer["results"] = []
    if fault == "duplicates":
        answer["results"] = ["d1", "d1", "d0", "d1"]
    if fault == "process id":
        answer["results"] = [{"id": "d0", "score": os.getpid()}]
    print(json.dumps(answer), flush=True)
"""
FAULTS = (
    "none", "crash", "killed", "hang", "garbage", "closes", "wrong id", "error", "unknown ids",
    "nan", "empty", "duplicates", "only q2", "process id",
)  # fmt: skip
SPACE = SearchSpace({"fault": Categorical(FAULTS)})
ONE = (Query("q0", "Lima"),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("command")
    (path / "search.py").write_text(SCRIPT, encoding="utf-8")
    return path


@pytest.fixture
def make(corpus, folder):
    """Build commands, and end their processes after the test."""
    made = []

    def build(**options) -> Command:
        given = {
            "command": [sys.executable, "search.py"],
            "space": SPACE,
            "baseline": {"fault": "none", "top_k": 4},
            "working_dir": str(folder),
            "timeout_s": 60,
            **options,
        }
        made.append(Command.build(corpus, **given))
        return made[-1]

    yield build
    for command in made:
        idle_processes(command.command, command.working_dir, os.getpid()).close()


def process_id(command: Command) -> int:
    return int(command.retrieve(ONE, {"fault": "process id"}).scores[0, 0])


def is_gone(pid: int) -> bool:
    """Wait until a process is gone; one that stays makes the test time out."""
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
            if stat.rpartition(")")[2].split()[0] == "Z":  # dead, and not yet collected
                return True
        time.sleep(0.01)


@pytest.fixture(scope="module")
def case(corpus, queries, folder):
    def build() -> Command:
        return Command.build(
            corpus,
            command=[sys.executable, "search.py"],
            space=SPACE,
            baseline={"fault": "none", "top_k": 4},
            working_dir=str(folder),
        )

    ids = {document.id for document in corpus.documents}
    yield RetrieverCase(build, queries, ({}, {"top_k": 1}), document_ids=ids)
    idle_processes((sys.executable, "search.py"), str(folder), os.getpid()).close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, case):
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (
            "crash",
            "query 'q0': the command ended with exit code 3; its standard error: ready Traceback: "
            "the index is on fire",
        ),
        ("killed", "query 'q0': the command ended by SIGKILL"),
        ("garbage", "query 'q0': the command printed 'Loading model … 100 %', which is no answer"),
        ("wrong id", "query 'q0': the answer is to 'q99'; send the question's id back"),
        ("error", "query 'q0': the command says: no such collection"),
        ("only q2", "query 'q2': the command says: no such collection"),
        ("unknown ids", "query 'q0': result 1: no document of the data set has the id 'zz'"),
        ("nan", "query 'q0': the score of result 1 is nan, not a number"),
        ("closes", "query 'q0': the command ended, or closed its standard output"),
    ],
)
def test_a_fault_fails_the_trial_and_the_next_one_is_right(make, queries, fault, reason):
    command = make()
    with pytest.raises(TunerError) as raised:
        command.retrieve(queries, {"fault": fault})
    assert str(raised.value).startswith(reason)
    assert command.retrieve(queries, {}).ids(0) == ["d0"]


def test_a_hang_ends_at_the_time_limit(make, queries):
    command = make(timeout_s=0.5)
    before = process_id(command)
    with pytest.raises(TunerError, match=r"query 'q0': no answer within 0.5 s; its standard error"):
        command.retrieve(queries, {"fault": "hang"})
    assert is_gone(before)


def test_the_first_answer_has_a_limit_of_its_own(make, queries):
    command = make(start_timeout_s=0.5)
    with pytest.raises(TunerError, match=r"no answer within 0.5 s"):
        command.retrieve(queries, {"fault": "hang"})


@pytest.mark.parametrize(
    ("fault", "answer"), [("empty", []), ("duplicates", ["d1", "d0"]), ("none", ["d0"])]
)
def test_empty_repeated_and_short_answers_are_answers(make, queries, fault, answer):
    assert make().retrieve(queries, {"fault": fault}).ids(0) == answer


def test_the_process_lives_on_after_a_right_answer_and_after_an_error_in_words(make, queries):
    command = make()
    first = process_id(command)
    command.retrieve(queries, {})
    with pytest.raises(TunerError):
        command.retrieve(queries, {"fault": "error"})
    assert process_id(command) == first
    with pytest.raises(TunerError):
        command.retrieve(queries, {"fault": "garbage"})
    assert process_id(command) != first


def test_a_process_that_was_killed_between_trials_costs_none(make):
    command = make()
    first = process_id(command)
    os.kill(first, signal.SIGKILL)
    assert is_gone(first)
    assert process_id(command) != first


def test_a_copy_starts_no_process_of_its_own_in_the_same_process(make):
    command = make()
    assert process_id(pickle.loads(pickle.dumps(command))) == process_id(command)


# The command starts a process of its own, then hangs; this process is killed and cannot clean up.
HANGS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, file=open("child.txt", "w"), flush=True)
time.sleep(600)
"""
PARENT = """
import sys
from tuner.retrieval.adapters.command.process import Process
process = Process([sys.executable, "hangs.py"], ".")
print(process._process.pid, flush=True)
process.ask(b"{}\\n", 600)
"""


def test_a_command_that_hangs_does_not_outlive_its_killed_worker(tmp_path):
    (tmp_path / "hangs.py").write_text(HANGS, encoding="utf-8")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    with parent:
        command = int(parent.stdout.readline())
        while not (tmp_path / "child.txt").exists() or not (tmp_path / "child.txt").read_text():
            time.sleep(0.01)
        child = int((tmp_path / "child.txt").read_text())
        parent.kill()
    assert is_gone(command)
    assert is_gone(child)


def test_processes_end_with_the_interpreter(make, folder):
    code = f"""
import os, sys
from tuner.core.corpus import Corpus, Query
from tuner.retrieval.adapters.command import Command
command = Command.build(
    Corpus(()),
    command=[sys.executable, "search.py"],
    working_dir={str(folder)!r},
    baseline={{"fault": "process id", "top_k": 4}},
)
print(int(command.retrieve([Query("q", "Lima")], {{}}).scores[0, 0]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert is_gone(int(done.stdout))


@pytest.mark.parametrize(
    ("options", "key", "reason"),
    [
        ({"command": []}, "command", "must be a program and its arguments"),
        ({"command": "python 'search"}, "command", "cannot be split into words"),
        ({"command": ["no-such-program"]}, "command", "no program 'no-such-program' on the path"),
        ({"command": ["./search"]}, "command", "no such program"),
        ({"working_dir": "nowhere"}, "working_dir", "no such folder"),
        ({"timeout_s": 0}, "timeout_s", "must be a number above 0, got 0"),
        ({"start_timeout_s": "1"}, "start_timeout_s", "must be a number above 0, got '1'"),
    ],
)
def test_wrong_options_are_explained(make, options, key, reason):
    with pytest.raises(InputError) as raised:
        make(**options)
    (problem,) = raised.value.problems
    assert problem.key == (key,)
    assert reason in problem.message


def test_another_script_is_another_fingerprint(make, folder):
    first = make()
    assert make().fingerprint == first.fingerprint
    assert make(command=[sys.executable, "-u", "search.py"]).fingerprint != first.fingerprint
    (folder / "copy.py").write_text(SCRIPT, encoding="utf-8")
    copy = make(command=[sys.executable, "copy.py"])
    (folder / "copy.py").write_text(SCRIPT + "\n# changed", encoding="utf-8")
    assert make(command=[sys.executable, "copy.py"]).fingerprint != copy.fingerprint


def test_a_program_that_cannot_be_run_fails_the_trial(make, folder):
    (folder / "not-executable").write_text("#!/bin/sh\n", encoding="utf-8")
    command = make(command=["./not-executable"])
    with pytest.raises(TunerError, match=r"the command './not-executable' cannot be started"):
        command.retrieve(ONE, {})


def test_options_hold_from_any_folder(tmp_path):
    resolved = Command.resolve_options({"command": "x", "working_dir": "here"}, tmp_path)
    assert resolved == {"command": "x", "working_dir": str(Path("here").resolve())}
    assert Command.resolve_options({}, tmp_path)["working_dir"] == str(Path().resolve())
