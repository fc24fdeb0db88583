"""Defaults stay what they are: a new option or knob changes no answer of who does not set it.

The answers were recorded before most of them were there. An engine that is meant to answer
otherwise by default has them recorded again, and the changelog says so.

Where names that a walk may start from are equal but for rounding, the last digit of a processor
decides; so one answer in a hundred may differ.
"""

from __future__ import annotations

import json
from pathlib import Path

from tuner.datasets import open_dataset
from tuner.retrieval.hybrid import Hybrid

RECORDED = Path(__file__).parent / "data" / "atlas_rankings.json"


def test_answers_are_those_that_were_recorded(tmp_path):
    dataset = open_dataset("builtin:atlas")
    queries = dataset.queries[::8]
    engine = Hybrid.build(dataset.corpus, cache_dir=tmp_path)
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    live = [engine.retrieve(queries[::10], each["params"]) for each in recorded]
    engine.prepare(queries)
    others = 0
    for each, answered in zip(recorded, live, strict=True):
        found = engine.retrieve(queries, each["params"])
        answers = {query.id: " ".join(found.ids(row)) for row, query in enumerate(queries)}
        assert answers.keys() == each["answers"].keys()
        others += sum(answers[name] != told for name, told in each["answers"].items())
        for row, query in enumerate(queries[::10]):
            assert " ".join(answered.ids(row)) == answers[query.id]
    assert others <= len(recorded) * len(queries) / 100


def test_knobs_at_their_defaults_say_nothing(build, corpus, queries):
    engine = build(corpus)
    defaults = {knob.name: knob.default for knob in engine.knobs}
    usual, named = engine.retrieve(queries, {}), engine.retrieve(queries, defaults)
    assert [usual.ids(row) for row in range(len(queries))] == [
        named.ids(row) for row in range(len(queries))
    ]
    assert all(
        knob.default in knob.choices if knob.choices else knob.low <= knob.default <= knob.high
        for knob in engine.knobs
    )
