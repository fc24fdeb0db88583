"""The queries that changed most are traces of the study's run, on a real MLflow server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from mlflow import MlflowClient

from tuner.core.errors import InputError
from tuner.tracking.mlflow.traces import changed_most
from tuner.tracking.mlflow.tracker import Mlflow

TEXTS = {"d1": "Lima is the capital of Peru.", "d2": "Oslo lies in Norway."}


def side(composite, *ids, **more):
    titles = {"d1": "Lima", "d2": "Oslo"}
    retrieved = [
        {"id": one, "title": titles.get(one, ""), "relevant": one == "d1", "score": 0.5, "legs": {}}
        for one in ids
    ]
    return {"composite": composite, "metrics": {"recall@10": composite}, "retrieved": retrieved}


def row(query_id, winner, baseline):
    return {
        "query_id": query_id,
        "query": f"Where is {query_id}?",
        "query_type": "direct",
        "part": "holdout",
        "relevant": ["d1"],
        "winner": winner,
        "baseline": baseline,
    }


ROWS = [
    row("same", side(0.5, "d1"), side(0.5, "d1")),
    row("unknown", side(None), side(0.5, "d1")),
    row("lost", side(0.0, "d2"), side(0.5, "d2", "d1")),
    row("won", side(0.9, "d1", "d2"), side(0.1, "d2", "d1")),
]


def write(study, rows=ROWS):
    lines = "".join(f"{json.dumps(one)}\n" for one in rows)
    (study.run_dir / "per_query.jsonl").write_text(lines)
    texts = [{"id": i, "title": "", "text": t, "length": len(t)} for i, t in TEXTS.items()]
    (study.run_dir / "passages.jsonl").write_text("".join(f"{json.dumps(t)}\n" for t in texts))
    return study


def sync(study, uri, summary=None):
    tracker = Mlflow(uri, "traced", in_thread=True)
    return tracker.sync(study.header, study.trials, summary or study.summary, study.run_dir)


def shown(study, uri, *, with_spans=True):
    """Return the traces of the study's run, in the order of MLflow's list."""
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("traced").experiment_id
    wanted = f"tags.`tuner.study_id` = '{study.header.study_id}'"
    (run,) = client.search_runs([experiment], f"{wanted} and tags.`tuner.role` = 'study'")
    return client.search_traces(
        locations=[experiment],
        run_id=run.info.run_id,
        order_by=["timestamp_ms DESC"],
        include_spans=with_spans,
    )


# ---- what is shown


def test_the_greatest_change_is_first_and_what_is_the_same_or_undefined_is_none(study):
    found = changed_most(study.header, study.summary, write(study).run_dir)
    assert [one.tags["tuner.query_id"] for one in found] == ["won", "lost"]
    assert [one.response for one in found] == [
        "+0.800: Lima (d1) from rank 2 to 1",
        "-0.500: Lima (d1) no longer found, was at rank 2",
    ]
    assert found[0].at_ms > found[1].at_ms


def test_no_more_than_ten_are_shown_equal_ones_by_their_ids(study):
    many = [row(f"q{n:02d}", side(0.9, "d1"), side(0.1)) for n in range(14)]
    found = changed_most(study.header, study.summary, write(study, many[::-1]).run_dir)
    assert [one.tags["tuner.query_id"] for one in found] == [f"q{n:02d}" for n in range(10)]
    assert {one.response for one in found} == {"+0.800: Lima (d1) found at rank 1"}


def test_equal_content_is_the_same_trace_and_other_content_another(study):
    write(study)
    first, again = (changed_most(study.header, study.summary, study.run_dir) for _ in range(2))
    assert first == again
    (study.run_dir / "passages.jsonl").unlink()
    bare = changed_most(study.header, study.summary, study.run_dir)
    assert not {one.trace_id for one in bare} & {one.trace_id for one in first}
    answer = bare[0].spans[1].outputs
    assert [one["page_content"] for one in answer] == ["Oslo", "Lima"]  # the titles, then


def test_where_nothing_was_compared_there_is_none(study):
    assert changed_most(study.header, study.summary, study.run_dir) == []
    write(study)
    same = replace(study.summary, baseline=study.summary.winner)
    assert changed_most(study.header, same, study.run_dir) == []
    assert changed_most(study.header, replace(study.summary, winner=None), study.run_dir) == []
    (study.run_dir / "per_query.jsonl").write_text('{"query_id": "q1"}\n')
    with pytest.raises(InputError, match=r"per_query\.jsonl:1"):
        changed_most(study.header, study.summary, study.run_dir)


# ---- on a server


def test_each_query_is_a_trace_of_the_study_run_with_both_answers(study, server):
    sync(write(study), server.uri)
    won, lost = shown(study, server.uri)
    assert won.info.request_preview == "Where is won?"
    assert won.info.tags["mlflow.traceName"] == "a query that gained"
    assert lost.info.tags["mlflow.traceName"] == "a query that lost"
    whole, baseline, winner = won.data.spans
    assert [one.span_type for one in won.data.spans] == ["CHAIN", "RETRIEVER", "RETRIEVER"]
    assert (baseline.name, winner.name) == ("baseline", "winner")
    assert {baseline.parent_id, winner.parent_id} == {whole.span_id}
    assert whole.outputs["ranks of the relevant"] == {"Lima (d1)": {"baseline": 2, "winner": 1}}
    assert winner.inputs == {"query": "Where is won?", "params": study.summary.winner.params}
    assert winner.outputs[0] == {
        "page_content": TEXTS["d1"],
        "metadata": {"doc_uri": "d1", "title": "Lima", "rank": 1, "relevant": True, "score": 0.5},
        "id": "d1",
    }
    said = {one.name: one.value for one in won.info.assessments}
    assert said == {
        "winner is better": True,
        "change": 0.8,
        "recall@10 winner": 0.9,
        "recall@10 baseline": 0.1,
        "relevant": ["d1"],
    }
    (why,) = [one.rationale for one in lost.info.assessments if one.name == "winner is better"]
    assert why == "Lima (d1) no longer found, was at rank 2"


def test_a_second_sync_writes_nothing_twice_and_mends_what_is_half_written(study, server):
    assert sync(write(study), server.uri).error is None
    before = shown(study, server.uri)
    again = sync(study, server.uri)
    assert (again.added, again.error) == (0, None)
    after = shown(study, server.uri)
    assert [one.to_dict() for one in after] == [one.to_dict() for one in before]
    MlflowClient(server.uri).delete_trace_tag(before[0].info.trace_id, "tuner.is_whole")
    assert sync(study, server.uri).added == 1
    mended = shown(study, server.uri)
    assert [one.info.trace_id for one in mended] == [one.info.trace_id for one in before]
    assert [len(one.data.spans) for one in mended] == [3, 3]
    assert [len(one.info.assessments) for one in mended] == [5, 5]


def test_a_study_that_finds_another_winner_shows_that_one(study, server):
    sync(write(study), server.uri)
    before = {one.info.trace_id for one in shown(study, server.uri)}
    write(study, [row("won", side(0.7, "d1"), side(0.1, "d2", "d1"))])
    assert sync(study, server.uri).added == 1
    (trace,) = shown(study, server.uri)
    assert trace.info.trace_id not in before
    assert trace.info.tags["tuner.change"] == "+0.6000"


def test_an_interrupted_study_has_no_traces_yet(study, server):
    interrupted = replace(study.summary, state="interrupted")
    assert sync(write(study), server.uri, interrupted).error is None
    assert shown(study, server.uri) == []


@contextmanager
def older(server, *unknown: str) -> Iterator[str]:
    """Stand before a server, and answer for it that it knows no addresses of these beginnings."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if self.path.startswith(unknown):
                status, content = 404, b"<html>Not Found</html>"
            else:
                inner = HTTPConnection("127.0.0.1", server.port, timeout=900)
                inner.request(self.command, self.path, body, dict(self.headers))
                response = inner.getresponse()
                status, content = response.status, response.read()
                inner.close()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, *arguments):
            pass

    standing = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    standing.daemon_threads = True
    threading.Thread(target=standing.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{standing.server_address[1]}"
    finally:
        standing.shutdown()
        standing.server_close()


def test_a_server_that_knows_no_traces_stays_without_and_has_all_else(study, server):
    unknown = ("/api/3.0/mlflow/traces", "/api/2.0/mlflow/traces", "/v1/traces")
    with older(server, *unknown) as uri:
        done = sync(write(study), uri)
    assert (done.error, done.is_complete) == (None, True)
    assert shown(study, server.uri) == []
    assert sync(study, server.uri).added == 2  # after it was updated


def test_a_server_that_takes_no_spans_gets_them_as_a_file(study, server, monkeypatch):
    with older(server, "/v1/traces") as uri:
        assert sync(write(study), uri).error is None
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)  # by which MLflow finds the file
        traces = shown(study, uri)
    assert [[span.name for span in one.data.spans][1:] for one in traces] == [
        ["baseline", "winner"]
    ] * 2
    assert traces[0].data.spans[2].outputs[0]["page_content"] == TEXTS["d1"]


def test_traces_that_cannot_be_written_keep_nothing_else_away(study, store_uri):
    write(study)
    (study.run_dir / "passages.jsonl").write_text("torn\n")
    done = sync(study, store_uri)
    assert done.is_complete
    assert done.error.startswith("traces: ")
    assert "passages.jsonl:1" in done.error
    assert shown(study, store_uri) == []
