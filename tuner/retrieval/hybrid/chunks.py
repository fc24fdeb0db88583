"""Chunks: documents cut into passages of whole sentences, each found for itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Corpus, Document
from tuner.core.rankings import IntArray
from tuner.core.words import count_tokens, name_words
from tuner.retrieval.hybrid.graph import imported_names
from tuner.retrieval.hybrid.names import Name
from tuner.retrieval.hybrid.options import HybridOptions

# After an end mark and a space, after an end mark of a script without spaces, or at a new line.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\s*\n\s*")
_WORD = re.compile(r"\S+")

Span = tuple[int, int]
"""Characters of a text, ``[begin, end)``."""


@dataclass(frozen=True)
class Chunks:
    """Passages, and whose each is.

    Attributes:
        corpus: the passages as documents in the order of their owners, with the names that the
            whole corpus brings for them.
        owners: shape (passages,), the place of each one's document, ascending.
        spans: shape (passages, 2), which characters of its document's text each one is.
    """

    corpus: Corpus
    owners: IntArray
    spans: npt.NDArray[np.int32]


def cut_documents(corpus: Corpus, documents: Sequence[Document], options: HybridOptions) -> Chunks:
    """Cut ``documents`` into passages; each has its document's title.

    An imported name goes to the passages in whose title or text it stands, or else to all of its
    document.
    """
    facts = imported_names(corpus)
    passages: list[Document] = []
    owners: list[int] = []
    spans: list[Span] = []
    entities: dict[str, tuple[str, ...]] = {}
    for place, document in enumerate(documents):
        found = list(
            pieces(document.text, tokens=options.chunk_tokens, overlap=options.chunk_overlap)
        )
        parts = [Document(f"{place}#{n}", document.title, t) for n, (_, t) in enumerate(found)]
        if document.id in facts:
            shares = _shares(facts[document.id], parts)
            entities.update((p.id, names) for p, names in zip(parts, shares, strict=True))
        passages += parts
        owners += [place] * len(parts)
        spans += [span for span, _ in found]
    return Chunks(
        Corpus(tuple(passages), (), entities),
        np.array(owners, dtype=np.int64),
        np.array(spans, dtype=np.int32),
    )


def _shares(names: Sequence[Name], parts: Sequence[Document]) -> list[tuple[str, ...]]:
    """Return the names of each part, words joined by spaces."""
    texts = [f" {' '.join(name_words(f'{part.title} {part.text}'))} " for part in parts]
    shares: list[list[str]] = [[] for _ in parts]
    for name in dict.fromkeys(" ".join(name) for name in names):
        holding = [n for n, text in enumerate(texts) if f" {name} " in text]
        for number in holding or range(len(parts)):
            shares[number].append(name)
    return [tuple(share) for share in shares]


def cut(text: str, *, tokens: int, overlap: int) -> Iterator[str]:
    """Yield passages of a text: as many sentences each as fit into ``tokens``, at least one.

    A passage begins with the last sentences of the one before that together have at most
    ``overlap`` tokens. A sentence that is too long is cut between words.

    >>> list(cut("One two. Three four. Five.", tokens=4, overlap=2))
    ['One two. Three four.', 'Three four. Five.']
    """
    return (piece for _, piece in pieces(text, tokens=tokens, overlap=overlap))


def pieces(text: str, *, tokens: int, overlap: int) -> Iterator[tuple[Span, str]]:
    """Yield passages as ``cut`` does, each with its place in the text."""
    places = [span for sentence in _sentences(text) for span in _fitting(text, sentence, tokens)]
    sentences = [text[begin:end] for begin, end in places]
    lengths = [count_tokens(sentence) for sentence in sentences]
    if not sentences:
        yield (0, len(text)), text
        return
    start = end = 0
    while end < len(sentences):
        first_new = end
        total = sum(lengths[start:end])
        # What overlaps must leave room for something new.
        while start < first_new and total + lengths[first_new] > tokens:
            total -= lengths[start]
            start += 1
        while end < len(sentences) and (end == first_new or total + lengths[end] <= tokens):
            total += lengths[end]
            end += 1
        yield (places[start][0], places[end - 1][1]), " ".join(sentences[start:end])
        start, shared = end, 0
        while start > first_new and shared + lengths[start - 1] <= overlap:
            start -= 1
            shared += lengths[start]


def _sentences(text: str) -> Iterator[Span]:
    """Yield the sentences that are not empty, without the space around them."""
    start = 0
    for end, following in [*(gap.span() for gap in _SENTENCE_END.finditer(text)), (len(text),) * 2]:
        sentence = text[start:end]
        if kept := sentence.strip():
            begin = start + sentence.index(kept)
            yield begin, begin + len(kept)
        start = following


def _fitting(text: str, sentence: Span, tokens: int) -> Iterator[Span]:
    """Yield a sentence, or its parts of at most ``tokens``; a word with more stays whole."""
    if count_tokens(text[slice(*sentence)]) <= tokens:
        yield sentence
        return
    start = end = sentence[0]
    total = 0
    for word in _WORD.finditer(text, *sentence):
        length = count_tokens(word.group())
        if end > start and total + length > tokens:
            yield start, end
            start, total = word.start(), 0
        end, total = word.end(), total + length
    yield start, end
