"""tuner init asks a service one query, and finds how it is asked and where its answers are."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import CITIES
from tuner.datasets import open_dataset
from tuner.setup.answer_shape import results_in
from tuner.setup.service import options_of_service

FEW = ("backends=[{kind: random, trials: 2}]", "tracking=null", "execution.kind=threads")


def found_for(text: str, limit: int) -> list[tuple[str, float]]:
    (city,) = (city for city in CITIES if city in text)
    others = [other for other in CITIES if other != city]
    ids = [f"{city}-river", f"{city}-market", *(f"{other}-river" for other in others)]
    return [(id_, 1.0 / n) for n, id_ in enumerate(ids[:limit], start=1)]


@contextmanager
def serving(answer: Callable[[dict[str, Any], dict[str, str]], Any]) -> Iterator[tuple[str, list]]:
    """Serve answers to JSON; what is raised breaks the connection, None is a 422."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            found = answer(body, dict(self.headers))
            content = json.dumps(found).encode()
            self.send_response(422 if found is None else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/search", asked
    finally:
        server.shutdown()
        server.server_close()


def configured(folder: Path) -> dict[str, Any]:
    return yaml.safe_load((folder / "tuner.yaml").read_text(encoding="utf-8"))


def test_a_flat_request_and_results_with_scores_are_found_and_the_study_runs(folder, run_here):
    def answer(body: dict[str, Any], headers: dict[str, str]) -> Any:
        hits = found_for(body["text"], body["top_k"])  # another form breaks the connection
        return {"took": 3, "hits": {"hits": [{"_id": id_, "_score": s} for id_, s in hits]}}

    with serving(answer) as (url, asked):
        given = ("--dataset", "data", "--retriever", url, "--baseline", "top_k=5")
        done = run_here(folder, "init", "--yes", *given)
        assert done.returncode == 0, done.stderr
        config = configured(folder)
        assert config["retriever"]["request"] == {"text": "query", "top_k": "params.top_k"}
        assert config["retriever"]["response"] == "hits.hits[*].{id: _id, score: _score}"
        assert config["baseline"] == {"top_k": 5}
        assert len(asked) < 10
        assert f"was asked {len(asked)} queries" in done.stderr
        text = (folder / "tuner.yaml").read_text(encoding="utf-8")
        assert "# cost:" in text
        assert "# budget:" in text
        assert run_here(folder, "check", "tuner.yaml").returncode == 0
        run = run_here(folder, "run", "tuner.yaml", "-q", *(f"--set={one}" for one in FEW))
        assert run.returncode == 0, run.stderr
        # What stands there as a comment is accepted when the # is taken away.
        lines = [
            line.removeprefix("# ")
            if line.startswith(("# cost:", "# budget:", "# racing:"))
            else line
            for line in text.splitlines()
        ]
        (folder / "tuner.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        assert "budget" in configured(folder)
        assert run_here(folder, "check", "tuner.yaml").returncode == 0


@pytest.mark.parametrize("given", ["soon", "0", "null"])
def test_a_time_limit_that_is_none_is_told(folder, run_here, given):
    named = ("--dataset", "data", "--retriever", "http://127.0.0.1:9/search")
    options = ("--baseline", "top_k=5", "--set", f"timeout_s={given}")
    done = run_here(folder, "init", "--yes", *named, *options)
    assert done.returncode == 2
    assert "timeout_s: must be a number above 0" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_service_that_takes_the_default_form_needs_no_expressions(folder):
    def answer(body: dict[str, Any], headers: dict[str, str]) -> Any:
        return {"results": [id_ for id_, _ in found_for(body["query"], body["params"]["top_k"])]}

    with serving(answer) as (url, asked):
        data = open_dataset(folder / "data")
        options, _ = options_of_service(url, {}, {"top_k": 5}, data)
        assert options == {"url": url}
        assert len(asked) == 1


def test_a_secret_is_sent_and_neither_written_nor_shown(folder, run_here, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "s3cret-word")

    def answer(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if headers.get("Authorization") != "Bearer s3cret-word":
            return None
        return [id_ for id_, _ in found_for(body["query"], 5)]

    with serving(answer) as (url, _):
        given = ("--dataset", "data", "--retriever", url, "--baseline", "top_k=5")
        header = ("--set", "headers={Authorization: 'Bearer ${MY_TOKEN}'}")
        done = run_here(folder, "init", "--yes", *given, *header)
        assert done.returncode == 0, done.stderr
        text = (folder / "tuner.yaml").read_text(encoding="utf-8")
        assert "${MY_TOKEN}" in text
        assert "s3cret-word" not in text + done.stdout + done.stderr
        clear = ("--set", "headers={Authorization: 'Bearer s3cret-word'}", "--force")
        refused = run_here(folder, "init", "--yes", *given, *clear)
        assert refused.returncode == 2
        assert "s3cret-word" not in refused.stderr


def test_what_cannot_be_found_out_is_told_with_what_was_tried(folder, run_here):
    base = ("init", "--yes", "--dataset", "data", "--retriever")
    with serving(lambda body, headers: {"results": ["x1", "x2"]}) as (url, _):
        assert "--baseline" in run_here(folder, *base, url).stderr
        other = run_here(folder, *base, url, "--baseline", "top_k=5")
        assert other.returncode == 2
        assert "no document of the data set is in" in other.stderr
        assert "x1" in other.stderr
        assert "response=hits[*].id" in other.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gone = run_here(folder, *base, f"http://127.0.0.1:{port}/", "--baseline", "top_k=5")
    assert gone.returncode == 2
    assert "Traceback" not in gone.stderr
    assert gone.stderr.count("no answer: ") == 1, "no form of a request is at fault"
    assert "Is the service running" in gone.stderr
    assert "hits[*].id" not in gone.stderr
    assert not (folder / "tuner.yaml").exists()


def test_a_service_that_hangs_is_asked_once(folder, run_here):
    done = threading.Event()

    with serving(lambda body, headers: done.wait(60)) as (url, asked):
        given = ("--dataset", "data", "--retriever", url, "--baseline", "top_k=5")
        hung = run_here(folder, "init", "--yes", *given, "--set", "timeout_s=0.3")
        done.set()
    assert hung.returncode == 2
    assert len(asked) == 1
    assert "no answer within 0.3 s" in hung.stderr
    assert "--set timeout_s=120" in hung.stderr


@pytest.mark.parametrize(
    ("answer", "expression"),
    [
        (["d1", "d2"], "@"),
        ([["d1", 0.9], ["d2", 0.4]], "@"),
        ({"data": {"ids": ["d2"], "words": ["lima"]}}, "data.ids"),
        ([{"doc": "d1", "score": 0.2}, {"doc": "d2", "score": 0.9}], "[*].doc"),  # distances
        ({"my-hits": [{"metadata": {"doc id": "d1"}}]}, '"my-hits"[*].metadata."doc id"'),
        ({"hits": [{"parent": "d1", "id": "d1", "score": 1}]}, "hits[*].{id: id, score: score}"),
        ({"results": [{"id": 7}]}, "results[*].id"),
        ({"results": []}, None),
        ({"results": [{"id": "elsewhere"}]}, None),
    ],
)
def test_the_shape_of_an_answer(answer, expression):
    assert results_in(answer, {"d1", "d2", "7"}) == expression
