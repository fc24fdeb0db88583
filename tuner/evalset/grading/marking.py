"""Where a query's terms stand in a passage, by the stems that the built-in engine searches by."""

from __future__ import annotations

from tuner.core.words import is_unspaced, split_words, word_spans
from tuner.retrieval.hybrid.seeds import QUESTION_WORDS
from tuner.retrieval.hybrid.text import analyse


def query_terms(query: str) -> frozenset[str]:
    """Return the terms of a query but those of any question.

    >>> sorted(query_terms("Who was the founder of Rome?"))
    ['founder', 'rome']
    """
    (terms,) = analyse([query])
    (common,) = analyse([" ".join(sorted(QUESTION_WORDS))])
    return frozenset(terms) - frozenset(common)


def in_pieces(text: str, terms: frozenset[str]) -> list[str]:
    """Return a text in pieces: not marked, marked, not marked, and so on; empty ones included.

    >>> in_pieces("Rome: Romulus founded Rome.", query_terms("the founding of Rome"))
    ['', 'Rome', ': Romulus ', 'founded Rome', '.']
    """
    spans = list(word_spans(text))
    words = [split_words(text[begin:end]) for begin, end in spans]
    alone = [len(found) == 1 and is_unspaced(found[0]) for found in words]
    marked = [not terms.isdisjoint(stems) for stems in analyse(" ".join(w) for w in words)]
    for number in range(len(spans) - 1):
        # Two characters that stand side by side are one term.
        if alone[number] and alone[number + 1] and spans[number][1] == spans[number + 1][0]:
            is_term = words[number][0] + words[number + 1][0] in terms
            marked[number] |= is_term
            marked[number + 1] |= is_term
    pieces: list[str] = []
    last = 0
    for (begin, end), is_marked in zip(spans, marked, strict=True):
        if not is_marked:
            continue
        if pieces and not text[last:begin].strip():
            pieces[-1] += text[last:end]
        else:
            pieces += [text[last:begin], text[begin:end]]
        last = end
    return [*pieces, text[last:]]
