"""``free: {top_k: prefix}``, and legs that are mixed: what a system is not asked, by its count."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.retrieval.computed import answer_at
from tuner.run.assembly import assemble
from tuner.run.folder import read_run
from tuner.run.planning import make_plan
from tuner.run.session import begin

SERVICE = '''
"""Ranks by shared words, and writes down each question that it is asked."""
import json, os, sys
from pathlib import Path

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


def counted(query, top_k, order):
    """Count tokens in a way of its own: of each passage, and of the context."""
    ids = ranked(query, top_k, order)
    tokens = {id_: 3.5 * len(text) for id_, text in TEXTS.items()}
    results = [{"id": id_, "tokens": tokens[id_]} for id_ in ids]
    more = 40.0 if os.path.exists("prompt") else 0.0
    answer = {"results": results, "context_tokens": more + sum(tokens[id_] for id_ in ids)}
    if os.path.exists("leave out"):
        answer["results"] = ids
    return answer


def scored(query, order, min_score):
    """Return what shares enough letters with a query."""
    with open("asked.jsonl", "a") as file:
        file.write(json.dumps([query, min_score, order]) + "\\n")
    asked = query.lower() if order == "better" else query.lower()[:6]
    score = {id_: sum(map(asked.count, text)) / 7 for id_, text in TEXTS.items()}
    if os.path.exists("deceive"):
        min_score **= 2
    kept = [id_ for id_ in TEXTS if score[id_] >= min_score]
    pairs = [(id_, score[id_]) for id_ in sorted(kept, key=lambda id_: (-score[id_], id_))]
    return [id_ for id_, _ in pairs] if os.path.exists("leave out") else pairs


def scaled(leg, rrf_k):
    """Normalise a leg as the file says, in the plainest way."""
    method = Path("method").read_text()
    if method == "rrf":
        ranked = sorted(leg, key=lambda id_: (-leg[id_], id_))
        return {id_: 1.0 / (rrf_k + rank) for rank, id_ in enumerate(ranked, start=1)}
    low, high = min(leg.values()), max(leg.values())
    if method in ("none", "constant"):
        return leg
    if low == high:
        return dict.fromkeys(leg, 1.0)
    if method == "max":
        return {id_: score / high for id_, score in leg.items()}
    return {id_: (score - low) / (high - low) for id_, score in leg.items()}


def mixed(query, top_k, order, weight=0.5, rrf_k=60):
    """Add up the letters shared with each word of a text; each leg finds three documents."""
    with open("asked.jsonl", "a") as file:
        file.write(json.dumps([query, top_k, order, weight, rrf_k]) + "\\n")
    asked = query.lower() if order == "better" else query.lower()[:6]
    legs = []
    for word in (0, 1):
        found = {
            id_: sum(map(asked.count, text.split()[word])) + len(id_ + text) / 7
            for id_, text in TEXTS.items()
        }
        legs.append(dict(sorted(found.items(), key=lambda pair: -pair[1])[: 3 - word]))
    graph, text = (scaled(leg, rrf_k) for leg in legs)
    rest = 1.0 if Path("method").read_text() == "constant" else 1.0 - weight
    scores = {
        id_: weight * graph.get(id_, 0.0) + rest * text.get(id_, 0.0)
        for id_ in TEXTS
        if id_ in graph or id_ in text
    }
    ids = sorted(scores, key=lambda id_: (-scores[id_], id_))
    named = {
        name: [{"id": id_, "score": score} for id_, score in leg.items()]
        for name, leg in zip(("graph", "text"), legs)
    }
    if os.path.exists("leave out"):
        del named["text"]
    return {"results": ids[:top_k], "legs": named}


def answered(query, params):
    if "weight" in params or "rrf_k" in params:
        return mixed(query, **params)
    if "min_score" in params:
        return {"results": scored(query, **params)}
    return {"results": ranked(query, **params)}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        found = answered(asked["query"], asked["params"])
        print(json.dumps({"id": asked["id"], **found}), flush=True)
'''
ORDERS = ("better", "worse")


@pytest.fixture
def folder(tmp_path, monkeypatch, write_data):
    (tmp_path / "counting_service.py").write_text(SERVICE, encoding="utf-8")
    write_data({f"q{n}": id_ for n, id_ in enumerate(["d0", "d2", "d1", "d3"])})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "counting_service", raising=False)
    yield tmp_path
    sys.modules.pop("counting_service", None)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        import counting_service

        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(counting_service.answered(asked["query"], asked["params"])).encode()
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


def load(folder, section, free, more_space=None, **more):
    config = {
        "dataset": {"path": "data", "split": {"holdout": 0.0}},
        "retriever": section,
        "space": {
            "top_k": {"type": "integer", "low": 1, "high": 4},
            "order": {"type": "categorical", "choices": list(ORDERS)},
            **(more_space or {}),
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


CUT = {
    "min_score": {"type": "real", "low": 0.2, "high": 0.8},
    "order": {"type": "categorical", "choices": list(ORDERS)},
}


def cutting(kind, url):
    section = retriever(kind, url)
    return {**section, "function": "counting_service:scored"} if kind == "function" else section


@pytest.mark.parametrize("kind", ["function", "command", "http"])
def test_a_cutoff_that_the_configuration_names_is_computed_and_not_asked(
    folder, url, queries, kind
):
    free = {"min_score": "cutoff"}
    said, trials, asked = study(folder, cutting(kind, url), free, space=CUT)
    assert "free: min_score: every value is computed from one answer, none is asked" in said
    # Each order is asked with the smallest cut-off, and one of them with three more for the check.
    smallest = {key for key in asked if key[1] == 0.2}
    assert smallest == {(query.text, 0.2, order) for query in queries for order in ORDERS}
    others = {key[1:] for key in asked if key[1] != 0.2}
    assert len(others) == 3
    assert len(trials) == 2
    assembly = assemble(*load(folder, cutting(kind, url), "off", space=CUT), say=print)
    for trial in trials:
        assert trial.params["min_score"] > 0.2
        outcome = assembly.evaluate(trial.params, assembly.tune_queries)
        assert outcome.metrics["mrr@10"] == trial.metrics["mrr@10"]
        assert outcome.metrics["context_tokens"] == trial.metrics["context_tokens"]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("deceive", "not free: min_score: with min_score="),
        ("leave out", "not free: min_score: the answers carry no scores"),
    ],
)
def test_a_cutoff_that_is_none_is_asked(folder, file, reason):
    (folder / file).touch()
    section = cutting("function", "")
    said, trials, _ = study(folder, section, {"min_score": "cutoff"}, space=CUT)
    assert reason in said
    assert len(trials) == 8


@pytest.mark.parametrize("kind", ["function", "command", "http"])
def test_a_prefix_that_is_none_is_asked(folder, url, kind):
    (folder / "deceive").touch()
    said, trials, asked = study(folder, retriever(kind, url), {"top_k": "prefix"})
    assert "not free: top_k: with top_k=3 query 'q0' was answered with 'd0' at rank 1" in said
    assert len(trials) == 8
    assert {top_k for _, top_k, _ in asked} == {1, 2, 3, 4}


FRAMEWORK = '''
"""A retriever of LangChain's: by shared letters, or by these backwards."""
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever


class Letters(BaseRetriever):
    passages: dict
    backwards: bool = False

    def _get_relevant_documents(self, query, *, run_manager):
        shared = {id_: len(set(query) & set(text)) for id_, text in self.passages.items()}
        ranked = sorted(shared, key=lambda id_: (-shared[id_], id_))
        ranked = ranked[::-1] if self.backwards else ranked
        return [Document(id=id_, page_content=self.passages[id_]) for id_ in ranked]


def make(documents):
    return Letters(passages={one.id: one.text for one in documents})
'''


def test_the_length_of_an_answer_of_a_framework_is_a_prefix(folder):
    pytest.importorskip("langchain_core", reason="LangChain is not installed")
    (folder / "framework_here.py").write_text(FRAMEWORK, encoding="utf-8")
    section = {"kind": "langchain", "make": "framework_here:make"}
    space = {
        "at_most": {"type": "integer", "low": 1, "high": 4},
        "backwards": {"type": "categorical", "choices": [False, True]},
    }
    said = []
    assembly = assemble(*load(folder, section, {"at_most": "prefix"}, space=space), say=said.append)
    tuned = begin(assembly, say=said.append).run(on_event=lambda event: None, say=said.append)
    assert "free: at_most: every value is computed from one answer, none is asked" in said
    content, _ = read_run(tuned.run_dir)
    trials = list(content.trials.values())
    assert len(trials) == 2
    for trial in trials:
        assert trial.profile.looked_at == 4
        assert trial.profile.asked.keys() == {"backwards"}
        outcome = assembly.evaluate(trial.params, assembly.tune_queries)
        assert outcome.metrics["mrr@10"] == trial.metrics["mrr@10"]
        assert outcome.metrics["context_tokens"] == trial.metrics["context_tokens"]


WEIGHT = {"weight": {"type": "real", "low": 0.0, "high": 1.0}}


def mixing(kind, url, method):
    """Return the options of a system whose answers carry legs, and what is free of it."""
    named = {"function": {"function": "counting_service:mixed"}, "http": {"response": "@"}}
    section = {**retriever(kind, url), **named.get(kind, {})}
    mixes = {"mixes": {"graph": "value", "text": "rest"}, "normalisation": method}
    return section, {"top_k": "prefix", "weight": mixes}


@pytest.mark.parametrize("method", ["min_max", "max", "none"])
@pytest.mark.parametrize("kind", ["function", "command", "http"])
def test_an_answer_with_legs_tells_every_weight(folder, url, queries, kind, method):
    (folder / "method").write_text(method, encoding="utf-8")
    section, free = mixing(kind, url, method)
    space = {"top_k": {"type": "integer", "low": 1, "high": 4}, **WEIGHT}
    assembly = assemble(
        *load(folder, section, free, space=space, baseline={"order": "better"}), say=print
    )
    asked = {**assembly.fixed, "top_k": 4}
    answer = assembly.retriever.retrieve(queries, {**asked, "weight": 0.5})
    seen = set()
    for weight in (0.0, 0.1, 0.37, 0.5, 0.9, 1.0):
        for top_k in (1, 2, 4):
            params = {**asked, "weight": weight, "top_k": top_k}
            computed = answer_at(assembly.plan.free, answer, params)
            given = assembly.retriever.retrieve(queries, params)
            rows = [given.ids(row) for row in range(len(queries))]
            assert [computed.ids(row) for row in range(len(queries))] == rows
            assert computed.context_tokens.tolist() == given.context_tokens.tolist()
            seen.add(str(rows))
    assert len(seen) > 6  # the weight matters


@pytest.mark.parametrize("kind", ["function", "command", "http"])
def test_a_weight_that_mixes_legs_is_not_asked(folder, url, queries, kind):
    (folder / "method").write_text("min_max", encoding="utf-8")
    section, free = mixing(kind, url, "min_max")
    said, trials, asked = study(folder, section, free, more_space=WEIGHT)
    assert "free: top_k, weight: every value is computed from one answer" in said
    assert len(trials) == 2
    settings = {key[1:] for key in asked}
    # Each order with the largest top_k and a weight of one half; for the check another top_k, and
    # three other weights.
    assert {(4, order, 0.5, 60) for order in ORDERS} < settings
    assert len(settings) == 2 + 1 + 3
    assembly = assemble(*load(folder, section, "off", more_space=WEIGHT), say=print)
    for trial in trials:
        outcome = assembly.evaluate(trial.params, assembly.tune_queries)
        assert outcome.metrics["mrr@10"] == trial.metrics["mrr@10"]
        assert outcome.metrics["context_tokens"] == trial.metrics["context_tokens"]


COUNTED = {"kind": "function", "function": "counting_service:counted"}


def test_a_system_that_counts_each_passage_has_a_free_prefix(folder):
    said, trials, _ = study(folder, COUNTED, {"top_k": "prefix"})
    assert "free: top_k: every value is computed" in said
    assembly = assemble(*load(folder, COUNTED, "off"), say=print)
    for trial in trials:
        outcome = assembly.evaluate(trial.params, assembly.tune_queries)
        assert outcome.metrics["context_tokens"] == trial.metrics["context_tokens"]
        assert trial.metrics["context_tokens"] > 30  # the words of four passages are fewer


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("leave out", "each passage's (give each result its tokens, or leave context_tokens out)"),
        ("prompt", "tokens, where one answer to all values tells of"),
    ],
)
def test_what_a_context_of_another_size_has_is_not_guessed(folder, file, reason):
    (folder / file).touch()
    said, trials, _ = study(folder, COUNTED, {"top_k": "prefix"})
    assert "not free: top_k: " in said
    assert reason in said
    assert len(trials) == 8


K = {"rrf_k": {"type": "integer", "low": 1, "high": 90}}
OTHERS = {
    "constant": ({"weight": {"mixes": {"graph": "value", "text": 1}}}, WEIGHT),
    "ranks": (
        {"rrf_k": "rrf", "weight": {"mixes": {"graph": "value", "text": "rest"}}},
        WEIGHT | K,
    ),
    "ranks alone": ({"rrf_k": "rrf"}, K),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", ["function", "command", "http"])
def test_a_constant_share_and_ranks_are_computed(folder, url, queries, kind, name):
    method = "constant" if name == "constant" else "rrf"
    (folder / "method").write_text(method, encoding="utf-8")
    section, _ = mixing(kind, url, method)
    mixes, space = OTHERS[name]
    said, trials, _ = study(
        folder, section, {"top_k": "prefix", **mixes}, more_space=space, metrics=["recall@2"]
    )
    assert f"free: {', '.join(['top_k', *mixes])}: every value is computed" in said
    assert len(trials) == 2
    assembly = assemble(*load(folder, section, "off", more_space=space), say=print)
    asked = {"top_k": 4, "order": "better", **({"weight": 0.5} if "weight" in space else {})}
    asked |= {"rrf_k": 60} if "rrf_k" in space else {}
    free = load(folder, section, {"top_k": "prefix", **mixes}, more_space=space)[2].free
    answer = assembly.retriever.retrieve(queries, asked)
    seen = set()
    for turned in ({}, {"weight": 0.0}, {"weight": 0.9, "rrf_k": 1}, {"rrf_k": 90, "top_k": 2}):
        params = {**asked, **{key: v for key, v in turned.items() if key in asked}}
        computed, given = (
            answer_at(free, answer, params),
            assembly.retriever.retrieve(queries, params),
        )
        rows = [given.ids(row) for row in range(len(queries))]
        assert [computed.ids(row) for row in range(len(queries))] == rows
        seen.add(str(rows))
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("method", "left_out", "reason"),
    [
        ("max", False, "not free: weight: with weight="),
        ("min_max", True, "not free: weight: the answers carry the legs graph, and what is mixed"),
    ],
)
def test_legs_that_do_not_tell_are_not_believed(folder, method, left_out, reason):
    (folder / "method").write_text(method, encoding="utf-8")
    if left_out:
        (folder / "leave out").touch()
    section, free = mixing("function", "", "min_max")
    said, _, _ = study(folder, section, free, more_space=WEIGHT)
    assert reason in said
    assert "free: top_k: every value" in said


@pytest.mark.parametrize(
    ("free", "reason"),
    [
        ({"topk": "prefix"}, "free.topk: is no parameter of the space; did you mean 'top_k'?"),
        ({"top_k": "sorted"}, "free.top_k: must be prefix, cutoff, rrf or {mixes: {graph: v"),
        ({"top_k": {"mixes": {"a": "1"}}}, "free.top_k.mixes.a: must be value, rest (1 less the"),
        ({"top_k": {"mixes": {"a": [1]}}}, "free.top_k.mixes.a: must be value, rest (1 less the"),
        ({"top_k": {"mixes": {"a": 1}}}, "free.top_k.mixes: mixes no leg by its value"),
        ({"top_k": "rrf", "order": "rrf"}, "free.order: top_k is rrf already"),
        (
            {"top_k": "rrf", "order": {"mixes": {"a": "value"}, "normalisation": "max"}},
            "free.order.normalisation: legs count by their ranks (top_k: rrf): leave it out",
        ),
        ({"top_k": {"mixes": {}}}, "free.top_k.mixes: names no leg"),
        ({"top_k": {"mixes": {"a": "value"}, "normalize": "max"}}, "free.top_k.normalize: unknown"),
        (
            {"top_k": {"mixes": {"a": "value"}, "normalisation": "minmax"}},
            "unknown normalisation 'minmax'; did you mean 'min_max'?",
        ),
        (
            {"top_k": {"mixes": {"a": "value"}}, "order": {"mixes": {"a": "value"}}},
            "free.order.mixes.a: 'top_k' mixes this leg already",
        ),
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
