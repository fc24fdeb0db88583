"""The queries that changed most, each as a trace of MLflow's: winner and baseline side by side.

As plain data; ``trace_store`` writes them. Nothing is asked for them: the answers are those that
the run directory keeps, so times are those of the study's begin and last no time.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.files import read_lines
from tuner.core.json_text import digest_of, json_text
from tuner.core.run_files import PASSAGES_FILE, QUERIES_FILE
from tuner.core.shown import shortened
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.core.trial import Params

MOST = 10
# Below it two sums of the same values differ, taken in another order.
_ROUNDING = 1e-9
# Characters of a passage, of a query in a list, and of a tag.
_LONGEST_TEXT = 2_000
_LONGEST_QUERY = 200
_LONGEST_TITLE = 80
_LONGEST_TAG = 250
_SIDES = ("baseline", "winner")  # as a reader goes: from what is there to what might be


@dataclass(frozen=True)
class Span:
    """One step of a trace; ``kind`` is MLflow's word for it. The first span holds the others."""

    name: str
    kind: str
    inputs: Mapping[str, Any]
    outputs: Any


@dataclass(frozen=True)
class Finding:
    """What is said of a trace: a figure, a yes or no, with the reason for it."""

    name: str
    value: float | bool
    why: str = ""


@dataclass(frozen=True)
class QueryTrace:
    """One query that changed.

    Attributes:
        trace_id: the same for the same content, and for no other.
        at_ms: milliseconds since 1970; the query that changed most is the latest, and so the first
            in MLflow's list.
        request, response: how it is told in a list.
        spans: all of it, and within that the baseline's answer and the winner's.
        relevant: the ids of what is to be found.
    """

    trace_id: str
    at_ms: int
    request: str
    response: str
    tags: Mapping[str, str]
    spans: tuple[Span, ...]
    findings: tuple[Finding, ...]
    relevant: tuple[str, ...]

    def span_records(self) -> list[dict[str, Any]]:
        """Return the spans in the form in which MLflow reads them from a file."""
        at_ns = self.at_ms * 1_000_000
        ids = [digest_of([self.trace_id, place]) for place in range(len(self.spans))]
        return [
            {
                "trace_id": _bytes_of(self.trace_id.removeprefix("tr-")),
                "span_id": _bytes_of(ids[place]),
                "parent_span_id": _bytes_of(ids[0]) if place else "",
                "name": span.name,
                # Each begins a little later: that is the order in which they are shown.
                "start_time_unix_nano": at_ns + place,
                "end_time_unix_nano": at_ns + (place or len(self.spans)),
                "attributes": {
                    "mlflow.traceRequestId": json_text(self.trace_id),
                    "mlflow.spanType": json_text(span.kind),
                    "mlflow.spanInputs": json_text(span.inputs),
                    "mlflow.spanOutputs": json_text(span.outputs),
                },
                "status": {"code": "STATUS_CODE_OK", "message": ""},
                "events": [],
            }
            for place, span in enumerate(self.spans)
        ]


def changed_most(
    header: StudyHeader, summary: StudySummary, run_dir: Path, *, most: int = MOST
) -> list[QueryTrace]:
    """Return the queries whose composite changed most, the greatest change first.

    Empty where winner and baseline were not compared, are the same, or answer everything alike.

    Raises:
        InputError: a file with the answers is damaged, by its line.
    """
    winner, baseline = summary.winner, summary.baseline
    if winner is None or baseline is None or winner.trial == baseline.trial:
        return []
    rows = list(read_lines(run_dir / QUERIES_FILE, _row, "query with two answers"))
    changed = [row for row in rows if abs(_change(row)) > _ROUNDING]
    changed.sort(key=lambda row: (-abs(_change(row)), str(row["query_id"])))
    shown = changed[:most]
    texts = _texts(run_dir, shown)
    params = {"winner": winner.params, "baseline": baseline.params}
    return [_trace(header, row, place, params, texts) for place, row in enumerate(shown)]


def _row(line: Any) -> Mapping[str, Any]:
    for side in _SIDES:
        _ = line[side]["composite"], line[side]["metrics"], line[side]["retrieved"]
    _ = line["query_id"], line["query"], line["query_type"], line["relevant"]
    return dict(line)


def _change(row: Mapping[str, Any]) -> float:
    """Return winner less baseline; 0 where one of them is undefined, as nothing can be told."""
    winner, baseline = (row[side]["composite"] for side in ("winner", "baseline"))
    return 0.0 if winner is None or baseline is None else float(winner) - float(baseline)


def _trace(
    header: StudyHeader,
    row: Mapping[str, Any],
    place: int,
    params: Mapping[str, Params],
    texts: Mapping[str, str],
) -> QueryTrace:
    change, query = _change(row), str(row["query"]) or str(row["query_id"])
    relevant = tuple(str(id_) for id_ in row["relevant"])
    ranks = {side: _ranks(row[side]) for side in _SIDES}
    titles = _titles(row)
    name = "a query that gained" if change > 0 else "a query that lost"
    whole = Span(
        name,
        "CHAIN",
        {"query": query},
        {
            "change": round(change, 6),
            **{f"{side} composite": round(row[side]["composite"], 6) for side in _SIDES},
            "ranks of the relevant": {
                titles.get(id_, id_): {side: ranks[side].get(id_) for side in _SIDES}
                for id_ in relevant
            },
        },
    )
    answers = [
        Span(
            side,
            "RETRIEVER",
            {"query": query, "params": dict(params[side])},
            [_document(one, rank, texts) for rank, one in enumerate(row[side]["retrieved"], 1)],
        )
        for side in _SIDES
    ]
    winner, baseline = (row[side]["composite"] for side in ("winner", "baseline"))
    why = _why(relevant, ranks, titles)
    findings = (
        Finding("winner is better", change > 0, why),
        Finding("change", round(change, 6), f"composite {baseline:.4f} → {winner:.4f}"),
        *_metrics(header, row),
    )
    tags = {
        "mlflow.traceName": name,
        "tuner.study_id": header.study_id,
        "tuner.study": header.name,
        "tuner.query_id": str(row["query_id"]),
        "tuner.query_type": str(row["query_type"]),
        "tuner.change": f"{change:+.4f}",
    }
    content = [header.study_id, place, dict(row), params, [texts.get(one) for one in _ids(row)]]
    return QueryTrace(
        trace_id=f"tr-{digest_of(content, 32)}",
        at_ms=round(header.created_at * 1000) + MOST - place,
        request=shortened(query, _LONGEST_QUERY),
        response=f"{change:+.3f}: {why}",
        tags={key: shortened(tag, _LONGEST_TAG) for key, tag in tags.items() if tag},
        spans=(whole, *answers),
        findings=findings,
        relevant=relevant,
    )


def _document(passage: Mapping[str, Any], rank: int, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a passage as MLflow's pages show what a retriever found."""
    id_ = str(passage["id"])
    metadata = {
        "doc_uri": id_,
        "title": passage.get("title") or None,
        "rank": rank,
        "relevant": bool(passage["relevant"]),
        "score": passage.get("score"),
        **{f"score of {leg}": score for leg, score in (passage.get("legs") or {}).items()},
    }
    text = texts.get(id_) or str(passage.get("title") or "") or id_
    told = {name: value for name, value in metadata.items() if value is not None}
    return {"page_content": text, "metadata": told, "id": id_}


def _metrics(header: StudyHeader, row: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what the composite is made of, of both."""
    for name in header.objective.get("maximize", {}):
        for side in _SIDES:
            value = row[side]["metrics"].get(name)
            if value is not None:
                yield Finding(f"{name} {side}", float(value))


def _ranks(side: Mapping[str, Any]) -> dict[str, int]:
    """Return at which rank each relevant document was found."""
    if side.get("found"):
        return {str(id_): int(rank) for id_, rank in side["found"].items()}
    passages = enumerate(side["retrieved"], start=1)
    return {str(one["id"]): rank for rank, one in passages if one["relevant"]}


def _why(
    relevant: Sequence[str],
    ranks: Mapping[str, Mapping[str, int]],
    titles: Mapping[str, str],
) -> str:
    """Say where what is relevant went: ``Lima from rank 4 to 1; Oslo found at rank 7``."""
    told = []
    for id_ in relevant:
        before, now = (ranks[side].get(id_) for side in _SIDES)
        name = titles.get(id_, id_)
        if before == now:
            continue
        if before is None:
            told.append(f"{name} found at rank {now}")
        elif now is None:
            told.append(f"{name} no longer found, was at rank {before}")
        else:
            told.append(f"{name} from rank {before} to {now}")
    return "; ".join(told) or "what is relevant stands at the same ranks"


def _titles(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what people call the passages that were retrieved."""
    passages = (one for side in _SIDES for one in row[side]["retrieved"])
    return {
        str(one["id"]): shortened(f"{one['title']} ({one['id']})", _LONGEST_TITLE)
        for one in passages
        if one.get("title")
    }


def _ids(row: Mapping[str, Any]) -> list[str]:
    return [str(one["id"]) for side in _SIDES for one in row[side]["retrieved"]]


def _texts(run_dir: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the texts of the passages of these queries, as far as they were kept."""
    wanted = {id_ for row in rows for id_ in _ids(row)}
    if not wanted:
        return {}

    def read(line: Any) -> tuple[str, str]:
        return str(line["id"]), shortened(str(line["text"]), _LONGEST_TEXT)

    found = read_lines(run_dir / PASSAGES_FILE, read, "text of a passage")
    return {id_: text for id_, text in found if id_ in wanted}


def _bytes_of(hexadecimal: str) -> str:
    """Return an id as MLflow writes it to a file."""
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()
