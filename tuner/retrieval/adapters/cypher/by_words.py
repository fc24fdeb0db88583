"""The built-in search by words, BM25 over titles and texts, for graphs that have none at hand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from scipy import sparse

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, TunerError
from tuner.retrieval.hybrid.cache import ensure, read_array, write_array
from tuner.retrieval.hybrid.columns import Places, Texts
from tuner.retrieval.hybrid.text import Bm25
from tuner.retrieval.hybrid.words import Words

_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True, eq=False)
class ByWords:
    """The search over documents in the order of their ids."""

    bm25: Bm25
    ids: Texts

    def best(self, text: str, count: int) -> list[tuple[str, float]]:
        """Return the best documents with their scores; of equals the one with the lower id first.

        Only those that have a word of the text are found.
        """
        (scores,) = self.bm25.scores([text])
        order = np.argsort(-scores, kind="stable")[:count]
        return [(self.ids[place], float(scores[place])) for place in order if scores[place] > 0]

    def save(self, directory: Path) -> None:
        """Write it into an empty directory."""
        for part in _PARTS:
            write_array(directory, f"bm25_{part}", getattr(self.bm25.weights, part))
        self.bm25.terms.save(directory, "terms")
        self.ids.save(directory, "ids")

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Map what ``save`` wrote into memory."""
        terms, ids = Places.load(directory, "terms"), Texts.load(directory, "ids")
        parts = tuple(read_array(directory, f"bm25_{part}") for part in _PARTS)
        weights = sparse.csr_array(parts, shape=(len(terms.texts), len(ids)))
        return cls(Bm25(weights, terms), ids)


def write_by_words(directory: Path, corpus: Corpus) -> None:
    """Index a corpus on disk, unless that was done before.

    Raises:
        InputError: the corpus has no documents.
        TunerError: the directory cannot be written.
    """
    if not corpus.documents:
        message = "the built-in search by words needs the documents of the data set: it has none"
        raise InputError(message, key=("steps",))
    documents = sorted(corpus.documents, key=lambda document: document.id)

    def write(unfinished: Path) -> None:
        bm25 = Bm25.build(Words.of(documents))
        ByWords(bm25, Texts.of(document.id for document in documents)).save(unfinished)

    ensure(directory, write)


@lru_cache(maxsize=4)
def open_by_words(directory: Path) -> ByWords:
    """Open an index once a process.

    Raises:
        TunerError: it is gone.
    """
    try:
        return ByWords.load(directory)
    except FileNotFoundError as error:
        message = f"the index in {directory} is gone: build the retriever again"
        raise TunerError(message) from error
