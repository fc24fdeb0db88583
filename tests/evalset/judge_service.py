"""A model behind a real address on the loopback that grades, and a sheet to be graded."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tuner.evalset.judges import ChatJudge, Scale
from tuner.evalset.judging import Plan, grade_sheet
from tuner.evalset.sheets import Row

KEY = "sk-not-to-be-seen"
SCALE = Scale((0, 1, 2, 3))
PLAIN = Plan(batch=4, twice=0.5, retries=2)
PRICE = (1000.0, 2000.0)  # for a million tokens: 10 read and 5 written cost .02


class Service(ThreadingHTTPServer):
    """Grades a passage by the digit in it; counts calls, and fails as it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.prompts: list[str] = []
        self.keys: list[str | None] = []
        self.calls = 0
        self.fails: dict[int, int] = {}  # number of the call, from 1 -> status
        self.says: dict[int, str] = {}  # number of the call -> what it says instead
        self.meanwhile: Callable[[int], None] = lambda _: None  # called before a call is answered
        self.counts_tokens = False
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service: Service = self.server  # type: ignore[assignment]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        with service.lock:
            service.calls += 1
            number = service.calls
            service.keys.append(self.headers.get("Authorization"))
            service.prompts.append(prompt)
        service.meanwhile(number)
        status = service.fails.get(number, 200)
        grades = [int(digit) for digit in re.findall(r"worth (\d)", prompt)]
        content = service.says.get(number, f"Here: {json.dumps(grades)}")
        answer = {
            "choices": [{"message": {"content": content}}],
            "usage": {
                "prompt_tokens": len(prompt) // 4 if service.counts_tokens else 10,
                "completion_tokens": 5,
            },
        }
        told = json.dumps(answer if status == 200 else {"error": f"key {KEY}"}).encode()
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving():
    service = Service()
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        thread.join()
        service.server_close()


def sheet(queries=4, passages=6):
    return [
        Row(f"q{q}", f"query {q}", f"d{d}", "", f"passage {q}.{d} worth {(q + d) % 4}")
        for q in range(queries)
        for d in range(passages)
    ]


def model(service, **given):
    # As many retries of the connection as none: what the session does about failures is tested.
    options = {"key": None, "retries": 0, "price": PRICE} | given
    return ChatJudge.build(service.url, "small", SCALE, **options)


def graded(rows, judge, answers, plan=PLAIN, said=None):
    say = (lambda _: None) if said is None else said.append
    return grade_sheet(rows, judge, judge.scale, plan, answers, say=say)
