from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.steps import Advance
from tuner.core.trial import Params
from tuner.retrieval.indexes import Indexed

HERE = Path(__file__).parent
CORPUS = Corpus(tuple(Document(str(n), f"title {n}", f"text {n}") for n in range(10)))
QUERIES = (Query("q", "which?"), Query("r", "what?"))


@dataclass(frozen=True)
class Make:
    log: str

    def __call__(self, corpus: Corpus, folder: Path, settings: Params, advance: Advance) -> Any:
        from toy_indexes import Toy

        folder.mkdir(parents=True, exist_ok=True)
        advance(1, 2)
        return Toy.build(corpus, cache_dir=folder, log=self.log, **settings)


@pytest.fixture(autouse=True)
def toy_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Indexed]:
    """Return what makes a retriever over the indexes of the toy kind, with limits."""

    def made(**options: Any) -> Indexed:
        from toy_indexes import Toy

        recipe = Make(str(tmp_path / "log"))
        indexed = Indexed(
            "toy", recipe, CORPUS, tmp_path, knobs=Toy.declare_knobs(), first={}, **options
        )
        indexed.prepare(QUERIES)
        return indexed

    return made
