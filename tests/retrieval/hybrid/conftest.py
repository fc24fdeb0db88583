"""An engine over the corpus of these tests, whose graph is that of the names in the texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.retrieval.hybrid import Hybrid

Build = Callable[..., Hybrid]


@pytest.fixture
def corpus(corpus: Corpus) -> Corpus:
    return Corpus(corpus.documents)


@pytest.fixture
def queries(queries: list[Query]) -> list[Query]:
    return [*queries[:-1], Query("e", "Night Ferry or Day Ferry: which film is older?")]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Build an engine over documents, or over a corpus, in a cache of the test's own."""

    def make(source: Corpus | list[Document], **options: object) -> Hybrid:
        corpus = source if isinstance(source, Corpus) else Corpus(tuple(source))
        return Hybrid.build(corpus, cache_dir=tmp_path / "cache", **options)

    return make
