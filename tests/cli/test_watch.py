"""tuner watch: the address, what it answers, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]+/")


class Served:
    """A program that serves a page, and what a browser asks of it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.http = httpx.Client(trust_env=False, timeout=600)
        said = ""
        assert process.stderr is not None
        while (found := ADDRESS.search(said)) is None:
            line = process.stderr.readline()
            if not line:
                pytest.fail(f"no address: {said}")
            said += line
        self.address = found[0]

    def get(self, name: str = "", **asked: object) -> httpx.Response:
        return self.http.get(f"{self.address}{name}", params=asked or None)

    def end(self, by: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(by)
        said, errors = self.process.communicate(timeout=900)
        assert "Traceback" not in errors, errors
        return self.process.returncode, said, errors


@pytest.fixture
def start(tuner) -> Iterator[Callable[..., Served]]:
    started: list[subprocess.Popen[str]] = []
    clients = []

    def begin(*arguments: str) -> Served:
        process = subprocess.Popen(
            tuner.command(*arguments),
            cwd=tuner.folder,
            env={**tuner.environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        served = Served(process)
        clients.append(served.http)
        return served

    yield begin
    for client in clients:
        client.close()
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_two_watch_a_study_and_ctrl_c_ends_each(tuner, start):
    tuner("run", "config.yaml", "-q")
    (run_dir,) = tuner.runs()
    before = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")}
    one, two = (start("watch", str(run_dir), "--no-open") for _ in range(2))
    assert one.address != two.address
    page = one.get()
    assert page.status_code == 200
    assert "The study has ended" in page.text
    assert "connect-src 'self'" in page.headers["Content-Security-Policy"]
    assert two.get("new", stage="", since=0).json()["state"]["is_over"]
    # The other's token opens nothing here.
    token = two.address.rsplit("/", 2)[1]
    origin = one.address.rsplit("/", 2)[0]
    for address in (f"{origin}/", f"{origin}/{token}/", f"{origin}/{token}/new"):
        assert one.http.get(address).status_code == 403
    wrong = one.http.get(one.address, headers={"Host": "evil.example"})
    assert wrong.status_code == 403
    assert one.end()[0] == 0
    assert two.end(signal.SIGTERM)[0] == 0
    assert {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")} == before


@pytest.mark.parametrize("arguments", [["runs/nowhere"], ["data"]])
def test_what_is_no_run_directory_is_named(tuner, arguments):
    done = tuner("watch", "--no-open", *arguments, code=2)
    assert "is not a run directory" in done.stderr


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(tuner, start):
    tuner("run", "config.yaml", "-q")
    (run_dir,) = tuner.runs()
    one = start("watch", str(run_dir), "--no-open")
    port = one.address.split(":")[2].split("/")[0]
    done = tuner("watch", str(run_dir), "--no-open", "--port", port, code=1)
    assert f"cannot serve on 127.0.0.1, port {port}" in done.stderr


def until(what: str, found: Callable[[], object]) -> None:
    """Wait for what comes soon; the limit only ends a test that would never end."""
    end = time.monotonic() + 900
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def is_served(served: Served) -> bool:
    try:
        return served.get().status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_a_run_serves_its_page_and_keeps_it_after_the_end_until_ctrl_c(tuner, start):
    run = start("run", "config.yaml", "--watch", "--json", "-q")
    until("the end", lambda: run.get("new", stage="", since=0).json()["state"]["is_over"])
    assert "The study has ended: 13 trials told" in run.get().text
    line = run.process.stderr.readline()
    assert line == f"the page stays at {run.address}  (Ctrl-C ends it)\n"
    code, said, _ = run.end()
    assert code == 0
    assert json.loads(said)["state"] == "finished"
    assert not is_served(run)


def test_the_exit_code_of_a_watched_run_is_that_of_the_run(tuner, start):
    tuner.edit("space:", "space:\n  mode: {type: categorical, choices: [crash]}")
    tuner.edit("top_k: 10}", "top_k: 10, mode: crash}")
    run = start("run", "config.yaml", "--watch", "-q")
    until("the last line", lambda: "the page stays at" in run.process.stderr.readline())
    assert run.end(signal.SIGTERM)[0] == 1


@pytest.fixture
def slow(tuner):
    """A study of trials that take long."""
    tuner.edit("space:", "space:\n  mode: {type: categorical, choices: [slow]}")
    tuner.edit("top_k: 10}", "top_k: 10, mode: slow}")
    tuner.edit("random, trials: 6", "random, trials: 10000")


@pytest.mark.slow
@pytest.mark.usefixtures("slow")
def test_who_interrupts_a_watched_run_leaves_its_page_too(start):
    run = start("run", "config.yaml", "--watch")
    assert "The study runs" in run.get().text
    code, _, errors = run.end()
    assert code == 130
    assert "the page stays" not in errors
    assert not is_served(run)


@pytest.mark.slow
@pytest.mark.usefixtures("slow")
def test_the_page_of_a_run_that_is_killed_ends(start):
    run = start("run", "config.yaml", "--watch")
    assert is_served(run)
    run.process.kill()
    until("that nobody serves", lambda: not is_served(run))
