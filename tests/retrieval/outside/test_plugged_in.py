"""A function, a command and a service, tuned by two backends with the command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.run.assembly import assemble
from tuner.run.planning import make_plan

MY_SYSTEM = '''
"""Ranks documents by the words that they share with the query."""

CITIES = {
    "c0": ("lima", "rimac river"),
    "c1": ("cairo", "nile river"),
    "c2": ("rome", "tiber river"),
}

def search(query, title_weight, top_k):
    words = set(query.lower().split())
    hits = []
    for id_, (title, text) in CITIES.items():
        score = title_weight * (title in words) + len(words & set(text.split()))
        hits.append({"id": id_, "score": score})
    return sorted(hits, key=lambda hit: (-hit["score"], hit["id"]))[:top_k]
'''
MY_SEARCH = """
import my_system


def search(query, title_weight=1.0, top_k=10):
    hits = my_system.search(query, title_weight, top_k)
    return [(hit["id"], hit["score"]) for hit in hits]
"""
MY_COMMAND = """
import json, sys
import my_system

for line in sys.stdin:
    asked = json.loads(line)
    hits = my_system.search(asked["query"], **asked["params"])
    print(json.dumps({"id": asked["id"], "results": [hit["id"] for hit in hits]}), flush=True)
"""
SPACE = {
    "title_weight": {"type": "real", "low": 0.0, "high": 3.0},
    "top_k": {"type": "integer", "low": 3, "high": 20},
}
RETRIEVERS = {
    "function": {"kind": "function", "function": "my_search:search"},
    "command": {"kind": "command", "command": ["python", "my_command.py"], "timeout_s": 60},
    "http": {
        "kind": "http",
        "url": "http://localhost:8000/search",
        "headers": {"Authorization": "Bearer ${SEARCH_TOKEN}"},
        "request": {
            "text": "query",
            "limit": "params.top_k",
            "boost": {"title": "params.title_weight"},
            "mode": "'local'",
        },
        "response": "hits[*].{id: id, score: score}",
        "concurrency": 8,
        "requests_per_second": 50,
    },
}
CONFIG = """\
study: {name: plugged, seed: 1}
dataset: {path: data, split: {holdout: 0.0}}
objective: {maximize: {mrr@10: 1.0}}
baseline: {title_weight: 1.0, top_k: 10}
backends:
  - {kind: gp, trials: 3}
  - {kind: tpe, trials: 3}
execution: {kind: inline}
tracking: null
"""


def write_data(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    documents = [
        {"_id": f"c{n}", "title": city, "text": f"{city} lies on a river"}
        for n, city in enumerate(["Lima", "Cairo", "Rome"])
    ]
    queries = [{"_id": f"q{n}", "text": f"river of {d['title']}"} for n, d in enumerate(documents)]
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    judged = "".join(f"q{n}\tc{n}\t1\n" for n in range(3))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")


@pytest.fixture
def folder(tmp_path) -> Path:
    write_data(tmp_path / "data")
    for name, text in (("system", MY_SYSTEM), ("search", MY_SEARCH), ("command", MY_COMMAND)):
        (tmp_path / f"my_{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(run_here: Run, monkeypatch: pytest.MonkeyPatch, index_dir: Path) -> Run:
    """Run a command in this process; the programs that it starts find this Python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("SEARCH_TOKEN", "tok-4711-very-secret")
    monkeypatch.setenv("TUNER_CACHE_DIR", str(index_dir))

    def with_code(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run_here(folder, *arguments)
        assert done.returncode == code, done
        return done

    return with_code


def tune(run: Run, folder: Path, **sections) -> dict:
    config = {**yaml.safe_load(CONFIG), "space": SPACE, **sections}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return json.loads(run(folder, "run", "config.yaml", "--json").stdout)


def check_tuned(result: dict) -> None:
    assert result["state"] == "finished"
    assert result["failed_trials"] == 0
    assert {name for name, arm in result["arms"].items() if arm} == {"gp", "tpe"}
    assert result["best"]["tune_objective"] == 1.0  # any weight above 0 puts the city first


@pytest.mark.parametrize("kind", ["function", "command"])
def test_functions_and_commands_are_tuned(run, folder, kind):
    result = tune(run, folder, retriever=RETRIEVERS[kind])
    check_tuned(result)
    # From another folder the same study goes on: it holds what it needs with absolute paths.
    run_dir = (folder / result["run_dir"]).resolve()
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    assert "finished" in run(elsewhere, "resume", str(run_dir)).stdout


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        """Say nothing."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        space: dict = {}
        exec(MY_SYSTEM, space)
        hits = space["search"](body["text"], body["boost"]["title"], body["limit"])
        is_allowed = self.headers["Authorization"] == "Bearer tok-4711-very-secret"
        is_right = is_allowed and body["mode"] == "local"
        text = json.dumps({"hits": hits}).encode()
        self.send_response(200 if is_right else 401)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")  # this process lives on, its connections should not
        self.end_headers()
        self.wfile.write(text)


@pytest.mark.slow
def test_services_are_tuned_and_their_secrets_are_nowhere(
    run, folder, fresh_store, written_by_a_thread
):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/search"
        given = {**RETRIEVERS["http"], "url": url}
        store = shutil.copy(fresh_store, folder / "mlflow.db")
        tracking = {"uri": f"sqlite:///{store}", "experiment": "plugged"}
        result = tune(run, folder, retriever=given, tracking=tracking)
        server.shutdown()
        thread.join()
    check_tuned(result)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"journal.jsonl", "mlflow.db", "best.yaml"} <= {path.name for path in files}
    holding = [path for path in files if b"tok-4711" in path.read_bytes()]
    assert not holding


def test_a_function_that_returns_metrics_needs_no_data_set(run, folder):
    code = (
        "def evaluate(title_weight, top_k):\n    return {'recall': 1 - (title_weight - 1) ** 2}\n"
    )
    (folder / "my_metrics.py").write_text(code, encoding="utf-8")
    result = tune(
        run,
        folder,
        retriever={"kind": "function", "function": "my_metrics:evaluate"},
        objective={"maximize": {"recall": 1.0}},
        dataset=None,
    )
    assert result["state"] == "finished"
    assert result["baseline"]["tune_objective"] == 1.0
    assert result["verdict"] is None
    run_dir = (folder / result["run_dir"]).resolve()
    assert "finished" in run(folder, "resume", str(run_dir)).stdout
    shown = run(folder, "evaluate", "config.yaml", "--params", '{"title_weight": 2.0}').stdout
    assert re.search(r"recall +0.0000", shown)
    assert re.search(r"dataset +none", run(folder, "check", "config.yaml").stdout)
    assert (
        "there are no queries"
        in run(folder, "evaluate", "config.yaml", "--queries", "holdout", code=2).stderr
    )


def check(path: str) -> None:
    loaded, source = load_config(path)
    assemble(loaded, source, make_plan(loaded, source), say=print)


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"dataset": None}, "dataset: this key is required"),
        (
            {"dataset": None, "retriever": {"kind": "function", "function": "my_search:search"}},
            "retriever.function: 'my_search:search' answers queries: add `dataset:`",
        ),
        (
            {"retriever": {"kind": "function", "function": "my_metrics:evaluate"}},
            "takes no `query`, so it returns metrics and sees no data set",
        ),
        (
            {
                "dataset": None,
                "retriever": {"kind": "function", "function": "my_metrics:evaluate"},
                "verdict": {"guardrails": {"recall": {"max_decrease": 0.1}}},
            },
            "verdict.guardrails: a guard-rail is tested on held-out queries",
        ),
        (
            {
                "retriever": {"kind": "function", "function": "my_search:search"},
                "space": {"title_wieght": {"type": "real", "low": 0, "high": 1}},
            },
            "space.title_wieght: the retriever has no parameter 'title_wieght'; did you mean",
        ),
        (
            {
                "retriever": {"kind": "function", "function": "my_search:search"},
                "baseline": {"topk": 3},
            },
            "baseline.topk: the retriever has no parameter 'topk'; did you mean 'top_k'?",
        ),
        (
            {
                "retriever": {
                    "kind": "http",
                    "url": "http://localhost:1/",
                    "headers": {"Authorization": "Bearer tok-4711-very-secret"},
                }
            },
            "retriever.headers.Authorization: looks like a secret",
        ),
        (
            {"retriever": {"kind": "http", "url": "http://localhost:1/", "retrys": 3}},
            "retriever.retrys: unknown option; did you mean 'retries'?",
        ),
    ],
)
def test_wrong_configurations_are_explained(folder, monkeypatch, sections, reason):
    code = "def evaluate(title_weight, top_k):\n    return {'recall': 1.0}\n"
    (folder / "my_metrics.py").write_text(code, encoding="utf-8")
    config = {**yaml.safe_load(CONFIG), "space": SPACE, **sections}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the folder is put there
    with pytest.raises(InputError) as raised:
        check("config.yaml")
    assert reason in str(raised.value)
    assert "tok-4711" not in str(raised.value)
    assert str(raised.value).startswith("config.yaml:")
