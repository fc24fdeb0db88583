"""Embedding functions for systems that search by vectors: one of the user's, or one made here."""

from __future__ import annotations

import importlib
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Corpus, Document
from tuner.core.errors import InputError, TunerError, one_line
from tuner.core.rankings import Float32Array
from tuner.core.registry import call_problem
from tuner.core.words import fold
from tuner.retrieval.hybrid.text import analyse

HASHED_WORDS = "hashed-words"
"""The embedder that is used where the configuration names none."""

EmbedderName = Annotated[str, "module:function, from texts to a matrix with a row for each"]

_WORDS = 1016
_GRAINS = 8
_GRAIN = 1e-3
_PROBE = "Which river flows through the town where the film's director was born?"


class Embedder(Protocol):
    """Turns texts into vectors, shape (texts, dimensions); one row a text, in their order."""

    def __call__(self, texts: Sequence[str], /) -> npt.NDArray[Any]:
        """Embed the texts."""
        ...


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
                draw = np.random.default_rng(zlib.crc32(text.encode("utf-8", "replace")))
                vector[_WORDS:] = _GRAIN * draw.standard_normal(_GRAINS)
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


def load_embedder(name: str) -> Embedder:
    """Import ``package.module:function``, a function from texts to a matrix of numbers.

    Raises:
        InputError: no such module or function.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        message = f"{name!r} must name a function as package.module:function"
        raise InputError(message, key=("embedder",))
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ImportError as error:
        message = f"cannot import the embedder {name!r}: {error}"
        raise InputError(message, key=("embedder",)) from error
    except AttributeError as error:
        message = f"module {module_name!r} has no {attribute!r}"
        raise InputError(message, key=("embedder",)) from error
    if problem := call_problem(found, "texts"):
        message = f"{name!r} {problem}; write a function from a list of texts to their vectors"
        raise InputError(message, key=("embedder",))
    embedder: Embedder = found
    return embedder


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


def open_embedder(name: str, directory: Path) -> Embedder:
    """Return the embedder of an index in ``directory``: loaded from there, or imported."""
    return HashedWords.load(directory) if name == HASHED_WORDS else load_embedder(name)


def embed(
    embedder: Embedder, texts: Sequence[str], label: Callable[[int], str], *, dimensions: int = 0
) -> Float32Array:
    """Embed texts and check every vector; ``label(i)`` names the text of row i in an error.

    Zero and NaN vectors are refused: a vector search ranks them by accident, and silently.

    Raises:
        TunerError: the embedder failed, or returned something else than one finite, non-zero
            vector a text, of ``dimensions`` numbers where that is given.
    """
    if not texts:
        return np.zeros((0, dimensions), dtype=np.float32)
    try:
        answer = np.asarray(embedder(list(texts)))
    except TunerError:
        raise
    except Exception as error:
        raise TunerError(f"the embedder failed: {one_line(error)}") from error
    if answer.ndim != 2 or len(answer) != len(texts) or answer.dtype.kind not in "fiu":
        raise TunerError(
            f"the embedder returned shape {answer.shape} of {answer.dtype} for {len(texts)} texts; "
            "it must return a matrix of numbers, one row a text"
        )
    if dimensions and answer.shape[1] != dimensions:
        raise TunerError(
            f"the embedder returned vectors of {answer.shape[1]} numbers, but those of the index "
            f"have {dimensions}: it is another model than the one that made the index"
        )
    vectors = answer.astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1)
    broken = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(broken):
        kind = "all zeros" if lengths[broken[0]] == 0 else "not finite"
        more = f" ({len(broken)} texts in all)" if len(broken) > 1 else ""
        raise TunerError(f"the embedder's vector of {label(int(broken[0]))} is {kind}{more}")
    return vectors


def make_embedder(name: str, texts: Iterable[str]) -> Embedder:
    """Return the embedder for a new index over ``texts``: made from them, or imported."""
    return HashedWords.fit(texts) if name == HASHED_WORDS else load_embedder(name)


def identity(name: str) -> str:
    """Return what changes when another model stands behind an embedder's name.

    A model repeats itself only up to rounding, so of its vector of one sentence only the size and
    the place of the largest number count.

    Raises:
        InputError: there is no such embedder.
        TunerError: it failed, or its vector is zero or not finite.
    """
    if name == HASHED_WORDS:
        return name
    vector = embed(load_embedder(name), [_PROBE], lambda _: "a test sentence")[0]
    return f"{name} {len(vector)} {np.abs(vector).argmax()}"
