"""Indexes that a service builds: started once, polled until ready, named in the queries."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError, OutageError, TunerError
from tuner.core.space import Categorical, Integer, SearchSpace
from tuner.retrieval.adapters.http import Http
from tuner.retrieval.indexes.opened import Opened
from tuner.testing import IndexCase
from tuner.testing.indexes import CHECKS

DOCUMENTS = tuple(Document(f"d{n}", city, "") for n, city in enumerate(["lima", "cairo", "paris"]))
CORPUS = Corpus(DOCUMENTS, fingerprint="three-cities")
QUERIES = (Query("q0", "lima"), Query("q1", "cairo"))
SPACE = SearchSpace({"field": Categorical(("title", "turned")), "top_k": Integer(1, 3)})
TOKEN = "tok-4711-very-secret"


class Service(ThreadingHTTPServer):
    """Builds an index for each field, which takes two polls; fails as its ``fault`` says."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.lock = threading.Lock()
        self.started: Counter[str] = Counter()
        self.polls: Counter[str] = Counter()
        self.known: set[str] = set()
        self.bodies: list[Any] = []
        self.fault = ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
        if self.path == "/indexes":
            self.start(body)
        else:
            self.search(self.path.split("/")[2], body)

    def start(self, body: Any) -> None:
        with self.server.lock:
            self.server.started[body["field"]] += 1
            self.server.known.add(f"ix%20{body['field']}")
        if self.server.fault == "refused":
            self.send(422, {"detail": f"no field {body['field']}, {self.headers['X-Token']}"})
        elif self.server.fault == "out of order":
            self.send(503, {})
        elif self.server.fault == "slow":
            time.sleep(0.5)
            self.send(200, {"id": "slow"})
        else:
            self.send(202, {"id": f"ix {body['field']}"})

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        with self.server.lock:
            self.server.polls[name] += 1
            number = self.server.polls[name]
        if name not in self.server.known:
            self.send(404, {"detail": "no such index"})
            return
        match self.server.fault:
            case "failed":
                self.send(200, {"status": "failed", "reason": "out of memory"})
            case "never ready":
                self.send(200, {"status": "building"})
            case "restarted" if number <= 2:
                self.send(503, {})
            case _:
                self.send(200, {"status": "ready" if number > 2 else "building"})

    def search(self, name: str, body: Any) -> None:
        if name not in self.server.known:
            self.send(404, {"detail": "no such index"})
            return
        ids = [d.id for d in DOCUMENTS if body["query"] == d.title]
        others = [d.id for d in DOCUMENTS if d.id not in ids]
        ranked = [*others, *ids] if name == "ix%20turned" else [*ids, *others]
        self.send(200, {"results": ranked[: body["params"]["top_k"]]})

    def send(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    service = Service()
    thread = threading.Thread(target=service.serve_forever, daemon=True)
    thread.start()
    yield service
    service.shutdown()
    service.server_close()


@pytest.fixture
def service(running: Service) -> Service:
    running.started.clear()
    running.polls.clear()
    running.bodies.clear()
    running.fault = ""
    return running


def options(service: Service, **more: Any) -> dict[str, Any]:
    index = {
        "url": f"{service.url}/indexes",
        "body": {"field": "params.field", "size": 20},
        "name": "id",
        "poll": {
            "url": f"{service.url}/indexes/{{index}}",
            "ready_when": "status == 'ready'",
            "failed_when": "status == 'failed'",
            "interval_s": 0.01,
        },
    }
    asked = {"url": f"{service.url}/search/{{index}}", "retries": 0}
    return {**asked, "index": {**index, **more}}


@pytest.fixture
def built(service: Service, tmp_path: Path) -> Callable[..., Http]:
    def build(**more: Any) -> Http:
        given = {"space": SPACE, "baseline": {"top_k": 2}, "cache_dir": tmp_path}
        return Http.build(CORPUS, **{**options(service), **given, **more})

    return build


@pytest.fixture(scope="module")
def case(running: Service) -> IndexCase:
    return IndexCase(
        Http,
        CORPUS,
        QUERIES,
        first={"field": "title"},
        other={"field": "turned"},
        options=options(running),
        space=SPACE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[IndexCase], None], case: IndexCase, service: Service) -> None:
    assert not service.fault
    check(case)


def test_an_index_is_started_once_polled_and_named_in_queries(
    built: Callable[..., Http], service: Service
) -> None:
    found = built(index_params={"field": "turned"}).retrieve(QUERIES, {"top_k": 1})
    assert [found.ids(row) for row in range(2)] == [["d1"], ["d0"]]
    assert built(index_params={"field": "turned"}).index == "ix turned"
    assert service.started == {"turned": 1}
    assert service.polls["ix%20turned"] == 3 + 1  # and whether it is still there
    asked = {"id": "q0", "query": "lima", "params": {"top_k": 1}, "index": "ix turned"}
    assert service.bodies[0] == {"field": "turned", "size": 20}
    assert asked in service.bodies


def test_what_its_requests_name_is_of_the_index(built: Callable[..., Http]) -> None:
    declared = Http.declare_knobs(**options_without_server(), space=SPACE, baseline={})
    assert [(knob.name, knob.stage) for knob in declared] == [("field", "index")]
    assert [knob.name for knob in built().knobs] == ["top_k"]


def options_without_server() -> dict[str, Any]:
    return {"url": "http://x/{index}", "index": {"url": "http://x/new?field={field}"}}


def test_a_query_can_name_parameters_of_the_index(
    built: Callable[..., Http], service: Service
) -> None:
    request = {"query": "query", "of": "index", "params": {"top_k": "params.top_k"}}
    asked = built(request={**request, "field": "params.field"})
    asked.retrieve(QUERIES[:1], {})
    assert service.bodies[-1] == {
        "query": "lima",
        "of": "ix title",
        "params": {"top_k": 2},
        "field": "title",
    }


@pytest.mark.parametrize(
    ("fault", "reason", "kind"),
    [
        ("refused", r"POST http://\S+/indexes: 422 .*no field title, \*+", TunerError),
        ("out of order", r"503", OutageError),
        ("failed", r"says that it has failed: .*out of memory", TunerError),
        ("never ready", r"not built within 0\.3 s \(index\.timeout_s\).*building", TunerError),
        ("slow", r"not built within 0\.3 s \(index\.timeout_s\)", TunerError),
    ],
)
def test_what_goes_wrong_says_why_and_is_not_kept(
    built: Callable[..., Http],
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    reason: str,
    kind: type,
) -> None:
    monkeypatch.setenv("INDEX_TOKEN", TOKEN)
    service.fault = fault
    limit = 0.3 if fault in ("never ready", "slow") else None
    with pytest.raises(TunerError, match=reason) as caught:
        built(headers={"X-Token": "${INDEX_TOKEN}"}, index_timeout_s=limit)
    assert type(caught.value) is kind
    assert TOKEN not in str(caught.value)
    service.fault = ""
    assert built().index == "ix title"
    assert service.started["title"] == 2


def test_a_service_that_is_restarted_while_it_builds_is_polled_on(
    built: Callable[..., Http], service: Service
) -> None:
    service.fault = "restarted"
    assert built().index == "ix title"
    assert service.started["title"] == 1


def test_a_service_that_has_lost_an_index_is_named_with_what_to_delete(
    built: Callable[..., Http], service: Service, tmp_path: Path
) -> None:
    asked = built()
    service.known.clear()
    with pytest.raises(TunerError, match=rf"404 .*the index 'ix title' is lost, delete {tmp_path}"):
        asked.retrieve(QUERIES, {})


def test_an_index_that_the_service_has_lost_is_built_again(
    built: Callable[..., Http], service: Service
) -> None:
    assert built().is_there()
    service.known.clear()
    asked = built()
    assert asked.is_there()
    assert service.started["title"] == 2


@pytest.mark.slow
def test_a_service_that_is_away_is_asked_again_and_one_that_refuses_is_not(
    case: IndexCase, service: Service, tmp_path: Path
) -> None:
    indexed = case.opened(tmp_path, {"field": "title"})
    for fault, kind in (("out of order", OutageError), ("refused", TunerError)):
        service.fault = fault
        for _ in range(2):
            with pytest.raises(kind):
                indexed.ready({"field": "turned"})
    assert service.started["turned"] == 2 + 1
    service.fault = ""
    with pytest.raises(TunerError, match=r"could not be built: POST .* 422 "):
        indexed.ready({"field": "turned"})


@pytest.mark.slow
def test_so_is_one_that_a_trial_needs(
    case: IndexCase, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_lost, started in ((False, 1), (False, 1), (True, 2)):
        # As a process that comes later.
        monkeypatch.setattr("tuner.retrieval.indexes.indexed.OPENED", Opened())
        if is_lost:
            service.known.clear()
        use = case.opened(tmp_path, {"field": "title"}).ready({"field": "turned"})
        assert service.started["turned"] == started
        assert use.name in [path.name for path in (tmp_path / "indexes").iterdir()]


def test_nobody_listens(tmp_path: Path) -> None:
    index = {"url": "http://127.0.0.1:9/new", "body": {"field": "params.field"}}
    given = {"space": SPACE, "baseline": {}, "cache_dir": tmp_path}
    with pytest.raises(OutageError, match="no answer"):
        Http.build(CORPUS, url="http://127.0.0.1:9/", index=index, **given)


@pytest.mark.parametrize(
    ("more", "key", "reason"),
    [
        ({"url": "ftp://x"}, "index.url", "is no HTTP URL"),
        ({"method": "LOOK"}, "index.method", "must be one of POST, PUT"),
        ({"body": "params"}, "index.body", "name each parameter of the index"),
        ({"body": {"n": "prams.field"}}, "index.body.n", "'prams' is not known here"),
        ({"bodi": {}}, "index.bodi", "unknown key; did you mean 'body'?"),
        ({"poll": {"url": "http://x/{index}"}}, "index.poll.ready_when", "required; write a JMES"),
        ({"poll": 3}, "index.poll", "must be a mapping with url, method"),
        ({"body": {"d": "params.dim"}}, "index", "params.dim is neither in the space"),
        ({"url": "http://x/?token=abcdef"}, "index.url", "looks like a secret"),
    ],
)
def test_a_section_that_is_wrong_is_refused_by_its_key(
    built: Callable[..., Http], service: Service, more: dict[str, Any], key: str, reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        built(**options(service, **more))
    assert key in [".".join(map(str, problem.key)) for problem in caught.value.problems]
    assert not service.started
