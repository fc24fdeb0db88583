"""Vectors of queries: made once before the trials, kept on disk, and shared by all workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tuner.core.json_text import digest_of
from tuner.core.rankings import Float32Array
from tuner.retrieval.embedder import Embedder, embed
from tuner.retrieval.hybrid.cache import ensure, read_array, write_array

Labels = Mapping[str, str]
"""Texts to embed, and whose each is, such as ``"query 'q7'"``, for errors."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors that this process knows, by text, and the embedder that makes more."""

    model: Embedder
    dimensions: int
    known: dict[str, Float32Array] = field(default_factory=dict)
    _taken_up: set[Path] = field(default_factory=set)

    def take_up(self, kept: Kept) -> None:
        """Read what was made ahead; what is gone is made anew when it is needed."""
        for directory in kept.directories:
            if directory in self._taken_up:
                continue
            self._taken_up.add(directory)
            try:
                texts = json.loads((directory / "texts.json").read_text(encoding="utf-8"))
                vectors = read_array(directory, "vectors")
            except FileNotFoundError:
                continue
            self.known.update(zip(texts, vectors, strict=True))

    def embed(self, labels: Labels, *, again: bool = False) -> None:
        """Make the vectors that are not known yet, or all of them ``again``.

        Raises:
            TunerError: the embedder failed, or gave a zero or NaN vector.
        """
        texts = [text for text in labels if again or text not in self.known]
        vectors = embed(
            self.model, texts, lambda row: labels[texts[row]], dimensions=self.dimensions
        )
        self.known.update(zip(texts, vectors, strict=True))


@dataclass(frozen=True)
class Kept:
    """Where vectors lie that were made ahead of the trials; goes to the workers with an adapter."""

    directories: list[Path] = field(default_factory=list)

    def make(self, index: Path, model: Callable[[], Embedder], labels: Labels) -> None:
        """Make the vectors of texts on disk, beside an index's directory, unless they are there.

        Raises:
            TunerError: the embedder failed, gave a zero or NaN vector, or the cache cannot be
                written.
        """
        directory = _keep(index, model, labels)
        if directory not in self.directories:
            self.directories.append(directory)


def _keep(index: Path, model: Callable[[], Embedder], labels: Labels) -> Path:
    texts = sorted(labels)
    key = digest_of(texts)
    directory = index.with_name(f"{index.name}-queries-{key}")

    def write(unfinished: Path) -> None:
        vectors = embed(model(), texts, lambda row: labels[texts[row]])
        write_array(unfinished, "vectors", vectors)
        (unfinished / "texts.json").write_text(json.dumps(texts), encoding="utf-8")

    ensure(directory, write)
    return directory
