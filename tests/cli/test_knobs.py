"""tuner knobs: a table, a space to copy, and JSON."""

from __future__ import annotations

import json

import pytest

from tuner.core import registry
from tuner.core.errors import TunerError
from tuner.retrieval.base import Knob
from tuner.systems import declared_knobs

OUTSIDE = '''
"""A retriever with every sort of knob."""
from tuner.retrieval.base import Knob

class Outside:
    knobs = (
        Knob("weight", "real", 0.5, 0.0, 1.0, description="share of the graph [0, 1]"),
        Knob("temperature", "real", 0.1, 0.001, 10.0, scale="log"),
        Knob("chunk_tokens", "integer", 300, 100, 1000, stage="index"),
        Knob("answer", "categorical", "no", choices=("no", "yes", None, True, 1.5)),
        Knob("seed", "integer", 7),
        Knob("only", "integer", 1, 1, 1),
        Knob("model", "categorical", "small", choices=("small",)),
    )
    fingerprint = "outside"

    @classmethod
    def build(cls, corpus, *, cache_dir):
        raise AssertionError("knobs are known without building")
'''
KIND = "outside_knobs:Outside"


@pytest.fixture
def outside(tuner):
    (tuner.folder / "outside_knobs.py").write_text(OUTSIDE, encoding="utf-8")
    return tuner


def test_the_space_can_be_copied_into_a_configuration(outside):
    printed = outside("knobs", KIND).stdout
    space = printed[printed.index("space:") :]
    assert (
        "chunk_tokens: {type: integer, low: 100, high: 1000}   # an index for each value" in space
    )
    assert "# seed: integer, 7 by default; choose low and high" in space
    assert "# only: integer, 1 by default; it has this value only" in space
    assert "# model: categorical, small by default; it has this value only" in space
    outside.edit(
        "space:\n  title_weight: {type: real, low: 0.0, high: 4.0}\n"
        "  top_k: {type: integer, low: 1, high: 12}\n",
        space,
    )
    outside.edit("baseline: {title_weight: 1.0, top_k: 10}\n", "")
    done = outside("check", "config.yaml", code=2)
    # The space is understood; it is the other retriever that does not have these knobs.
    assert "space.weight: the retriever has no parameter 'weight'" in done.stderr
    names = ["weight", "temperature", "chunk_tokens", "answer"]
    assert [name for name in names if f"space.{name}: the retriever has" in done.stderr] == names


def test_the_table_shows_values_and_stages(outside):
    printed = outside("knobs", KIND).stdout
    rows = {line.split()[0]: line for line in printed.splitlines() if line.strip()}
    assert "0.001 to 10, log" in rows["temperature"]
    assert "index" in rows["chunk_tokens"]
    assert "any to any" in rows["seed"]
    assert "no, yes, None, True, 1.5" in rows["answer"]
    assert "share of the graph [0, 1]" in rows["weight"]


def test_json_holds_knobs_and_space(outside):
    record = json.loads(outside("knobs", KIND, "--json").stdout)
    assert record["kind"] == KIND
    assert [knob["name"] for knob in record["knobs"]][:2] == ["weight", "temperature"]
    assert record["knobs"][2]["stage"] == "index"
    assert record["space"]["answer"] == {
        "type": "categorical",
        "choices": ["no", "yes", None, True, 1.5],
    }
    assert set(record["space"]) == {"weight", "temperature", "chunk_tokens", "answer"}


def test_the_built_in_engine(tuner):
    printed = tuner("knobs", "hybrid").stdout
    assert "graph_weight: {type: real, low: 0.0, high: 1.0}" in printed


def test_options_are_given_as_in_a_configuration(tuner):
    (tuner.folder / "own.py").write_text(
        "def search(query, top_k=10): return []\n", encoding="utf-8"
    )
    printed = tuner("knobs", "function", "--set", "function=own:search").stdout
    assert "# top_k: integer, 10 by default; choose low and high" in printed
    assert "whatever parameters" in tuner("knobs", "http").stdout


@pytest.mark.parametrize("kind", registry.kinds("retrieval"))
def test_every_kind_tells_its_knobs_or_what_it_needs(kind):
    reason, knobs = "", ()
    try:
        knobs = declared_knobs(kind, {})
    except TunerError as error:
        reason = str(error)
    assert not reason or "required" in reason or "pip install" in reason
    assert all(isinstance(knob, Knob) for knob in knobs)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["hybird"], "unknown retriever 'hybird'; did you mean 'hybrid'?"),
        (["hybrid", "--set", "bm25=1"], "bm25: unknown option of the hybrid retriever"),
        (["hybrid", "--set", "kind=runs"], "name the kind before the options"),
        (["function"], "tuner knobs function --set option=value"),
        (["http", "--set", "retrys=3"], "retrys: unknown option; did you mean 'retries'?"),
        (["function", "--set", "function"], "write it as key=value"),
    ],
)
def test_wrong_input_is_explained(tuner, arguments, reason):
    assert reason in tuner("knobs", *arguments, code=2).stderr
