"""Does `tuner bench` measure what wrk measures? And what arithmetic says of an open loop?

    apt-get install wrk && pip install . && python experiments/benchmarks/bench_agreement.py [--json]

Closed loops: a small HTTP service on loopback, in a process of its own, answers after 20 + 20 u^4
ms, where u walks through 1,000 evenly spread values in a fixed random order, so that every tool
meets the same distribution (p50 21.25, p95 36.29, p99 39.21 ms). It never exceeds twice its mean:
wrk adds made-up samples for latencies that do ("correction"), and then shows another distribution
than the one that it saw. Measured by turns, several rounds, the median of each figure:
- wrk, one thread, as many connections as workers;
- the load generator of tuner bench alone, around ten lines with http.client;
- tuner bench with `kind: function`, where the function is these ten lines, and with `kind: http`:
  the work of the adapter is part of what a caller waits for, and shows.

Open loop: queries arrive at random at one server that takes exponential times. What each must wait
follows from the arrivals and the service times (Lindley's recursion: a query ends its service time
after it arrived or after the one before it ended, whichever is later). A loop that times from when
it sends would show the service times instead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tuner.bench.load import arrivals, closed_loop, open_loop

SHOWN = ("p50", "p90", "p95", "p99")
STEPS = 1_000
SERVED = 6
LUA = """
wrk.method = "POST"
wrk.body = '{"id": "q1", "query": "which?", "params": {"top_k": 1}}'
wrk.headers["Content-Type"] = "application/json"
done = function(summary, latency, requests)
  local p = function(share) return string.format("%.4f", latency:percentile(share) / 1000) end
  io.write(string.format(
    '{"p50": %s, "p90": %s, "p95": %s, "p99": %s, "qps": %.3f, "count": %d}\\n',
    p(50), p(90), p(95), p(99), summary.requests / summary.duration * 1e6, summary.requests))
end
"""
FUNCTION = """
import http.client, json, os, threading

LOCAL = threading.local()


def search(query, top_k=1):
    if not hasattr(LOCAL, "connection"):
        LOCAL.connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["PORT"]))
    body = json.dumps({"id": "q", "query": query, "params": {"top_k": top_k}})
    LOCAL.connection.request("POST", "/", body, {"Content-Type": "application/json"})
    return json.loads(LOCAL.connection.getresponse().read())["results"]
"""
CONFIG = """\
dataset: {{path: data, split: {{holdout: 0}}}}
retriever: {retriever}
space: {{top_k: {{type: integer, low: 1, high: 2}}}}
baseline: {{top_k: 1}}
objective: {{maximize: {{recall@1: 1.0}}}}
backends: [{{kind: random, trials: 1}}]
tracking: null
"""


def service_times_s() -> list[float]:
    times = [0.020 + 0.020 * ((step + 0.5) / STEPS) ** 4 for step in range(STEPS)]
    random.Random(5).shuffle(times)
    return times


async def serve() -> None:
    times, served = service_times_s(), 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                await reader.readexactly(length)
                wait_s, served = times[served % STEPS], served + 1
                await asyncio.sleep(wait_s)
                body = b'{"results": ["d1"]}'
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def write_inputs(folder: Path, port: int) -> None:
    (folder / "data" / "qrels").mkdir(parents=True)
    (folder / "data" / "corpus.jsonl").write_text('{"_id": "d1", "text": "one"}\n')
    (folder / "data" / "queries.jsonl").write_text('{"_id": "q1", "text": "which?"}\n')
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (folder / "asking.py").write_text(FUNCTION)
    (folder / "post.lua").write_text(LUA)
    retrievers = {
        "function": "{kind: function, function: 'asking:search'}",
        "http": f"{{kind: http, url: '{address(port)}', concurrency: 64}}",
    }
    for kind, retriever in retrievers.items():
        (folder / f"{kind}.yaml").write_text(CONFIG.format(retriever=retriever))


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


def by_wrk(folder: Path, port: int, workers: int, duration_s: int) -> dict[str, float]:
    done = subprocess.run(
        ["wrk", "-t1", f"-c{workers}", f"-d{duration_s}s", "-s", "post.lua", address(port)],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def by_tuner(folder: Path, port: int, kind: str, workers: int, duration_s: int) -> dict[str, float]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tuner", "bench", f"{kind}.yaml", "--json", "--warmup", "1s"),
            *("--concurrency", str(workers), "--duration", f"{duration_s}s"),
        ],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PORT": str(port), "TUNER_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"tuner bench ended with {done.returncode}: {done.stderr}")
    (level,) = json.loads(done.stdout)["levels"]
    total = level["latency"]["total"]
    assert not total["errors"], level["failures"]
    figures = {name: total[f"{name}_ms"] for name in SHOWN}
    return {**figures, "qps": level["qps"], "count": total["count"]}


def by_load(port: int, workers: int, duration_s: int) -> dict[str, float]:
    os.environ["PORT"] = str(port)
    namespace: dict[str, Any] = {}
    exec(FUNCTION, namespace)

    def ask(_: int) -> dict[str, float]:
        namespace["search"]("which?")
        return {}

    load = closed_loop(ask, workers=workers, duration_s=duration_s)
    total = load.latencies.summary()
    figures = {name: getattr(total, f"{name}_ms") for name in SHOWN}
    return {**figures, "qps": load.qps, "count": total.count}


def closed(folder: Path, levels: list[int], duration_s: int, rounds: int) -> dict[str, object]:
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        write_inputs(folder, port)
        found: dict[str, object] = {}
        for workers in levels:
            tools: dict[str, list[dict[str, float]]] = {
                "wrk": [], "load alone": [], "bench, function": [], "bench, http": []
            }  # fmt: skip
            for _ in range(rounds):
                tools["wrk"].append(by_wrk(folder, port, workers, duration_s))
                tools["load alone"].append(by_load(port, workers, duration_s))
                for kind in ("function", "http"):
                    figures = by_tuner(folder, port, kind, workers, duration_s)
                    tools[f"bench, {kind}"].append(figures)
            found[str(workers)] = {
                tool: {
                    name: [statistics.median(values), min(values), max(values)]
                    for name in (*SHOWN, "qps", "count")
                    if (values := [figures[name] for figures in runs])
                }
                for tool, runs in tools.items()
            }
        return found
    finally:
        server.kill()
        server.wait()


def opened(duration_s: float, *, rate_qps: float = 25.0, service_s: float = 0.020) -> object:
    """One server, half of its time busy; what should be waited is computed, then measured."""
    schedule = arrivals(rate_qps, duration_s, seed=11)
    services = np.random.default_rng(12).exponential(service_s, len(schedule))

    def ask(number: int) -> dict[str, float]:
        begin = time.perf_counter()
        time.sleep(services[number])
        services[number] = time.perf_counter() - begin  # a busy machine sleeps longer
        return {"service": services[number]}

    load = open_loop(ask, schedule, most_at_once=1, give_up_after_s=60.0)
    end, latencies = 0.0, []
    for due, service in zip(schedule, services, strict=True):
        end = max(end, due) + service
        latencies.append((end - due) * 1000)
    computed = np.quantile(latencies, [0.5, 0.9, 0.95, 0.99])
    total, service = load.latencies.summary(), load.latencies.summary("service")
    return {
        "count": total.count,
        "computed": dict(zip(SHOWN, map(float, computed), strict=True)),
        "measured": {name: getattr(total, f"{name}_ms") for name in SHOWN},
        "timed from sending": {name: getattr(service, f"{name}_ms") for name in SHOWN},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--duration", type=int, default=10, help="seconds of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: apt-get install wrk")
    exact = np.quantile(np.array(service_times_s()) * 1000, [0.5, 0.9, 0.95, 0.99])
    with tempfile.TemporaryDirectory() as folder:
        levels = closed(Path(folder), arguments.workers, arguments.duration, arguments.rounds)
    record = {
        "served_ms": dict(zip(SHOWN, map(float, exact), strict=True)),
        "closed": levels,
        "open": opened(SERVED * arguments.duration),
    }
    if arguments.json:
        print(json.dumps(record, indent=2))
        return
    print("closed loop, ms" + "".join(f"{name:>22}" for name in (*SHOWN, "qps")))
    print(f"{'what is served':<18}" + "".join(f"{value:>22.2f}" for value in exact))
    for workers, tools in levels.items():
        for tool, figures in tools.items():  # type: ignore[attr-defined]
            cells = "".join(
                f"{f'{middle:.2f} ({low:.2f}-{high:.2f})':>22}"
                for middle, low, high in (figures[name] for name in (*SHOWN, "qps"))
            )
            print(f"{workers} {tool:<16}{cells}")
    print("open loop, ms  " + "".join(f"{name:>22}" for name in SHOWN))
    for name, figures in record["open"].items():  # type: ignore[attr-defined]
        if name != "count":
            print(f"{name:<18}" + "".join(f"{figures[share]:>22.2f}" for share in SHOWN))


if __name__ == "__main__":
    main()
