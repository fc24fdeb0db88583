"""Embedding functions for systems that search by vectors: what there is, made, kept and opened.

``hashed-words`` is made here; all others are those of the built-in engine.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Corpus, Document
from tuner.core.errors import InputError
from tuner.core.rankings import Float32Array
from tuner.core.words import count_tokens, fold
from tuner.retrieval.embedder import Embedder, load_embedder
from tuner.retrieval.hybrid import embedders as engine
from tuner.retrieval.hybrid.text import analyse
from tuner.retrieval.knobs import Knob

HASHED_WORDS = "hashed-words"
"""The embedder that is used where the configuration names none."""
EMBEDDERS = (HASHED_WORDS, engine.LSA, engine.WORDLLAMA)
"""Those that need no name of the user's."""

EmbedderName = Annotated[
    str,
    "what makes vectors of texts: hashed-words, lsa, wordllama, module:function (from texts to a "
    "matrix with a row for each), or a model of sentence-transformers by name",
]

_COST = "cost.json"
_WORDS = 1016
_GRAINS = 8
_GRAIN = 1e-3


@dataclass(frozen=True)
class HashedWords:
    """Embed a text by its stemmed words: tf-idf, each word hashed to one signed coordinate.

    The cosine of two vectors estimates their tf-idf cosine, with an error of about 1/32: no
    download, nothing learned beyond word counts, below a trained model in quality. A text without
    any word is hashed as a whole, so that only an empty text is zero.

    The last 8 numbers are a tiny random vector of the text's own. Without it many texts would be
    equally similar to a query, namely not at all, and systems order equals by chance.
    """

    documents: int
    counts: dict[str, int]

    @classmethod
    def fit(cls, texts: Iterable[str]) -> HashedWords:
        """Count in how many of the texts each word stands."""
        counts: dict[str, int] = {}
        rows = analyse(texts)
        for row in rows:
            for term in set(row):
                counts[term] = counts.get(term, 0) + 1
        return cls(len(rows), counts)

    def __call__(self, texts: Sequence[str], /) -> Float32Array:
        """Embed the texts; shape (texts, 1024), rows of length 1 but for the grain."""
        vectors = np.zeros((len(texts), _WORDS + _GRAINS), dtype=np.float32)
        for vector, text, terms in zip(vectors, texts, analyse(texts), strict=True):
            frequency: dict[str, int] = {}
            for term in terms or fold(text).split():
                frequency[term] = frequency.get(term, 0) + 1
            for term, count in frequency.items():
                place, sign = _coordinate(term)
                rarity = np.log((1 + self.documents) / (1 + self.counts.get(term, 0))) + 1
                vector[place] += sign * (1 + np.log(count)) * rarity
            length = np.linalg.norm(vector)
            if length > 0:
                vector /= length
                vector[_WORDS:] = _GRAIN * _draw(text, _GRAINS)
        return vectors

    def save(self, directory: Path) -> None:
        """Write the word counts into ``directory``."""
        record = {"documents": self.documents, "counts": self.counts}
        (directory / "words.json").write_text(json.dumps(record), encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> HashedWords:
        """Read what ``save`` wrote."""
        record = json.loads((directory / "words.json").read_text(encoding="utf-8"))
        return cls(record["documents"], record["counts"])


@lru_cache(maxsize=1 << 17)
def _coordinate(term: str) -> tuple[int, float]:
    digest = zlib.crc32(sha256(term.encode()).digest())
    return digest % _WORDS, 1.0 if digest & (1 << 31) else -1.0


def passage_text(document: Document) -> str:
    """Return what is stored and embedded of a document: title and text, a line each."""
    return f"{document.title}\n{document.text}".strip()


def passages(corpus: Corpus) -> dict[str, str]:
    """Return the ``passage_text`` of every document, by id.

    Raises:
        InputError: no document, or two with one id.
    """
    found: dict[str, str] = {}
    for document in corpus.documents:
        if document.id in found:
            raise InputError(f"document id {document.id!r} occurs twice in the corpus")
        found[document.id] = passage_text(document)
    if not found:
        raise InputError("the corpus has no documents")
    return found


def embedder_knob(today: str) -> Knob:
    """Return the index parameter ``embedder`` of a system that is built with ``today``."""
    return Knob(
        "embedder",
        "categorical",
        today,
        choices=tuple(dict.fromkeys((*EMBEDDERS, today))),
        is_open=True,
        stage="index",
        description="what makes vectors of texts: a built-in one by name, module:function, or a "
        "model of sentence-transformers",
    )


@dataclass(frozen=True)
class NeverSilent:
    """An embedder by its words, with a vector for a text of which it knows none.

    That is a direction of the text's own, by chance and so unlike all others: nothing is found by
    it, as it should be. Systems that search by vectors have no answer to zeros.
    """

    embedder: Embedder

    def __call__(self, texts: Sequence[str], /) -> Float32Array:
        """Embed the texts; only an empty one is zero."""
        vectors = np.array(self.embedder(texts), dtype=np.float32)
        for row in np.flatnonzero(~vectors.any(axis=1)).tolist():
            if texts[row].strip():
                vectors[row] = _draw(texts[row], vectors.shape[1])
        return vectors

    def save(self, directory: Path) -> None:
        """Let the embedder write what it has learned, if anything."""
        save_embedder(self.embedder, directory)


@dataclass
class Counting:
    """An embedder that counts the words of all that it reads."""

    embedder: Embedder
    tokens: int = 0

    def __call__(self, texts: Sequence[str], /) -> npt.NDArray[Any]:
        """Embed the texts."""
        self.tokens += sum(map(count_tokens, texts))
        return self.embedder(texts)

    def write(self, directory: Path) -> None:
        """Write the count into an index's directory."""
        (directory / _COST).write_text(json.dumps({"tokens": self.tokens}), encoding="utf-8")


def read_cost(directory: Path) -> dict[str, float]:
    """Return what embedding an index took; nothing where it was not counted."""
    try:
        cost: dict[str, float] = json.loads((directory / _COST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return cost


def open_embedder(name: str, directory: Path) -> Embedder:
    """Return the embedder of an index in ``directory``: loaded from there, or imported.

    Raises:
        InputError: there is no such embedder, or it is not installed.
    """
    if name == HASHED_WORDS:
        return HashedWords.load(directory)
    return load_embedder(name) if ":" in name else _heard(name, engine.reopen(name, directory))


def make_embedder(name: str, texts: Iterable[str]) -> Embedder:
    """Return the embedder for a new index over ``texts``: made from them, or imported.

    Raises:
        InputError: there is no such embedder, or it is not installed.
    """
    if name == HASHED_WORDS:
        return HashedWords.fit(texts)
    if ":" in name:
        return load_embedder(name)
    return _heard(name, engine.make(name, list(texts), dimensions=0))


def save_embedder(model: Embedder, directory: Path) -> None:
    """Write what an embedder has learned from its texts into ``directory``, if anything."""
    if isinstance(model, HashedWords | NeverSilent | engine.Lsa):
        model.save(directory)


def identity(name: str) -> str:
    """Return what changes when another model stands behind an embedder's name.

    Raises:
        InputError: there is no such embedder.
        TunerError: it failed, or its vector is zero or not finite.
    """
    return name if name == HASHED_WORDS else engine.identity(name)


@lru_cache(maxsize=64)
def known_identity(name: str) -> str:
    """Return ``identity``, asked once a process: a trial has no time to embed for it."""
    return identity(name)


def _heard(name: str, embedder: Embedder) -> Embedder:
    return NeverSilent(embedder) if engine.may_be_silent(name) else embedder


def _draw(text: str, count: int) -> Float32Array:
    draw = np.random.default_rng(zlib.crc32(text.encode("utf-8", "replace")))
    return draw.standard_normal(count).astype(np.float32)
