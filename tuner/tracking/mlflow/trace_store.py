"""Writes traces to an MLflow store, each once, and takes away those that hold no longer.

Not by ``mlflow.trace``: that takes what the process is set to for its store, has threads of its
own, and would give every trace a new name each time that a study is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Any

from tuner.tracking.mlflow.traces import QueryTrace

_STUDY = "tuner.study_id"
# Set when all else of a trace is there.
_WHOLE = "tuner.is_whole"
_SOURCE = "graphrag-tuner"
_RUN = "mlflow.sourceRun"
_PAGE = 100
# What a server answers to whom it does not understand.
_UNKNOWN = {"ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED"}


def write_traces(
    uri: str, experiment_id: str, run_id: str, study_id: str, traces: Sequence[QueryTrace]
) -> int:
    """Let a study's run have these traces and no others of ours; return how many were missing.

    A server that knows no traces stays without.
    """
    from mlflow.exceptions import MlflowException

    try:
        return _write(uri, experiment_id, run_id, study_id, traces)
    except NotImplementedError:
        return 0
    except MlflowException as error:
        if error.error_code in _UNKNOWN:
            return 0
        raise


def _write(
    uri: str, experiment_id: str, run_id: str, study_id: str, traces: Sequence[QueryTrace]
) -> int:
    from mlflow.tracing.client import TracingClient

    client = TracingClient(uri)
    whole, others = _found(client, experiment_id, run_id, study_id)
    wanted = {one.trace_id for one in traces}
    stale = [*others, *(whole - wanted)]
    if stale:
        client.delete_traces(experiment_id, trace_ids=stale)
    missing = [one for one in traces if one.trace_id not in whole]
    for one in missing:
        _add(client, uri, experiment_id, run_id, one)
    return len(missing)


def _found(
    client: Any, experiment_id: str, run_id: str, study_id: str
) -> tuple[set[str], list[str]]:
    """Return the study's traces: those that are whole, and those that are not or of another run."""
    place = "locations" if "locations" in signature(client.search_traces).parameters else None
    found: Iterable[Any] = client.search_traces(
        **{place or "experiment_ids": [experiment_id]},
        filter_string=f"tags.`{_STUDY}` = '{study_id}'",
        max_results=_PAGE,
        include_spans=False,
    )
    whole, others = set(), []
    for trace in found:
        info = trace.info
        is_ours = info.trace_metadata.get(_RUN) == run_id and info.tags.get(_WHOLE) == "true"
        if is_ours:
            whole.add(info.trace_id)
        else:
            others.append(info.trace_id)
    return whole, others


def _add(client: Any, uri: str, experiment_id: str, run_id: str, trace: QueryTrace) -> None:
    from mlflow.entities import Trace, TraceData, TraceInfo, TraceLocation, TraceState

    data = TraceData.from_dict({"spans": trace.span_records()})
    info = TraceInfo(
        trace_id=trace.trace_id,
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=trace.at_ms,
        state=TraceState.OK,
        request_preview=trace.request,
        response_preview=trace.response,
        execution_duration=0,
        trace_metadata={_RUN: run_id},
        tags=dict(trace.tags),
        assessments=_assessments(trace),
    )
    if hasattr(client, "start_trace_v3"):  # MLflow before 3.4
        made = client.start_trace_v3(Trace(info, data))
    else:
        made = client.start_trace(info)
    try:
        client.log_spans(experiment_id, data.spans)
    except Exception:  # a client or a server that takes them as a file only, or neither
        _store_as_file(made, uri, data)
    client.set_trace_tag(trace.trace_id, _WHOLE, "true")


def _store_as_file(info: Any, uri: str, data: Any) -> None:
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    # By hand, as MLflow's own way takes the store that the process is set to.
    given = {"tracking_uri": uri}
    known = signature(get_artifact_repository).parameters
    given = {name: value for name, value in given.items() if name in known}
    repository = get_artifact_repository(info.tags["mlflow.artifactLocation"], **given)
    repository.upload_trace_data(json.dumps(data.to_dict()))


def _assessments(trace: QueryTrace) -> list[Any]:
    from mlflow.entities import AssessmentSource, Expectation, Feedback

    source = AssessmentSource(source_type="CODE", source_id=_SOURCE)
    at = {"create_time_ms": trace.at_ms, "last_update_time_ms": trace.at_ms}
    of_it: dict[str, Any] = {"trace_id": trace.trace_id, "source": source, **at}
    said = [
        Feedback(name=one.name, value=one.value, rationale=one.why or None, **of_it)
        for one in trace.findings
    ]
    if not trace.relevant:
        return said
    return [*said, Expectation(name="relevant", value=list(trace.relevant), **of_it)]
