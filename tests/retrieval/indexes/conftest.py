from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.retrieval.indexes import Indexed

HERE = Path(__file__).parent
CORPUS = Corpus(tuple(Document(str(n), f"title {n}", f"text {n}") for n in range(10)))
QUERIES = (Query("q", "which?"), Query("r", "what?"))


@pytest.fixture(autouse=True)
def toy_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Indexed]:
    """Return what makes a retriever over the indexes of the toy kind, with limits."""

    def made(**options: Any) -> Indexed:
        from toy_indexes import Make, Toy

        recipe = options.pop("make", Make(str(tmp_path / "log")))
        indexed = Indexed(
            "toy",
            recipe,
            CORPUS,
            tmp_path,
            **{"knobs": Toy.declare_knobs(), "first": {}, **options},
        )
        indexed.prepare(QUERIES)
        return indexed

    return made
