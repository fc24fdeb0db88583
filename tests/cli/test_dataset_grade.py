"""tuner dataset grade: from the address that it prints to what `agree` and `judge` read."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tuner.core.local_server import open_in_browser
from tuner.evalset.sheets import Row, write_sheet

ROWS = [Row(f"q{n // 3}", f"question {n // 3}", f"d{n}", "", f"passage {n}") for n in range(6)]


@pytest.fixture
def sheet(tuner) -> Path:
    file: Path = tuner.folder / "sheet.csv"
    write_sheet(file, ROWS)
    return file


class Served:
    """A program that serves a sheet, and what a page asks of it."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address
        self.http = httpx.Client(trust_env=False, timeout=300)

    def post(self, name: str, **asked: object) -> httpx.Response:
        return self.http.post(f"{self.address}{name}", json=asked)

    def given(self, by: str) -> list[int | None]:
        found: list[int | None] = self.http.get(f"{self.address}open", params={"by": by}).json()[
            "given"
        ]
        return found

    def end(self, by: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        self.process.send_signal(by)
        said, errors = self.process.communicate(timeout=600)
        assert "Traceback" not in errors, errors
        return self.process.returncode, said


@pytest.fixture
def serve(tuner, sheet) -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def begin(*options: str) -> Served:
        arguments = ("dataset", "grade", "sheet.csv", "--port", "0", "--no-open", *options)
        process = subprocess.Popen(
            tuner.command(*arguments),
            cwd=tuner.folder,
            env={**tuner.environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", said)
        if found is None:
            pytest.fail(f"no address: {said}{process.communicate()[1]}")
        started.append(Served(process, found[0]))
        return started[-1]

    yield begin
    for one in started:
        one.http.close()
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.mark.slow
def test_what_two_people_grade_is_compared_and_settled(tuner, serve, sheet):
    served = serve()
    for name, grades in {"anna": [3, 0, 1, 2, 0, 0], "ben": [3, 0, 0, 2, 0, 0]}.items():
        for at, grade in enumerate(grades):
            assert served.post("grade", by=name, at=at, grade=grade).status_code == 200
    served.post("settle", by="carla", at=2, grade=1)
    code, said = served.end()
    assert code == 0
    assert [line for line in said.splitlines() if line.startswith("written")] == [
        "written: sheet.anna.csv", "written: sheet.ben.csv", "written: sheet.settled.csv",
    ]  # fmt: skip
    done = tuner("dataset", "build", "agree", "sheet.anna.csv", "sheet.ben.csv")
    assert "1 of 6 pairs differ" in done.stdout
    queries = "".join(f'{{"_id": "q{n}", "text": "question {n}"}}\n' for n in range(2))
    (tuner.folder / "queries.jsonl").write_text(queries)
    corpus = "".join(f'{{"_id": "d{n}", "text": "passage {n}"}}\n' for n in range(6))
    (tuner.folder / "corpus.jsonl").write_text(corpus)
    done = tuner(
        "dataset", "build", "judge", "sheet.settled.csv", "--queries", "queries.jsonl",
        "--corpus", "corpus.jsonl", "--out", "judged",
    )  # fmt: skip
    assert "2 queries, 6 judgements, 3 of them relevant: judged" in done.stdout


@pytest.mark.slow
def test_a_killed_program_loses_nothing_and_the_next_goes_on(serve, sheet):
    served = serve()
    for at in range(4):
        assert served.post("grade", by="anna", at=at, grade=at % 3).status_code == 200
    served.process.kill()
    served.process.communicate()
    served = serve("--annotator", "anna")
    assert served.given("anna") == [0, 1, 2, 0, None, None]
    # The sheet, which the killed one may not have written, is there before a page is opened.
    assert "passage 2,2," in sheet.with_name("sheet.anna.csv").read_text(encoding="utf-8-sig")
    assert served.post("undo", by="anna").json()["at"] == 3
    assert 'data-annotator="anna"' in served.http.get(served.address).text


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_in_good_order(serve, sheet, by):
    served = serve()
    served.post("grade", by="anna", at=0, grade=3)
    code, said = served.end(by)
    assert code == 0
    assert said.endswith("written: sheet.anna.csv\n")


@pytest.mark.slow
def test_a_second_program_is_sent_to_the_first(tuner, serve):
    serve()
    done = tuner("dataset", "grade", "sheet.csv", "--no-open", code=2)
    assert "sheet.grades.jsonl: is written by another `tuner dataset grade`; go on" in done.stderr


@pytest.mark.slow
def test_an_edited_sheet_is_told_on_the_page(serve, sheet):
    served = serve()
    sheet.write_text(sheet.read_text(encoding="utf-8-sig") + "q9,question 9,d9,,passage,,\n")
    problem = ""
    while not problem:  # the test's time limit ends it
        problem = served.http.get(f"{served.address}standing").json()["problem"]
    assert "sheet.csv was changed while it is graded" in problem
    served.end()


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_is_taken_is_said(tuner_here, sheet):
    with taken_port() as port:
        done = tuner_here("dataset", "grade", "sheet.csv", "--port", str(port), code=1)
    assert f"cannot serve on 127.0.0.1, port {port}: " in done.stderr
    assert "choose another: --port" in done.stderr


def test_what_is_wrong_with_a_sheet_is_said_before_anything_is_served(tuner_here, sheet):
    done = tuner_here("dataset", "grade", "none.csv", code=2)
    assert "none.csv" in done.stderr
    done = tuner_here("dataset", "grade", "sheet.csv", "--annotator", "a/b", code=2)
    assert "the name 'a/b'" in done.stderr
    done = tuner_here("dataset", "grade", "sheet.csv", "--grades", "3", code=2)
    assert "write at least two whole numbers" in done.stderr
    sheet.with_suffix(".grades.jsonl").write_text("{}\n")
    done = tuner_here("dataset", "grade", "sheet.csv", code=2)
    assert "sheet.grades.jsonl:1: this line holds no grade" in done.stderr


def test_without_a_window_no_browser_is_opened(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform in ("win32", "darwin"):
        pytest.skip("there is always a window")
    assert open_in_browser("http://127.0.0.1:1/") is False
