"""A small corpus and space for adapters of outside systems."""

from __future__ import annotations

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


@pytest.fixture(scope="session")
def space() -> SearchSpace:
    return SearchSpace(
        {
            "title_weight": Real(0.0, 2.0),
            "top_k": Integer(1, 4),
            "fault": Categorical(("none", "crash", "hang", "garbage")),
        }
    )
