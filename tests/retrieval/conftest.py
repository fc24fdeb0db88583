"""A small corpus for the systems that are wrapped: a chain of facts, and passages beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple

DOCUMENTS = (
    Document("10", "Night Ferry", "Night Ferry is a film directed by Ada Holm in 1954."),
    Document("11", "Ada Holm", "Ada Holm was a director. She was born in Kvarnby."),
    Document("12", "Kvarnby", "Kvarnby is a town on the river Lissa."),
    Document("13", "Lissa (river)", "The Lissa flows through Ostermark into the sea."),
    Document("14", "Day Ferry", "Day Ferry is a film directed by Per Lund."),
    Document("15", "Per Lund", "Per Lund was a director who lived in Ostermark."),
    Document("16", "Lissa (singer)", "Lissa is a singer. Her film songs are known to all."),
    Document("17", "Rivers", "A river is a stream of water. Rivers flow to the sea."),
)
TRIPLES = (
    Triple("10", "Night Ferry", "directed by", "Ada Holm"),
    Triple("11", "Ada Holm", "born in", "Kvarnby"),
    Triple("12", "Kvarnby", "lies on", "Lissa"),
    Triple("13", "Lissa", "flows through", "Ostermark"),
    Triple("14", "Day Ferry", "directed by", "Per Lund"),
    Triple("15", "Per Lund", "lived in", "Ostermark"),
)
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "On which river lies the home town of Ada Holm?"),
    Query("c", "who directed day ferry"),
    Query("d", "Which streams of water reach the sea?"),
    Query("e", "Xylophone quartz?"),
)


@pytest.fixture
def corpus() -> Corpus:
    return Corpus(DOCUMENTS, TRIPLES)


@pytest.fixture
def queries() -> list[Query]:
    return list(QUERIES)


@pytest.fixture
def embedders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the modules in ``embedders`` be imported: odd embedders, and stores of the user's own."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "embedders"))
