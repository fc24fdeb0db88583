"""A factory of a framework's object is called once in each process; what it made stays there."""

from __future__ import annotations

import json
from collections import Counter

import pytest

pytest.importorskip(
    "langchain_core", reason="langchain-core is not installed: pip install '.[langchain]'"
)

APP = """
import os
import time
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

CALLS = Path(__file__).with_name("calls.txt")


class ByWords(BaseRetriever):
    documents: tuple
    k: int = 5

    def __reduce_ex__(self, protocol):
        raise TypeError("this holds a connection, and is not to be pickled")

    def _get_relevant_documents(self, query, *, run_manager):
        time.sleep(0.01)
        words = set(query.lower().strip("?").split())
        scored = sorted((-len(words & set(d.text.lower().split())), d.id) for d in self.documents)
        return [Document(id=id_, page_content="") for _, id_ in scored[: self.k]]


def make(documents, shape="round"):
    with CALLS.open("a") as calls:
        calls.write(f"{os.getpid()} {shape}\\n")
    return ByWords(documents=tuple(documents))
"""

CONFIG = """\
study: {name: factories, seed: 3}
dataset: {path: data, split: {holdout: 0.5}}
retriever: {kind: langchain, make: "app:make"}
space:
  k: {type: integer, low: 1, high: 12}
objective: {maximize: {mrr@10: 1.0}}
baseline: {k: 5}
backends: [{kind: random, trials: 10}]
execution: {kind: processes, workers: 2}
tracking: null
"""


def calls(tuner) -> Counter[str]:
    lines = (tuner.folder / "calls.txt").read_text(encoding="utf-8").splitlines()
    return Counter(lines)


@pytest.mark.slow
def test_each_process_calls_the_factory_once_and_nothing_made_is_pickled(tuner):
    (tuner.folder / "app.py").write_text(APP, encoding="utf-8")
    (tuner.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    record = json.loads(tuner("run", "config.yaml", "--json").stdout)
    assert record["state"] == "finished"
    # The process of the run, and its two workers.
    assert sorted(calls(tuner).values()) == [1, 1, 1]


@pytest.mark.slow
def test_each_process_calls_it_once_for_each_value_of_its_arguments(tuner):
    (tuner.folder / "app.py").write_text(APP, encoding="utf-8")
    text = CONFIG.replace("space:", "space:\n  shape: {type: categorical, choices: [round, flat]}")
    text = text.replace("{k: 5}", "{k: 5, shape: round}")
    (tuner.folder / "config.yaml").write_text(text, encoding="utf-8")
    record = json.loads(tuner("run", "config.yaml", "--json").stdout)
    assert record["state"] == "finished"
    found = calls(tuner)
    assert set(found.values()) == {1}
    assert {line.split()[1] for line in found} == {"round", "flat"}
