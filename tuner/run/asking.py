"""Asking a system beside the trials: as patiently as in them, and on the clock."""

from __future__ import annotations

from tuner.core import calls
from tuner.core.trial import Params
from tuner.retrieval.base import Measures, serve_one
from tuner.run.assembly import Assembly
from tuner.study.study import Study


def probe(assembly: Assembly, params: Params) -> None:
    """Ask one query, past what is remembered; a system that measures itself, all of it."""
    assembly = assembly.counting(calls.PROBE)
    if isinstance(assembly.retriever, Measures):
        assembly.evaluator(())(params)
    else:
        params = {**assembly.fixed, **params}
        serve_one(assembly.retriever, assembly.tune_queries[0], params)


def keep_time(study: Study) -> None:
    """Let the study know how long the session has gone on, should it be killed in the next step."""
    if study.journal is not None:
        study.journal.keep_time()
