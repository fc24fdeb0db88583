"""Supporting texts of judged documents: where in the document each of them stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tuner.core.corpus import Document

Supports = Mapping[str, Mapping[str, Sequence[str]]]
"""query id -> id of a relevant document -> the texts in it that a right answer rests on."""
Spans = dict[str, dict[str, tuple[int, int]]]


@dataclass(frozen=True)
class SupportingSpans:
    """What has to be retrieved of documents for the supporting texts to be in it.

    Attributes:
        spans: query id -> document id -> the characters ``[begin, end)`` of the document's text
            from the first supporting text to the end of the last.
        missing: query and document ids where a supporting text is not in the document.
    """

    spans: Spans
    missing: tuple[tuple[str, str], ...]


def find_supporting(supports: Supports, documents: Iterable[Document]) -> SupportingSpans:
    """Find supporting texts in their documents; white space may differ.

    A document that lacks one of its texts has no span, and so has one without any.

    >>> found = find_supporting({"q": {"d": ["B.", "C."]}}, [Document("d", "", "A. B. C. D.")])
    >>> found.spans
    {'q': {'d': (3, 8)}}
    """
    texts = {document.id: document.text for document in documents}
    spans: Spans = {}
    missing = []
    for query, by_document in supports.items():
        for document, wanted in by_document.items():
            places = [_place(texts.get(document, ""), text) for text in wanted]
            found = [place for place in places if place is not None]
            if len(found) < len(places):
                missing.append((query, document))
            elif found:
                begin, end = min(b for b, _ in found), max(e for _, e in found)
                spans.setdefault(query, {})[document] = (begin, end)
    return SupportingSpans(spans, tuple(missing))


def _place(text: str, wanted: str) -> tuple[int, int] | None:
    wanted = wanted.strip()
    start = text.find(wanted)
    if start >= 0:
        return start, start + len(wanted)
    match = re.search(r"\s+".join(map(re.escape, wanted.split())), text)
    return None if match is None else match.span()
