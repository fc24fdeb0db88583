"""The HTTP adapter against a live server: right answers, every kind of fault, limits, secrets."""

from __future__ import annotations

import json
import logging
import pickle
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tuner.config import load_config
from tuner.core.corpus import Query
from tuner.core.errors import InputError, TunerError
from tuner.core.space import Categorical, Integer, SearchSpace
from tuner.execution.local.auto import Auto
from tuner.execution.local.inline import Inline
from tuner.execution.local.threads import Threads
from tuner.retrieval.adapters.http import Http
from tuner.retrieval.adapters.http.connection import LONGEST_WAIT_S, retry_after_s
from tuner.run.planning import make_plan
from tuner.testing import RetrieverCase
from tuner.testing.retrievers import CHECKS

TOKEN = "tok-4711-very-secret"
TEXTS = {"d0": "lima rimac", "d1": "cairo nile", "d2": "paris seine", "d3": "rome tiber"}


class Service(ThreadingHTTPServer):
    """Ranks by shared words; fails in all the ways that a parameter tells it to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/search"
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.together = threading.Barrier(3)
        self.reset()

    def reset(self):
        self.times: list[float] = []
        self.asked: Counter[str] = Counter()
        self.bodies: list[object] = []
        self.headers: list[dict[str, str]] = []
        self.in_flight = self.most_in_flight = 0

    def handle_error(self, request, client_address):
        """Say nothing of clients that went away."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):
        """Say nothing."""

    def do_POST(self):
        service = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with service.lock:
            service.times.append(time.monotonic())
            service.bodies.append(body)
            service.headers.append(dict(self.headers))
            service.asked[str(body.get("id"))] += 1
            service.in_flight += 1
            service.most_in_flight = max(service.most_in_flight, service.in_flight)
        try:
            self.answer(body, service)
        finally:
            with service.lock:
                service.in_flight -= 1

    def answer(self, body, service):
        params = body.get("params", {})
        fault, id_ = params.get("fault", "none"), body.get("id")
        attempt = service.asked[str(id_)]
        if fault == "together":
            service.together.wait(900)
        if fault == "only q2" and id_ == "q2":
            fault = "500"
        match fault:
            case "500" | "502 twice" | "429 once" | "429 for an hour" | "422" | "redirect":
                self.fail(fault, attempt)
                if fault in ("500", "429 for an hour", "422", "redirect") or attempt <= (
                    2 if fault == "502 twice" else 1
                ):
                    return
            case "hang":
                service.released.wait()
                return
            case "closes" | "closes once" if fault == "closes" or attempt == 1:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            case "garbage":
                self.send(200, b"<html>Bad gateway</html>")
                return
            case "trickle":
                self.send_response(200)
                self.send_header("Content-Length", "1000000")
                self.end_headers()
                while not service.released.wait(0.01):
                    self.wfile.write(b" ")
                return
        if "queries" in body:
            results = [self.ranked(one["query"], params) for one in body["queries"]]
        else:
            results = self.ranked(body["query"], params)
        special = {
            "unknown ids": ["zz"],
            "nan": [{"id": "d0", "score": float("nan")}],
            "empty": [],
            "duplicates": ["d1", "d1", "d0", "d1"],
            "null": None,
            "distances": [["d0", 0.1], ["d1", 0.7]],
            "echo": [self.headers["Authorization"]],
            "echo, cut": ["x" * 50 + str(self.headers["Authorization"]).split()[-1]],
        }
        results = special.get(fault, results)
        self.send(200, json.dumps({"results": results}).encode())

    def fail(self, fault, attempt):
        text = f"token was {self.headers['Authorization']}".encode()
        if fault == "500":
            self.send(500, text)
        elif fault == "502 twice" and attempt <= 2:
            self.send(502, text)
        elif fault == "429 once" and attempt == 1:
            self.send(429, b"slow down", {"Retry-After": "1"})
        elif fault == "429 for an hour":
            self.send(429, b"slow down", {"Retry-After": "3600"})
        elif fault == "422":
            self.send(422, b'{"detail": "top_k is too large"}')
        elif fault == "redirect":
            self.send(307, b"", {"Location": "http://127.0.0.1:1/elsewhere"})

    def ranked(self, query, params):
        words = set(query.lower().split())
        scored = sorted((-len(words & set(text.split())), id_) for id_, text in TEXTS.items())
        found = [{"id": id_, "score": -score} for score, id_ in scored if score]
        return found[: params["top_k"]]

    def send(self, code, body, headers=None):
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


SPACE = SearchSpace(
    {
        "top_k": Integer(1, 4),
        "fault": Categorical(
            (
                "none", "500", "502 twice", "429 once", "429 for an hour", "422", "redirect",
                "hang", "closes", "closes once", "garbage", "trickle", "unknown ids", "nan",
                "empty", "duplicates", "null", "distances", "echo", "echo, cut", "only q2",
                "together",
            )
        ),
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def server():
    with Service() as service:
        thread = threading.Thread(target=service.serve_forever, daemon=True)
        thread.start()
        yield service
        service.released.set()
        service.shutdown()
        thread.join()


@pytest.fixture
def service(server):
    server.reset()
    return server


@pytest.fixture(autouse=True)
def token(monkeypatch):
    monkeypatch.setenv("TUNER_TEST_TOKEN", TOKEN)


@pytest.fixture
def make(corpus, service):
    def build(**options) -> Http:
        given = {
            "url": service.url,
            "space": SPACE,
            "baseline": {"top_k": 4},
            "headers": {"Authorization": "Bearer ${TUNER_TEST_TOKEN}"},
            "retries": 2,
            "retry_wait_s": 0.01,
            **options,
        }
        return Http.build(corpus, **given)

    return build


@pytest.fixture(scope="module")
def case(corpus, queries, server):
    def build() -> Http:
        return Http.build(corpus, url=server.url, space=SPACE, baseline={"top_k": 4})

    ids = {document.id for document in corpus.documents}
    return RetrieverCase(build, queries, ({}, {"top_k": 1}), document_ids=ids)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, case):
    check(case)


@pytest.mark.parametrize(
    ("fault", "reason", "attempts"),
    [
        ("500", "500 Internal Server Error: token was Bearer *** (tried 3 times)", 3),
        ("422", '422 Unprocessable Entity: {"detail": "top_k is too large"}', 1),
        ("redirect", "307 Temporary Redirect to http://127.0.0.1:1/elsewhere:", 1),
        ("429 for an hour", "429 Too Many Requests: slow down; it asks to wait 3600 s", 1),
        ("closes", "no answer: RemoteProtocolError: Server disconnected", 3),
        ("garbage", "the response is no JSON: <html>Bad gateway</html>", 1),
        ("unknown ids", "result 1: no document of the data set has the id 'zz'", 1),
        ("nan", "the score of result 1 is nan, not a number", 1),
        ("null", "'results' finds nothing in the response: {\"results\": null}", 1),
        ("distances", "the scores rise from 0.1 to 0.7 at result 2", 1),
        ("echo", "result 1: no document of the data set has the id 'Bearer ***'", 1),
        ("echo, cut", f"the data set has the id '{'x' * 50}***…'", 1),
    ],
)
def test_a_fault_fails_the_trial_and_the_next_one_is_right(
    make, service, queries, fault, reason, attempts
):
    http = make()
    with pytest.raises(TunerError) as raised:
        http.retrieve(queries[:1], {"fault": fault})
    assert reason in str(raised.value)
    assert str(raised.value).startswith("query 'q0': ")
    assert TOKEN[:4] not in repr(raised.value)
    assert raised.value.__suppress_context__
    assert service.asked["q0"] == attempts
    assert http.retrieve(queries, {}).ids(0) == ["d0"]


def test_one_query_that_always_fails_fails_the_trial(make, queries):
    with pytest.raises(TunerError, match=r"query 'q2': POST .* 500 Internal Server Error"):
        make().retrieve(queries, {"fault": "only q2"})


@pytest.mark.parametrize("fault", ["hang", "trickle"])
def test_a_hang_ends_at_the_time_limit_and_is_not_repeated(make, service, queries, fault):
    with pytest.raises(TunerError, match=r"query 'q0': POST .*: no answer within 0.5 s"):
        make(timeout_s=0.5).retrieve(queries[:1], {"fault": fault})
    while not service.asked["q0"]:  # a busy server may see the request after the client left
        time.sleep(0.01)
    assert service.asked["q0"] == 1


@pytest.mark.parametrize(("fault", "attempts"), [("502 twice", 3), ("closes once", 2)])
def test_what_passes_is_tried_again(make, service, queries, fault, attempts):
    found = make().retrieve(queries, {"fault": fault})
    assert found.ids(0) == ["d0"]
    assert service.asked == {query.id: attempts for query in queries}
    # What that cost is told, and only then.
    assert found.seconds["retries"] > 0
    assert "retries" not in make().retrieve(queries, {}).seconds


@pytest.mark.slow
def test_retry_after_is_honoured_by_all_requests(make, service, queries):
    make(concurrency=1).retrieve(queries[:2], {"fault": "429 once"})
    first, second, *_ = service.times
    assert second - first >= 0.99  # seconds, from the server's own clock


def test_a_service_that_is_not_there_is_tried_again(make, queries):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with pytest.raises(TunerError, match=r"no answer: ConnectError: .*\(tried 3 times\)"):
        make(url=url).retrieve(queries, {})


@pytest.mark.parametrize(
    ("fault", "answer"), [("empty", []), ("duplicates", ["d1", "d0"]), ("none", ["d0"])]
)
def test_empty_repeated_and_short_answers_are_answers(make, queries, fault, answer):
    assert make().retrieve(queries, {"fault": fault}).ids(0) == answer


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("-3", 0.0),
        ("later", 0.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        (None, 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert retry_after_s(value) == seconds
    assert retry_after_s("Fri, 31 Dec 2100 23:59:59 GMT") > LONGEST_WAIT_S


def many(count: int) -> list[Query]:
    return [Query(f"m{number}", "Lima") for number in range(count)]


def test_trials_of_all_threads_share_one_concurrency_limit(make, service):
    http = make(concurrency=3)  # the server answers when three requests wait, and never sooner
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: http.retrieve(many(6), {"fault": "together"}), range(2)))
    assert [rankings.ids(5) for rankings in found] == [["d0"], ["d0"]]
    assert service.most_in_flight == 3


def test_trials_of_all_threads_share_one_rate(make, service):
    http = make(requests_per_second=50)
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: http.retrieve(many(5), {}), range(2)))
    # The tenth request waits for its turn at least nine fiftieths of a second.
    assert time.monotonic() - begin >= 0.99 * 9 / 50


def test_automatic_execution_keeps_trials_in_threads_of_one_process(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "dataset: {path: x}\nspace: {k: {type: integer, low: 1, high: 9}}\n"
        "retriever: {kind: http, url: 'http://localhost/'}\n"
        "backends: [{kind: random, trials: 3}]\ntracking: null\n",
        encoding="utf-8",
    )
    config, source = load_config(path)
    assert isinstance(make_plan(config, source).execution, Threads)
    config, source = load_config(path, ["execution.kind=inline"])
    assert isinstance(make_plan(config, source).execution, Inline)
    config, source = load_config(path, ["retriever.kind=command"])
    assert isinstance(make_plan(config, source).execution, Auto)


def test_a_batch_is_one_request(make, service, queries):
    http = make(batch_size=3)
    found = http.retrieve(queries, {"top_k": 1})
    assert [found.ids(row) for row in range(4)] == [["d0"], ["d2"], ["d1"], []]
    sent = [[one["id"] for one in body["queries"]] for body in service.bodies]
    assert sorted(sent) == [["q0", "q1", "q2"], ["q3"]]


def test_a_batch_with_too_few_answers_is_refused(make, queries):
    http = make(batch_size=4, response="results[].id")
    with pytest.raises(TunerError) as raised:
        http.retrieve(queries, {})
    reason = "queries 'q0' to 'q3': 'results[].id' finds ['d0', 'd2', 'd1', 'd3'] for 4 queries"
    assert str(raised.value).startswith(reason)


def test_requests_and_responses_are_mapped(make, service, queries):
    http = make(
        request={
            "query": "query",
            "params": {"top_k": "params.top_k", "fault": "params.fault"},
            "filter": [{"field": "'lang'", "is": "'en'"}],
            "explain": False,
            "limit": 7,
        },
        response="results[?score > `0`].[id, score]",
    )
    assert http.retrieve(queries[:1], {"top_k": 2}).ids(0) == ["d0"]
    assert service.bodies[-1] == {
        "query": "which river flows through Lima",
        "params": {"top_k": 2, "fault": "none"},
        "filter": [{"field": "lang", "is": "en"}],
        "explain": False,
        "limit": 7,
    }


def test_what_the_request_does_not_send_is_no_knob(make):
    http = make(request={"query": "query", "k": "params.top_k"})
    assert [knob.name for knob in http.knobs] == ["top_k"]
    with pytest.raises(InputError, match="no parameter 'fault'"):
        http.retrieve(many(1), {"fault": "none"})
    every = make(request={"query": "query", "options": "params"})
    assert [knob.name for knob in every.knobs] == ["top_k", "fault"]


@pytest.mark.parametrize(
    ("options", "key", "reason"),
    [
        ({"url": "localhost:8000"}, ("url",), "is no HTTP URL"),
        ({"url": "ftp://host/"}, ("url",), "is no HTTP URL"),
        ({"url": "http://host:port/"}, ("url",), "is no URL"),
        ({"url": 8000}, ("url",), "is no"),
        ({"url": "http://me:word@host/"}, ("url",), "holds what looks like a secret"),
        ({"url": "http://host/?api_key=4711"}, ("url",), "holds what looks like a secret"),
        ({"url": "http://word@host/"}, ("url",), "holds what looks like a secret"),
        ({"url": "http://host/?v=2&k=tiger"}, ("url",), "k=…; set an environment variable and"),
        ({"url": "http://host/?k=${NOT_SET_HERE}"}, ("url",), "NOT_SET_HERE is not set, or empty"),
        ({"request": {"q": "query["}}, ("request", "q"), "is not JMESPath"),
        ({"request": {"q": "text"}}, ("request", "q"), "'text' is not known here"),
        ({"request": {"q": "querry"}}, ("request", "q"), "did you mean 'query'?"),
        ({"request": {"q": ["params.topk"]}}, ("request",), "params.topk is neither in the space"),
        ({"request": {"api_key": "'4711'"}}, ("request", "api_key"), "looks like a secret"),
        ({"response": "hits["}, ("response",), "is not JMESPath"),
        ({"response": 3}, ("response",), "must be a JMESPath expression"),
        ({"batch_size": 0}, ("batch_size",), "must be a whole number from 1 up"),
        ({"batch_size": 2, "request": {"q": "query"}}, ("request", "q"), "'query' is not known"),
        ({"concurrency": 1.5}, ("concurrency",), "must be a whole number from 1 up"),
        ({"timeout_s": 0}, ("timeout_s",), "must be a number above 0"),
        ({"retries": -1}, ("retries",), "must be a whole number from 0 up"),
        ({"requests_per_second": 0}, ("requests_per_second",), "must be a number above 0"),
        ({"headers": ["a"]}, ("headers",), "must be a mapping"),
        ({"headers": {"X-A": 3}}, ("headers", "X-A"), "must be text, or {env:"),
        ({"headers": {"X A": "b"}}, ("headers", "X A"), "must be text, or {env:"),
        ({"headers": {"X-A": "a\nb"}}, ("headers", "X-A"), "must be printable ASCII"),
        (
            {"headers": {"Authorization": {"env": "NOT_SET_HERE"}}},
            ("headers", "Authorization"),
            "the environment variable NOT_SET_HERE is not set, or empty",
        ),
    ],
)
def test_wrong_options_are_explained(make, options, key, reason):
    with pytest.raises(InputError) as raised:
        make(**options)
    (problem,) = raised.value.problems
    assert problem.key == key
    assert reason in problem.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", f"Bearer {TOKEN}"),
        ("authorization", TOKEN),
        ("X-Api-Key", TOKEN),
        ("api_key", TOKEN),
        ("X-Auth", TOKEN),
        ("Cookie", f"session={TOKEN}"),
        ("Ocp-Apim-Subscription-Key", TOKEN),
        ("X-Secret", TOKEN),
        ("X-Plain", f"Bearer {TOKEN}"),
        ("Authorization", f"Bearer {TOKEN} ${{TUNER_TEST_TOKEN}}"),
        ("X-Custom", TOKEN),
        ("X-Custom", f"{TOKEN}-${{TUNER_TEST_TOKEN}}"),
        ("X-Custom", "tiger"),
    ],
)
def test_a_secret_in_clear_is_refused_and_not_repeated(make, name, value):
    with pytest.raises(InputError) as raised:
        make(headers={name: value})
    assert "looks like a secret, which must not stand here" in str(raised.value)
    assert TOKEN not in str(raised.value)


def test_headers_come_from_the_environment_of_the_process_that_asks(make, service, queries):
    headers = {
        "Authorization": "Bearer ${TUNER_TEST_TOKEN}",
        "X-Api-Key": {"env": "TUNER_TEST_TOKEN"},
        "X-Tenant": "blue",
        "X-Custom": "${TUNER_TEST_TOKEN}",
        "Accept-Language": "en, de",
        "X-Depth": "3",
    }
    make(headers=headers).retrieve(queries[:1], {})
    sent = service.headers[-1]
    assert sent["Authorization"] == f"Bearer {TOKEN}"
    assert sent["X-Api-Key"] == TOKEN
    assert sent["X-Tenant"] == "blue"


def test_a_variable_that_is_not_set_where_the_trial_runs_fails_it(make, queries, monkeypatch):
    monkeypatch.setenv("TUNER_TEST_ELSEWHERE", "4711")
    http = make(headers={"X-Api-Key": {"env": "TUNER_TEST_ELSEWHERE"}})
    monkeypatch.delenv("TUNER_TEST_ELSEWHERE")
    with pytest.raises(TunerError, match="variable TUNER_TEST_ELSEWHERE is not set, or empty"):
        http.retrieve(queries, {})


def test_a_value_that_is_no_header_is_refused_and_not_repeated(make, monkeypatch):
    monkeypatch.setenv("TUNER_TEST_TOKEN", f"{TOKEN}\nX-Other: 1")
    with pytest.raises(InputError) as raised:
        make()
    assert "the value of TUNER_TEST_TOKEN cannot be sent" in str(raised.value)
    assert TOKEN not in str(raised.value)


def test_secrets_are_in_no_log_no_pickle_and_no_repr(make, queries, caplog):
    caplog.set_level(logging.DEBUG)
    http = make()
    http.retrieve(queries, {})
    with pytest.raises(TunerError):
        http.retrieve(queries, {"fault": "500"})
    assert caplog.text
    assert TOKEN not in caplog.text
    assert TOKEN.encode() not in pickle.dumps(http)
    assert TOKEN not in repr(http)


def test_a_secret_that_is_part_of_an_id_changes_no_answer(make, queries, monkeypatch):
    monkeypatch.setenv("TUNER_TEST_TOKEN", "results")
    assert make().retrieve(queries, {}).ids(0) == ["d0"]


def test_what_is_asked_decides_the_fingerprint_and_how_it_is_asked_does_not(make):
    first = make().fingerprint
    assert make(timeout_s=5, retries=0, headers={}).fingerprint == first
    assert make(request={"query": "query", "params": "params"}).fingerprint != first
    assert make(response="results[*].id").fingerprint != first


def test_queries_at_once_are_those_of_all_requests_that_may_run(make):
    assert make(concurrency=3).queries_at_once == 3
    assert make(concurrency=3, batch_size=4).queries_at_once == 12


def test_a_secret_in_the_url_comes_from_the_environment_and_is_in_no_message(
    make, service, queries
):
    address = f"http://127.0.0.1:{service.server_port}/search?v=2&k=${{TUNER_TEST_TOKEN}}"
    http = make(url=address, retries=0)
    http.retrieve(queries[:1], {})
    assert TOKEN not in repr(http)
    with pytest.raises(TunerError) as raised:
        make(url=address.replace(str(service.server_port), "1"), retries=0).retrieve(queries, {})
    assert "k=${TUNER_TEST_TOKEN}" in str(raised.value)
    assert TOKEN not in str(raised.value)
