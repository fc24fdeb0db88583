"""``free: {top_k: prefix}``: what a system is not asked, by its own count."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.run.assembly import assemble
from tuner.run.folder import read_run
from tuner.run.planning import make_plan
from tuner.run.session import begin

SERVICE = '''
"""Ranks by shared words, and writes down each question that it is asked."""
import json, os, sys

TEXTS = {"d0": "lima rimac", "d1": "cairo nile", "d2": "paris seine", "d3": "rome tiber"}


def ranked(query, top_k, order):
    words = query.lower().split()
    score = {id_: sum(w in text for w in words) for id_, text in TEXTS.items()}
    ids = sorted(TEXTS, key=lambda id_: (-score[id_], id_), reverse=order == "worse")
    if os.path.exists("deceive") and top_k < 4:
        ids.reverse()
    with open("asked.jsonl", "a") as file:
        file.write(json.dumps([query, top_k, order]) + "\\n")
    return ids[:top_k]


def search(query, top_k, order):
    return ranked(query, top_k, order)


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        found = ranked(asked["query"], **asked["params"])
        print(json.dumps({"id": asked["id"], "results": found}), flush=True)
'''
ORDERS = ("better", "worse")


@pytest.fixture
def folder(tmp_path, monkeypatch, corpus, queries):
    (tmp_path / "counting_service.py").write_text(SERVICE, encoding="utf-8")
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    for name, records in (
        ("corpus", [{"_id": d.id, "title": d.title, "text": d.text} for d in corpus.documents]),
        ("queries", [{"_id": q.id, "text": q.text} for q in queries]),
    ):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / "data" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    judged = "".join(f"q{n}\t{id_}\t1\n" for n, id_ in enumerate(["d0", "d2", "d1", "d3"]))
    (tmp_path / "data" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "counting_service", raising=False)
    yield tmp_path
    sys.modules.pop("counting_service", None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        import counting_service

        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = counting_service.ranked(asked["query"], **asked["params"])
        body = json.dumps({"results": found}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing of requests."""


@pytest.fixture
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/search"
    server.shutdown()
    server.server_close()


def retriever(kind, url):
    return {
        "function": {"kind": "function", "function": "counting_service:search"},
        "command": {"kind": "command", "command": [sys.executable, "counting_service.py"]},
        "http": {"kind": "http", "url": url, "concurrency": 1},
    }[kind]


def load(folder, section, free, **more):
    config = {
        "dataset": {"path": "data", "split": {"holdout": 0.0}},
        "retriever": section,
        "space": {
            "top_k": {"type": "integer", "low": 1, "high": 4},
            "order": {"type": "categorical", "choices": list(ORDERS)},
        },
        "objective": {"maximize": {"mrr@10": 1.0}, "price": {"context_tokens_per_1000": 5.0}},
        "metrics": [],
        "backends": [{"kind": "grid", "trials": 8}],
        "execution": {"kind": "inline"},
        "inspection": "off",
        "tracking": None,
        "free": free,
        **more,
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    loaded, source = load_config("config.yaml")
    return loaded, source, make_plan(loaded, source)


def study(folder, section, free, **more):
    """Run a study; return what it said, its trials, and what the system was asked, how often."""
    said = []
    log = folder / "asked.jsonl"
    log.unlink(missing_ok=True)
    assembly = assemble(*load(folder, section, free, **more), say=said.append)
    tuned = begin(assembly, say=said.append).run(on_event=lambda event: None, say=said.append)
    assert tuned.summary.state == "finished"
    content, _ = read_run(tuned.run_dir)
    lines = log.read_text(encoding="utf-8").splitlines()
    asked = Counter(tuple(json.loads(line)) for line in lines)
    return " ".join(said), content.trials.values(), asked


@pytest.mark.parametrize("kind", ["function", "command", "http"])
def test_a_prefix_that_the_configuration_names_is_computed_and_not_asked(
    folder, url, queries, kind
):
    section = retriever(kind, url)
    said, trials, asked = study(folder, section, {"top_k": "prefix"})
    assert "free: top_k: every value is computed from one answer, none is asked" in said
    # Each order is asked with the largest top_k, and one of them with another for the check.
    largest = {key: n for key, n in asked.items() if key[1] == 4}
    assert largest.keys() == {(query.text, 4, order) for query in queries for order in ORDERS}
    others = {key: n for key, n in asked.items() if key[1] != 4}
    assert len({key[1:] for key in others}) == 1
    assert set(others.values()) == {1}
    assert len(trials) == 2
    assert all(trial.profile.looked_at == 4 for trial in trials)

    _, every, asked_all = study(folder, section, "off")
    assert len(every) == 8
    assert asked_all.total() >= 8 * len(queries)
    assert asked.total() < asked_all.total()
    best = max(every, key=lambda trial: trial.objective)
    chosen = max(trials, key=lambda trial: trial.objective)
    assert chosen.params == best.params
    assert chosen.objective == pytest.approx(best.objective, abs=1e-12)
    assert chosen.metrics["context_tokens"] == best.metrics["context_tokens"]


@pytest.mark.parametrize("kind", ["function", "command", "http"])
def test_a_prefix_that_is_none_is_asked(folder, url, kind):
    (folder / "deceive").touch()
    said, trials, asked = study(folder, retriever(kind, url), {"top_k": "prefix"})
    assert "not free: top_k: with top_k=3 query 'q0' was answered with 'd3' at rank 1" in said
    assert len(trials) == 8
    assert {top_k for _, top_k, _ in asked} == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("free", "reason"),
    [
        ({"topk": "prefix"}, "free.topk: is no parameter of the space; did you mean 'top_k'?"),
        ({"top_k": "sorted"}, "free.top_k: must be prefix, got 'sorted'"),
        ({}, "free: names no parameter; write {top_k: prefix}, on or off"),
        ("maybe", "free: "),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused(folder, free, reason):
    with pytest.raises(InputError) as raised:
        load(folder, retriever("function", ""), free)
    assert reason in str(raised.value)


def test_another_declaration_is_another_study(folder):
    section = retriever("function", "")
    found = [
        assemble(*load(folder, section, free), say=print).fingerprints().get("free")
        for free in ("off", "on", {"top_k": "prefix"})
    ]
    assert len(set(found)) == 3
