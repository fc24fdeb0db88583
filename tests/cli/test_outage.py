"""A service that goes away and comes back, twice: tuned to the end, no trial lost, none paid twice.

One real HTTP server stands behind the adapters for services, commands and functions.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

# Slower than what is too quick to be kept.
ANSWER_S = 0.004
CLIENT = """
import json, os, sys, urllib.request

def search(query, params):
    body = json.dumps({"query": query, "params": params}).encode()
    with urllib.request.urlopen(os.environ["SERVICE"], data=body, timeout=10) as response:
        return json.load(response)["results"]

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        results = search(asked["query"], asked["params"])
        print(json.dumps({"id": asked["id"], "results": results}), flush=True)
"""
KINDS = {
    "http": {
        "kind": "http",
        "url": "URL",
        "request": {"query": "query", "params": "params"},
        "concurrency": 2,
        "retries": 1,
        "retry_wait_s": 0.01,
    },
    "command": {"kind": "command", "command": [sys.executable, "client.py"]},
    "function": {"kind": "function", "function": "client:search"},
}
# Answers of a trial that are on their way when another request of it fails.
AT_ONCE = {"http": 1, "command": 0, "function": 0}


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service: Service = self.server.service  # type: ignore[attr-defined]
        time.sleep(ANSWER_S)
        if not service.may_answer(asked):
            self.connection.close()
            return
        words = asked["query"].removesuffix("?").split()
        part, city = words[4], words[6]
        found = [f"{city}-{part}", f"{city}-{'market' if part == 'river' else 'river'}"]
        worse = asked["params"]["title_weight"] > 2
        body = json.dumps({"results": found[::-1] if worse else found}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Service:
    """A server at one address that stops listening after some answers, until it is started."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter()
        self.requests = 0
        self._left: float = 0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self._stopping: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/"

    def start(self, answers: float = float("inf")) -> None:
        self._left = answers
        server = ThreadingHTTPServer(("127.0.0.1", self._port), _Handler)
        server.daemon_threads = True
        server.service = self  # type: ignore[attr-defined]
        server.handle_error = lambda *_: None  # type: ignore[method-assign,assignment]
        self._port = server.server_port
        self._server = server
        self._stopping = None
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    def may_answer(self, asked: dict[str, object]) -> bool:
        with self._lock:
            self.requests += 1
            if self._left > 0:
                self._left -= 1
                self.answered[json.dumps(asked, sort_keys=True)] += 1
                return True
            if self._stopping is None:
                self._stopping = threading.Thread(target=self.stop)
                self._stopping.start()
            return False

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def is_away(self) -> bool:
        if self._stopping is not None:
            self._stopping.join(10)
        return self._server is None


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    service = Service()
    service.start()
    monkeypatch.setenv("SERVICE", service.url)
    yield service
    service.stop()


def configure(folder: Path, service: Service, kind: str, workers: int) -> None:
    (folder / "client.py").write_text(CLIENT, encoding="utf-8")
    retriever = {**KINDS[kind]}
    if "url" in retriever:
        retriever["url"] = service.url
    if "command" in retriever:
        retriever["command"] = [sys.executable, str(folder / "client.py")]
    path = folder / "config.yaml"
    text = path.read_text(encoding="utf-8")
    text = text.replace(
        'retriever: {kind: "word_overlap:WordOverlap"}', f"retriever: {json.dumps(retriever)}"
    )
    text = text.replace("{kind: inline}", f"{{kind: threads, workers: {workers}}}")
    path.write_text(text, encoding="utf-8")


def told(run_dir: Path) -> list[dict[str, object]]:
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == "told"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_service_that_goes_away_twice(tuner_here, service: Service, kind: str, workers: int):
    configure(tuner_here.folder, service, kind, workers)
    service.stop()
    service.start(answers=33)  # it goes away within a trial
    done = tuner_here("run", "config.yaml", code=130)
    assert service.is_away()
    (run_dir,) = tuner_here.runs()
    assert "the system does not answer: " in done.stderr
    assert "5 evaluations in a row" in done.stdout
    assert f"go on with     tuner resume {run_dir.relative_to(tuner_here.folder)}" in done.stdout
    asked = service.requests
    tuner_here("resume", str(run_dir), code=130)  # it is still away
    assert service.requests == asked
    assert not any(event["error"] for event in told(run_dir))

    own = 13 * 10 - sum(service.answered.values())
    service.start(answers=own + 4)  # all trials, but not all of the held-out queries
    done = tuner_here("resume", str(run_dir), code=130)
    assert service.is_away()
    assert "the system does not answer: " in done.stdout
    assert not (run_dir / "per_query.jsonl").exists()

    service.start()
    record = json.loads(tuner_here("resume", str(run_dir), "--json").stdout)
    assert (record["state"], record["failed_trials"]) == ("finished", 0)
    assert record["verdict"]["outcome"]
    assert record["winner"]["holdout_objective"] is not None
    assert (run_dir / "per_query.jsonl").exists()
    assert len(told(run_dir)) == 13
    # Asked once, but for the moments of failing; winner and baseline once more for the verdict.
    twice = sum(count - 1 for count in service.answered.values())
    by_design = record["queries_asked"]["asked_twice"] + record["queries_asked"].get("probe", 0)
    assert twice - by_design <= 2 * workers * AT_ONCE[kind]
    trials = sum(event["shared_from"] is None for event in told(run_dir))
    # What found nobody may have been sent all the same.
    assert record["queries_asked"]["trials"] >= 10 * trials
    assert sum(record["queries_asked"].values()) >= service.requests


def test_a_comparison_without_answers_is_no_look(tuner_here, service: Service):
    configure(tuner_here.folder, service, "http", 1)
    looks = tuner_here.folder / "runs" / "holdouts.jsonl"
    compare = ("compare", "config.yaml", "--b", '{"title_weight": 3.0, "top_k": 4}')
    evaluate = ("evaluate", "config.yaml", "--queries", "holdout")
    service.stop()
    for command in (compare, evaluate):
        done = tuner_here(*command, code=None)
        assert done.returncode != 0
        assert "look" not in done.stderr
    service.start(answers=13)  # A's 10 queries, and not all of B's
    assert tuner_here(*compare, code=None).returncode != 0
    assert not looks.exists()
    service.stop()
    service.start()
    assert "remembered as a look" in tuner_here(*compare).stderr
    assert len(looks.read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_service_was_asked_is_counted(tuner_here, service: Service, kind: str):
    configure(tuner_here.folder, service, kind, 1)
    tuner_here.edit("execution:", "inspection: off\nexecution:")
    tuner_here.edit("trials: 6", "trials: 2")
    service.stop()
    service.start(answers=64)  # the trials take 50 at most, the verdict 30: it dies within a batch
    tuner_here("run", "config.yaml", code=130)
    (run_dir,) = tuner_here.runs()

    def counted() -> int:
        notes = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
        summaries = [event for line in notes if "queries_asked" in (event := json.loads(line))]
        return sum(summaries[-1]["queries_asked"].values())

    assert service.is_away()
    before, lost = counted(), counted() - service.requests
    # What found nobody may have been sent: that, five times in all, and up to four probes.
    assert service.requests > sum(service.answered.values()) == 64
    assert 0 <= lost <= 9
    service.start()
    asked = service.requests
    tuner_here("resume", str(run_dir), "--quiet")
    assert counted() - before == service.requests - asked
