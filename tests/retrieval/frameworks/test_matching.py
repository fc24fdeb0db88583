"""By what the documents that a framework finds are known."""

from __future__ import annotations

import pytest

from tuner.core.corpus import Corpus, Document
from tuner.retrieval.adapters.answers import passage_tokens
from tuner.retrieval.adapters.frameworks.matching import Hit, how_to_match

CORPUS = Corpus((Document("d1", "Lima", "Lima lies low."), Document("d2", "Rome", "Rome is old.")))
KNOWN = passage_tokens(CORPUS)


@pytest.mark.parametrize(
    ("hits", "how"),
    [
        ([Hit("d2", {"page": "d2"}, "")], "id"),
        (
            [Hit("x7", {"to": "d", "page": "d2"}, ""), Hit("x8", {"page": "d1"}, "")],
            "metadata.page",
        ),
        ([Hit(None, {}, "Lima Lima lies low.")], "content"),
        ([Hit("x7", {"page": "d2"}, ""), Hit("x8", {"page": "x"}, "")], ""),  # one is no document
        ([], ""),
    ],
)
def test_what_all_hits_are_known_by_is_found(hits, how):
    assert how_to_match(hits, CORPUS, KNOWN) == how
