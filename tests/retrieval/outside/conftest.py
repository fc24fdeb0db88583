"""A small corpus and space for adapters of outside systems."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.space import Categorical, Integer, Real, SearchSpace

DOCUMENTS = tuple(
    Document(f"d{number}", city, f"{city} lies on a river called {river}.")
    for number, (city, river) in enumerate(
        [("Lima", "Rimac"), ("Cairo", "Nile"), ("Paris", "Seine"), ("Rome", "Tiber")]
    )
)
QUERIES = (
    Query("q0", "which river flows through Lima"),
    Query("q1", "Paris river"),
    Query("q2", "Rome or Cairo"),
    Query("q3", "zymurgy"),
)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return Corpus(DOCUMENTS, fingerprint="four-cities")


@pytest.fixture(scope="session")
def queries() -> tuple[Query, ...]:
    return QUERIES


@pytest.fixture
def write_data(tmp_path, corpus, queries) -> Callable[[Mapping[str, str]], None]:
    """Return what writes a data set with a relevant document for each query into ``data``."""

    def write(relevant: Mapping[str, str]) -> None:
        (tmp_path / "data" / "qrels").mkdir(parents=True)
        for name, records in (
            ("corpus", [{"_id": d.id, "title": d.title, "text": d.text} for d in corpus.documents]),
            ("queries", [{"_id": q.id, "text": q.text} for q in queries]),
        ):
            text = "".join(json.dumps(record) + "\n" for record in records)
            (tmp_path / "data" / f"{name}.jsonl").write_text(text, encoding="utf-8")
        judged = "".join(f"{query}\t{document}\t1\n" for query, document in relevant.items())
        head = "query-id\tcorpus-id\tscore\n"
        (tmp_path / "data" / "qrels" / "test.tsv").write_text(f"{head}{judged}")

    return write


@pytest.fixture(scope="session")
def space() -> SearchSpace:
    return SearchSpace(
        {
            "title_weight": Real(0.0, 2.0),
            "top_k": Integer(1, 4),
            "fault": Categorical(("none", "crash", "hang", "garbage")),
        }
    )
